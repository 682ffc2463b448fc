"""Calls that once raised an undocumented class, or never ended: found by `campaigns`."""

import numpy as np
import pytest

import retrograde as tf
from campaigns.call_values import names

FAR = 10**18  # a `range` this long has no room in memory

RAISES = {
    TypeError: """
        tf.random_normal_initializer.from_config([-1])
        tf.summary.flush(writer=np.ones(2))
        tf.summary.create_file_writer(tf.constant(2))
        tf.summary.write([[1, 2], [3]], 1, metadata=1.5)
        tf.DeviceSpec.from_string([1])
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
        tf.sin(tf.IndexedSlices(tf.ones([1, 2]), np.array([b"ab"]), tf.constant([3, 2])))
        list(tf.data.TextLineDataset(tf.data.Dataset.range(3)))
        tf.einsum(deep(3000), 1.0)
        tf.io.decode_csv(["1"], [[1]], field_delim=1.5)
        tf.RaggedTensorSpec(flat_values_spec=1000)
        tf.constant(1.5).__array__(dtype=deep(3000))
        tf.data.Dataset.from_tensor_slices(tf.IndexedSlices([[0]], [3]))
        tf.random.fixed_unigram_candidate_sampler([[0]], 1, 1, True, 3, vocab_file=1)
    """,
    ValueError: """
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
    """,
    tf.errors.OutOfRangeError: """
        list(tf.data.Dataset.counter(2**62, 2**62).take(3))
    """,
    tf.errors.ResourceExhaustedError: """
        tf.constant(range(FAR))
        tf.ragged.constant([[1.0, 2.0], [3.0]]) + range(FAR)
        tf.GradientTape().watch(range(FAR))
        tf.abs([1.0, range(FAR)])
        tf.data.TextLineDataset(range(FAR))
        tf.strings.join(range(FAR))
        tf.ragged.segment_ids_to_row_splits([2, 10**15])
    """,
}

CALLS = [
    (line.strip(), kind) for kind, lines in RAISES.items() for line in lines.strip().splitlines()
]


@pytest.mark.parametrize(("call", "kind"), CALLS, ids=[call for call, _ in CALLS])
@pytest.mark.parametrize("in_function", [False, True], ids=["eager", "in a function"])
def test_a_bad_call_raises_a_documented_class(call, kind, in_function, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run():
        eval(call, names() | {"FAR": FAR})

    kinds = (kind, ValueError) if in_function else kind  # as in TensorFlow, for some
    with pytest.raises(kinds) as raised:
        tf.function(run)() if in_function else run()
    assert str(raised.value)


def test_many_sobol_points_can_be_skipped_at_once():
    few = tf.math.sobol_sample(3, 1000, skip=5).numpy()
    np.testing.assert_array_equal(tf.math.sobol_sample(3, 10, skip=995)[:], few[990:])
    assert tf.math.sobol_sample(3, 1, skip=2**31 - 3).shape == (1, 3)


def test_a_string_without_axes_can_be_flipped():
    assert tf.experimental.numpy.flip(tf.constant("text")).numpy() == b"text"


def test_the_rows_of_slices_may_be_variables():
    rows = tf.IndexedSlices(tf.Variable([[1.0]]), tf.Variable([0]), tf.constant([2, 1]))
    np.testing.assert_array_equal(tf.nn.relu(rows), [[1.0], [0.0]])


def test_a_range_is_converted_as_the_list_of_its_numbers():
    for numbers in (range(3), range(0), range(5, -5, -3), range(2**40, 2**40 + 2)):
        expected = tf.constant(list(numbers))
        assert tf.constant(numbers).dtype == expected.dtype
        np.testing.assert_array_equal(tf.constant(numbers), expected)
    assert tf.constant(range(3), tf.float64).dtype == tf.float64


def test_the_bytes_of_an_array_of_strings_reach_hosted_functions():
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


@pytest.mark.parametrize("what", FAILING_WRITES)
def test_errors_of_the_operating_system_are_tensorflows(what, tmp_path):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(tf.errors.FailedPreconditionError):
        FAILING_WRITES[what](str(file / "folder"))
    with pytest.raises(tf.errors.OpError):
        FAILING_WRITES[what](str(tmp_path / ("a" * 5000)))


def test_an_argument_of_a_function_may_not_contain_itself():
    with pytest.raises(ValueError, match="or contains itself"):
        tf.function(lambda _: 1.0)(names()["cyclic"]())


def test_the_global_generator_must_be_a_generator():
    with pytest.raises(TypeError, match=r"Expected a tf\.random\.Generator\. Received: 3\."):
        tf.random.set_global_generator(3)


OUT_OF_RANGE = {
    "skip": lambda: tf.random.Generator.from_seed(1).skip(float("inf")),
    "bounding_shape": lambda: tf.ragged.constant([[1]]).bounding_shape(-(2**40)),
}


@pytest.mark.parametrize("call", OUT_OF_RANGE.values(), ids=OUT_OF_RANGE)
def test_numbers_that_are_out_of_range_are_refused(call):
    with pytest.raises(tf.errors.InvalidArgumentError):
        call()
