"""Compares `keras.ops.numpy` with NumPy, and gradients with finite differences."""

import numpy as np
import pytest

import retrograde as tf
from retrograde import keras
from retrograde.keras_backend.ops import numpy as backend
from tests.namespaces.helpers import assert_gradients, gradient

RNG = np.random.default_rng(11)


def uniform(low, high, *shape):
    return RNG.uniform(low, high, shape)


def distinct(*shape):
    """Returns well-separated numbers in random order."""
    n = int(np.prod(shape))
    return (RNG.permutation(n) + RNG.uniform(0.1, 0.4, n)).reshape(shape) - n / 2


def with_nan(*shape):
    """Returns `distinct` numbers with a NaN in each row."""
    x = distinct(*shape)
    x[..., 1] = np.nan
    return x


IN_DOMAIN = uniform(0.2, 0.9, 3, 4)  # in the domain of all elementary functions
DISTINCT = distinct(3, 4)
VECTOR = distinct(5)
SQUARE = uniform(-1, 1, 3, 3) + 2 * np.eye(3)


# Function names and their arguments. Gradients are checked for float64 arrays.
UNARY = {
    "abs absolute fabs negative square conj conjugate real copy ravel transpose": DISTINCT,
    "arccos arcsin arctan arctanh cbrt cos cosh deg2rad exp exp2 expm1 i0 log log10": IN_DOMAIN,
    "log1p log2 rad2deg reciprocal sin sinc sinh sqrt tan tanh arcsinh": IN_DOMAIN,
    "arccosh": IN_DOMAIN + 1,
    "sum prod mean max min amax amin ptp std var median average": DISTINCT,
    "nansum nanprod nanmean nanmax nanmin nanstd nanvar nanmedian nancumsum nancumprod": with_nan(
        3, 4
    ),
    "cumsum cumprod sort diagflat nan_to_num corrcoef flip fliplr flipud tril triu": DISTINCT,
    "diag diagonal trace": SQUARE,
    "diff": DISTINCT,
    "vander": VECTOR,
}
BINARY = {
    "add subtract multiply divide true_divide arctan2 maximum minimum fmax fmin logaddexp": (
        DISTINCT,
        VECTOR[:4],
    ),
    "logaddexp2 hypot kron outer": (DISTINCT, VECTOR[:4]),
    "power": (IN_DOMAIN, DISTINCT),
    "mod fmod": (DISTINCT + 20, np.array([1.7, 2.3, -3.1, 1.9])),
    "dot matmul": (DISTINCT, distinct(4, 2)),
    "inner": (DISTINCT, distinct(2, 4)),
    "vdot": (DISTINCT, distinct(3, 4)),
    "cross": (distinct(4, 3), distinct(3)),
    "correlate": (VECTOR, distinct(3)),
    "append": (DISTINCT, VECTOR),
}


def unary_cases():
    return [(name, [x], {}) for names, x in UNARY.items() for name in names.split()]


def binary_cases():
    return [(name, [*xs], {}) for names, xs in BINARY.items() for name in names.split()]


WITH_KEYWORDS = [
    *((name, [DISTINCT], {"axis": axis, "keepdims": keepdims})
      for name in ("sum", "prod", "mean", "max", "min", "std", "var", "median", "ptp")
      for axis, keepdims in ((1, False), (0, True))),
    *((name, [DISTINCT], {"axis": (0, -1), "keepdims": True})
      for name in ("sum", "mean", "std", "max")),
    *((name, [with_nan(3, 4)], {"axis": 1, "keepdims": True})
      for name in ("nansum", "nanprod", "nanmean", "nanmax", "nanmin", "nanstd", "nanvar",
                   "nanmedian")),
    *((name, [with_nan(3, 4)], {"axis": 1}) for name in ("nancumsum", "nancumprod")),
    *((name, [DISTINCT], {"axis": -1}) for name in ("cumsum", "cumprod", "sort", "flip", "diff")),
    *((name, [DISTINCT, uniform(0.1, 0.9, 3)], {"axis": 1, "keepdims": keepdims, "method": method})
      for name in ("quantile", "nanquantile")
      for keepdims, method in ((False, "linear"), (True, "linear"))),
    *(("quantile", [DISTINCT, 0.37], {"axis": axis, "method": method})
      for axis in (None, 0) for method in ("lower", "higher", "nearest", "midpoint")),
    ("quantile", [distinct(2, 3, 4), 0.4], {"axis": (0, 2)}),
    ("percentile", [DISTINCT, np.array([[15.0, 40.0], [62.0, 77.0]])], {"axis": 0}),
    ("nanpercentile", [with_nan(3, 4), 31.0], {"axis": 1}),
    ("average", [DISTINCT], {"axis": 1, "weights": np.array([1.0, 2.0, 0.5, 3.0])}),
    ("average", [DISTINCT], {"weights": uniform(0.5, 1.5, 3, 4)}),
    ("clip", [DISTINCT, -3.3, 2.2], {}),
    ("broadcast_to", [VECTOR, (2, 5)], {}),
    ("reshape", [DISTINCT, (2, -1)], {}),
    ("expand_dims", [DISTINCT, (0, -1)], {}),
    ("squeeze", [DISTINCT[None, :, None]], {}),
    ("squeeze", [DISTINCT[None, :, None]], {"axis": 0}),
    ("transpose", [distinct(2, 3, 4), (1, 2, 0)], {}),
    ("swapaxes", [distinct(2, 3, 4), 0, -1], {}),
    ("moveaxis", [distinct(2, 3, 4), (0, 1), (-1, 0)], {}),
    ("repeat", [DISTINCT, 2], {}), ("repeat", [DISTINCT, 3], {"axis": 1}),
    ("repeat", [DISTINCT, [1, 0, 2]], {"axis": 0}),
    ("tile", [DISTINCT, (2, 1, 2)], {}), ("tile", [DISTINCT, 2], {}),
    ("pad", [DISTINCT, ((1, 0), (2, 1))], {}),
    ("pad", [DISTINCT, 1], {"constant_values": 2.5}),
    *(("pad", [DISTINCT, ((1, 2), (0, 3))], {"mode": mode})
      for mode in ("reflect", "symmetric", "edge", "wrap")),
    ("roll", [DISTINCT, 3], {}), ("roll", [DISTINCT, -1], {"axis": 1}),
    ("roll", [DISTINCT, (1, 2)], {"axis": (0, 1)}),
    *(("rot90", [DISTINCT], {"k": k}) for k in range(4)),
    ("rot90", [distinct(2, 3, 4)], {"k": -1, "axes": (2, 0)}),
    ("diag", [VECTOR], {"k": -1}), ("diag", [DISTINCT], {"k": 2}),
    ("diagflat", [DISTINCT], {"k": 1}),
    ("diagonal", [distinct(2, 3, 4)], {"offset": 1, "axis1": 2, "axis2": 0}),
    ("diagonal", [DISTINCT], {"offset": 9}),
    ("trace", [distinct(2, 3, 4)], {"offset": -1, "axis1": 0, "axis2": 2}),
    ("tril", [distinct(2, 3, 4)], {"k": 1}), ("triu", [distinct(2, 3, 4)], {"k": -1}),
    ("take", [DISTINCT, [[1, -1], [0, 1]]], {"axis": 1}), ("take", [DISTINCT, [11, 0, -2, 0]], {}),
    ("take_along_axis", [DISTINCT, np.array([[0], [3], [-1]])], {"axis": 1}),
    ("take_along_axis", [DISTINCT, np.array([5, 5, -1])], {"axis": None}),
    ("vander", [VECTOR], {"N": 3, "increasing": True}),
    ("diff", [DISTINCT], {"n": 2, "axis": 0}),
    ("tensordot", [distinct(2, 3, 4), distinct(3, 4, 2)], {}),
    ("tensordot", [distinct(2, 3, 4), distinct(4, 2)], {"axes": [[2, 0], [0, 1]]}),
    ("matmul", [distinct(2, 3, 4), distinct(4)], {}),
    ("matmul", [distinct(3), distinct(2, 3, 4)], {}),
    ("matmul", [distinct(2, 1, 3, 4), distinct(5, 4, 2)], {}),
    ("cross", [distinct(3, 4), distinct(3, 4)], {"axis": 0}),
    *(("correlate", [VECTOR, distinct(2)], {"mode": mode}) for mode in ("valid", "same", "full")),
    *(("correlate", [distinct(2), VECTOR], {"mode": mode}) for mode in ("valid", "same", "full")),
    *(("correlate", [VECTOR, distinct(4)], {"mode": mode}) for mode in ("same", "full")),
    ("append", [DISTINCT, distinct(2, 4)], {"axis": 0}),
    ("nan_to_num", [np.array([1.0, np.nan, np.inf, -np.inf])],
     {"nan": 3.0, "posinf": 4.0, "neginf": 5.0}),
    ("trapezoid", [DISTINCT], {}), ("trapezoid", [DISTINCT], {"dx": 0.5, "axis": 0}),
    ("trapezoid", [DISTINCT, np.array([0.0, 1.0, 3.0, 3.5])], {}),
    ("ldexp", [DISTINCT, np.array([0, 1, -2, 3])], {}),
    ("linspace", [uniform(0, 1, 2), uniform(1, 2, 2)], {"num": 4}),
    ("linspace", [0.5, VECTOR], {"num": 3, "endpoint": False, "axis": -1}),
    ("linspace", [VECTOR, 7.0], {"num": 1}),
    ("logspace", [uniform(0, 1, 2), uniform(1, 2, 2)], {"num": 3}),
    ("logspace", [uniform(0, 1, 2), 2.0], {"num": 3, "base": 2, "endpoint": False}),
    ("geomspace", [uniform(1, 2, 2), uniform(5, 9, 2)], {"num": 4, "dtype": "float64"}),
    ("geomspace", [-uniform(1, 2, 2), -9.0], {"num": 4, "dtype": "float64"}),
    ("full", [(2, 3), np.array(1.5)], {"dtype": "float64"}),
    ("array", [DISTINCT], {}),
]  # fmt: skip

LIST_INPUTS = [  # functions of a list of tensors
    ("concatenate", [DISTINCT, distinct(2, 4)], {}),
    ("concatenate", [DISTINCT, distinct(3, 2)], {"axis": -1}),
    ("stack", [DISTINCT, distinct(3, 4)], {"axis": 1}), ("hstack", [VECTOR, distinct(2)], {}),
    ("hstack", [DISTINCT, distinct(3, 2)], {}), ("vstack", [VECTOR, distinct(2, 5)], {}),
    ("dstack", [DISTINCT, distinct(3, 4)], {}), ("dstack", [VECTOR, distinct(5)], {}),
]  # fmt: skip
MULTIPLE_OUTPUTS = [
    ("split", [DISTINCT, 2], {"axis": 1}),
    ("split", [VECTOR, [1, 3]], {}), ("split", [VECTOR, [3, 1, -1, 9]], {}),
    ("array_split", [VECTOR, 3], {}), ("hsplit", [DISTINCT, 2], {}), ("hsplit", [VECTOR, [2]], {}),
    ("vsplit", [DISTINCT, [1]], {}), ("dsplit", [distinct(2, 3, 4), 2], {}),
    ("slogdet", [SQUARE], {}),
]  # fmt: skip


def label(case):
    name, args, kwargs = case
    shapes = "-".join(str(np.shape(x)) for x in args if isinstance(x, np.ndarray))
    return f"{name}{shapes}{kwargs or ''}"


def numpy_function(name):
    return {"slogdet": np.linalg.slogdet}.get(name) or getattr(np, name)


def check(actual_fn, numpy_fn, inputs):
    """Compares value, shape and dtype with NumPy and the gradient with finite differences."""
    y = actual_fn(*map(tf.constant, inputs))
    with np.errstate(all="ignore"):
        expected = np.asarray(numpy_fn(*inputs))
    assert y.shape == expected.shape
    assert y.dtype == expected.dtype
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-10, atol=1e-12)
    clean = [np.where(np.isfinite(x), x, 0.3) for x in inputs]
    if all(np.isfinite(x).all() for x in inputs):
        assert_gradients(actual_fn, *inputs)
    else:
        # The gradient at a NaN must be 0. Finite differences check the other elements.
        for g, x in zip(gradient(actual_fn, *inputs), inputs, strict=True):
            assert (g[~np.isfinite(x)] == 0).all()
            assert np.isfinite(g).all()
        with_nan_restored = lambda *xs: actual_fn(*(  # noqa: E731
            tf.where(np.isfinite(x), v, tf.constant(x)) for v, x in zip(xs, inputs, strict=True)
        ))  # fmt: skip
        assert_gradients(with_nan_restored, *clean)


@pytest.mark.parametrize("case", [*unary_cases(), *binary_cases(), *WITH_KEYWORDS], ids=label)
def test_value_and_gradient(case):
    name, args, kwargs = case
    positions = [i for i, x in enumerate(args) if getattr(x, "dtype", None) == np.float64]
    actual_fn, numpy_fn = getattr(backend, name), numpy_function(name)

    def with_inputs(function):
        def call(*inputs):
            call_args = list(args)
            for i, x in zip(positions, inputs, strict=True):
                call_args[i] = x
            return function(*call_args, **kwargs)

        return call

    check(with_inputs(actual_fn), with_inputs(numpy_fn), [args[i] for i in positions])


@pytest.mark.parametrize("case", LIST_INPUTS, ids=label)
def test_value_and_gradient_of_functions_of_lists(case):
    name, xs, kwargs = case
    actual_fn, numpy_fn = getattr(backend, name), numpy_function(name)

    check(lambda *xs: actual_fn(xs, **kwargs), lambda *xs: numpy_fn(xs, **kwargs), xs)


@pytest.mark.parametrize("case", MULTIPLE_OUTPUTS, ids=label)
def test_value_and_gradient_of_multiple_outputs(case):
    name, args, kwargs = case
    inputs = [x for x in args if isinstance(x, np.ndarray)]
    rest = args[len(inputs) :]
    actual_fn, numpy_fn = getattr(backend, name), numpy_function(name)
    count = len(numpy_fn(*args, **kwargs))
    assert len(actual_fn(*args, **kwargs)) == count

    for i in range(count):
        check(
            lambda *xs, i=i: actual_fn(*xs, *rest, **kwargs)[i],
            lambda *xs, i=i: numpy_fn(*xs, *rest, **kwargs)[i],
            inputs,
        )


@pytest.mark.parametrize("indexing", ["xy", "ij"])
def test_meshgrid(indexing):
    def combine_grids(namespace):
        def call(x, y, z):
            a, b, c = namespace.meshgrid(x, y, z, indexing=indexing)
            return a * b * b + c

        return call

    check(combine_grids(backend), combine_grids(np), [VECTOR, distinct(2), distinct(3)])


@pytest.mark.parametrize(
    "equation, shapes",
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("...ij,...jk->...ik", [(5, 2, 3), (3, 4)]),
        ("bij,bjk,bk->bi", [(2, 3, 4), (2, 4, 5), (2, 5)]),
        ("ii->i", [(3, 3)]),
        ("ij->", [(2, 3)]),
        ("abc,cd->abd", [(2, 3, 4), (4, 5)]),
    ],
)
def test_einsum(equation, shapes):
    xs = [distinct(*shape) for shape in shapes]

    check(lambda *xs: backend.einsum(equation, *xs), lambda *xs: np.einsum(equation, *xs), xs)


def test_gradients_of_angle_and_imag():
    def angle_plus_imag(make_complex):
        return lambda x, y: backend.angle(make_complex(x, y)) + backend.imag(make_complex(x, y))

    check(
        angle_plus_imag(tf.complex),
        lambda x, y: np.angle(x + 1j * y) + y,
        [uniform(0.5, 1, 3), distinct(3)],
    )
    assert backend.imag(tf.constant([1.0, 2.0])).numpy().tolist() == [0, 0]
    assert backend.angle([1.0, -1.0]).numpy().tolist() == [0, np.float32(np.pi)]


def test_gradients_of_where_and_select():
    low, high = DISTINCT < -2, DISTINCT > 2
    for actual_fn, numpy_fn in (
        (lambda x, y: backend.where(low, x, y), lambda x, y: np.where(low, x, y)),
        (
            lambda x, y: backend.select([low, high], [x, y], 0.5),
            lambda x, y: np.select([low, high], [x, y], 0.5),
        ),
    ):
        check(actual_fn, numpy_fn, [distinct(3, 4), distinct(3, 4)])
    x = tf.constant([0.0, 4.0])
    (g,) = gradient(lambda x: backend.where(x > 0, backend.sqrt(x), 1.0), x)
    assert g.tolist() == [0, 0.25]


def test_divide_no_nan():
    x, y = np.array([1.0, 2.0, 3.0]), np.array([2.0, 0.0, 4.0])
    grad_x, grad_y = gradient(backend.divide_no_nan, x, y)

    assert backend.divide_no_nan(x, y).numpy().tolist() == [0.5, 0, 0.75]
    assert grad_x.tolist() == [0.5, 0, 0.25]
    assert grad_y.tolist() == [-0.25, 0, -3 / 16]
    assert_gradients(backend.divide_no_nan, distinct(3), distinct(3))


def test_tensor_like_arguments():
    v = tf.Variable([1.0, 2.0])
    for x in (v, v[:], keras.Variable([1.0, 2.0]), [1.0, 2.0], np.float64(3)):
        for y in (tf.constant([1.0, 1.0]), v[:], 2, 2.5, np.float64(2)):
            result = backend.add(x, y)
            assert result.dtype == "float32"
            np.testing.assert_array_equal(result.numpy(), np.asarray(x) + np.asarray(y))


def test_numpy_scalars_are_weakly_typed():
    half = tf.constant([1.0], tf.float16)

    for number in (2, 2.5, np.float64(2.5)):
        assert backend.multiply(half, number).dtype == "float16"
        assert backend.multiply(number, half).dtype == "float16"
    assert backend.add(tf.constant([1]), np.float64(2)).dtype == "float32"


def test_every_differentiable_function_has_a_case():
    cases = [*unary_cases(), *binary_cases(), *WITH_KEYWORDS, *LIST_INPUTS, *MULTIPLE_OUTPUTS]
    tested_separately = {"angle", "imag", "divide_no_nan", "einsum", "meshgrid", "select", "where"}

    assert {name for name, _, _ in cases} | tested_separately >= DIFFERENTIABLE


DIFFERENTIABLE = set(
    """
    abs absolute add amax amin angle append arccos arccosh arcsin arcsinh arctan arctan2 arctanh
    array_split average broadcast_to cbrt clip concatenate conj conjugate copy corrcoef correlate
    cos cosh cross cumprod cumsum deg2rad diag diagflat diagonal diff divide divide_no_nan dot
    dsplit dstack einsum exp exp2 expand_dims expm1 fabs flip fliplr flipud fmax fmin fmod hsplit
    hstack hypot i0 imag inner kron ldexp log log10 log1p log2 logaddexp logaddexp2 matmul max
    maximum mean median meshgrid min minimum mod moveaxis multiply nan_to_num nancumprod nancumsum
    nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar negative
    outer pad percentile power prod ptp quantile rad2deg ravel real reciprocal repeat reshape roll
    rot90 select sin sinc sinh slogdet sort split sqrt square squeeze stack std subtract sum
    swapaxes take take_along_axis tan tanh tensordot tile trace transpose trapezoid tril triu
    true_divide vander var vdot vsplit vstack where array full geomspace linspace logspace
    """.split()  # noqa: SIM905
)
