"""tf.math: values as TensorFlow gave them, dtypes, errors and gradients."""

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
    ("square", ANY_SIGN, [1.6900000000000002, 0.04000000000000001, 0.48999999999999994, 5.76]),
    ("sqrt", POSITIVE, [0.31622776601683794, 0.8366600265340756, 1.378404875209022, 2.345207879911715]),
    ("rsqrt", POSITIVE, [3.162277660168379, 1.1952286093343936, 0.7254762501100117, 0.42640143271122083]),
    ("reciprocal", ANY_SIGN, [-0.7692307692307692, -5.0, 1.4285714285714286, 0.4166666666666667]),
    ("reciprocal_no_nan", ANY_SIGN, [-0.7692307692307692, -5.0, 1.4285714285714286, 0.4166666666666667]),
    ("exp", ANY_SIGN, [0.2725317930340126, 0.8187307530779818, 2.0137527074704766, 11.023176380641601]),
    ("expm1", ANY_SIGN, [-0.7274682069659875, -0.18126924692201815, 1.0137527074704764, 10.023176380641601]),
    ("log", POSITIVE, [-2.3025850929940455, -0.35667494393873245, 0.6418538861723947, 1.7047480922384253]),
    ("log1p", UNIT, [-2.302585092994046, -0.22314355131420976, 0.262364264467491, 0.5877866649021191]),
    ("log_sigmoid", ANY_SIGN, [-1.5410084538329922, -0.7981388693815918, -0.40318604888545784, -0.08683615215394969]),
    ("sigmoid", ANY_SIGN, [0.2141650169574414, 0.4501660026875221, 0.6681877721681662, 0.9168273035060777]),
    ("softplus", ANY_SIGN, [0.2410084538329922, 0.5981388693815919, 1.103186048885458, 2.4868361521539497]),
    ("softsign", ANY_SIGN, [-0.5652173913043479, -0.16666666666666669, 0.4117647058823529, 0.7058823529411765]),
    ("tanh", ANY_SIGN, [-0.8617231593133062, -0.197375320224904, 0.6043677771171635, 0.9836748576936802]),
    ("sin", ANY_SIGN, [-0.963558185417193, -0.19866933079506122, 0.644217687237691, 0.675463180551151]),
    ("cos", ANY_SIGN, [0.26749882862458735, 0.9800665778412416, 0.7648421872844885, -0.7373937155412454]),
    ("tan", ANY_SIGN, [-3.6021024479679786, -0.2027100355086725, 0.8422883804630794, -0.9160142896734107]),
    ("asin", UNIT, [-1.1197695149986342, -0.2013579207903308, 0.3046926540153975, 0.9272952180016123]),
    ("acos", UNIT, [2.6905658417935308, 1.7721542475852274, 1.2661036727794992, 0.6435011087932843]),
    ("atan", ANY_SIGN, [-0.9151007005533605, -0.19739555984988075, 0.6107259643892086, 1.176005207095135]),
    ("sinh", ANY_SIGN, [-1.698382437292616, -0.20133600254109402, 0.7585837018395334, 5.466229213676094]),
    ("cosh", ANY_SIGN, [1.9709142303266285, 1.020066755619076, 1.255169005630943, 5.556947166965507]),
    ("asinh", ANY_SIGN, [-1.078451058954897, -0.19869011034924142, 0.6526665660823557, 1.6094379124341003]),
    ("acosh", LARGE, [0.4435682543851154, 1.123230982587296, 1.566799236972411, 2.477888730288475]),
    ("atanh", UNIT, [-1.4722194895832204, -0.2027325540540822, 0.3095196042031117, 1.0986122886681098]),
    ("abs", ANY_SIGN, [1.3, 0.2, 0.7, 2.4]),
    ("sign", ANY_SIGN, [-1.0, -1.0, 1.0, 1.0]),
    ("negative", ANY_SIGN, [1.3, 0.2, -0.7, -2.4]),
    ("floor", ANY_SIGN, [-2.0, -1.0, 0.0, 2.0]),
    ("ceil", ANY_SIGN, [-1.0, -0.0, 1.0, 3.0]),
    ("round", ANY_SIGN, [-1.0, -0.0, 1.0, 2.0]),
    ("rint", ANY_SIGN, [-1.0, -0.0, 1.0, 2.0]),
    ("erf", ANY_SIGN, [-0.9340079449406524, -0.2227025892104785, 0.6778011938374185, 0.999311486103355]),
    ("softmax", ANY_SIGN, [0.019289927549809894, 0.05795014494952715, 0.14253435680985319, 0.7802255706908099]),
    ("log_softmax", ANY_SIGN, [-3.948172207913445, -2.848172207913445, -1.948172207913445, -0.24817220791344496]),
    ("l2_normalize", ANY_SIGN, [-0.4601950115131126, -0.07079923254047886, 0.247797313891676, 0.8495907904857464]),
    ("cumsum", ANY_SIGN, [-1.3, -1.5, -0.8, 1.5999999999999999]),
    ("cumprod", ANY_SIGN, [-1.3, 0.26, 0.182, 0.43679999999999997]),
    ("cumulative_logsumexp", ANY_SIGN, [-1.3, 0.0873353251154308, 1.1330186279603225, 2.648172207913445]),
    ("reduce_sum", ANY_SIGN, 1.5999999999999996),
    ("reduce_mean", ANY_SIGN, 0.3999999999999999),
    ("reduce_prod", ANY_SIGN, 0.43679999999999997),
    ("reduce_max", ANY_SIGN, 2.4),
    ("reduce_min", ANY_SIGN, -1.3),
    ("reduce_logsumexp", ANY_SIGN, 2.648172207913445),
    ("reduce_variance", ANY_SIGN, 1.8349999999999997),
    ("reduce_std", ANY_SIGN, 1.3546217184144065),
    ("reduce_euclidean_norm", ANY_SIGN, 2.824889378365107),
]
COMPLEX = [
    ("square", [(-0.07000000000000003+0.24j), (0.95-1.68j)]),
    ("sqrt", [(0.6324555320336759+0.31622776601683794j), (0.30760721622304343+1.1378146595436756j)]),
    ("rsqrt", [(1.2649110640673518-0.6324555320336759j), (0.22142051928130604-0.8190169133723011j)]),
    ("reciprocal", [(1.1999999999999997-1.5999999999999999j), (-0.6217616580310881-0.3626943005181347j)]),
    ("exp", [(1.2433022950695027+0.5256597791969788j), (0.23036603983635642+0.19403463860745787j)]),
    ("expm1", [(0.24330229506950257+0.5256597791969788j), (-0.7696339601636436+0.19403463860745784j)]),
    ("log", [(-0.6931471805599453+0.9272952180016123j), (0.3287600014583971+2.6135182051634334j)]),
    ("log1p", [(0.30759281954511686+0.29849893158617935j), (-0.31743913621798503+1.8490959858000078j)]),
    ("sigmoid", [(0.5774309320633587+0.09901811424847044j), (0.20695735363950798+0.1250666373295921j)]),
    ("tanh", [(0.33825474326547145+0.3811320742724429j), (-0.9544807059989404+0.17207341976303492j)]),
    ("sin", [(0.31947873074156474+0.3924066848326388j), (-1.1698665727426565+0.27487868678117583j)]),
    ("cos", [(1.0327878842028413-0.12138561220787392j), (0.4548202223691478+0.7070296600921536j)]),
    ("tan", [(0.26107368184166296+0.4106334708425564j), (-0.4778641038326366+1.3472197399061192j)]),
    ("asin", [(0.2806295622918058+0.4051123371780309j), (-0.9113541895315601+0.9786545955936737j)]),
    ("acos", [(1.2901667645030908-0.4051123371780309j), (2.4821505163264566-0.9786545955936737j)]),
    ("atan", [(0.3373704711117763+0.37908687234202215j), (-0.970240307795099+0.2600749516525136j)]),
    ("sinh", [(0.2804817641764754+0.4070739913234487j), (-1.1544997246948547+1.166456341965758j)]),
    ("cosh", [(0.9628205308930272+0.11858578787353008j), (1.3848657645312112-0.9724217033583001j)]),
    ("asinh", [(0.3189624333048184+0.3903162045220237j), (-1.092764785757737+0.43561357907974146j)]),
    ("acosh", [(0.4051123371780309+1.2901667645030908j), (0.9786545955936737+2.4821505163264566j)]),
    ("atanh", [(0.2614921387956719+0.4088225229163511j), (-0.5770573776534308+1.0785743834118922j)]),
    ("abs", [0.5, 1.3892443989449803]),
    ("sign", [(0.6+0.8j), (-0.8637789008984335+0.5038710255240862j)]),
    ("negative", [(-0.3-0.4j), (1.2-0.7j)]),
    ("real", [0.3, -1.2]),
    ("imag", [0.4, 0.7]),
    ("conj", [(0.3-0.4j), (-1.2-0.7j)]),
    ("angle", [0.9272952180016123, 2.613518205163434]),
    ("reduce_sum", (-0.8999999999999999+1.1j)),
    ("reduce_mean", (-0.44999999999999996+0.55j)),
    ("reduce_prod", (-0.6399999999999999-0.27j)),
    ("reduce_variance", 0.585),
    ("reduce_std", 0.7648529270389177),
    ("reduce_euclidean_norm", (1.4764823060233399+0j)),
    ("cumsum", [(0.3+0.4j), (-0.8999999999999999+1.1j)]),
    ("cumprod", [(0.3+0.4j), (-0.6399999999999999-0.27j)]),
    ("l2_normalize", [(0.20318563844357893+0.2709141845914386j), (-0.8127425537743157+0.4740998230350175j)]),
]
BINARY = [
    ("add", [9.5, -5.5, -2.5, 4.0]),
    ("subtract", [5.5, -9.5, 3.5, 0.0]),
    ("multiply", [15.0, -15.0, -1.5, 4.0]),
    ("divide", [3.75, -3.75, -0.16666666666666666, 1.0]),
    ("truediv", [3.75, -3.75, -0.16666666666666666, 1.0]),
    ("floordiv", [3.0, -4.0, -1.0, 1.0]),
    ("floormod", [1.5, 0.5, -2.5, 0.0]),
    ("truncatediv", [3.0, -3.0, -0.0, 1.0]),
    ("truncatemod", [1.5, -1.5, 0.5, 0.0]),
    ("pow", [56.25, 56.25, 8.0, 4.0]),
    ("maximum", [7.5, 2.0, 0.5, 2.0]),
    ("minimum", [2.0, -7.5, -3.0, 2.0]),
    ("squared_difference", [30.25, 90.25, 12.25, 0.0]),
    ("multiply_no_nan", [15.0, -15.0, -1.5, 4.0]),
    ("divide_no_nan", [3.75, -3.75, -0.16666666666666666, 1.0]),
    ("xdivy", [3.75, -3.75, -0.16666666666666666, 1.0]),
    ("atan2", [1.3101939350475555, -1.3101939350475555, 2.976443976175166, 0.7853981633974484]),
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
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-13)


@pytest.mark.parametrize(("name", "expected"), COMPLEX, ids=[row[0] for row in COMPLEX])
def test_functions_of_complex_numbers(name, expected):
    y = getattr(tf.math, name)(tf.constant([0.3 + 0.4j, -1.2 + 0.7j]))

    assert y.dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-13)


@pytest.mark.parametrize(("name", "expected"), BINARY, ids=[row[0] for row in BINARY])
def test_functions_of_two_inputs(name, expected):
    y = getattr(tf.math, name)(float64([7.5, -7.5, 0.5, 2.0]), float64([2.0, 2.0, -3.0, 2.0]))

    assert y.dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-13)


def test_xlogy_and_xlog1py_count_nothing_where_x_is_zero():
    x, y = float64([0.0, 0.0, 2.0]), float64([0.0, 3.0, 3.0])

    np.testing.assert_allclose(tf.math.xlogy(x, y).numpy(), [0, 0, 2 * np.log(3)], rtol=1e-15)
    np.testing.assert_allclose(
        tf.math.xlog1py(x, y - [1, 0, 0]).numpy(), [0, 0, 2 * np.log(4)], rtol=1e-15
    )


def test_products_and_quotients_without_nan():
    bad = [np.inf, np.nan, 3.0]

    assert tf.math.multiply_no_nan(bad, [0.0, 0.0, 2.0]).numpy().tolist() == [0, 0, 6]
    assert tf.math.divide_no_nan(bad, [0.0, 0.0, 2.0]).numpy().tolist() == [0, 0, 1.5]
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


def test_what_is_finite():
    x = [1.0, np.inf, -np.inf, np.nan]

    assert tf.math.is_finite(x).numpy().tolist() == [True, False, False, False]
    assert tf.math.is_inf(x).numpy().tolist() == [False, True, True, False]
    assert tf.math.is_nan(x).numpy().tolist() == [False, False, False, True]


def test_saturation_does_not_overflow():
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
    assert tf.math.add_n(tf.constant([[1, 2], [3, 4]])).numpy().tolist() == [4, 6]
    assert tf.math.accumulate_n([a, b], shape=[None], tensor_dtype="float32").shape == (2,)


def test_aliases_are_one_object():
    assert tf.math.mod is tf.math.floormod
    assert tf.nn.softmax is tf.math.softmax
    assert tf.linalg.l2_normalize is tf.nn.l2_normalize is tf.math.l2_normalize


# What inputs may be


@pytest.mark.parametrize("name", [row[0] for row in UNARY] + ["angle", "real", "imag", "conj"])
def test_one_input_may_be_a_variable_a_list_or_an_array(name):
    f = getattr(tf.math, name)
    values = [0.25, 0.75] if name != "acosh" else [1.25, 1.75]
    expected = f(tf.constant(values)).numpy()

    for given in (tf.Variable(values), values, np.array(values, np.float32), tuple(values)):
        y = f(given)
        assert isinstance(y, tf.Tensor)
        assert y.dtype == tf.float32
        np.testing.assert_array_equal(y.numpy(), expected)


@pytest.mark.parametrize("name", [row[0] for row in BINARY] + ["xlogy", "xlog1py"])
def test_numbers_and_arrays_take_the_dtype_of_the_tensor(name):
    f = getattr(tf.math, name)
    x = tf.constant([1.5, 2.5])
    expected = f(x, tf.constant([2.0, 2.0])).numpy()

    for other in (2, 2.0, True + 1, np.float64(2), np.array([2, 2]), [2, 2], tf.Variable([2.0, 2.0])):
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


def test_indexed_slices_are_made_whole():
    rows = tf.IndexedSlices(tf.constant([[1.0], [2.0]]), tf.constant([0, 2]), tf.constant([3, 1]))

    assert tf.math.multiply(rows, [[1.0], [10.0], [100.0]]).numpy().tolist() == [[1], [0], [200]]
    assert tf.math.add_n([rows, rows]).numpy().tolist() == [[2], [0], [4]]
    assert tf.math.reduce_sum(rows).numpy() == 3
    scaled = tf.math.scalar_mul(3.0, rows)
    assert isinstance(scaled, tf.IndexedSlices)
    assert scaled.values.numpy().tolist() == [[3], [6]]


@pytest.mark.parametrize("name", ["real", "conj", "round"])
def test_a_variable_that_passes_through_is_not_the_variable(name):
    v = tf.Variable([1, 2])
    y = getattr(tf.math, name)(v)
    v.assign([5, 6])

    assert y.numpy().tolist() == [1, 2]


@pytest.mark.parametrize("f", [tf.math.real, tf.math.conj, lambda x: tf.math.add_n([x])])
def test_a_gradient_flows_through_what_passes_through(f):
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
    INEXACT + ("int32", "int64"): "squared_difference",
    FLOATS: "atan2",
}


def _each(table):
    return [
        (name, dtype) for dtypes, names in table.items() for name in names.split() for dtype in dtypes
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
def test_anything_can_be_equal_and_counted(dtype):
    if dtype == "string":
        x = tf.constant(["", "a", "b"])
    else:
        x = tf.cast(tf.constant([0, 1, 1]), dtype)

    assert tf.math.equal(x, x).numpy().tolist() == [True, True, True]
    count = tf.math.count_nonzero(x)
    assert (count.dtype, count.numpy()) == (tf.int64, 2)
    assert abs(tf.math.zero_fraction(x).numpy() - 1 / 3) < 1e-7


def test_integer_means_are_integers_rounded_towards_zero():
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
def test_an_axis_may_be_given_in_many_ways(axis):
    assert tf.math.reduce_sum(X, axis).numpy().tolist() == [5, 7, 10]


@pytest.mark.parametrize("axis", [None, [0, 1], (1, 0), tf.constant([0, 1]), [[0, 1]], [-1, 0]])
def test_all_axes_may_be_given_in_many_ways(axis):
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
def test_reductions_of_nothing(name, expected):
    f = getattr(tf.math, f"reduce_{name}")

    np.testing.assert_array_equal(f(tf.zeros([0, 3]), axis=0).numpy(), np.full(3, expected))
    assert f(tf.zeros([0, 3]), axis=1).shape == (0,)


def test_any_and_all():
    x = tf.constant([[True, False], [True, True]])

    assert tf.math.reduce_any(x, 0).numpy().tolist() == [True, True]
    assert tf.math.reduce_all(x, 0).numpy().tolist() == [True, False]
    assert (bool(tf.math.reduce_any([])), bool(tf.math.reduce_all(np.zeros(0, bool)))) == (False, True)


def test_places_of_extremes():
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


def test_order():
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
def test_running_sums_and_products(flags, sums, products, logs):
    x = float64([1.0, 2.0, 3.0])

    assert tf.math.cumsum(x, 0, *flags).numpy().tolist() == sums
    assert tf.math.cumprod(x, 0, *flags).numpy().tolist() == products
    lse = tf.math.cumulative_logsumexp(tf.math.log(x), 0, *flags)
    np.testing.assert_allclose(tf.math.exp(lse).numpy(), logs, rtol=1e-14)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cumulative_logsumexp"])
def test_running_along_an_axis_of_nothing_or_of_one(name):
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
    "add subtract multiply divide pow maximum minimum floormod truncatemod squared_difference "
    "multiply_no_nan divide_no_nan xlogy xlog1py xdivy atan2".split(),
)
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
def test_gradients_of_running_sums_and_products(name, exclusive, reverse):
    f = getattr(tf.math, name)

    assert_gradients(lambda x: f(x, 1, exclusive, reverse), [[0.3, 0.7, 1.2], [2.0, -1.0, 0.1]])


@pytest.mark.parametrize("reverse", [False, True])
def test_gradients_of_running_logsumexp(reverse):
    x = [[0.3, 0.7, 1.2], [2.0, -1.0, 0.1]]

    assert_gradients(lambda x: tf.math.cumulative_logsumexp(x, 1, False, reverse), x)
    cut = (slice(None), slice(0, -1) if reverse else slice(1, None))
    assert_gradients(lambda x: tf.math.cumulative_logsumexp(x, 1, True, reverse)[cut], x)


def test_gradient_of_running_logsumexp_is_zero_at_minus_infinity():
    (g,) = gradient(tf.math.cumulative_logsumexp, [-np.inf, -np.inf, 0.0, -np.inf, 0.0])

    np.testing.assert_allclose(g, [0, 0, 2.5, 0, 0.5], rtol=1e-6)


def test_gradient_of_cumprod_is_right_where_there_are_zeros():
    (g,) = gradient(tf.math.cumprod, [2.0, 0.0, 4.0])

    assert g.tolist() == [1, 10, 0]


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cumulative_logsumexp", "softsign"])
def test_second_derivatives(name):
    f = getattr(tf.math, name)

    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.math.reduce_sum(f(x) * [1.0, -2.0, 3.0, 0.5])
        return tape.gradient(y, x) + 0.0 * x

    assert_gradients(slope, ANY_SIGN)


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
def test_gradient_of_a_root_of_nothing_is_nan(name):
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

F, I = tf.constant([1.5, 2.5]), tf.constant([3, -4])


@pytest.mark.parametrize("name", "subtract multiply floordiv maximum pow equal less".split())
def test_dtypes_must_agree(name):
    f = getattr(tf.math, name)

    with pytest.raises(InvalidArgumentError, match=r"was expected to be a int32 tensor but is a float"):
        f(I, F)
    assert_raises(lambda: f(I, 1.5), TypeError, "Cannot convert 1.5 to a tensor of dtype int32.")


def test_add_does_not_round_a_float_to_an_integer():
    with pytest.raises(InvalidArgumentError, match="cannot compute add as input #1"):
        tf.math.add(I, 1.5)


@pytest.mark.parametrize("name", "add subtract multiply divide maximum xlogy atan2 equal".split())
def test_shapes_must_broadcast(name):
    with pytest.raises(InvalidArgumentError, match=r"incompatible shapes \(2,\) and \(3,\)"):
        getattr(tf.math, name)(F, tf.constant([1.0, 2.0, 3.0]))


def test_what_cannot_be_divided():
    for name in ("divide", "truediv", "divide_no_nan"):
        f = getattr(tf.math, name)
        assert_raises(
            lambda f=f: f(I, F),
            TypeError,
            f"{name}: `x` and `y` must have the same dtype. Received: int32 and float32. "
            "Use tf.cast on one of them.",
        )
        assert_raises(
            lambda f=f: f([True], [True]),
            TypeError,
            f"{name}: dtype bool cannot be divided. Expected numbers.",
        )


def test_integers_are_not_divided_by_zero():
    for name in ("floordiv", "floormod", "truncatediv", "truncatemod"):
        assert_raises(
            lambda f=getattr(tf.math, name): f(I, 0),
            InvalidArgumentError,
            "Integer division by zero. Expected a divisor without zeros.",
        )


@pytest.mark.parametrize("name", ["multiply_no_nan", "xlogy", "xlog1py", "xdivy"])
def test_functions_that_need_floats(name):
    assert_raises(
        lambda: getattr(tf.math, name)(I, I),
        InvalidArgumentError,
        f"{name}: x and y must have the same dtype, float or complex. Received: int32 and int32. "
        "Use tf.cast.",
    )


@pytest.mark.parametrize("name", "sqrt exp log sin tanh sigmoid softplus erf softmax".split())
def test_functions_of_floats_refuse_integers(name):
    with pytest.raises(InvalidArgumentError, match="dtype int32 is not supported"):
        getattr(tf.math, name)(I)


@pytest.mark.parametrize("name", "sum mean prod max min variance euclidean_norm".split())
def test_truth_values_cannot_be_added_up(name):
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
            f(I)


@pytest.mark.parametrize("name", ["real", "conj"])
def test_parts_of_what_is_no_number(name):
    message = f"{name}: expected a numeric tensor. Received: dtype bool."
    assert_raises(lambda: getattr(tf.math, name)([True]), TypeError, message)


def test_integers_have_no_angle():
    message = "angle: dtype int32 has no angle. Expected floats or complex."
    assert_raises(lambda: tf.math.angle(I), TypeError, message)


def test_variance_of_integers():
    message = (
        "reduce_variance: input must be real or complex. Received: dtype int32. "
        "Use tf.cast to make it float."
    )
    assert_raises(lambda: tf.math.reduce_variance(I), TypeError, message)
    assert_raises(lambda: tf.math.reduce_std(I), TypeError, message)


def test_axes_that_are_not_there():
    assert_raises(
        lambda: tf.math.reduce_sum(X, 2),
        InvalidArgumentError,
        "reduce_sum: axis 2 is out of range for a tensor of 2 axes. Expected -2 <= axis < 2.",
    )
    for f in (tf.math.argmax, tf.math.cumsum, tf.math.softmax):
        with pytest.raises(InvalidArgumentError, match="axis 2 is out of range"):
            f(X, axis=2)
    with pytest.raises(InvalidArgumentError, match="axis -1 is out of range for a tensor of 0 axes"):
        tf.math.softmax(1.0)


def test_axes_that_are_named_twice():
    with pytest.raises(InvalidArgumentError, match="an axis is named twice"):
        tf.math.reduce_max(X, [0, -2])


@pytest.mark.parametrize("f", [tf.math.reduce_sum, tf.math.argmax, tf.math.cumprod, tf.math.softmax])
def test_axes_that_are_no_integers(f):
    with pytest.raises(TypeError, match=r"axis: expected integers. Received: 1.5 of dtype float32"):
        f(X, axis=1.5)


@pytest.mark.parametrize("f", [tf.math.argmin, tf.math.cumsum, tf.math.log_softmax])
def test_one_axis_at_a_time(f):
    with pytest.raises(InvalidArgumentError, match=r"expected a single axis. Received: \[0, 1\]"):
        f(X, axis=[0, 1])


def test_extremes_that_have_no_place():
    with pytest.raises(InvalidArgumentError, match="reduction axis 0 is empty"):
        tf.math.argmax(tf.zeros([0]))
    assert_raises(
        lambda: tf.math.argmin(X, output_type=tf.int16),
        InvalidArgumentError,
        "argmin: output_type int16 is not supported. Expected one of int32, int64.",
    )


def test_sums_of_what_does_not_fit():
    assert_raises(
        lambda: tf.math.add_n([]),
        ValueError,
        "add_n: inputs must be an iterable of at least one tensor. Received: [].",
    )
    assert_raises(
        lambda: tf.math.add_n([F, tf.constant([1.0])]),
        InvalidArgumentError,
        "add_n: inputs must have the same shape. Received: (2,) and (1,).",
    )
    assert_raises(
        lambda: tf.math.accumulate_n([F], shape=[3]),
        ValueError,
        "Shapes (3,) and (2,) are incompatible",
    )
    assert_raises(
        lambda: tf.math.accumulate_n([F], tensor_dtype=tf.int32),
        TypeError,
        "accumulate_n: `tensor_dtype` is int32, but the inputs are float32. Expected the same: use "
        "tf.cast on the inputs.",
    )
    for inputs in ([F, I], [None], F):
        with pytest.raises(ValueError, match="accumulate_n: inputs must be a list of at least one"):
            tf.math.accumulate_n(inputs)


def test_a_scalar_is_a_scalar():
    assert_raises(
        lambda: tf.math.scalar_mul([2.0], F),
        ValueError,
        "scalar_mul: the scalar must have no axes. Received: shape (1,).",
    )


def test_coefficients_are_a_list():
    message = "polyval: coeffs must be a list. Received: <class 'tuple'>."
    assert_raises(lambda: tf.math.polyval((1.0,), F), ValueError, message)


def test_axis_and_its_old_name():
    message = "l2_normalize: received both `axis` and `dim`. Use `axis` alone."
    assert_raises(lambda: tf.math.l2_normalize(F, axis=0, dim=0), ValueError, message)


def test_only_numbers_have_an_order():
    message = "is_non_decreasing: expected numbers. Received: dtype bool."
    assert_raises(lambda: tf.math.is_non_decreasing([True]), TypeError, message)
