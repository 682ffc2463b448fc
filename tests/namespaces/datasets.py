"""What the tests of tf.data share."""

import retrograde as tf

Dataset = tf.data.Dataset
INT64 = tf.TensorSpec([], tf.int64)


def listed(dataset):
    """The elements, with lists in place of arrays."""
    return [
        tf.nest.map_structure(lambda x: x.tolist() if hasattr(x, "tolist") else x, element)
        for element in dataset.as_numpy_iterator()
    ]


def plain(n):
    """The numbers below `n`, once as rows of an array and once made one by one."""
    rows = Dataset.range(n)
    return rows, rows.map(lambda x: x)
