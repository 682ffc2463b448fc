"""Calls found by `campaigns` that once raised an undocumented exception or never returned."""

import re

import numpy as np
import pytest

import retrograde as tf
from campaigns.call_values import names
from retrograde.values.arguments import as_int

HUGE = 10**18  # a `range` of this length does not fit into memory
INFINITE = float("inf")

RAISES = {
    TypeError: """
        tf.random_normal_initializer.from_config([-1])
        tf.summary.flush(writer=np.ones(2))
        tf.summary.create_file_writer(tf.constant(2))
        tf.summary.write([[1, 2], [3]], 1, metadata=1.5)
        tf.DeviceSpec.from_string([1])
        tf.train.load_variable("", 1)
        tf.math.count_nonzero("1,2", dtype=tf.string)
        tf.DeviceSpec().make_merged_spec(range(3))
        tf.data.experimental.get_single_element([1])
        tf.data.experimental.cardinality([1])
        tf.data.experimental.get_structure(tf.bfloat16)
        tf.data.experimental.get_next_as_optional([1])
        tf.data.experimental.save([1], "folder")
        tf.data.Dataset.range(5).with_options([1])
        tf.data.Dataset.range(5).concatenate(1)
        tf.data.Dataset.sample_from_datasets([dict, 1])
        tf.data.Dataset.choose_from_datasets([1], tf.data.Dataset.range(3))
        tf.data.Options().merge(1)
        tf.TensorSpec.from_spec(float)
        tf.SparseTensorSpec.from_value([1])
        tf.RaggedTensorSpec.from_value(1)
        tf.sparse.mask(tf.TensorShape([2]), [0])
        tf.strings.format((), 1)
        tf.train.ExponentialMovingAverage(0.9).average_name([1])
        tf.io.gfile.GFile("file", mode=slice(0))
        tf.random.Generator(copy_from=len)
        tf.saved_model.save(tf.Module(), "folder", options=range(3))
        tf.linalg.experimental.conjugate_gradient(1, [1.0])
        tf.zeros([2], dtype=[deep(3000)])
        tf.case(deep(3000))
        tf.sparse.sparse_dense_matmul(deep(3000), 1)
        tf.io.decode_png([tf.constant(2)])
        tf.DeviceSpec(device_type=deep(3000))
        tf.GradientTape().derivatives(tf.constant(1.0), len)
        tf.zeros([2], None)
        tf.random.uniform([2], dtype=None)
        tf.random.stateless_uniform([2], [1, 2], dtype=None)
        tf.sin(tf.IndexedSlices(tf.ones([1, 2]), np.array([b"ab"]), tf.constant([3, 2])))
        list(tf.data.TextLineDataset(tf.data.Dataset.range(3)))
        tf.einsum(deep(3000), 1.0)
        tf.io.decode_csv(["1"], [[1]], field_delim=1.5)
        tf.RaggedTensorSpec(flat_values_spec=1000)
        tf.constant(1.5).__array__(dtype=deep(3000))
        tf.random.fixed_unigram_candidate_sampler([[0]], 1, 1, True, 3, vocab_file=1)
        tf.scan(deep(3000), 1j)
        tf.nn.dilation2d(S(1, 5, 5, 1), S(2, 3, 1), [1] * 4, deep(3000), "NHWC", [1] * 4)
        tf.GradientTape().gradient(tf.constant(1.0), [Odd])
        tf.nest.map_structure(deep(3000), 1)
    """,
    ValueError: """
        tf.data.Dataset.from_tensor_slices(tf.IndexedSlices([[0]], [3]))
        tf.constant(np.float32)
        tf.abs(np.int64)
        tf.add(1.0, np.generic)
        tf.constant([np.float32])
        tf.constant(cyclic())
        tf.constant([cyclic()])
        tf.constant(deep(3000))
        tf.multiply([cyclic()], tf.zeros([2]))
        tf.experimental.numpy.concatenate(cyclic())
        tf.nest.flatten(deep(3000))
        tf.nest.flatten(cyclic())
        tf.nest.map_structure(abs, cyclic())
        tf.ragged.constant(deep(3000))
        tf.ragged.boolean_mask(1, [True])
        tf.not_equal(10**400, tf.constant(1.0))
        tf.abs(tf.TensorShape([2**63, 3]))
        tf.strings.format("a", 1, placeholder="")
        tf.compat.forward_compatible(2**64, 1, 1)
        tf.math.bincount([0, tf.ragged.constant([[1], []])])
        tf.rank([[1, 2], tf.ragged.constant([[1, 2], [3]])])
        tf.sort([0, 0], direction=deep(3000))
        tf.nest.assert_same_structure(deep(150), [0, 1])
        tf.TensorShape([2]).merge_with(range(2**64))
        tf.strings.split("a b", maxsplit=2**63)
        tf.experimental.numpy.random.randint(float("inf"))
        tf.negative([tf.sparse.from_dense([[1.0]]), 2])
        tf.rank([[1, 2], [tf.sparse.from_dense([[1.0, 0.0]]), 4]])
        tf.experimental.numpy.zeros([[[], []], []])
        tf.linalg.tensordot([1.0], [1.0], deep(3000))
        tf.constant(1.0).set_shape(range(10**9))
        tf.GradientTape(memory_limit=10**400)
        tf.GradientTape().watch(range(10**30))
        tf.abs(tf.IndexedSlices([[1.0]], tf.sparse.from_dense([[1.0]]), [3, 1]))
        tf.TensorArray(tf.float32, 2**63)
        tf.IndexedSlices([[1.0]], [0], tf.constant([1.0, float("inf")])) + tf.ones([1, 2])
        tf.image.resize(S(4, 5, 2), [deep(3000), 3])
        tf.py_function(deep(3000), 1.5, tf.float32)
        tf.nest.pack_sequence_as([1, "a"], deep(3000))
        tf.TensorShape([2, None]).assert_has_rank(deep(3000))
        tf.IndexedSlices(np.dtype([("a", "i4")]), [0]) + 1.0
        tf.saved_model.save(cyclic(), "folder")
        tf.saved_model.save(deep(3000), "folder")
        tf.nn.fractional_max_pool(S(1, 4, 4, 1), 10**400)
        tf.nn.leaky_relu(1.0, 10**400)
        tf.image.central_crop(S(4, 4, 1), 10**400)
        tf.image.ssim(S(1, 20, 20, 1), S(1, 20, 20, 1), 1.0, filter_sigma=10**400)
        tf.image.crop_and_resize(S(1, 2, 2, 1), [[0.0] * 4], [0], [2, 2], "nearest", 10**400)
        tf.image.sample_distorted_bounding_box([4, 4, 1], S(1, 1, 4), min_object_covered=10**400)
        tf.image.sample_distorted_bounding_box([4, 4, 1], S(1, 1, 4), 1, 0.1, [10**400] * 2)
        tf.signal.linear_to_mel_weight_matrix(sample_rate=10**400)
        tf.random.fixed_unigram_candidate_sampler([[0]], 1, 1, 1, 1, "", 10**400, unigrams=[1.0])
        tf.test.compute_gradient(tf.abs, [1.0], 10**400)
        tf.experimental.numpy.around(1, decimals=2**31)
        tf.experimental.numpy.around(1, decimals=-309)
        tf.abs([range(10**400)])
        tf.abs([[1], range(10**400)])
        tf.abs([1, range(10**400)])
        tf.add_n(range(10**400))
        tf.data.Dataset.range(3).bucket_by_sequence_length(1, [1], range(10**400))
        tf.data.Dataset.sample_from_datasets([tf.data.Dataset.range(3)], range(10**400))
        tf.data.Dataset.from_tensor_slices(tf.data.Dataset.range(3))
        tf.RaggedTensor.from_nested_value_rowids(1, range(10**400))
        tf.RaggedTensor.from_tensor(1, ragged_rank=deep(3000))
        tf.TensorSpec([2]).most_specific_common_supertype(range(10**400))
        tf.argsort(S(3), range(HUGE))
        tf.assert_rank(1, 1, message=deep(3000))
        tf.debugging.assert_rank_in([1], range(10**400))
        tf.debugging.assert_same_float_dtype(range(10**400))
        tf.debugging.assert_shapes(range(10**400))
        tf.GradientTape(memory_limit=deep(3000))
        tf.dynamic_stitch(range(10**400), [1])
        tf.experimental.numpy.hstack(range(10**400))
        tf.experimental.numpy.stack(range(10**400))
        tf.experimental.numpy.select(range(10**400), 1)
        tf.gather(S(3), [0], axis=tf.ragged.constant([[1.0], []]))
        tf.gather(S(3, 4), [tf.ragged.constant([[1.0], []]), 2])
        tf.image.sample_distorted_bounding_box([4, 4, 1], S(1, 1, 4), area_range=range(10**400))
        tf.image.ssim_multiscale(S(1, 8, 8, 1), S(1, 8, 8, 1), 1.0, (10**400,), 3)
        tf.nest.pack_sequence_as([1], range(10**400))
        tf.nn.bias_add(S(1, 2, 3, 4), S(2), data_format=deep(3000))
        tf.nn.conv2d(S(1, 6, 6, 1), S(2, 2, 1, 2), 1, [[0, 0], [INFINITE, 0], [2, 1], [0, 0]])
        tf.nn.dropout(S(3, 4), 0.5, noise_shape=range(10**400))
        tf.nn.embedding_lookup(tf.ragged.constant([[1.0], []]), [0, 2])
        tf.nn.embedding_lookup(S(2, 3), [0, tf.ragged.constant([[1, 2], [3]])])
        tf.random.fixed_unigram_candidate_sampler([[0]], 1, 1, True, 3, unigrams=range(10**400))
        tf.nn.sufficient_statistics(S(3, 4), range(10**400))
        tf.image.stateless_random_contrast([0, 0], np.timedelta64(1, "s"), 2**64, [1, 2])
        tf.random.set_seed(INFINITE)
        tf.random.uniform([2], seed=INFINITE)
        tf.experimental.numpy.random.seed(INFINITE)
        tf.nn.lrn(S(1, 4, 4, 1), depth_radius=INFINITE)
        tf.nn.dropout(S(2), 0.5, noise_shape=[INFINITE])
        tf.nn.softmax(tf.ragged.constant([[1.0]]), axis=INFINITE)
        tf.split(tf.ragged.constant([[1.0]]), 1, axis=INFINITE)
        tf.expand_dims(tf.ragged.constant([[1.0]]), axis=INFINITE)
        tf.concat([tf.ragged.constant([[1.0]])], axis=INFINITE)
        tf.image.sample_distorted_bounding_box([4, 4, 1], S(1, 1, 4), max_attempts=INFINITE)
        tf.image.resize_with_crop_or_pad(S(4, 4, 1), INFINITE, 5)
        tf.image.extract_patches(S(1, 4, 4, 1), [1, INFINITE, 2, 1], [1] * 4, [1] * 4, "SAME")
        tf.while_loop(lambda x: False, same, [1.0], maximum_iterations=INFINITE)
        tf.data.Dataset.range(3).bucket_by_sequence_length(lambda x: 1, [INFINITE], [1, 1])
        tf.data.experimental.assert_cardinality(INFINITE)
        tf.DeviceSpec(replica=INFINITE)
        tf.train.CheckpointManager(tf.train.Checkpoint(), "folder", 3).save(INFINITE)
        tf.TensorShape(None).with_rank(10**400)
        tf.math.bincount(1, maxlength=tf.ragged.constant([[1.0], []]))
        tf.math.reduce_std(S(), tf.ragged.constant([[1, 2], [3]]))
        tf.identity_n(range(10**400))
        tf.shape_n(range(10**400))
        tf.py_function(abs, range(10**400), tf.float32)
        tf.numpy_function(abs, range(10**400), tf.float32)
    """,
    tf.errors.InvalidArgumentError: """
        tf.compat.dimension_at_index(tf.TensorShape([2]), 5)
        tf.io.encode_jpeg(np.zeros((1, 1, 1), np.uint8), x_density=2**20)
        tf.io.encode_jpeg(np.zeros((1, 1, 1), np.uint8), x_density="a")
        tf.math.unsorted_segment_min(tf.ones([2]), [0, 1], 2**62)
        tf.RaggedTensor.from_tensor(tf.ones([3, 4]), lengths=-1000)
        tf.math.sobol_sample(2, 3, skip=2**40)
        tf.math.sobol_sample(2, 2**40)
        tf.experimental.dlpack.to_dlpack("text")
        tf.ragged.range(deep(40))
        tf.nn.weighted_moments("text", [], 1)
        tf.shape(1, out_type=object)
        tf.dynamic_partition(S(3), [0, 1, 0], 2**31)
        (tf.data.Dataset.range(3).save("folder"), tf.data.Dataset.load("folder", "text"))
        tf.shape_n([1], out_type=tf.string)
        tf.size(1, out_type=tf.bool)
        tf.size(tf.sparse.from_dense([[1.0]]), out_type=tf.string)
        tf.shape(tf.sparse.from_dense([[1.0]]), out_type=tf.string)
        tf.ragged.constant([[1]]).nrows(out_type=object)
        tf.ragged.constant([[1]]).bounding_shape(out_type=object)
        tf.ragged.row_splits_to_segment_ids([0, 1], out_type=tf.string)
        tf.ragged.segment_ids_to_row_splits([0, 1], out_type=tf.string)
        tf.unique([1], out_idx=tf.string)
        tf.searchsorted([1], [1], out_type=tf.string)
        tf.linalg.lu([[1.0]], output_idx_type=tf.string)
    """,
    tf.errors.OutOfRangeError: """
        list(tf.data.Dataset.counter(2**62, 2**62).take(3))
    """,
    tf.errors.ResourceExhaustedError: """
        tf.GradientTape().watch(range(HUGE))
        tf.constant(range(HUGE))
        tf.ragged.constant([[1.0, 2.0], [3.0]]) + range(HUGE)
        tf.abs([1.0, range(HUGE)])
        tf.data.TextLineDataset(range(HUGE))
        tf.strings.join(range(HUGE))
        tf.ragged.segment_ids_to_row_splits([2, 10**15])
        tf.shape_n(range(HUGE))
        tf.split(tf.zeros([0]), HUGE)
        tf.sequence_mask([2**40])
        tf.nn.fractional_avg_pool(S(1, 4, 4, 1), range(HUGE))
        tf.linalg.diag(S(3), padding_value=range(HUGE))
        tf.signal.mdct(np.ones((2, 3), np.float32), 2**40)
        tf.split(tf.zeros([0]), 2**63)
        tf.sparse.eye(HUGE)
        tf.sparse.to_indicator(tf.SparseTensor([[0, 0]], [1], [2, 2]), HUGE)
        tf.sparse.fill_empty_rows(tf.SparseTensor([[0, 0]], [1], [HUGE, 2]), 0)
        tf.ragged_fill_empty_rows([0], [1], HUGE, 0)
        tf.RaggedTensor.from_uniform_row_length([], 0, nrows=HUGE)
        tf.RaggedTensor.from_value_rowids([1], [0], nrows=HUGE)
        tf.math.unsorted_segment_sum(tf.ragged.constant([[1.0]]), [0], HUGE)
        tf.random.learned_unigram_candidate_sampler([[0]], 1, 1, True, HUGE)
        tf.random.fixed_unigram_candidate_sampler([[0]], 1, 1, 1, 3, "", 1.0, HUGE, unigrams=[1])
        tf.random.all_candidate_sampler([[0]], 1, HUGE, True)
        tf.experimental.numpy.eye(10**8)
        tf.experimental.numpy.tri(10**8)
        tf.experimental.numpy.vander([1.0], HUGE)
        tf.signal.linear_to_mel_weight_matrix(10**8, 10**8)
        tf.function(lambda x: x).get_concrete_function(tf.TensorSpec([HUGE]))
        tf.function(lambda x: x).get_concrete_function(tf.TensorSpec([HUGE], tf.string))
    """,
}

CALLS = [
    (line.strip(), error) for error, lines in RAISES.items() for line in lines.strip().splitlines()
]


@pytest.mark.parametrize(("call", "error"), CALLS, ids=[call for call, _ in CALLS])
@pytest.mark.parametrize("in_function", [False, True], ids=["eager", "in a function"])
def test_a_bad_call_raises_a_documented_exception(call, error, in_function, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run():
        eval(call, names() | {"HUGE": HUGE, "INFINITE": INFINITE})

    errors = (error, ValueError) if in_function else error  # TensorFlow raises both
    with pytest.raises(errors) as raised:
        tf.function(run)() if in_function else run()
    assert str(raised.value)


def test_sobol_sample_can_skip_many_points():
    few = tf.math.sobol_sample(3, 1000, skip=5).numpy()
    np.testing.assert_array_equal(tf.math.sobol_sample(3, 10, skip=995)[:], few[990:])
    assert tf.math.sobol_sample(3, 1, skip=2**31 - 3).shape == (1, 3)


def test_a_scalar_string_can_be_flipped():
    assert tf.experimental.numpy.flip(tf.constant("text")).numpy() == b"text"


def test_indexed_slices_of_variables():
    rows = tf.IndexedSlices(tf.Variable([[1.0]]), tf.Variable([0]), tf.constant([2, 1]))
    np.testing.assert_array_equal(tf.nn.relu(rows), [[1.0], [0.0]])


def test_a_range_is_converted_like_a_list():
    for numbers in (range(3), range(0), range(5, -5, -3), range(2**40, 2**40 + 2)):
        expected = tf.constant(list(numbers))
        assert tf.constant(numbers).dtype == expected.dtype
        np.testing.assert_array_equal(tf.constant(numbers), expected)
    assert tf.constant(range(3), tf.float64).dtype == tf.float64


def test_host_functions_accept_arrays_of_bytes_in_a_trace():
    check = tf.function(lambda: tf.io.is_jpeg(np.array(b"\xff\xd8\xff")))
    assert bool(check())


FAILING_WRITES = {
    "a dataset": lambda path: tf.data.Dataset.range(3).save(path),
    "a saved model": lambda path: tf.saved_model.save(tf.Module(), path),
    "a checkpoint": lambda path: tf.train.Checkpoint().write(path),
    "a numbered checkpoint": lambda path: tf.train.Checkpoint().save(path),
    "a manager": lambda path: tf.train.CheckpointManager(tf.train.Checkpoint(), path, 1).save(),
    "a cache": lambda path: list(tf.data.Dataset.range(3).cache(path)),
    "summaries": lambda path: tf.summary.create_file_writer(path),
}


@pytest.mark.parametrize("write", FAILING_WRITES.values(), ids=FAILING_WRITES)
def test_os_errors_become_tensorflow_errors(write, tmp_path):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(tf.errors.FailedPreconditionError):
        write(str(file / "folder"))
    with pytest.raises(tf.errors.OpError):
        write(str(tmp_path / ("a" * 5000)))


def test_cyclic_arguments_of_a_function_raise():
    with pytest.raises(ValueError, match="or contains itself"):
        tf.function(lambda _: 1.0)(names()["cyclic"]())


def test_too_long_or_too_deep_arguments_of_a_function_raise():
    f = tf.function(lambda _: 1.0)
    with pytest.raises(ValueError, match="A structure has too many elements"):
        f(range(10**400))
    with pytest.raises(tf.errors.ResourceExhaustedError):
        f(range(HUGE))
    checked = tf.function(lambda _: 1.0, input_signature=[tf.TensorSpec([2])])
    with pytest.raises(TypeError, match=r"with the input_signature\. Received: \[\[\["):
        checked(names()["deep"](3000))


def test_messages_abbreviate_deeply_nested_values():
    deep = names()["deep"](3000)
    with pytest.raises(ValueError, match=r"`mode` must be 'clip' or 'wrap'\. Received: \[\[\[.*\."):
        tf.experimental.numpy.take([1.0], [0], mode=deep)
    message = re.escape("Expected func to be callable. Received func=[[[[[[[...]]]]]]] of type")
    with pytest.raises(ValueError, match=message):
        tf.py_function(deep, [1.0], tf.float32)


def test_numbers_out_of_the_range_of_floats_raise():
    message = "leaky_relu: alpha is out of range for a Python float. Received: "
    with pytest.raises(ValueError, match=message):
        tf.nn.leaky_relu(1.0, 10**400)
    message = "around: `decimals` must be from -308 to 308. Received: 309."
    with pytest.raises(ValueError, match=re.escape(message)):
        tf.experimental.numpy.around(1.5, 309)
    assert tf.experimental.numpy.around(1.5, 300).numpy() == 1.5


def test_size_requires_a_numeric_out_type():
    message = "size: expected a numeric dtype. Received: string."
    with pytest.raises(tf.errors.InvalidArgumentError, match=re.escape(message)):
        tf.size([1, 2], out_type=object)
    assert tf.size([1, 2], out_type=tf.float32).dtype == tf.float32


def test_ranges_longer_than_an_index_raise():
    with pytest.raises(ValueError, match="has too many elements for a tensor"):
        tf.constant([range(2**64)])
    with pytest.raises(ValueError, match=r"add_n: too many elements\. Received: range"):
        tf.add_n(range(2**64))


def test_out_of_memory_messages_name_the_function_and_the_size():
    message = "eye: out of memory: cannot allocate 8000000000000000000 bytes"
    with pytest.raises(tf.errors.ResourceExhaustedError, match=message):
        tf.sparse.eye(HUGE)


def test_infinite_integers_raise():
    with pytest.raises(ValueError, match=r"set_seed: seed must be finite\. Received: inf\."):
        tf.random.set_seed(INFINITE)


def test_indexed_slices_of_a_numpy_scalar():
    slices = tf.IndexedSlices(np.float32(2.0), tf.constant([0]))
    assert tf.function(lambda s: s.values)(slices).numpy() == 2.0


def test_indexed_slices_of_a_memoryview():
    slices = tf.IndexedSlices(memoryview(b"abc"), [0, 2, 1], [3])
    np.testing.assert_array_equal(tf.convert_to_tensor(slices), [97, 99, 98])


def test_saving_a_cyclic_list_raises(tmp_path):
    module = tf.Module()
    module.parts = names()["cyclic"]()
    message = "saved_model.save: a list or dict is nested too deeply or contains itself."
    with pytest.raises(ValueError, match=re.escape(message)):
        tf.saved_model.save(module, str(tmp_path))


def test_the_global_generator_must_be_a_generator():
    with pytest.raises(TypeError, match=r"Expected a tf\.random\.Generator\. Received: 3\."):
        tf.random.set_global_generator(3)


OUT_OF_RANGE = {
    "skip": lambda: tf.random.Generator.from_seed(1).skip(float("inf")),
    "bounding_shape": lambda: tf.ragged.constant([[1]]).bounding_shape(-(2**40)),
}


@pytest.mark.parametrize("call", OUT_OF_RANGE.values(), ids=OUT_OF_RANGE)
def test_numbers_out_of_range_raise(call):
    with pytest.raises(tf.errors.InvalidArgumentError):
        call()


def test_diag_indices_of_too_many_axes_raise():
    with pytest.raises(ValueError, match=r"`ndim` must be at most 32. Received: 1000000000."):
        tf.experimental.numpy.diag_indices(0, ndim=10**9)


def test_a_masked_number_is_not_an_integer():
    with pytest.raises(ValueError, match=r"a size must be finite. Received: masked"):
        as_int(np.ma.masked_all([])[()], "a size")


def test_decode_csv_requires_a_string_as_na_value():
    with pytest.raises(TypeError, match=r"decode_csv: expected an na_value of type str. Received:"):
        tf.io.decode_csv(["1"], [[1.0]], na_value=dict)


@pytest.mark.parametrize("split", ["vsplit", "hsplit", "dsplit"])
@pytest.mark.parametrize("sections", [0, -1])
def test_splitting_into_less_than_one_part_raises(split, sections):
    message = f"{split}: cannot split 2 elements into {sections} equal parts."
    with pytest.raises(ValueError, match=re.escape(message)):
        getattr(tf.experimental.numpy, split)(np.zeros([2, 2, 2]), sections)


def test_with_space_to_batch_requires_a_string_as_data_format():
    with pytest.raises(TypeError, match=r"with_space_to_batch: expected a data_format of type str"):
        tf.nn.with_space_to_batch(np.ones([1, 4, 4, 1]), [1, 1], "VALID", None, data_format=[None])
