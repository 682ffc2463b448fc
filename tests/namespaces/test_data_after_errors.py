"""Datasets after an error, and at the end of their elements. TensorFlow's results."""

import numpy as np
import pytest

import retrograde as tf

Dataset = tf.data.Dataset


def checked():
    """Returns a dataset whose second element raises an error."""
    return Dataset.from_tensor_slices([1.0, np.nan, 3.0]).map(
        lambda x: tf.debugging.check_numerics(x, "message")
    )


def twice(x):
    return Dataset.from_tensors(x).repeat(2)


def generator():
    yield [1]
    yield [1, 2]
    yield [3]


DATASETS = {
    "map": (checked, [1.0, 3.0]),
    "flat_map": (lambda: checked().flat_map(twice), [1.0, 1.0, 3.0, 3.0]),
    "interleave": (lambda: checked().interleave(twice, cycle_length=1), [1.0, 1.0, 3.0, 3.0]),
    "generator": (
        lambda: Dataset.from_generator(generator, output_types=tf.int32, output_shapes=[1]),
        [[1], [3]],
    ),
}


@pytest.mark.parametrize("name", DATASETS)
def test_ignore_errors_continues_after_an_error(name):
    create, expected = DATASETS[name]

    assert [x.tolist() for x in create().ignore_errors().as_numpy_iterator()] == expected


@pytest.mark.parametrize("name", DATASETS)
def test_iterators_continue_after_an_error(name):
    create, expected = DATASETS[name]
    iterator, elements, errors = iter(create()), [], 0
    while True:
        try:
            elements.append(next(iterator).numpy().tolist())
        except tf.errors.InvalidArgumentError:
            errors += 1
        except StopIteration:
            break

    assert (elements, errors) == (expected, 1)


def test_interleave_takes_blocks_of_each_dataset():
    data = Dataset.range(1, 4).interleave(
        lambda x: Dataset.from_tensors(x).repeat(x), cycle_length=2, block_length=2
    )

    assert [int(x) for x in data] == [1, 2, 2, 3, 3, 3]


def test_a_list_can_be_the_state_of_a_scan():
    data = Dataset.range(6).scan([0, 1], lambda a, _: ([a[1], a[0] + a[1]], a[1]))

    assert [int(x) for x in data] == [1, 1, 2, 3, 5, 8]


def test_a_cache_is_complete_when_the_last_element_is_read():
    for data in (Dataset.range(10), Dataset.range(10).map(lambda x: x)):
        cached = data.shuffle(10, reshuffle_each_iteration=True).cache()
        passes = []
        for _ in range(2):
            iterator = iter(cached)
            passes.append([int(next(iterator)) for _ in range(10)])
        assert passes[0] == passes[1]


def test_zero_weights_give_an_empty_dataset():
    data = [Dataset.from_tensors(i).repeat() for i in range(2)]

    assert list(Dataset.sample_from_datasets(data, [0.0, 0.0])) == []


def test_cardinality_of_infinite_inputs():
    finite, infinite = Dataset.range(3), Dataset.range(3).repeat()
    sample = Dataset.sample_from_datasets

    assert sample([finite, infinite]).cardinality() == tf.data.INFINITE_CARDINALITY
    stops = sample([finite, infinite], stop_on_empty_dataset=True)
    assert stops.cardinality() == tf.data.UNKNOWN_CARDINALITY
    window = lambda data: data.group_by_window(lambda x: x % 2, lambda _, w: w.batch(2), 2)  # noqa: E731
    assert window(infinite).cardinality() == tf.data.INFINITE_CARDINALITY
    assert window(finite).cardinality() == tf.data.UNKNOWN_CARDINALITY


def test_numpy_elements_are_read_only():
    (x,) = Dataset.from_tensors([1, 2, 3]).as_numpy_iterator()

    with pytest.raises(ValueError, match="read-only"):
        x[0] = 5
