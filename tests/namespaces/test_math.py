"""tf.math: values recorded from TensorFlow, dtypes, errors and gradients."""

import numpy as np
import pytest

import retrograde as tf
from retrograde.errors import InvalidArgumentError
from tests.namespaces.helpers import (
    COMPLEXES,
    FLOATS,
    INEXACT,
    NUMERIC,
    REAL,
    REAL_PART,
    SIGNED,
    UNSIGNED,
    assert_gradients,
    assert_raises,
    float64,
    gradient,
    of_dtype,
)

ANY_SIGN = [-1.3, -0.2, 0.7, 2.4]
POSITIVE = [0.1, 0.7, 1.9, 5.5]
UNIT = [-0.9, -0.2, 0.3, 0.8]
LARGE = [1.1, 1.7, 2.5, 6.0]

# fmt: off
UNARY = [
    ("square", ANY_SIGN, [1.69, 0.04, 0.49, 5.76]),
    ("sqrt", POSITIVE, [0.316227766017, 0.836660026534, 1.37840487521, 2.34520787991]),
    ("rsqrt", POSITIVE, [3.16227766017, 1.19522860933, 0.72547625011, 0.426401432711]),
    ("reciprocal", ANY_SIGN, [-0.769230769231, -5.0, 1.42857142857, 0.416666666667]),
    ("reciprocal_no_nan", ANY_SIGN, [-0.769230769231, -5.0, 1.42857142857, 0.416666666667]),
    ("exp", ANY_SIGN, [0.272531793034, 0.818730753078, 2.01375270747, 11.0231763806]),
    ("expm1", ANY_SIGN, [-0.727468206966, -0.181269246922, 1.01375270747, 10.0231763806]),
    ("log", POSITIVE, [-2.30258509299, -0.356674943939, 0.641853886172, 1.70474809224]),
    ("log1p", UNIT, [-2.30258509299, -0.223143551314, 0.262364264467, 0.587786664902]),
    ("log_sigmoid", ANY_SIGN, [-1.54100845383, -0.798138869382, -0.403186048885, -0.0868361521539]),
    ("sigmoid", ANY_SIGN, [0.214165016957, 0.450166002688, 0.668187772168, 0.916827303506]),
    ("softplus", ANY_SIGN, [0.241008453833, 0.598138869382, 1.10318604889, 2.48683615215]),
    ("softsign", ANY_SIGN, [-0.565217391304, -0.166666666667, 0.411764705882, 0.705882352941]),
    ("tanh", ANY_SIGN, [-0.861723159313, -0.197375320225, 0.604367777117, 0.983674857694]),
    ("sin", ANY_SIGN, [-0.963558185417, -0.198669330795, 0.644217687238, 0.675463180551]),
    ("cos", ANY_SIGN, [0.267498828625, 0.980066577841, 0.764842187284, -0.737393715541]),
    ("tan", ANY_SIGN, [-3.60210244797, -0.202710035509, 0.842288380463, -0.916014289673]),
    ("asin", UNIT, [-1.119769515, -0.20135792079, 0.304692654015, 0.927295218002]),
    ("acos", UNIT, [2.69056584179, 1.77215424759, 1.26610367278, 0.643501108793]),
    ("atan", ANY_SIGN, [-0.915100700553, -0.19739555985, 0.610725964389, 1.1760052071]),
    ("sinh", ANY_SIGN, [-1.69838243729, -0.201336002541, 0.75858370184, 5.46622921368]),
    ("cosh", ANY_SIGN, [1.97091423033, 1.02006675562, 1.25516900563, 5.55694716697]),
    ("asinh", ANY_SIGN, [-1.07845105895, -0.198690110349, 0.652666566082, 1.60943791243]),
    ("acosh", LARGE, [0.443568254385, 1.12323098259, 1.56679923697, 2.47788873029]),
    ("atanh", UNIT, [-1.47221948958, -0.202732554054, 0.309519604203, 1.09861228867]),
    ("abs", ANY_SIGN, [1.3, 0.2, 0.7, 2.4]),
    ("sign", ANY_SIGN, [-1.0, -1.0, 1.0, 1.0]),
    ("negative", ANY_SIGN, [1.3, 0.2, -0.7, -2.4]),
    ("floor", ANY_SIGN, [-2.0, -1.0, 0.0, 2.0]),
    ("ceil", ANY_SIGN, [-1.0, -0.0, 1.0, 3.0]),
    ("round", ANY_SIGN, [-1.0, -0.0, 1.0, 2.0]),
    ("rint", ANY_SIGN, [-1.0, -0.0, 1.0, 2.0]),
    ("erf", ANY_SIGN, [-0.934007944941, -0.22270258921, 0.677801193837, 0.999311486103]),
    ("softmax", ANY_SIGN, [0.0192899275498, 0.0579501449495, 0.14253435681, 0.780225570691]),
    ("log_softmax", ANY_SIGN, [-3.94817220791, -2.84817220791, -1.94817220791, -0.248172207913]),
    ("l2_normalize", ANY_SIGN, [-0.460195011513, -0.0707992325405, 0.247797313892, 0.849590790486]),
    ("cumsum", ANY_SIGN, [-1.3, -1.5, -0.8, 1.6]),
    ("cumprod", ANY_SIGN, [-1.3, 0.26, 0.182, 0.4368]),
    ("cumulative_logsumexp", ANY_SIGN, [-1.3, 0.0873353251154, 1.13301862796, 2.64817220791]),
    ("reduce_sum", ANY_SIGN, 1.6),
    ("reduce_mean", ANY_SIGN, 0.4),
    ("reduce_prod", ANY_SIGN, 0.4368),
    ("reduce_max", ANY_SIGN, 2.4),
    ("reduce_min", ANY_SIGN, -1.3),
    ("reduce_logsumexp", ANY_SIGN, 2.64817220791),
    ("reduce_variance", ANY_SIGN, 1.835),
    ("reduce_std", ANY_SIGN, 1.35462171841),
    ("reduce_euclidean_norm", ANY_SIGN, 2.82488937837),
]
COMPLEX = [
    ("square", [(-0.07+0.24j), (0.95-1.68j)]),
    ("sqrt", [(0.632455532034+0.316227766017j), (0.307607216223+1.13781465954j)]),
    ("rsqrt", [(1.26491106407-0.632455532034j), (0.221420519281-0.819016913372j)]),
    ("reciprocal", [(1.2-1.6j), (-0.621761658031-0.362694300518j)]),
    ("exp", [(1.24330229507+0.525659779197j), (0.230366039836+0.194034638607j)]),
    ("expm1", [(0.24330229507+0.525659779197j), (-0.769633960164+0.194034638607j)]),
    ("log", [(-0.69314718056+0.927295218002j), (0.328760001458+2.61351820516j)]),
    ("log1p", [(0.307592819545+0.298498931586j), (-0.317439136218+1.8490959858j)]),
    ("sigmoid", [(0.577430932063+0.0990181142485j), (0.20695735364+0.12506663733j)]),
    ("tanh", [(0.338254743265+0.381132074272j), (-0.954480705999+0.172073419763j)]),
    ("sin", [(0.319478730742+0.392406684833j), (-1.16986657274+0.274878686781j)]),
    ("cos", [(1.0327878842-0.121385612208j), (0.454820222369+0.707029660092j)]),
    ("tan", [(0.261073681842+0.410633470843j), (-0.477864103833+1.34721973991j)]),
    ("asin", [(0.280629562292+0.405112337178j), (-0.911354189532+0.978654595594j)]),
    ("acos", [(1.2901667645-0.405112337178j), (2.48215051633-0.978654595594j)]),
    ("atan", [(0.337370471112+0.379086872342j), (-0.970240307795+0.260074951653j)]),
    ("sinh", [(0.280481764176+0.407073991323j), (-1.15449972469+1.16645634197j)]),
    ("cosh", [(0.962820530893+0.118585787874j), (1.38486576453-0.972421703358j)]),
    ("asinh", [(0.318962433305+0.390316204522j), (-1.09276478576+0.43561357908j)]),
    ("acosh", [(0.405112337178+1.2901667645j), (0.978654595594+2.48215051633j)]),
    ("atanh", [(0.261492138796+0.408822522916j), (-0.577057377653+1.07857438341j)]),
    ("abs", [0.5, 1.38924439894]),
    ("sign", [(0.6+0.8j), (-0.863778900898+0.503871025524j)]),
    ("negative", [(-0.3-0.4j), (1.2-0.7j)]),
    ("real", [0.3, -1.2]),
    ("imag", [0.4, 0.7]),
    ("conj", [(0.3-0.4j), (-1.2-0.7j)]),
    ("angle", [0.927295218002, 2.61351820516]),
    ("reduce_sum", (-0.9+1.1j)),
    ("reduce_mean", (-0.45+0.55j)),
    ("reduce_prod", (-0.64-0.27j)),
    ("reduce_variance", 0.585),
    ("reduce_std", 0.764852927039),
    ("reduce_euclidean_norm", (1.47648230602+0j)),
    ("cumsum", [(0.3+0.4j), (-0.9+1.1j)]),
    ("cumprod", [(0.3+0.4j), (-0.64-0.27j)]),
    ("l2_normalize", [(0.203185638444+0.270914184591j), (-0.812742553774+0.474099823035j)]),
]
BINARY = [
    ("add", [9.5, -5.5, -2.5, 4.0]),
    ("subtract", [5.5, -9.5, 3.5, 0.0]),
    ("multiply", [15.0, -15.0, -1.5, 4.0]),
    ("divide", [3.75, -3.75, -0.166666666667, 1.0]),
    ("truediv", [3.75, -3.75, -0.166666666667, 1.0]),
    ("floordiv", [3.0, -4.0, -1.0, 1.0]),
    ("floormod", [1.5, 0.5, -2.5, 0.0]),
    ("truncatediv", [3.0, -3.0, -0.0, 1.0]),
    ("truncatemod", [1.5, -1.5, 0.5, 0.0]),
    ("pow", [56.25, 56.25, 8.0, 4.0]),
    ("maximum", [7.5, 2.0, 0.5, 2.0]),
    ("minimum", [2.0, -7.5, -3.0, 2.0]),
    ("squared_difference", [30.25, 90.25, 12.25, 0.0]),
    ("multiply_no_nan", [15.0, -15.0, -1.5, 4.0]),
    ("divide_no_nan", [3.75, -3.75, -0.166666666667, 1.0]),
    ("xdivy", [3.75, -3.75, -0.166666666667, 1.0]),
    ("atan2", [1.31019393505, -1.31019393505, 2.97644397618, 0.785398163397]),
    ("equal", [False, False, False, True]),
    ("not_equal", [True, True, True, False]),
    ("less", [False, True, False, False]),
    ("less_equal", [False, True, False, True]),
    ("greater", [True, False, True, False]),
    ("greater_equal", [True, False, True, True]),
]
# fmt: on

X = [[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]]


# Values


@pytest.mark.parametrize(("name", "x", "expected"), UNARY, ids=[row[0] for row in UNARY])
def test_functions_of_real_numbers(name, x, expected):
    y = getattr(tf.math, name)(float64(x))

    assert y.dtype == tf.float64
    np.testing.assert_allclose(y.numpy(), expected, rtol=5e-12)


@pytest.mark.parametrize(("name", "expected"), COMPLEX, ids=[row[0] for row in COMPLEX])
def test_functions_of_complex_numbers(name, expected):
    y = getattr(tf.math, name)(tf.constant([0.3 + 0.4j, -1.2 + 0.7j]))

    assert y.dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(y.numpy(), expected, rtol=5e-12)


@pytest.mark.parametrize(("name", "expected"), BINARY, ids=[row[0] for row in BINARY])
def test_functions_of_two_inputs(name, expected):
    y = getattr(tf.math, name)(float64([7.5, -7.5, 0.5, 2.0]), float64([2.0, 2.0, -3.0, 2.0]))

    assert y.dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(y.numpy(), expected, rtol=5e-12)


def test_xlogy_and_xlog1py_are_zero_where_x_is_zero():
    x, y = float64([0.0, 0.0, 2.0]), float64([0.0, 3.0, 3.0])

    np.testing.assert_allclose(tf.math.xlogy(x, y).numpy(), [0, 0, 2 * np.log(3)], rtol=1e-15)
    np.testing.assert_allclose(
        tf.math.xlog1py(x, y - [1, 0, 0]).numpy(), [0, 0, 2 * np.log(4)], rtol=1e-15
    )


def test_products_and_quotients_without_nan():
    non_finite = [np.inf, np.nan, 3.0]

    assert tf.math.multiply_no_nan(non_finite, [0.0, 0.0, 2.0]).numpy().tolist() == [0, 0, 6]
    assert tf.math.divide_no_nan(non_finite, [0.0, 0.0, 2.0]).numpy().tolist() == [0, 0, 1.5]
    assert tf.math.reciprocal_no_nan([0.0, 4.0]).numpy().tolist() == [0, 0.25]


def test_comparisons_with_nan_are_false():
    nan = tf.constant([np.nan])

    assert not tf.math.equal(nan, nan).numpy()
    assert tf.math.not_equal(nan, nan).numpy()


def test_logic():
    a, b = [True, True, False, False], [True, False, True, False]

    assert tf.math.logical_and(a, b).numpy().tolist() == [True, False, False, False]
    assert tf.math.logical_or(a, b).numpy().tolist() == [True, True, True, False]
    assert tf.math.logical_xor(a, b).numpy().tolist() == [False, True, True, False]
    assert tf.math.logical_not(a).numpy().tolist() == [False, False, True, True]


def test_is_finite_is_inf_and_is_nan():
    x = [1.0, np.inf, -np.inf, np.nan]

    assert tf.math.is_finite(x).numpy().tolist() == [True, False, False, False]
    assert tf.math.is_inf(x).numpy().tolist() == [False, True, True, False]
    assert tf.math.is_nan(x).numpy().tolist() == [False, False, False, True]


def test_complex_logarithms_are_accurate_near_one():
    z = np.array([-1e-6 - 1e-5j, 1e-5 + 1e-5j, 3e-4 - 1e-6j, 2 + 1j, -1 + 0j])
    y = tf.math.log1p(tf.constant(z, tf.complex64))

    np.testing.assert_allclose(y[:3], z[:3] - z[:3] ** 2 / 2 + z[:3] ** 3 / 3, rtol=1e-6)
    np.testing.assert_allclose(y[3], np.log(3 + 1j), rtol=1e-6)
    assert y[4].numpy() == -np.inf


def test_derivatives_are_accurate_for_large_arguments():
    x = tf.constant([-20.0, -12.0])
    np.testing.assert_allclose(gradient(tf.math.expm1, x)[0], np.exp(x), rtol=1e-6)

    z = np.array([1.5 - 15j, 3 + 20j, 10 + 9j])
    (derivative,) = gradient(tf.tan, tf.constant(z, tf.complex64))
    np.testing.assert_allclose(derivative, np.conj(1 / np.cos(z) ** 2), rtol=1e-5)
    assert gradient(tf.tan, tf.constant(1 + 100j, tf.complex64))[0] == 0


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
def test_sigmoids_of_half_precision_do_not_overflow(dtype):
    x = tf.constant([-11.5, -8.0], dtype)
    exact = 1 / (1 + np.exp([11.5, 8.0]))

    for y, expected in ((tf.sigmoid(x), exact), (tf.nn.silu(x), exact * [-11.5, -8.0])):
        np.testing.assert_allclose(tf.cast(y, tf.float64), expected, rtol=4e-3)
    assert np.isfinite(gradient(tf.math.rsqrt, tf.constant(0.0005, tf.float16))[0])


def test_complex_sigmoids_do_not_overflow():
    x = tf.constant([-1000 + 1j, 1000 + 1j, complex(-np.inf, 0)], tf.complex64)

    assert tf.math.sigmoid(x).numpy().tolist() == [0, 1, 0]
    assert gradient(tf.math.sigmoid, x)[0].tolist() == [0, 0, 0]


def test_euclidean_norm_of_integers_wraps_around():
    x = np.array([0, 1, 127, -128, 126, -127], np.int8)
    norm = tf.math.reduce_euclidean_norm(x)

    assert (norm.dtype, norm.numpy()) == (tf.int8, 2)
    assert tf.math.reduce_euclidean_norm([3, 4]).numpy() == 5


def test_saturating_functions_do_not_overflow():
    x = tf.constant([-1000.0, 1000.0])

    assert tf.math.sigmoid(x).numpy().tolist() == [0, 1]
    assert tf.math.softplus(x).numpy().tolist() == [0, 1000]
    assert tf.math.log_sigmoid(x).numpy().tolist() == [-1000, 0]
    assert tf.math.softmax(x).numpy().tolist() == [0, 1]
    assert tf.math.log_softmax(x).numpy().tolist() == [-2000, 0]
    assert tf.math.reduce_logsumexp(x).numpy() == 1000
    assert tf.math.cumulative_logsumexp(x).numpy().tolist() == [-1000, 1000]


def test_real_numbers_have_complex_parts():
    x = tf.constant([-1.0, 0.0, 2.0])

    assert tf.math.real(x).numpy().tolist() == tf.math.conj(x).numpy().tolist() == [-1, 0, 2]
    assert tf.math.imag(x).numpy().tolist() == [0, 0, 0]
    np.testing.assert_array_equal(tf.math.angle(x).numpy(), np.float32([np.pi, 0, 0]))


def test_polynomials_begin_with_the_highest_power():
    assert tf.math.polyval([1.0, 2.0, 3.0], 2.0).numpy() == 11
    assert tf.math.polyval([2.0], tf.Variable(5.0)).numpy() == 2
    assert tf.math.polyval([], tf.constant([2.0, 3.0])).numpy().tolist() == [0, 0]


def test_sums_of_several_tensors():
    a, b = tf.constant([1.0, 2.0]), tf.Variable([3.0, 4.0])

    for f in (tf.math.add_n, tf.math.accumulate_n):
        assert f([a, b, a]).numpy().tolist() == [5, 8]
        assert f([b]).numpy().tolist() == [3, 4]
    assert tf.math.add_n([a]) is a
    assert tf.math.add_n(tf.constant([[1, 2], [3, 4]])).numpy().tolist() == [4, 6]
    assert tf.math.accumulate_n([a, b], shape=[None], tensor_dtype="float32").shape == (2,)


def test_aliases_are_the_same_object():
    assert tf.math.mod is tf.math.floormod
    assert tf.nn.softmax is tf.math.softmax
    assert tf.linalg.l2_normalize is tf.nn.l2_normalize is tf.math.l2_normalize


# Inputs


@pytest.mark.parametrize("name", [row[0] for row in UNARY] + ["angle", "real", "imag", "conj"])
def test_one_input_may_be_a_variable_a_list_or_an_array(name):
    f = getattr(tf.math, name)
    values = [0.25, 0.75] if name != "acosh" else [1.25, 1.75]
    expected = f(tf.constant(values)).numpy()

    for x in (tf.Variable(values), values, np.array(values, np.float32), tuple(values)):
        y = f(x)
        assert isinstance(y, tf.Tensor)
        assert y.dtype == tf.float32
        np.testing.assert_array_equal(y.numpy(), expected)


@pytest.mark.parametrize("name", [row[0] for row in BINARY] + ["xlogy", "xlog1py"])
def test_numbers_and_arrays_are_cast_to_the_dtype_of_the_tensor(name):
    f = getattr(tf.math, name)
    x = tf.constant([1.5, 2.5])
    expected = f(x, tf.constant([2.0, 2.0])).numpy()

    for other in (
        2,
        2.0,
        True + 1,
        np.float64(2),
        np.array([2, 2]),
        [2, 2],
        tf.Variable([2.0, 2.0]),
    ):
        np.testing.assert_array_equal(f(x, other).numpy(), expected)
    np.testing.assert_array_equal(f(2, x).numpy(), f(tf.constant([2.0, 2.0]), x).numpy())


@pytest.mark.parametrize("name", [row[0] for row in BINARY] + ["xlogy", "xlog1py"])
def test_inputs_broadcast(name):
    f = getattr(tf.math, name)
    column, row = tf.constant([[1.0], [2.0], [3.0]]), tf.constant([2.0, 4.0])

    y = f(column, row)

    assert y.shape == (3, 2)
    for i in range(3):
        np.testing.assert_array_equal(y[i].numpy(), f(column[i, 0], row).numpy())


def test_indexed_slices_become_dense():
    rows = tf.IndexedSlices(tf.constant([[1.0], [2.0]]), tf.constant([0, 2]), tf.constant([3, 1]))

    assert tf.math.multiply(rows, [[1.0], [10.0], [100.0]]).numpy().tolist() == [[1], [0], [200]]
    assert tf.math.add_n([rows, rows]).numpy().tolist() == [[2], [0], [4]]
    assert tf.math.reduce_sum(rows).numpy() == 3
    scaled = tf.math.scalar_mul(3.0, rows)
    assert isinstance(scaled, tf.IndexedSlices)
    assert scaled.values.numpy().tolist() == [[3], [6]]


@pytest.mark.parametrize("name", ["real", "conj", "round"])
def test_identity_like_functions_do_not_return_the_variable(name):
    v = tf.Variable([1, 2])
    y = getattr(tf.math, name)(v)
    v.assign([5, 6])

    assert y.numpy().tolist() == [1, 2]


@pytest.mark.parametrize("f", [tf.math.real, tf.math.conj, lambda x: tf.math.add_n([x])])
def test_a_gradient_flows_through_identity_like_functions(f):
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = f(v) * [3.0, 4.0]

    assert tape.gradient(y, v).numpy().tolist() == [3, 4]


# Dtypes

SAME = {
    NUMERIC: "square reduce_sum reduce_mean reduce_prod reduce_euclidean_norm cumsum cumprod conj",
    INEXACT: (
        "sqrt rsqrt reciprocal reciprocal_no_nan exp expm1 log log1p sigmoid tanh sin cos tan asin "
        "acos atan sinh cosh asinh acosh atanh l2_normalize"
    ),
    FLOATS: (
        "log_sigmoid softplus softsign erf floor ceil softmax log_softmax reduce_logsumexp "
        "cumulative_logsumexp"
    ),
    INEXACT + SIGNED: "negative sign",
    REAL: "round reduce_max reduce_min real imag",
    FLOATS + SIGNED: "abs",
    ("float32", "float64"): "rint angle reduce_variance reduce_std",
}
PAIRS = {
    NUMERIC: "add subtract multiply",
    REAL: "floordiv floormod maximum minimum truncatediv",
    INEXACT + SIGNED: "pow",
    INEXACT: "divide truediv divide_no_nan multiply_no_nan xlogy xlog1py xdivy",
    (*INEXACT, "int32", "int64"): "squared_difference",
    FLOATS: "atan2",
}


def _each(table):
    return [
        (name, dtype)
        for dtypes, names in table.items()
        for name in names.split()
        for dtype in dtypes
    ]


@pytest.mark.parametrize(("name", "dtype"), _each(SAME))
def test_one_input_keeps_its_dtype(name, dtype):
    assert getattr(tf.math, name)(of_dtype([1, 1], dtype)).dtype == dtype


@pytest.mark.parametrize(("name", "dtype"), _each(PAIRS))
def test_two_inputs_keep_their_dtype(name, dtype):
    x, y = of_dtype([1, 2], dtype), of_dtype([3, 2], dtype)

    assert getattr(tf.math, name)(x, y).dtype == dtype


@pytest.mark.parametrize("dtype", COMPLEXES)
@pytest.mark.parametrize("name", ["abs", "real", "imag", "angle", "reduce_variance", "reduce_std"])
def test_complex_numbers_become_real(name, dtype):
    assert getattr(tf.math, name)(of_dtype([1, 2], dtype)).dtype == REAL_PART[dtype]


@pytest.mark.parametrize("name", ["divide", "truediv", "divide_no_nan"])
@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
def test_integers_divide_as_floats(name, dtype):
    y = getattr(tf.math, name)(of_dtype([1, 3], dtype), of_dtype([2, 2], dtype))

    assert y.dtype == (tf.float32 if np.dtype(dtype).itemsize < 4 else tf.float64)
    assert y.numpy().tolist() == [0.5, 1.5]


@pytest.mark.parametrize("dtype", [*NUMERIC, "bool", "string"])
def test_equality_and_counting_accept_any_dtype(dtype):
    strings = tf.constant(["", "a", "b"])
    x = strings if dtype == "string" else tf.cast(tf.constant([0, 1, 1]), dtype)

    assert tf.math.equal(x, x).numpy().tolist() == [True, True, True]
    count = tf.math.count_nonzero(x)
    assert (count.dtype, count.numpy()) == (tf.int64, 2)
    assert abs(tf.math.zero_fraction(x).numpy() - 1 / 3) < 1e-7


def test_integer_means_are_integers_rounded_toward_zero():
    assert tf.math.reduce_mean([1, 2]).numpy() == 1
    assert tf.math.reduce_mean([-5, 2]).numpy() == -1
    assert tf.math.reduce_mean(of_dtype([100, 100, 100], "int8")).numpy() == 100
    assert tf.math.reduce_mean(of_dtype([100, 200, 255], "uint8")).numpy() == 185


def test_integer_sums_wrap():
    assert tf.math.reduce_sum(of_dtype([100, 100, 100], "int8")).numpy() == 44


# Reductions


@pytest.mark.parametrize(
    "axis",
    [
        0, -2, [0], (0,), np.int64(0), np.array([0]), tf.constant(0), tf.constant([0], tf.int64),
        tf.Variable(0), range(1), [-2], False,
    ],
    ids=repr,
)  # fmt: skip
def test_an_axis_accepts_several_types(axis):
    assert tf.math.reduce_sum(X, axis).numpy().tolist() == [5, 7, 10]


@pytest.mark.parametrize("axis", [None, [0, 1], (1, 0), tf.constant([0, 1]), [[0, 1]], [-1, 0]])
def test_all_axes_accept_several_types(axis):
    assert tf.math.reduce_sum(X, axis).numpy() == 22
    assert tf.math.reduce_sum(X, axis, keepdims=True).shape == (1, 1)


REDUCTIONS = [
    ("sum", np.sum),
    ("mean", np.mean),
    ("prod", np.prod),
    ("max", np.max),
    ("min", np.min),
    ("variance", np.var),
    ("std", np.std),
    ("logsumexp", lambda x, **kw: np.log(np.sum(np.exp(x), **kw))),
    ("euclidean_norm", lambda x, **kw: np.sqrt(np.sum(x * x, **kw))),
]


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1), ()])
@pytest.mark.parametrize(("name", "reference"), REDUCTIONS, ids=[row[0] for row in REDUCTIONS])
def test_reductions_agree_with_numpy(name, reference, axis, keepdims):
    y = getattr(tf.math, f"reduce_{name}")(float64(X), axis, keepdims)

    expected = reference(np.array(X), axis=axis, keepdims=keepdims)
    assert y.shape == expected.shape
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sum", 0.0), ("mean", np.nan), ("prod", 1.0), ("max", -np.inf), ("min", np.inf),
        ("logsumexp", -np.inf), ("variance", np.nan), ("euclidean_norm", 0.0),
    ],
)  # fmt: skip
def test_reductions_of_empty_tensors(name, expected):
    f = getattr(tf.math, f"reduce_{name}")

    np.testing.assert_array_equal(f(tf.zeros([0, 3]), axis=0).numpy(), np.full(3, expected))
    assert f(tf.zeros([0, 3]), axis=1).shape == (0,)


def test_any_and_all():
    x = tf.constant([[True, False], [True, True]])

    assert tf.math.reduce_any(x, 0).numpy().tolist() == [True, True]
    assert tf.math.reduce_all(x, 0).numpy().tolist() == [True, False]
    assert (bool(tf.math.reduce_any([])), bool(tf.math.reduce_all(np.zeros(0, bool)))) == (
        False,
        True,
    )


def test_argmax_and_argmin():
    x = tf.constant([[3, 1, 3], [4, 5, 2]])

    assert tf.math.argmax(x).numpy().tolist() == [1, 1, 0]
    assert tf.math.argmin(x, 1).numpy().tolist() == [1, 2]
    assert tf.math.argmax(x, tf.constant(-1), tf.int32).dtype == tf.int32
    assert tf.math.argmax(x, output_type="uint16").dtype == tf.uint16


def test_counting():
    x = tf.constant([[0, 1], [2, 3]])

    assert tf.math.count_nonzero(x, axis=0).numpy().tolist() == [1, 2]
    assert tf.math.count_nonzero(x, keepdims=True).shape == (1, 1)
    assert tf.math.count_nonzero(x, dtype=tf.float32).dtype == tf.float32
    assert np.isnan(tf.math.zero_fraction([]).numpy())


def test_monotonicity():
    assert tf.math.is_non_decreasing([[1, 2], [2, 3]])
    assert not tf.math.is_strictly_increasing([[1, 2], [2, 3]])
    assert tf.math.is_strictly_increasing([]) and tf.math.is_strictly_increasing(4)


def test_l2_normalize_over_axes():
    x = float64([[3.0, 0.0], [4.0, 5.0]])

    for y in (tf.math.l2_normalize(x, axis=0), tf.math.l2_normalize(x, dim=0)):
        np.testing.assert_allclose(y.numpy(), [[0.6, 0], [0.8, 1]], rtol=1e-15)
    y = tf.math.l2_normalize(x, 1, epsilon=100.0)
    np.testing.assert_allclose(y.numpy(), [[0.3, 0], [0.4, 0.5]], rtol=1e-15)


# Along one axis


@pytest.mark.parametrize(
    ("flags", "sums", "products", "logs"),
    [
        ((False, False), [1, 3, 6], [1, 2, 6], [1, 3, 6]),
        ((True, False), [0, 1, 3], [1, 1, 2], [0, 1, 3]),
        ((False, True), [6, 5, 3], [6, 6, 3], [6, 5, 3]),
        ((True, True), [5, 3, 0], [6, 3, 1], [5, 3, 0]),
    ],
)
def test_cumulative_sums_and_products(flags, sums, products, logs):
    x = float64([1.0, 2.0, 3.0])

    assert tf.math.cumsum(x, 0, *flags).numpy().tolist() == sums
    assert tf.math.cumprod(x, 0, *flags).numpy().tolist() == products
    lse = tf.math.cumulative_logsumexp(tf.math.log(x), 0, *flags)
    np.testing.assert_allclose(tf.math.exp(lse).numpy(), logs, rtol=1e-14)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cumulative_logsumexp"])
def test_cumulative_functions_along_an_axis_of_size_zero_or_one(name):
    f = getattr(tf.math, name)

    assert f(tf.zeros([2, 0]), axis=1, exclusive=True, reverse=True).shape == (2, 0)
    assert f(tf.ones([2, 1]), axis=tf.constant(-1), reverse=True).numpy().tolist() == [[1], [1]]


def test_long_products_are_exact():
    x = 1 + np.random.default_rng(0).uniform(-0.01, 0.01, 1000)

    np.testing.assert_allclose(tf.math.cumprod(x).numpy(), np.cumprod(x), rtol=1e-14)
    assert_gradients(tf.math.cumprod, x)


# Gradients

SMOOTH = [row for row in UNARY if row[0] not in ("sign", "floor", "ceil", "round", "rint")]


@pytest.mark.parametrize(("name", "x"), [row[:2] for row in SMOOTH], ids=[row[0] for row in SMOOTH])
def test_gradients_of_one_input(name, x):
    assert_gradients(getattr(tf.math, name), x)


@pytest.mark.parametrize(
    "name",
    [
        "add",
        "subtract",
        "multiply",
        "divide",
        "pow",
        "maximum",
        "minimum",
        "floormod",
        "truncatemod",
        "squared_difference",
        "multiply_no_nan",
        "divide_no_nan",
        "xlogy",
        "xlog1py",
        "xdivy",
        "atan2",
    ],
)  # fmt: skip
def test_gradients_of_two_inputs(name):
    assert_gradients(getattr(tf.math, name), [[1.3], [0.7]], [0.6, 1.9, 0.4])


@pytest.mark.parametrize("axis", [0, 1, (0, 1), ()])
@pytest.mark.parametrize("name", [row[0] for row in REDUCTIONS if row[0] != "std"])
def test_gradients_of_reductions(name, axis):
    f = getattr(tf.math, f"reduce_{name}")

    assert_gradients(lambda x: f(x, axis), [[0.3, 0.7, 1.2], [2.0, -1.0, 0.1]])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_gradients_of_cumulative_sums_and_products(name, exclusive, reverse):
    f = getattr(tf.math, name)

    assert_gradients(lambda x: f(x, 1, exclusive, reverse), [[0.3, 0.7, 1.2], [2.0, -1.0, 0.1]])


@pytest.mark.parametrize("reverse", [False, True])
def test_gradients_of_cumulative_logsumexp(reverse):
    x = [[0.3, 0.7, 1.2], [2.0, -1.0, 0.1]]

    assert_gradients(lambda x: tf.math.cumulative_logsumexp(x, 1, False, reverse), x)
    cut = (slice(None), slice(0, -1) if reverse else slice(1, None))
    assert_gradients(lambda x: tf.math.cumulative_logsumexp(x, 1, True, reverse)[cut], x)


def test_gradient_of_cumulative_logsumexp_is_zero_at_minus_infinity():
    (g,) = gradient(tf.math.cumulative_logsumexp, [-np.inf, -np.inf, 0.0, -np.inf, 0.0])

    np.testing.assert_allclose(g, [0, 0, 2.5, 0, 0.5], rtol=1e-6)


def test_gradient_of_cumprod_is_correct_at_zeros():
    (g,) = gradient(tf.math.cumprod, [2.0, 0.0, 4.0])

    assert g.tolist() == [1, 10, 0]


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cumulative_logsumexp", "softsign"])
def test_second_derivatives(name):
    f = getattr(tf.math, name)

    def derivative(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.math.reduce_sum(f(x) * [1.0, -2.0, 3.0, 0.5])
        return tape.gradient(y, x) + 0.0 * x

    assert_gradients(derivative, ANY_SIGN)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("abs", [0.0, 1.0]), ("sign", [0.0, 0.0]), ("sqrt", [np.inf, 0.5]), ("log", [np.inf, 1.0]),
        ("reciprocal_no_nan", [0.0, -1.0]), ("softsign", [1.0, 0.25]),
        ("floor", None), ("ceil", None), ("round", None), ("rint", None),
    ],
)  # fmt: skip
def test_gradients_at_zero_and_one(name, expected):
    (g,) = gradient(getattr(tf.math, name), [0.0, 1.0])

    assert (g if g is None else g.tolist()) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("maximum", ([1.0, 1.0], [0.0, 0.0])), ("minimum", ([1.0, 0.0], [0.0, 1.0])),
        ("xdivy", ([0.0, 1.0], [0.0, -2.0])), ("multiply_no_nan", ([0.0, 1.0], [0.0, 2.0])),
        ("divide_no_nan", ([0.0, 1.0], [0.0, -2.0])), ("xlogy", ([0.0, 0.0], [0.0, 2.0])),
        ("floordiv", (None, None)), ("truncatediv", (None, None)),
    ],
)  # fmt: skip
def test_gradients_at_ties_and_zeros(name, expected):
    results = gradient(getattr(tf.math, name), [0.0, 2.0], [0.0, 1.0])

    assert tuple(g if g is None else g.tolist() for g in results) == expected


@pytest.mark.parametrize("name", ["reduce_std", "reduce_euclidean_norm"])
def test_gradient_of_a_norm_of_zeros_is_nan(name):
    (g,) = gradient(getattr(tf.math, name), [0.0, 0.0])

    assert np.isnan(g).all()


@pytest.mark.parametrize("name", ["reduce_max", "reduce_min"])
def test_ties_share_the_gradient(name):
    (g,) = gradient(getattr(tf.math, name), [3.0, 3.0, 3.0, 3.0])

    assert g.tolist() == [0.25] * 4


def test_gradient_of_the_angle():
    (g,) = gradient(tf.math.angle, 1.0 + 1.0j)

    assert g == -0.5 + 0.5j


def test_gradients_of_sums_and_polynomials():
    assert_gradients(lambda a, b: tf.math.add_n([a, b, a]), [0.2, 1.0], [2.0, 3.0])
    assert_gradients(lambda a, b: tf.math.accumulate_n([a, b]), [0.2, 1.0], [2.0, 3.0])
    assert_gradients(lambda a, x: tf.math.polyval([a, 2.0, a], x), [0.2, 1.0], [2.0, 3.0])
    assert_gradients(lambda a, x: tf.math.scalar_mul(a, x), 1.7, [2.0, 3.0])


# Errors

FLOAT, INTEGER = tf.constant([1.5, 2.5]), tf.constant([3, -4])


@pytest.mark.parametrize(
    "name", ["subtract", "multiply", "floordiv", "maximum", "pow", "equal", "less"]
)
def test_dtypes_must_agree(name):
    f = getattr(tf.math, name)

    with pytest.raises(InvalidArgumentError, match="expected to be a int32 tensor but is a float"):
        f(INTEGER, FLOAT)
    assert_raises(
        lambda: f(INTEGER, 1.5), TypeError, "Cannot convert 1.5 to a tensor of dtype int32."
    )


def test_add_does_not_round_a_float_to_an_integer():
    with pytest.raises(InvalidArgumentError, match="cannot compute add as input #1"):
        tf.math.add(INTEGER, 1.5)


@pytest.mark.parametrize(
    "name", ["add", "subtract", "multiply", "divide", "maximum", "xlogy", "atan2", "equal"]
)
def test_shapes_must_broadcast(name):
    with pytest.raises(InvalidArgumentError, match=r"incompatible shapes \(2,\) and \(3,\)"):
        getattr(tf.math, name)(FLOAT, tf.constant([1.0, 2.0, 3.0]))


def test_division_errors():
    for name in ("divide", "truediv", "divide_no_nan"):
        f = getattr(tf.math, name)
        assert_raises(
            lambda f=f: f(INTEGER, FLOAT),
            TypeError,
            f"{name}: `x` and `y` must have the same dtype. Received: int32 and float32. "
            "Use tf.cast on one of them.",
        )
        assert_raises(
            lambda f=f: f([True], [True]),
            TypeError,
            f"{name}: dtype bool cannot be divided. Expected a numeric dtype.",
        )


def test_integer_division_by_zero_raises():
    for name in ("floordiv", "floormod", "truncatediv", "truncatemod"):
        f = getattr(tf.math, name)
        with pytest.raises(InvalidArgumentError, match=r"^Integer division by zero"):
            f(INTEGER, 0)


@pytest.mark.parametrize("name", ["multiply_no_nan", "xlogy", "xlog1py", "xdivy"])
def test_functions_that_require_floats(name):
    assert_raises(
        lambda: getattr(tf.math, name)(INTEGER, INTEGER),
        InvalidArgumentError,
        f"{name}: x and y must have the same dtype, float or complex. Received: int32 and int32. "
        "Use tf.cast.",
    )


@pytest.mark.parametrize(
    "name", ["sqrt", "exp", "log", "sin", "tanh", "sigmoid", "softplus", "erf", "softmax"]
)
def test_functions_of_floats_refuse_integers(name):
    with pytest.raises(InvalidArgumentError, match="dtype int32 is not supported"):
        getattr(tf.math, name)(INTEGER)


@pytest.mark.parametrize(
    "name", ["sum", "mean", "prod", "max", "min", "variance", "euclidean_norm"]
)
def test_booleans_cannot_be_summed(name):
    with pytest.raises(InvalidArgumentError, match="dtype bool is not supported"):
        getattr(tf.math, f"reduce_{name}")([True, False])


def test_logic_refuses_numbers():
    assert_raises(
        lambda: tf.math.logical_and([True], 1),
        TypeError,
        "Cannot convert 1 to a tensor of dtype bool.",
    )
    for f in (tf.math.logical_not, tf.math.reduce_any, tf.math.reduce_all):
        with pytest.raises(InvalidArgumentError, match="dtype int32 is not supported"):
            f(INTEGER)


@pytest.mark.parametrize("name", ["real", "conj"])
def test_complex_parts_of_strings_raise(name):
    message = f"{name}: expected a numeric tensor. Received: dtype bool."
    assert_raises(lambda: getattr(tf.math, name)([True]), TypeError, message)


def test_integers_have_no_angle():
    message = "angle: dtype int32 has no angle. Expected a float or complex dtype."
    assert_raises(lambda: tf.math.angle(INTEGER), TypeError, message)


def test_variance_of_integers():
    message = (
        "reduce_variance: input must be real or complex. Received: dtype int32. Use tf.cast to "
        "convert it to float."
    )
    assert_raises(lambda: tf.math.reduce_variance(INTEGER), TypeError, message)
    assert_raises(lambda: tf.math.reduce_std(INTEGER), TypeError, message)


def test_axes_out_of_range():
    assert_raises(
        lambda: tf.math.reduce_sum(X, 2),
        InvalidArgumentError,
        "reduce_sum: axis 2 is out of range for a tensor of rank 2. Expected -2 <= axis < 2.",
    )
    for f in (tf.math.argmax, tf.math.cumsum, tf.math.softmax):
        with pytest.raises(InvalidArgumentError, match="axis 2 is out of range"):
            f(X, axis=2)
    with pytest.raises(
        InvalidArgumentError, match="axis -1 is out of range for a tensor of rank 0"
    ):
        tf.math.softmax(1.0)


def test_duplicate_axes():
    with pytest.raises(InvalidArgumentError, match="an axis is repeated"):
        tf.math.reduce_max(X, [0, -2])


@pytest.mark.parametrize(
    ("f", "error"),
    [
        (tf.math.reduce_sum, InvalidArgumentError),
        (tf.math.argmax, TypeError),
        (tf.math.cumprod, TypeError),
        (tf.math.softmax, TypeError),
    ],
)
def test_axes_must_be_integers(f, error):
    with pytest.raises(error, match=r"axis: expected integers. Received: 1.5 of dtype float32"):
        f(X, axis=1.5)


@pytest.mark.parametrize("f", [tf.math.argmin, tf.math.cumsum, tf.math.log_softmax])
def test_functions_that_require_a_single_axis(f):
    with pytest.raises(InvalidArgumentError, match=r"expected a single axis. Received: \[0, 1\]"):
        f(X, axis=[0, 1])


def test_argmax_errors():
    with pytest.raises(InvalidArgumentError, match="reduction axis 0 is empty"):
        tf.math.argmax(tf.zeros([0]))
    assert_raises(
        lambda: tf.math.argmin(X, output_type=tf.int16),
        InvalidArgumentError,
        "argmin: output_type int16 is not supported. Expected one of int32, int64.",
    )


def test_sum_errors():
    assert_raises(
        lambda: tf.math.add_n([]),
        ValueError,
        "add_n: inputs must be an iterable of at least one tensor. Received: [].",
    )
    assert_raises(
        lambda: tf.math.add_n([FLOAT, tf.constant([1.0])]),
        InvalidArgumentError,
        "add_n: inputs must have the same shape. Received: (2,) and (1,).",
    )
    assert_raises(
        lambda: tf.math.accumulate_n([FLOAT], shape=[3]),
        ValueError,
        "Shapes (3,) and (2,) are incompatible",
    )
    assert_raises(
        lambda: tf.math.accumulate_n([FLOAT], tensor_dtype=tf.int32),
        TypeError,
        "accumulate_n: `tensor_dtype` is int32, but the inputs are float32. Use tf.cast on the "
        "inputs.",
    )
    for inputs in ([FLOAT, INTEGER], [None], FLOAT):
        with pytest.raises(ValueError, match="accumulate_n: inputs must be a list of at least one"):
            tf.math.accumulate_n(inputs)


def test_scalar_mul_requires_a_scalar():
    assert_raises(
        lambda: tf.math.scalar_mul([2.0], FLOAT),
        ValueError,
        "scalar_mul: `scalar` must be a scalar. Received: shape (1,).",
    )


def test_polyval_requires_a_list():
    message = "polyval: coeffs must be a list. Received: <class 'tuple'>."
    assert_raises(lambda: tf.math.polyval((1.0,), FLOAT), ValueError, message)


def test_axis_and_dim_are_exclusive():
    message = "l2_normalize: received both `axis` and `dim`. Use `axis` alone."
    assert_raises(lambda: tf.math.l2_normalize(FLOAT, axis=0, dim=0), ValueError, message)


def test_monotonicity_requires_numbers():
    message = "is_non_decreasing: expected a numeric tensor. Received: dtype bool."
    assert_raises(lambda: tf.math.is_non_decreasing([True]), TypeError, message)
