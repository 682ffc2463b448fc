"""Helpers of the tests of tf.data."""

import retrograde as tf

Dataset = tf.data.Dataset
INT64 = tf.TensorSpec([], tf.int64)


def to_list(dataset):
    """Returns the elements with lists instead of arrays."""
    return [
        tf.nest.map_structure(lambda x: x.tolist() if hasattr(x, "tolist") else x, element)
        for element in dataset.as_numpy_iterator()
    ]


def range_datasets(n):
    """Returns two datasets of `range(n)`: one of row indices, one of single elements."""
    rows = Dataset.range(n)
    return rows, rows.map(lambda x: x)
