"""tf.data: elements of different sizes, and classes of different frequency."""

import numpy as np
import pytest

import retrograde as tf
from tests.namespaces.datasets import INT64, Dataset, to_list

SEQUENCES = [
    [0],
    [1, 2, 3, 4],
    [5, 6, 7],
    [7, 8, 9, 10, 11],
    [13, 14, 15, 16, 19, 20],
    [21, 22],
]


def sequences(with_sum=False):
    dataset = Dataset.from_generator(
        lambda: iter(SEQUENCES), output_signature=tf.TensorSpec([None], tf.int64)
    )
    return dataset.map(lambda x: (x, tf.reduce_sum(x))) if with_sum else dataset


def bucket(dataset, boundaries=(3, 5), sizes=(2, 2, 2), **options):
    return dataset.bucket_by_sequence_length(
        lambda x, *_: tf.shape(x)[0], list(boundaries), list(sizes), **options
    )


# Results of TensorFlow


BUCKETS = {
    "padded": (
        {},
        [
            [[1, 2, 3, 4], [5, 6, 7, 0]],
            [[7, 8, 9, 10, 11, 0], [13, 14, 15, 16, 19, 20]],
            [[0, 0], [21, 22]],
        ],
    ),
    "to_boundary": (
        {"boundaries": [4, 7], "pad_to_bucket_boundary": True},
        [
            [[0, 0, 0], [5, 6, 7]],
            [[1, 2, 3, 4, 0, 0], [7, 8, 9, 10, 11, 0]],
            [[21, 22, 0]],
            [[13, 14, 15, 16, 19, 20]],
        ],
    ),
    "dropped": (
        {"sizes": [3, 2, 1], "drop_remainder": True},
        [[[1, 2, 3, 4], [5, 6, 7, 0]], [[7, 8, 9, 10, 11]], [[13, 14, 15, 16, 19, 20]]],
    ),
    "to_seven": (
        {"padded_shapes": [7], "padding_values": np.int64(-1)},
        [
            [[1, 2, 3, 4, -1, -1, -1], [5, 6, 7, -1, -1, -1, -1]],
            [[7, 8, 9, 10, 11, -1, -1], [13, 14, 15, 16, 19, 20, -1]],
            [[0, -1, -1, -1, -1, -1, -1], [21, 22, -1, -1, -1, -1, -1]],
        ],
    ),
}


@pytest.mark.parametrize("name", BUCKETS)
def test_bucket_by_sequence_length(name):
    options, expected = BUCKETS[name]
    assert to_list(bucket(sequences(), **options)) == expected


def test_buckets_of_tuples():
    actual = bucket(sequences(with_sum=True), [4, 7], pad_to_bucket_boundary=True)
    assert to_list(actual)[0] == ([[0, 0, 0], [5, 6, 7]], [0, 18])
    assert actual.element_spec == (
        tf.TensorSpec([None, None], tf.int64),
        tf.TensorSpec([None], tf.int64),
    )
    assert int(actual.cardinality()) == -2


def test_buckets_without_padding():
    pairs = Dataset.from_tensor_slices([[1, 2], [3, 4], [5, 6]])
    actual = bucket(pairs, no_padding=True)
    assert to_list(actual) == [[[1, 2], [3, 4]], [[5, 6]]]
    assert actual.element_spec == tf.TensorSpec([None, 2], tf.int32)


RAGGED = {
    "vectors": ([None], [(1,), (3,)], 1),
    "columns": ([None, 2], [(1, 2), (3, 2)], 1),
    "rows": ([2, None], [(2, 1), (2, 3)], 2),
    "matrices": ([None, None], [(1, 3), (2, 0)], 2),
    "three_axes": ([None, 2, None], [(1, 2, 3), (2, 2, 1)], 3),
}


@pytest.mark.parametrize("name", RAGGED)
def test_ragged_batches_are_ragged_up_to_the_last_unknown_dimension(name):
    shape, sizes, rank = RAGGED[name]
    arrays = [np.arange(np.prod(size)).reshape(size) for size in sizes]
    dataset = Dataset.from_generator(
        lambda: iter(arrays), output_signature=tf.TensorSpec(shape, tf.int64)
    ).ragged_batch(2)
    assert dataset.element_spec == tf.RaggedTensorSpec([None, *shape], tf.int64, rank)
    (actual,) = dataset
    assert actual.ragged_rank == rank
    assert actual.to_list() == [array.tolist() for array in arrays]


def test_ragged_batches_of_fixed_shapes_are_dense():
    dataset = Dataset.zip(Dataset.range(3), Dataset.range(3).map(tf.range))
    actual = dataset.ragged_batch(2, row_splits_dtype=tf.int32)
    ragged = tf.RaggedTensorSpec([None, None], tf.int64, 1, tf.int32)
    assert actual.element_spec == (tf.TensorSpec([None], tf.int64), ragged)
    numbers, rows = zip(*actual, strict=True)
    assert [x.numpy().tolist() for x in numbers] == [[0, 1], [2]]
    assert [x.to_list() for x in rows] == [[[], [0]], [[0, 1]]]
    assert {x.row_splits.dtype for x in rows} == {tf.int32}
    dropped = dataset.ragged_batch(2, drop_remainder=True)
    assert dropped.element_spec[1].shape.as_list() == [2, None]
    assert len(dropped) == 1


def test_sparse_batches():
    dataset = Dataset.range(4).map(tf.range).sparse_batch(3, [4])
    assert dataset.element_spec == tf.SparseTensorSpec([None, 4], tf.int64)
    first, second = dataset
    assert first.indices.numpy().tolist() == [[1, 0], [2, 0], [2, 1]]
    assert first.values.numpy().tolist() == [0, 0, 1]
    assert first.dense_shape.numpy().tolist() == [3, 4]
    assert tf.sparse.to_dense(second).numpy().tolist() == [[0, 1, 2, 0]]
    widest = Dataset.range(4).map(tf.range).sparse_batch(3, [None])
    assert [x.dense_shape.numpy().tolist() for x in widest] == [[3, 2], [1, 3]]


@pytest.mark.parametrize("initial", [None, [0.9, 0.1]])
def test_rejection_resample(initial):
    rare = Dataset.from_tensor_slices(np.tile([0] * 9 + [1], 400))
    actual = rare.rejection_resample(lambda x: x, [0.5, 0.5], initial, seed=1)
    assert actual.element_spec == (INT64, INT64)
    pairs = to_list(actual)
    assert all(label == value for label, value in pairs)
    labels = [label for label, _ in pairs]
    # All elements of the rare class are kept. Six standard deviations of the others are 116.
    assert labels.count(1) == 400
    assert abs(labels.count(0) - 400) < 120
    repeated = rare.rejection_resample(lambda x: x, [0.5, 0.5], initial, seed=1)
    assert to_list(repeated) == pairs
