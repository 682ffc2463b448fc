"""Edge cases of datasets that TensorFlow's own tests check, with TensorFlow's results."""

import itertools

import numpy as np
import pytest

import retrograde as tf

Dataset = tf.data.Dataset


def values(dataset):
    return [np.asarray(x).tolist() for x in dataset.as_numpy_iterator()]


def test_end_of_a_sequence_inside_a_function_is_an_error():
    def stop(_):
        raise StopIteration

    mapped = Dataset.range(2).map(lambda x: tf.py_function(stop, [x], tf.int64))
    scanned = Dataset.range(2).scan(0, lambda s, x: (s, tf.numpy_function(stop, [x], tf.int64)))

    for dataset in (mapped, scanned):
        with pytest.raises(tf.errors.InvalidArgumentError, match="use take_while"):
            list(dataset)


def test_window_size_must_be_positive():
    dataset = Dataset.range(4).group_by_window(lambda _: np.int64(0), lambda _, x: x, 0)
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"group_by_window: the window size must be greater than zero. Received: 0.",
    ):
        list(dataset)


def test_rebatch_accepts_empty_batches():
    batches = Dataset.range(4).batch(2)

    assert values(batches.rebatch([0, 1])) == [[], [0], [], [1], [], [2], [], [3], []]
    assert values(batches.rebatch([0, 3], drop_remainder=True)) == [[], [0, 1, 2], []]
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        batches.rebatch([0, 0])
    assert error.value.message == (
        "rebatch: batch_size must not be negative, and at least one size must be greater than "
        "zero. Received: [0, 0]."
    )


def test_weights_may_be_a_dataset():
    datasets = [Dataset.range(2), Dataset.range(3)]
    weights = Dataset.from_tensors([0.0, 1.0]).repeat(4)

    assert values(Dataset.sample_from_datasets(datasets, weights)) == [0, 1, 2]


def test_sampling_ends_with_the_datasets_that_have_a_weight():
    datasets = [Dataset.range(2), Dataset.range(3)]

    assert values(Dataset.sample_from_datasets(datasets, [0.0, 1.0])) == [0, 1, 2]
    assert values(Dataset.sample_from_datasets(datasets, [0.0, 0.0])) == []


def test_weights_must_be_floats():
    with pytest.raises(TypeError) as error:
        Dataset.sample_from_datasets([Dataset.range(2)], [1])
    assert str(error.value) == (
        "Invalid `weights`. `weights` type must be either `tf.float32` or `tf.float64` but is "
        "tf.int32."
    )


def test_padded_shapes_are_checked_when_the_dataset_is_created():
    three = Dataset.from_tensors([1, 2, 3])

    with pytest.raises(ValueError, match=r"padded shape \(1,\) is not compatible .* \(3,\)"):
        three.padded_batch(5, padded_shapes=[1])
    with pytest.raises(TypeError) as error:
        three.padded_batch(5, padded_shapes=tf.constant([1.5]))
    assert str(error.value) == (
        "`padded_shapes` must contain shapes or integer vectors. Received: a tensor of float32."
    )
    unknown = Dataset.from_generator(lambda: iter([1, 2]), output_types=tf.int32)
    with pytest.raises(ValueError) as error:
        unknown.padded_batch(2)
    assert str(error.value) == (
        "`padded_batch` needs `padded_shapes` if components have an unknown rank. Received: "
        "elements of TensorSpec(shape=<unknown>, dtype=tf.int32, name=None)."
    )
    assert values(three.padded_batch(5, padded_shapes=tf.constant([-1], tf.int64))) == [[[1, 2, 3]]]


def test_ragged_elements_cannot_be_padded():
    dataset = Dataset.from_tensors(tf.ragged.constant([[1], [2, 3]]))
    with pytest.raises(TypeError, match="only supported for datasets of tensors"):
        dataset.padded_batch(2)


def test_window_ignores_errors_in_elements_that_it_skips():
    numbers = Dataset.from_tensor_slices(np.float32([1, np.nan, 2, np.nan, 3]))
    checked = numbers.map(lambda x: tf.debugging.check_numerics(x, "not a number"))
    batches = lambda dataset: dataset.flat_map(lambda x: x.batch(2))  # noqa: E731

    strided = checked.window(2, 2, 2, drop_remainder=True)
    assert values(batches(strided)) == [[1.0, 2.0], [2.0, 3.0]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="not a number"):
        values(batches(checked.window(2)))


def test_shapes_of_a_generator_may_be_nested():
    dataset = Dataset.from_generator(
        lambda: iter([({"a": [1], "b": 2},)]),
        ({"a": tf.int32, "b": tf.int64},),
        ({"a": [None], "b": []},),
    )

    spec = {"a": tf.TensorSpec([None], tf.int32), "b": tf.TensorSpec([], tf.int64)}
    assert dataset.element_spec == (spec,)


def test_sparse_tensors_of_different_shapes_can_be_batched():
    sparse = Dataset.range(1, 4).map(lambda n: tf.SparseTensor([[n - 1]], [n], [n]))

    assert next(iter(sparse.batch(3))).dense_shape.numpy().tolist() == [3, 3]


def test_state_of_a_numpy_iterator_can_be_restored():
    iterator = Dataset.range(5).shuffle(5).as_numpy_iterator()
    next(iterator)
    state = iterator.save()
    rest = list(iterator)

    iterator.restore(state.numpy())

    assert list(iterator) == rest


def test_names_in_a_dataset_must_be_strings():
    with pytest.raises(TypeError) as error:
        tf.data.TextLineDataset(Dataset.from_tensors(0))
    assert str(error.value) == (
        "The `filenames` argument must contain `tf.string` elements. Got a dataset of elements "
        "TensorSpec(shape=(), dtype=tf.int32, name=None)."
    )


def test_repeated_shuffle_continues_after_an_empty_pass():
    sizes = iter([1, 0, 2, 10])
    dataset = Dataset.from_generator(
        lambda: range(next(sizes)), output_signature=tf.TensorSpec((), tf.int64)
    )

    assert sorted(values(dataset.shuffle(10).repeat().take(3))) == [0, 0, 1]


def test_infinite_parallel_interleave_has_infinite_cardinality():
    one = lambda _: Dataset.from_tensors(0)  # noqa: E731
    infinite = Dataset.range(5).repeat()

    assert infinite.interleave(one, num_parallel_calls=1).cardinality() == -1
    assert infinite.interleave(one).cardinality() == -2
    assert infinite.flat_map(one).cardinality() == -2


def test_parallel_interleave_has_at_most_as_many_datasets_as_calls():
    twice = lambda x: Dataset.from_tensors(x).repeat(2)  # noqa: E731
    dataset = Dataset.from_tensor_slices([4, 5]).interleave(twice, num_parallel_calls=1)

    assert values(dataset) == [4, 4, 5, 5]


def test_cache_on_disk_is_complete_after_the_last_element(tmp_path):
    dataset = Dataset.range(20).shuffle(20).cache(str(tmp_path / "cache"))

    first = list(itertools.islice(dataset.as_numpy_iterator(), 20))

    assert list(dataset.as_numpy_iterator()) == first


def lists(datasets):
    return [[int(x) for x in dataset] for dataset in datasets]


def test_lists_of_datasets_have_datasets_as_rows():
    two_and_three = [Dataset.range(2), Dataset.range(3)]
    slices = Dataset.from_tensor_slices(two_and_three)

    assert lists(slices) == [[0, 1], [0, 1, 2]]
    assert values(slices.flat_map(lambda x: x)) == [0, 1, 0, 1, 2]
    assert lists(Dataset.from_tensors(two_and_three).unbatch()) == [[0, 1], [0, 1, 2]]
    pairs = Dataset.from_tensor_slices({"a": two_and_three, "b": [5, 6]})
    assert [(lists([pair["a"]]), int(pair["b"])) for pair in pairs] == [
        ([[0, 1]], 5),
        ([[0, 1, 2]], 6),
    ]


def test_datasets_can_be_batched():
    batches = Dataset.from_tensors(Dataset.range(2)).repeat(3).batch(2)

    assert batches.element_spec.shape.as_list() == [None]
    assert lists(batches.unbatch()) == [[0, 1]] * 3


def test_datasets_in_a_list_must_have_compatible_specs():
    with pytest.raises(ValueError, match="Datasets in a list must have compatible element specs"):
        Dataset.from_tensor_slices([Dataset.range(3), Dataset.from_tensors(1.0)])
    with pytest.raises(ValueError):
        Dataset.from_tensor_slices(Dataset.range(3))


def test_rows_of_components_are_compared_when_the_dataset_is_created():
    with pytest.raises(ValueError, match=r"matching leading dimension. Encountered \[7, 8\]"):
        Dataset.from_tensors((np.arange(7), np.arange(8))).unbatch()


def test_datasets_have_no_numpy_arrays():
    with pytest.raises(TypeError, match="does not support values of type Dataset"):
        Dataset.from_tensors(Dataset.range(3)).as_numpy_iterator()


def test_names_in_a_dataset_must_be_scalars():
    with pytest.raises(TypeError, match="Got a dataset of elements"):
        tf.data.TextLineDataset(Dataset.from_tensors(["a", "b"]))


def test_zip_merges_options():
    autotune, deterministic = tf.data.Options(), tf.data.Options()
    autotune.autotune.enabled = True
    deterministic.deterministic = True

    options = Dataset.zip(
        Dataset.range(1).with_options(autotune), Dataset.range(1).with_options(deterministic)
    ).options()

    assert (options.autotune.enabled, options.deterministic) == (True, True)


def test_the_options_of_a_dataset_cannot_be_changed():
    dataset = Dataset.range(1).with_options(tf.data.Options())

    for options in (dataset.options(), dataset.options().autotune):
        name = "deterministic" if isinstance(options, tf.data.Options) else "enabled"
        with pytest.raises(ValueError) as error:
            setattr(options, name, True)
        assert str(error.value) == (
            f"Cannot set {name}: the options of a dataset cannot be changed. Pass new options to "
            "`with_options`."
        )
    assert dataset.options() == tf.data.Options()
    dataset.with_options(dataset.options())


def test_merged_options_have_the_framework_types_of_both():
    datasets = Dataset.range(1)
    for name in ("a", "b"):
        options = tf.data.Options()
        options.framework_type = [name]
        datasets = datasets.with_options(options)

    assert datasets.options().framework_type == ["a", "b"]
