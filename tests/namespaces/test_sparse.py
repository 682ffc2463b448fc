"""tf.sparse: values, gradients and errors."""

import json
import pathlib

import numpy as np
import pytest

import retrograde as tf
from retrograde.testing import check_gradients
from tests.data.recorded_results import evaluate, is_close
from tests.namespaces.helpers import assert_raises, float64

DATA = pathlib.Path(__file__).parents[1] / "data"
EXPECTED = json.loads((DATA / "sparse_results.json").read_text())
INDICES = [[0, 1], [0, 2], [2, 0], [2, 2]]
OTHER_INDICES = [[0, 0], [0, 2], [2, 2], [3, 1]]
VALUES = [0.7, -1.2, 0.4, 1.9]
OTHER_VALUES = [0.3, 1.1, -0.6, 0.8]


def sparse(values, indices=INDICES):
    return tf.SparseTensor(indices, values, [4, 3])


@pytest.mark.parametrize("call", EXPECTED)
def test_result_agrees_with_tensorflow(call):
    actual = evaluate(call, tf)

    assert is_close(actual, EXPECTED[call]), f"got {actual}, expected {EXPECTED[call]}"


GRADIENTS = {
    "to_dense": lambda v: tf.sparse.to_dense(sparse(v), v[1]),
    "add": lambda v: tf.sparse.add(sparse(v), sparse(float64(OTHER_VALUES), OTHER_INDICES)).values,
    "add_dense": lambda v: tf.sparse.add(sparse(v), tf.ones([4, 3], tf.float64)),
    "maximum": lambda v: tf.sparse.maximum(sparse(v), sparse(v * v, OTHER_INDICES)).values,
    "minimum": lambda v: tf.sparse.minimum(sparse(v), sparse(v * v, OTHER_INDICES)).values,
    "reduce_sum": lambda v: tf.sparse.reduce_sum(sparse(v), 1),
    "reduce_sum_sparse": lambda v: tf.sparse.reduce_sum(sparse(v), 1, True, True).values,
    "reduce_max": lambda v: tf.sparse.reduce_max(sparse(v), 0),
    "reduce_max_sparse": lambda v: tf.sparse.reduce_max(sparse(v), 0, None, True).values,
    "softmax": lambda v: tf.sparse.softmax(sparse(v)).values,
    "transpose": lambda v: tf.sparse.transpose(sparse(v)).values,
    "reorder": lambda v: tf.sparse.reorder(sparse(v, INDICES[::-1])).values,
    "reshape": lambda v: tf.sparse.reshape(sparse(v), [2, 6]).values,
    "expand_dims": lambda v: tf.sparse.expand_dims(sparse(v), 1).values,
    "slice": lambda v: tf.sparse.slice(sparse(v), [0, 1], [4, 2]).values,
    "split": lambda v: tf.concat([s.values * 2 for s in tf.sparse.split(sparse(v), 2, 0)], 0),
    "retain": lambda v: tf.sparse.retain(sparse(v), [True, False, True, True]).values,
    "reset_shape": lambda v: tf.sparse.reset_shape(sparse(v)).values,
    "fill_empty_rows": lambda v: tf.sparse.fill_empty_rows(sparse(v), v[0])[0].values,
    "map_values": lambda v: tf.sparse.map_values(tf.multiply, sparse(v), sparse(v)).values,
    "from_dense": lambda v: tf.sparse.from_dense(tf.reshape(v, [2, 2])).values,
    "bincount": lambda v: tf.sparse.bincount([3, 1, 3, 0], weights=v, maxlength=3).values,
    "multiply": lambda v: (sparse(v) * v[:3]).values,
    "multiply_column": lambda v: (sparse(v) * v[:, None]).values,
    "multiply_scalar": lambda v: (sparse(v) * v[0]).values,
    "divide": lambda v: (sparse(v) / v[:3]).values,
    "segment_sum": lambda v: tf.sparse.segment_sum(v, [0, 3, 3], [0, 0, 2]),
    "segment_mean": lambda v: tf.sparse.segment_mean(v, [0, 3, 3], [0, 0, 2]),
    "segment_sqrt_n": lambda v: tf.sparse.segment_sqrt_n(v[:, None], [0, 3, 3], [0, 0, 2]),
    "segment_sparse": lambda v: tf.sparse.segment_sum(
        v, [0, 3, 3], [0, 0, 2], sparse_gradient=True
    ),
    "matmul": lambda v: tf.sparse.sparse_dense_matmul(sparse(v), tf.stack([v, v * v, v + 1])),
    "matmul_adjoint": lambda v: tf.sparse.sparse_dense_matmul(
        sparse(v), tf.stack([v, v * v]), adjoint_a=True, adjoint_b=True
    ),
    "dense_matmul": lambda v: tf.sparse.sparse_dense_matmul(v[None], sparse(v)),
    "sampled_addmm": lambda v: tf.sparse.sampled_addmm(
        INDICES, v, [4, 3], v[:, None], v[None, :3], 2.0, 3.0, output_type=tf.float64
    )[1],
    "mask": lambda v: tf.sparse.mask(tf.IndexedSlices(v, tf.range(4)), [1]).values,
    "abs": lambda v: tf.abs(sparse(v)).values,
}


@pytest.mark.parametrize("f", GRADIENTS.values(), ids=GRADIENTS)
def test_first_and_second_order_gradients_agree_with_finite_differences(f):
    """Checks squares, so that linear functions have a second derivative as well."""
    check_gradients(lambda v: f(v) * f(v), [float64(VALUES)])


BATCHED = ("to_dense", "reduce_max", "softmax", "matmul", "segment_mean", "sampled_addmm")


@pytest.mark.parametrize("name", BATCHED)
def test_vectorized_map_and_jacobian_vector_products(name):
    f, v = GRADIENTS[name], float64(VALUES)
    rows = tf.stack([v, 2.0 * v])
    with tf.GradientTape() as tape:
        tape.watch(v)
        y = f(v)
    jacobian = tape.jacobian(y, v)
    direction = float64([0.3, -0.5, 0.7, 1.1])
    with tf.autodiff.ForwardAccumulator(v, direction) as accumulator:
        y = f(v)
    product = tf.reduce_sum(jacobian * direction, axis=-1)

    np.testing.assert_allclose(tf.vectorized_map(f, rows)[1], f(2.0 * v), rtol=1e-12)
    np.testing.assert_allclose(product, accumulator.jvp(y), rtol=1e-12)


def test_no_gradient_flows_through_concat():
    v = float64(VALUES)
    with tf.GradientTape() as tape:
        tape.watch(v)
        y = tf.sparse.concat(0, [sparse(v), sparse(v)]).values

    assert tape.gradient(y, v) is None


@pytest.mark.parametrize("adjoint_a", [False, True])
@pytest.mark.parametrize("adjoint_b", [False, True])
@pytest.mark.parametrize("sparse_first", [False, True])
def test_products_of_complex_matrices(adjoint_a, adjoint_b, sparse_first):
    rng = np.random.default_rng(1)
    a = np.where(
        rng.random((3, 4)) < 0.5, rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4)), 0
    )
    b = rng.normal(size=(4, 2)) + 1j * rng.normal(size=(4, 2))
    a, b = (a, b) if sparse_first else (b.T, a.T)
    arg_a = a.conj().T if adjoint_a else a
    arg_b = b.conj().T if adjoint_b else b
    if sparse_first:
        arg_a = tf.sparse.from_dense(arg_a)
    else:
        arg_b = tf.sparse.from_dense(arg_b)

    y = tf.sparse.sparse_dense_matmul(arg_a, arg_b, adjoint_a, adjoint_b)

    np.testing.assert_allclose(y, a @ b, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_products_accumulate_in_float32(dtype):
    ones = tf.ones([4096], dtype)
    indices = np.stack([np.zeros(4096, np.int64), np.arange(4096)], 1)
    x = tf.SparseTensor(indices, ones, [1, 4096])

    y = tf.sparse.sparse_dense_matmul(x, ones[:, None])

    assert (y.dtype.name, float(y[0, 0])) == (dtype, 4096.0)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float16", "bfloat16", "float64", "complex64"])
def test_operations_preserve_the_dtype(dtype):
    x = tf.cast(sparse([1.0, 2.0, 3.0, 4.0]), dtype)

    for y in (
        tf.sparse.to_dense(x),
        tf.sparse.add(x, x),
        tf.sparse.reduce_sum(x, 0),
        tf.sparse.transpose(x),
        tf.sparse.sparse_dense_matmul(x, tf.ones([3, 2], dtype)),
        x * tf.ones([3], dtype),
    ):
        assert y.dtype.name == dtype


def test_values_at_repeated_indices_are_summed():
    x = tf.SparseTensor([[0, 1], [0, 1]], [1.0, 2.0], [2, 2])

    assert tf.sparse.reduce_sum(x, 0).numpy().tolist() == [0.0, 3.0]
    assert tf.sparse.sparse_dense_matmul(x, tf.eye(2)).numpy().tolist() == [[0.0, 3.0], [0.0, 0.0]]
    assert tf.sparse.add(x, x).values.numpy().tolist() == [6.0]


def test_shapes_too_large_for_a_dense_tensor():
    """No operation allocates memory for the dense shape."""
    x = tf.SparseTensor([[2**40, 2**40], [5, 7]], [1.0, 2.0], [2**41, 2**41])

    assert tf.sparse.reorder(x).indices.numpy().tolist() == [[5, 7], [2**40, 2**40]]
    assert tf.sparse.add(x, x).values.numpy().tolist() == [4.0, 2.0]
    assert tf.sparse.softmax(x).values.numpy().tolist() == [1.0, 1.0]


X = tf.SparseTensor([[0, 1], [1, 0]], [1.0, 2.0], [2, 2])
VECTOR = tf.SparseTensor([[0]], [1.0], [2])
INTEGERS = tf.SparseTensor([[0, 1], [1, 0]], [1, 2], [2, 2])

ERRORS = {
    "add_shape": (
        lambda: tf.sparse.add(X, tf.sparse.eye(3)),
        "add: the shapes (2, 2) and (3, 3) differ. Expected equal shapes.",
    ),
    "add_dense_shape": (
        lambda: tf.sparse.add(X, [1.0, 2.0]),
        "add: a SparseTensor of shape (2, 2) and a tensor of shape (2,) cannot be added. Expected "
        "equal shapes.",
    ),
    "dtypes": (
        lambda: tf.sparse.add(X, INTEGERS),
        "add: the dtypes float32 and int32 differ. Use tf.cast on one.",
    ),
    "map_values": (
        lambda: tf.sparse.map_values(tf.add, X, tf.sparse.eye(2)),
        "map_values: the SparseTensors have different indices or shapes. Expected equal ones.",
    ),
    "matmul_rank": (
        lambda: tf.sparse.sparse_dense_matmul(VECTOR, tf.ones([2, 2])),
        "sparse_dense_matmul: expected two matrices. Received: shapes (2,) and (2, 2).",
    ),
    "matmul_inner": (
        lambda: tf.sparse.sparse_dense_matmul(X, tf.ones([3, 2])),
        "sparse_dense_matmul: the inner dimensions differ, 2 and 3, in the product of shapes "
        "(2, 2) and (3, 2).",
    ),
    "matmul_indices": (
        lambda: tf.sparse.sparse_dense_matmul(
            tf.SparseTensor([[0, 5]], [1.0], [2, 2]), tf.ones([2, 2])
        ),
        "The column in indices[0] = [0, 5] is out of bounds for a matrix of shape (2, 2).",
    ),
    "multiply": (
        lambda: X * tf.ones([3]),
        "multiply: a tensor of shape (3,) does not broadcast to the shape (2, 2) of the "
        "SparseTensor.",
    ),
    "divide_by_zero": (
        lambda: X / 0.0,
        "divide: a SparseTensor cannot be divided by zero. Divide its values.",
    ),
    "softmax_rank": (
        lambda: tf.sparse.softmax(VECTOR),
        "softmax: expected at least 2 axes. Received: shape (2,).",
    ),
    "softmax_dtype": (
        lambda: tf.sparse.softmax(INTEGERS),
        "softmax: expected floats. Received: dtype int32. Use tf.cast.",
    ),
    "reduce_axis": (
        lambda: tf.sparse.reduce_sum(X, 2),
        "reduce_sum: axis 2 is out of range for a tensor of rank 2. Expected -2 <= axis < 2.",
    ),
    "reshape_two": (
        lambda: tf.sparse.reshape(X, [-1, -1]),
        "reshape: only one dimension may be -1. Received: shape [-1, -1].",
    ),
    "reshape_large": (
        lambda: tf.sparse.reshape(tf.SparseTensor([[0, 0]], [1.0], [2**40, 2**40]), [-1]),
        f"reshape: shape {(2**40, 2**40)} has {2**80} elements, more than an int64 can hold.",
    ),
    "reshape": (
        lambda: tf.sparse.reshape(X, [-1, 3]),
        "reshape: a SparseTensor of shape (2, 2) has 4 elements including zeros, which is not "
        "compatible with the shape [-1, 3].",
    ),
    "slice_rank": (
        lambda: tf.sparse.slice(X, [0], [1]),
        "slice: expected start and size to have one integer for each of 2 axes. Received: [0] and "
        "[1].",
    ),
    "slice_size": (
        lambda: tf.sparse.slice(X, [0, 0], [-1, 1]),
        "slice: expected sizes >= 0. Received: [-1, 1].",
    ),
    "split": (
        lambda: tf.sparse.split(X, 3, 0),
        "split: num_split should be between 1 and the size of the axis, 2. Received: 3.",
    ),
    "concat_rank": (
        lambda: tf.sparse.concat(0, [X, VECTOR]),
        "concat: the ranks of the shapes [(2, 2), (2,)] differ. Expected equal ranks.",
    ),
    "concat": (
        lambda: tf.sparse.concat(0, [X, tf.sparse.eye(3)]),
        "concat: shapes [(2, 2), (3, 3)] cannot be concatenated along axis 0. Expected equal sizes "
        "along the other axes, or expand_nonconcat_dims=True.",
    ),
    "fill_row": (
        lambda: tf.sparse.fill_empty_rows(tf.SparseTensor([[5, 1]], [1.0], [4, 4]), 9.0),
        "fill_empty_rows: row 5 at position 0 is not in [0, 4).",
    ),
    "fill_default": (
        lambda: tf.sparse.fill_empty_rows(X, [9.0]),
        "fill_empty_rows: default_value should be a scalar. Received: shape (1,).",
    ),
    "bincount_negative": (
        lambda: tf.sparse.bincount([-1]),
        "bincount: expected nonnegative integers.",
    ),
    "bincount_dtype": (
        lambda: tf.sparse.bincount([1.0]),
        "bincount: expected int32 or int64. Received: dtype float32.",
    ),
    "bincount_shapes": (
        lambda: tf.sparse.bincount([1, 2], [1.0]),
        "bincount: values and weights have the shapes (2,) and (1,). Expected equal shapes.",
    ),
    "bincount_indices": (
        lambda: tf.sparse.bincount(INTEGERS, tf.sparse.eye(2)),
        "bincount: values and weights have different indices.",
    ),
    "cross_rank": (
        lambda: tf.sparse.cross([tf.constant(["a"])]),
        "cross: expected matrices. Received: shape (1,).",
    ),
    "cross_rows": (
        lambda: tf.sparse.cross([tf.constant([["a"]]), tf.constant([["a"], ["b"]])]),
        "cross: the inputs have [1, 2] rows. Expected equal numbers.",
    ),
    "cross_buckets": (
        lambda: tf.sparse.cross_hashed([tf.constant([["a"]])], -1),
        "cross_hashed: expected num_buckets >= 0. Received: -1.",
    ),
    "to_indicator": (
        lambda: tf.sparse.to_indicator(INTEGERS, 2),
        "to_indicator: the value 2 is not in [0, 2).",
    ),
    "segment_shapes": (
        lambda: tf.sparse.segment_sum(tf.ones([2]), [0, 1], [0]),
        "segment_sum: expected data with at least one axis, and indices and segment_ids as "
        "vectors of the same length. Received: shapes (2,), (2,) and (1,).",
    ),
    "segment_order": (
        lambda: tf.sparse.segment_sum(tf.ones([2]), [0, 1], [1, 0]),
        "segment_sum: segment_ids must be sorted and not negative.",
    ),
    "segment_index": (
        lambda: tf.sparse.segment_mean(tf.ones([2]), [0, 5], [0, 0]),
        "segment_mean: indices[1] = 5 is not in [0, 2).",
    ),
    "segment_count": (
        lambda: tf.sparse.segment_sum(tf.ones([2]), [0, 1], [0, 3], num_segments=2),
        "segment_sum: segment_ids must be smaller than num_segments. Received: 3 and 2.",
    ),
    "segment_dtype": (
        lambda: tf.sparse.segment_sum(tf.ones([2], tf.complex64), [0], [0]),
        "segment_sum: dtype complex64 is not supported. Expected real numbers.",
    ),
    "segment_mean_dtype": (
        lambda: tf.sparse.segment_mean([1], [0], [0]),
        "segment_mean: expected floats. Received: dtype int32. Use tf.cast.",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case):
    call, message = ERRORS[case]

    assert_raises(call, tf.errors.InvalidArgumentError, message)


OTHER_ERRORS = {
    "add": (
        lambda: tf.sparse.add(1.0, 2.0),
        TypeError,
        "At least one input should be a SparseTensor; use tf.add for dense tensors.",
    ),
    "two_sparse": (
        lambda: tf.sparse.sparse_dense_matmul(X, X),
        TypeError,
        "sparse_dense_matmul: both matrices are sparse. Expected one of them dense: use "
        "tf.sparse.to_dense.",
    ),
    "concat": (
        lambda: tf.sparse.concat(0, []),
        TypeError,
        "concat: expected a list of SparseTensors. Received: [].",
    ),
    "cross": (
        lambda: tf.sparse.cross([[["a"]]]),
        TypeError,
        "cross: expected Tensors and SparseTensors. Received: [['a']].",
    ),
    "cross_list": (
        lambda: tf.sparse.cross_hashed(X),
        TypeError,
        f"cross_hashed: expected a list of tensors. Received: {X!r}.",
    ),
    "map_values": (
        lambda: tf.sparse.map_values(tf.add, 1.0, 2.0),
        ValueError,
        "map_values: expected a SparseTensor among the arguments of op.",
    ),
    "multiply_dtype": (
        lambda: X * tf.constant(2),
        ValueError,
        "Tensor conversion requested dtype float32 for a tensor with dtype int32. Use tf.cast to "
        "change the dtype.",
    ),
    "transpose": (
        lambda: tf.sparse.transpose(X, [0, 0]),
        ValueError,
        "transpose: perm must be a permutation of the 2 axes. Received: [0, 0].",
    ),
    "reset_shape": (
        lambda: tf.sparse.reset_shape(X, [1, 3]),
        ValueError,
        "reset_shape: new_shape must have the rank of the SparseTensor and must not be smaller "
        "along any axis. Received: [1, 3] for shape [2, 2].",
    ),
    "retain": (
        lambda: tf.sparse.retain(X, [True]),
        ValueError,
        "retain: expected one boolean for each of 2 values. Received: shape (1,).",
    ),
    "split": (lambda: tf.sparse.split(X, 2), ValueError, "split: axis is required."),
    "sampled_addmm": (
        lambda: tf.sparse.sampled_addmm([[0, 1]], [2.0], [2, 2], tf.ones([2, 3]), tf.ones([2, 3])),
        ValueError,
        "sampled_addmm: a product of shapes (2, 3) and (2, 3) does not have the dense_shape "
        "[2, 2].",
    ),
    "bincount_axis": (
        lambda: tf.sparse.bincount([[1]], axis=1),
        ValueError,
        "bincount: only the axes 0 and -1 are supported. Received: axis=1.",
    ),
    "bincount_binary": (
        lambda: tf.sparse.bincount([1], [1.0], binary_output=True),
        ValueError,
        "bincount: binary_output and weights cannot be combined. Pass only one.",
    ),
}


@pytest.mark.parametrize("case", OTHER_ERRORS)
def test_builtin_errors(case):
    assert_raises(*OTHER_ERRORS[case])
