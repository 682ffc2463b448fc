"""Edge cases of `keras.ops.numpy`: dtypes, ties, NaN, empty inputs, errors."""

import numpy as np
import pytest

import retrograde as tf
from retrograde import keras
from retrograde.keras_backend.ops import numpy as backend
from tests.namespaces.helpers import assert_raises, gradient

HALF = ("float16", "bfloat16")


def test_integers_become_floatx():
    assert backend.sin([1, 2]).dtype == "float32"
    keras.config.set_floatx("float16")
    try:
        assert backend.sin([1, 2]).dtype == backend.mean([1, 2]).dtype == "float16"
        assert backend.divide(1, 2).dtype == backend.ones((2,)).dtype == "float16"
    finally:
        keras.config.set_floatx("float32")
    assert backend.divide(1, 2).dtype == "float32"


def test_64_bit_dtypes_are_kept():
    wide, ids = tf.constant([1.0, 2.0], tf.float64), tf.constant([2**40, 1], tf.int64)

    for f in (backend.add, backend.multiply, backend.divide, backend.power, backend.maximum):
        for other in (wide, 2, 2.5, tf.constant([1.0, 1.0]), tf.constant([1, 1])):
            assert f(wide, other).dtype == f(other, wide).dtype == "float64"
    assert backend.add(ids, 1).numpy().tolist() == [2**40 + 1, 2]
    assert backend.var(wide).dtype == backend.median(wide).dtype == "float64"
    assert backend.cbrt(ids).dtype == backend.hypot(ids, ids).dtype == "float64"


@pytest.mark.parametrize("dtype", HALF)
def test_half_precision_sums_are_computed_in_float32(dtype):
    x = tf.cast(np.full(3000, 1.001), dtype)

    for f in (backend.mean, backend.median, backend.average, backend.nanmean):
        y = f(x)
        assert y.dtype == dtype
        assert abs(float(y) - float(x[0])) < 0.01
    assert abs(float(backend.var(x))) < 1e-6


def test_booleans():
    yes, no = tf.constant([True, True]), tf.constant([True, False])

    assert backend.add(yes, no).numpy().tolist() == [True, True]
    assert backend.multiply(yes, no).numpy().tolist() == [True, False]
    assert backend.maximum(no, no).dtype == "bool"
    assert backend.sum(yes).numpy() == 2 and backend.sum(yes).dtype == "int32"
    assert backend.cumsum(yes).numpy().tolist() == [1, 2]
    assert backend.max(no).numpy() and not backend.min(no).numpy()
    assert backend.sort(no).numpy().tolist() == [False, True]
    assert backend.greater(yes, no).numpy().tolist() == [False, True]


def test_results_do_not_alias_variables():
    v = keras.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        copies = [
            backend.copy(v), backend.array(v), backend.real(v), backend.conj(v), backend.ravel(v),
            backend.nan_to_num(v), backend.rot90(backend.expand_dims(v, 0), 0),
        ]  # fmt: skip
        total = sum(backend.sum(x) * (i + 1) for i, x in enumerate(copies))
    v.assign([7.0, 8.0])

    assert all(backend.ravel(x).numpy().tolist() == [1, 2] for x in copies)
    assert tape.gradient(total, v).numpy().tolist() == [28, 28]


def test_gradient_of_take_is_sparse():
    v = keras.Variable(np.zeros((3, 2)))
    with tf.GradientTape() as tape:
        y = backend.sum(backend.take(v, [0, -1, 0], axis=0))

    g = tape.gradient(y, v)
    assert isinstance(g, tf.IndexedSlices)
    assert g.indices.numpy().tolist() == [0, 2, 0]
    assert tf.convert_to_tensor(g).numpy().tolist() == [[2, 2], [0, 0], [1, 1]]


def test_quantiles_with_nan():
    x = np.array([[1.0, np.nan, 3.0], [np.nan] * 3, [np.inf, 1.0, np.inf]])

    np.testing.assert_array_equal(backend.median(x, axis=1).numpy(), [np.nan, np.nan, np.inf])
    np.testing.assert_array_equal(backend.nanmedian(x, axis=1).numpy(), [2, np.nan, np.inf])
    assert backend.quantile(np.array([1.0, np.inf]), 1.0).numpy() == np.inf


def test_max_of_empty_needs_an_initial_value():
    empty = np.zeros((0, 2))

    assert backend.max(empty, axis=0, initial=3.0).numpy().tolist() == [3, 3]
    assert backend.min(np.array([5.0, 7.0]), initial=3.0).numpy() == 3
    assert_raises(
        lambda: backend.max(empty, axis=0),
        ValueError,
        "max: cannot reduce zero elements, shape (0, 2), without an `initial` value.",
    )


def test_ties_share_the_gradient():
    (g,) = gradient(lambda x: backend.max(x), np.array([3.0, 1.0, 3.0]))

    assert g.tolist() == [0.5, 0, 0.5]


def test_clip_bounds_have_gradients():
    x, low, high = np.array([-2.0, 0.5, 3.0]), np.array(-1.0), np.array(2.0)

    assert [g.tolist() for g in gradient(backend.clip, x, low, high)] == [[0, 1, 0], 1, 1]
    assert backend.clip([1, 5], 2, 3.7).numpy().tolist() == [2, 3]
    assert backend.clip([True, False], 0, 1).dtype == "int32"


def test_hypot_gradient_at_the_origin_is_zero():
    assert [g.tolist() for g in gradient(backend.hypot, np.array([0.0]), np.array([0.0]))] == [
        [0], [0],
    ]  # fmt: skip
    assert backend.hypot(1e300, tf.constant(1e300, tf.float64)).numpy() == np.hypot(1e300, 1e300)


def test_powers_of_two_and_ten_are_exact():
    x = np.arange(-30.0, 31.0)

    np.testing.assert_array_equal(backend.exp2(x).numpy(), 2**x)
    np.testing.assert_array_equal(backend.log2(2**x).numpy(), x)
    np.testing.assert_array_equal(backend.log10(10 ** np.arange(16.0)).numpy(), np.arange(16))


def test_digitize_with_descending_bins():
    x, bins = np.array([0.5, 1.0, 9.0, -1.0]), np.array([3.0, 1.0, 0.0])

    assert backend.digitize(x, bins).numpy().tolist() == np.digitize(x, bins).tolist()
    assert backend.digitize(x, bins[::-1]).numpy().tolist() == np.digitize(x, bins[::-1]).tolist()
    assert backend.digitize(x, bins[:1]).numpy().tolist() == np.digitize(x, bins[:1]).tolist()


@pytest.mark.parametrize("range", [None, (0.0, 2.0), (-5.0, 5.0)])
def test_histogram(range):
    for x in (np.array([0.1, 0.5, 2.0, 1.99, -0.3, 7.0]), np.array([2.0, 2.0])):
        counts, edges = np.histogram(x, bins=4, range=range)
        actual = backend.histogram(x, bins=4, range=range)
        np.testing.assert_array_equal(actual[0].numpy(), counts)
        np.testing.assert_allclose(actual[1].numpy(), edges, rtol=1e-12)


def test_unique():
    x = np.array([[3, 1, 3], [2, 1, 3]])
    values, first, inverse, counts = backend.unique(
        x, return_index=True, return_inverse=True, return_counts=True
    )
    assert values.numpy().tolist() == [1, 2, 3] and counts.numpy().tolist() == [2, 1, 3]
    assert first.numpy().tolist() == [1, 3, 0]
    assert inverse.numpy().tolist() == [[2, 0, 2], [1, 0, 2]]
    assert backend.unique(x, axis=1).numpy().tolist() == [[1, 3, 3], [1, 2, 3]]
    assert backend.unique(x, size=5, fill_value=9).numpy().tolist() == [1, 2, 3, 9, 9]
    assert backend.unique(x, size=2).numpy().tolist() == [1, 2]


def test_view():
    x = np.array([[1.0, -2.0], [0.5, 4.0]], np.float32)

    for dtype in ("int32", "uint8", "int16", "float64", "float32"):
        np.testing.assert_array_equal(backend.view(x, dtype).numpy(), x.view(dtype))
    assert backend.view(x).numpy().tolist() == x.tolist()
    assert backend.view(np.array([True, False]), "int8").numpy().tolist() == [1, 0]
    assert_raises(
        lambda: backend.view(x[:, :1], "float64"),
        ValueError,
        "view: float32 of shape (2, 1) cannot be viewed as float64: the size of the last axis in "
        "bytes is not a multiple of the item size.",
    )


def test_vectorize():
    f = backend.vectorize(lambda x, y: backend.where(x > y, x - y, x + y))
    x, y = np.arange(6.0).reshape(2, 3), np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(f(x, y).numpy(), np.where(x > y, x - y, x + y))

    dot = backend.vectorize(backend.dot, signature="(n),(n)->()")
    np.testing.assert_array_equal(dot(x, y).numpy(), x @ y)


def test_cross_product_of_2d_vectors():
    assert backend.cross([1.0, 2.0], [3.0, 4.0]).numpy() == -2
    assert backend.cross([1.0, 2.0], [3.0, 4.0, 5.0]).numpy().tolist() == [10, -5, -2]


def test_integer_products_keep_their_dtype():
    small = tf.constant([[100, 100]], tf.int8)

    assert backend.matmul(small, backend.transpose(small)).numpy().tolist() == [[20000]]
    assert backend.einsum("ij,kj->ik", small, small).dtype == "int32"
    assert backend.outer([1, 2], [3, 4]).dtype == "int32"
    assert backend.matmul([True, False], [[True], [True]]).dtype == "bool"


ERRORS = {
    "ldexp": (
        lambda: backend.ldexp(1.0, 2.0),
        TypeError,
        "ldexp: the exponents must be integers. Received: x2 of dtype float32.",
    ),
    "axis": (
        lambda: backend.sum(np.ones(2), axis=3),
        ValueError,
        "sum: axis 3 is out of range for a tensor of rank 1. Expected -1 <= axis < 1.",
    ),
    "expand_dims": (
        lambda: backend.expand_dims(np.ones(2), (0, 0)),
        ValueError,
        "expand_dims: axes must be unique. Received: (0, 0).",
    ),
    "squeeze": (
        lambda: backend.squeeze(np.ones((1, 2)), axis=1),
        ValueError,
        "squeeze: axes 1 of shape (1, 2) cannot be removed: their sizes are not 1.",
    ),
    "transpose": (
        lambda: backend.transpose(np.ones((1, 2)), (0, 0)),
        ValueError,
        "transpose: axes must be a permutation of the 2 axes of shape (1, 2). Received: (0, 0).",
    ),
    "moveaxis": (
        lambda: backend.moveaxis(np.ones((1, 2)), (0, 1), 0),
        ValueError,
        "moveaxis: 2 sources, (0, 1), and 1 destinations, (0,). Expected the same number.",
    ),
    "split": (
        lambda: backend.split(np.ones(5), 2),
        ValueError,
        "split: axis 0 of shape (5,) cannot be split into 2 equal parts.",
    ),
    "pad": (
        lambda: backend.pad(np.ones(2), 1, mode="edge", constant_values=1),
        ValueError,
        "Argument `constant_values` can only be provided when `mode == 'constant'`. "
        "Received: mode=edge",
    ),
    "rot90": (
        lambda: backend.rot90(np.ones(2)),
        ValueError,
        "Input array must have at least 2 dimensions. Received: array.ndim=1",
    ),
    "rot90_axes": (
        lambda: backend.rot90(np.ones((2, 2)), axes=(1, 1)),
        ValueError,
        "Invalid axes: (1, 1). Axes must be a tuple of two different dimensions.",
    ),
    "diag": (
        lambda: backend.diag(np.ones((1, 1, 1))),
        ValueError,
        "diag: expected a vector or a matrix. Received: shape (1, 1, 1).",
    ),
    "tril": (
        lambda: backend.tril(np.ones(2)),
        ValueError,
        "tril: expected a matrix, or more axes. Received: shape (2,).",
    ),
    "take_along_axis": (
        lambda: backend.take_along_axis(np.ones((2, 2)), [0], axis=1),
        ValueError,
        "take_along_axis: the array has shape (2, 2), the indices have shape (1,). Expected the "
        "same number of axes.",
    ),
    "take_along_axis_sizes": (
        lambda: backend.take_along_axis(np.ones((2, 2)), [[0], [0], [1]], axis=1),
        ValueError,
        "take_along_axis: shapes (2, 2) and (3, 1) cannot be broadcast, except along the axis.",
    ),
    "searchsorted": (
        lambda: backend.searchsorted(np.ones((2, 2)), 1.0),
        ValueError,
        "`searchsorted` only supports 1-D sorted sequences. You can use `keras.ops.vectorized_map` "
        "to extend it to N-D sequences. Received: sorted_sequence.shape=(2, 2)",
    ),
    "bincount": (
        lambda: backend.bincount([1], sparse=True),
        ValueError,
        "Unsupported value `sparse=True` with the retrograde backend.",
    ),
    "quantile": (
        lambda: backend.quantile(np.ones(2), 0.5, method="cubic"),
        ValueError,
        "quantile: `method` must be 'linear', 'lower', 'higher', 'midpoint' or 'nearest'. "
        "Received: 'cubic'.",
    ),
    "correlate": (
        lambda: backend.correlate(np.ones(2), np.ones(2), mode="all"),
        ValueError,
        "correlate: `mode` must be one of ['valid', 'same', 'full']. Received: 'all'.",
    ),
    "vander": (
        lambda: backend.vander(np.ones((2, 2))),
        ValueError,
        "vander: expected a vector. Received: shape (2, 2).",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    assert_raises(*ERRORS[name])


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "xla"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_float_to_small_integer_casts_saturate(dtype, compiled):
    """Keras's `cast` saturates as on JAX; `tf.cast` wraps around."""
    x = tf.cast([-2.5, 3.7, -1e5, 1e5], dtype)

    def casts(x):
        return [keras.ops.cast(x, kind) for kind in ("uint8", "int8", "uint16", "int16")]

    results = tf.function(casts, jit_compile=True)(x) if compiled else casts(x)
    unsigned, signed, long, long_signed = results
    np.testing.assert_array_equal(unsigned, [0, 3, 0, 255])
    np.testing.assert_array_equal(signed, [-2, 3, -128, 127])
    np.testing.assert_array_equal(long, [0, 3, 0, 65535])
    np.testing.assert_array_equal(long_signed, [-2, 3, -32768, 32767])
