"""Invalid and unusual arguments of array functions."""

import numpy as np
import pytest

import retrograde as tf
from tests.namespaces.helpers import assert_raises

Invalid = tf.errors.InvalidArgumentError
ONES = tf.ones([3, 4])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: tf.zeros(10**30),
            ValueError,
            f"The integer {10**30} is out of range for int64.",
        ),
        (
            lambda: tf.ones([2, -(10**30)]),
            ValueError,
            f"The integer {-(10**30)} is out of range for int64.",
        ),
        (
            lambda: tf.zeros([2**40, 0, 2**40]),
            Invalid,
            f"zeros: shape ({2**40}, 0, {2**40}) has too many elements.",
        ),
        (
            lambda: tf.eye([2, 3]),
            TypeError,
            "eye: `num_rows` and `num_columns` must be integers. Received: num_rows=[2, 3], "
            "num_columns=None.",
        ),
        (
            lambda: tf.linspace(1.0, 2.0, [1, 2]),
            Invalid,
            "linspace: `num` must be a scalar. Received: shape (2,).",
        ),
        (
            lambda: tf.linspace([1.0], [2.0], 2, axis=2),
            Invalid,
            "linspace: axis 2 is out of range for a tensor of rank 2. Expected -2 <= axis < 2.",
        ),
        (
            lambda: tf.range("text", 4.0),
            TypeError,
            "range: start must be a real number. Received: dtype string.",
        ),
        (
            lambda: tf.range(np.nan, 4.0),
            Invalid,
            "range: requires start <= limit when delta > 0: nan, 4.0.",
        ),
        (
            lambda: tf.range(0.0, np.inf, 2.0),
            Invalid,
            "range: requires a finite number of steps: 0.0, inf, 2.0.",
        ),
        (
            lambda: tf.sequence_mask("text"),
            Invalid,
            "sequence_mask: lengths must be finite numbers. Received: 'text'.",
        ),
        (
            lambda: tf.sequence_mask(np.nan),
            Invalid,
            "sequence_mask: lengths must be finite numbers. Received: nan.",
        ),
        (
            lambda: tf.reverse_sequence(ONES, 2, seq_axis=1),
            Invalid,
            "reverse_sequence: expected a list of lengths. Received: 2.",
        ),
        (
            lambda: tf.dynamic_partition(ONES, [0, 1, 0], 0),
            Invalid,
            "dynamic_partition: expected at least one partition. Received: 0.",
        ),
        (
            lambda: tf.dynamic_partition(ONES, [0, 1, 0], 1.5),
            TypeError,
            "dynamic_partition: expected integers. Received: 1.5 of dtype float32.",
        ),
        (
            lambda: tf.dynamic_stitch([], []),
            Invalid,
            "dynamic_stitch: 0 lists of indices for 0 of data. Expected the same number, at least "
            "one.",
        ),
        (
            lambda: tf.dynamic_stitch([[0]], []),
            ValueError,
            "dynamic_stitch: 1 lists of indices for 0 of data. Expected the same number, at least "
            "one.",
        ),
        (
            lambda: tf.searchsorted([1.0], 2.0),
            Invalid,
            "searchsorted: shapes (1,) and () do not have the same number of rows.",
        ),
        (
            lambda: tf.searchsorted(["a"], ["b"]),
            Invalid,
            "searchsorted: expected the same real dtype for both. Received: string and string.",
        ),
        (
            lambda: tf.bitcast(tf.constant(["a"]), tf.int32),
            Invalid,
            "bitcast: dtype string is not supported.",
        ),
        (
            lambda: tf.bitcast(tf.constant([1]), tf.bool),
            Invalid,
            "bitcast: dtype bool is not supported.",
        ),
        (
            lambda: tf.split(ONES, [[3]]),
            Invalid,
            "split: expected a list of sizes. Received: shape (1, 1).",
        ),
        (
            lambda: tf.repeat(ONES, 2, axis=1.5),
            TypeError,
            "repeat: `axis` must be an int. Received: 1.5.",
        ),
        (
            lambda: tf.repeat(ONES, 2**60, axis=0),
            Invalid,
            f"repeat: shape ({3 * 2**60},) has too many elements.",
        ),
        (
            lambda: tf.pad([1.0], [[1, 1]], None),
            ValueError,
            "pad: `mode` must be 'CONSTANT', 'REFLECT' or 'SYMMETRIC'. Received: None.",
        ),
        (
            lambda: tf.nn.bias_add(ONES, [1.0] * 4, data_format=-9),
            ValueError,
            "bias_add: `data_format` must be of the form `N...C` or `NC...`. Received: "
            "data_format=-9.",
        ),
        (
            lambda: tf.broadcast_dynamic_shape(2, [4]),
            Invalid,
            "broadcast_dynamic_shape: expected a list of integers. Received: shape ().",
        ),
        (
            lambda: tf.nn.silu("text"),
            Invalid,
            "sigmoid: dtype string is not supported. Expected one of float16, bfloat16, float32, "
            "float64, complex64, complex128.",
        ),
        (
            lambda: tf.stack(ONES, axis=2),
            ValueError,
            "stack: `axis` = 2 is not in range [-2, 2).",
        ),
        (
            lambda: tf.unstack(ONES, num=3, axis=2),
            Invalid,
            "unstack: `axis` = 2 is not in range [-2, 2).",
        ),
        (
            lambda: tf.sequence_mask([1, 2], -1),
            Invalid,
            "sequence_mask: `maxlen` must be a non-negative number. Received: -1.",
        ),
        (
            lambda: tf.gather_nd(ONES, [[0]], batch_dims=2),
            ValueError,
            "gather_nd: batch_dims must be non-negative and less than the rank of params and "
            "indices. Received: 2 for shapes (3, 4) and (1, 1).",
        ),
        (
            lambda: tf.scatter_nd([[0]], [1], [2], bad_indices_policy="none"),
            Invalid,
            "scatter_nd: bad_indices_policy must be 'DEFAULT', 'ERROR' or 'IGNORE'. Received: "
            "'none'.",
        ),
        (
            lambda: tf.tensor_scatter_nd_max([1j], [[0]], [2j]),
            Invalid,
            "tensor_scatter_nd_max: expected a real dtype. Received: complex128.",
        ),
        (
            lambda: tf.searchsorted([1, 3], np.array([1.5])),
            Invalid,
            "searchsorted: expected the same real dtype for both. Received: int32 and float64.",
        ),
        (
            lambda: tf.debugging.assert_shapes([(ONES,)]),
            ValueError,
            f"assert_shapes: expected pairs of a tensor and a symbolic shape. Received: "
            f"{(ONES,)!r}.",
        ),
    ],
)
def test_message(call, error, message):
    assert_raises(call, error, message)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: tf.searchsorted([], [1.0]), [0]),
        (lambda: tf.searchsorted([1.0], tf.zeros([0])), []),
        (lambda: tf.searchsorted(tf.zeros([2, 0]), tf.zeros([2, 1])), [[0], [0]]),
        (lambda: tf.searchsorted(tf.zeros([0, 3]), tf.zeros([0, 1])), []),
        (lambda: tf.sequence_mask(2.5), [True, True, True]),
        (lambda: tf.expand_dims(tf.gather(["a", "b"], 1), 0), [b"b"]),
        (lambda: tf.unravel_index([0, 0], []), []),
        (lambda: tf.dynamic_partition([1, 2, 3], [0, 1, 0], tf.constant(2))[0], [1, 3]),
    ],
)
def test_unusual_valid_arguments(call, expected):
    assert call().numpy().tolist() == expected
