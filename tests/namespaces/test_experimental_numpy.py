"""tf.experimental.numpy: values, dtypes, gradients, errors and NumPy behavior of tensors."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import retrograde as tf
from tests.data.recorded_results import evaluate, is_close
from tests.namespaces.helpers import assert_gradients, assert_raises, float64, gradient

tnp = tf.experimental.numpy
DATA = pathlib.Path(__file__).parents[1] / "data"
EXPECTED = json.loads((DATA / "numpy_results.json").read_text())
WITH_BEHAVIOR = json.loads((DATA / "numpy_behavior_results.json").read_text())
NAMES = json.loads((DATA / "numpy_signatures.json").read_text())


@pytest.mark.parametrize("call", EXPECTED)
def test_result_matches_tensorflow(call):
    actual = evaluate(call, tf)

    assert is_close(actual, EXPECTED[call]), f"got {actual}, expected {EXPECTED[call]}"


@pytest.mark.parametrize("call", WITH_BEHAVIOR)
@pytest.mark.usefixtures("numpy_behavior")
def test_result_with_numpy_behavior_matches_tensorflow(call):
    actual = evaluate(call, tf)

    assert is_close(actual, WITH_BEHAVIOR[call]), f"got {actual}, expected {WITH_BEHAVIOR[call]}"


def test_names_match_tensorflow():
    names = {name.removeprefix("tf.experimental.numpy.") for name in NAMES}
    ours = {*tnp.__all__} - {"random"} | {f"random.{name}" for name in tnp.random.__all__}

    assert ours == names
    assert all(hasattr(tnp, name) for name in tnp.__all__)


def test_the_namespace_is_imported_lazily():
    program = (
        "import sys, retrograde; print('retrograde.experimental' in sys.modules); "
        "retrograde.experimental.numpy.pi; print('retrograde.experimental.numpy' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )

    assert result.stdout.split() == ["False", "True"]


def test_public_names_of_experimental():
    assert_raises(
        lambda: tf.experimental.nothing,
        AttributeError,
        "module 'retrograde.experimental' has no attribute 'nothing'",
    )


# Functions with a bug in TensorFlow

AS_NUMPY = {
    "rad2deg": lambda xp: xp.rad2deg([1.0]),
    "angle": lambda xp: xp.angle([1.0, -1.0]),
    "logaddexp": lambda xp: xp.logaddexp([1.0, 700.0], [2.0, 1.0]),
    "isinf": lambda xp: xp.isinf([1.0, np.inf, -np.inf]),
    "isinf_of_integers": lambda xp: xp.isinf(np.array([1, 2])),
    "isposinf": lambda xp: xp.isposinf(np.array([1.0, np.inf])),
    "isneginf": lambda xp: xp.isneginf(np.array([1.0, -np.inf])),
    "ones": lambda xp: xp.ones(2, None),
    "eye": lambda xp: xp.eye(2, dtype=None),
    "arange": lambda xp: xp.arange(0, 1, 0.1),
    "linspace_dtype": lambda xp: xp.linspace(0, 5, 3, dtype=int),
    "linspace_lists": lambda xp: xp.linspace([0, 1], [1, 2], 3),
    "logspace_dtype": lambda xp: xp.logspace(0.0, 2.0, 3, dtype=int),
    "geomspace_complex": lambda xp: xp.geomspace(1 + 0j, 1j, 3),
    "var_ddof": lambda xp: xp.var([1, 2, 4], ddof=1),
    "var_dtype": lambda xp: xp.var([[1.0, 2], [3, 5]], (0, 1), float, None, 1),
    "var_complex": lambda xp: xp.var([1 + 2j, 3.0], ddof=1),
    "repeat": lambda xp: xp.repeat(3, [2]),
    "take": lambda xp: xp.take([1, 2], np.array([1], np.int8)),
    "vsplit": lambda xp: xp.vsplit([[1, 2], [3, 4]], 2)[1] if xp is tnp else np.array([[3, 4]]),
    "rot90": lambda xp: xp.rot90([[1, 2], [3, 4]], 0),
    "around_integers": lambda xp: xp.around(np.array([125, 15, 149]), -1),
    "hypot": lambda xp: xp.hypot([3], [4.0]),
}


@pytest.mark.parametrize("name", AS_NUMPY)
def test_functions_that_fail_in_tensorflow_match_numpy(name):
    actual, expected = AS_NUMPY[name](tnp).numpy(), AS_NUMPY[name](np)

    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual, expected, rtol=1e-14, atol=1e-15)


def test_bfloat16_is_not_widened_by_a_python_number():
    x = tf.constant([1.5], tf.bfloat16)

    assert tnp.add(x, 1.0).dtype == tnp.multiply(2, x).dtype == tf.bfloat16


# Gradients

X = np.array([[0.3, -1.2, 0.7], [1.4, 0.2, -0.6]])
POSITIVE = np.abs(X) + 0.2


@pytest.mark.parametrize(
    ("f", "inputs"),
    [
        (tnp.cbrt, [X]),
        (tnp.sinc, [X]),
        (tnp.exp2, [X]),
        (tnp.log2, [POSITIVE]),
        (tnp.hypot, [X, X[0]]),
        (tnp.logaddexp, [X, X[0] + 0.5]),
        (tnp.logaddexp2, [X, X[0] + 0.5]),
        (lambda y: tnp.heaviside([-1.0, 0.0, 1.0], y), [X]),
        (lambda x: tnp.around(x, 1) + x, [X]),
        (lambda x: tnp.diff(x, 2), [X]),
        (lambda x: tnp.var(x, (0, 1), ddof=1), [X]),
        (lambda x: tnp.average(x, 0, [1.0, 3.0]), [X]),
        (lambda x: tnp.take_along_axis(x, [[0, 2], [1, 1]], 1), [X]),
        (lambda x: tnp.tril(x) + tnp.triu(x, 1), [X]),
        (lambda x: tnp.diagonal(x, 1), [X]),
        (lambda x, y: tnp.geomspace(x, y, 5, axis=-1), [POSITIVE, POSITIVE[0]]),
        (lambda x, y: tnp.linspace(x, y, 3, endpoint=False), [X, X[0]]),
        (lambda x, y: tnp.cross(x, y), [X, X[1]]),
        (lambda x, y: tnp.kron(x, y), [X, X[1]]),
        (lambda x, y: tnp.polyval(x, y), [X[0], X[1]]),
        (lambda x: tnp.rot90(x, 3), [X]),
        (lambda x: tnp.nanmean(tnp.append(x, [np.nan])), [X]),
        (lambda x: tnp.select([[True, False, True]], [x], default=2.0), [X]),
    ],
)
def test_gradients(f, inputs):
    assert_gradients(f, *inputs, rtol=1e-6)


def test_logaddexp_shares_the_gradient_in_a_tie():
    g1, g2 = gradient(tnp.logaddexp, [1.0], [1.0])
    assert [g1.tolist(), g2.tolist()] == [[0.5], [0.5]]


def test_logaddexp_of_infinities():
    assert tnp.logaddexp(-np.inf, [-np.inf, 1.0, np.inf]).numpy().tolist() == [-np.inf, 1, np.inf]


def test_derivatives_of_sinc_at_zero():
    x = float64([0.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tnp.sinc(x)
        first = inner.gradient(y, x)

    assert first.numpy() == 0.0
    np.testing.assert_allclose(outer.gradient(first, x).numpy(), -(np.pi**2) / 3, rtol=1e-14)


def test_derivative_of_cbrt_at_zero_is_infinite():
    assert gradient(tnp.cbrt, [0.0])[0].tolist() == [np.inf]


IDENTITIES = {
    "asarray": tnp.asarray,
    "array": lambda v: tnp.array(v, copy=False),
    "positive": tnp.positive,
    "atleast_1d": tnp.atleast_1d,
    "broadcast_arrays": lambda v: tnp.broadcast_arrays(v, [1.0])[0],
    "moveaxis": lambda v: tnp.moveaxis(v, 0, 0),
    "real": tnp.real,
    "conj": tnp.conj,
    "diff": lambda v: tnp.diff(v, 0),
    "reshape": lambda v: tnp.reshape(v, [2]),
}


@pytest.mark.parametrize("name", IDENTITIES)
def test_results_of_a_variable_are_new_tensors(name):
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        x = IDENTITIES[name](v)
        y = x * x
    assert tape.gradient(y, v).numpy().tolist() == [2.0, 4.0]
    assert tape.gradient(v * 1.0, x) is None
    v.assign([5.0, 5.0])
    assert x.numpy().tolist() == [1.0, 2.0]


def test_jacobian_and_vectorized_map():
    x = float64([0.5, 1.5])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tnp.outer(tnp.sin(x), x)
    assert tape.jacobian(y, x).shape == (2, 2, 2)
    mapped = tf.vectorized_map(lambda row: tnp.average(tnp.log2(row)), tf.constant(POSITIVE))
    np.testing.assert_allclose(mapped.numpy(), np.log2(POSITIVE).mean(1), rtol=1e-14)


# Random numbers


def test_random_numbers_have_their_shape_range_and_dtype():
    numbers = tnp.random.uniform([0, 10], [1, 20], [50, 2]).numpy()
    assert ((numbers >= [0, 10]) & (numbers < [1, 20])).all()
    integers = tnp.random.randint(3, 6, (100,)).numpy()
    assert set(integers.tolist()) == {3, 4, 5}
    assert 0 <= tnp.random.rand(3, 2).numpy().min() < 1
    assert abs(tnp.random.randn(2000).numpy().std() - 1) < 0.2
    assert abs(tnp.random.poisson(4.0, 2000).numpy().mean() - 4) < 0.5
    assert tnp.random.random(3).shape == tnp.random.standard_normal(3).shape == (3,)


def test_seed_sets_the_seed_of_tf_random():
    tnp.random.seed(5)
    first = tnp.random.rand(3).numpy()
    tf.random.set_seed(5)
    assert tnp.random.rand(3).numpy().tolist() == first.tolist()


# Errors

ERRORS = [
    (
        lambda: tnp.add(tf.constant(1, tf.bfloat16), tf.constant(1)),
        TypeError,
        "Cannot promote bfloat16, int32 to a common dtype. Cast one of them first.",
    ),
    (
        lambda: tnp.zeros(2, "nothing"),
        TypeError,
        "Cannot convert 'nothing' to a dtype. Expected a retrograde or NumPy dtype, a Python "
        "number type, or the name of one of these.",
    ),
    (
        lambda: tnp.add(tf.constant("a"), 1),
        TypeError,
        "Cannot convert dtype int64 to string. Use tf.strings.to_number or tf.strings.as_string.",
    ),
    (
        lambda: tnp.around([1.0], None),
        ValueError,
        "Attempt to convert a value (None) with an unsupported type (<class 'NoneType'>) to a "
        "tensor. Expected a number, a string, a nested list of these, or an array.",
    ),
    (
        lambda: tnp.eye(-2),
        tf.errors.InvalidArgumentError,
        "eye: dimension -2 must be >= 0. Received: shape (-2, -2).",
    ),
    (lambda: tnp.array(1, ndmin=33), ValueError, "array: `ndmin` is 33. Expected at most 32."),
    (
        lambda: tnp.full_like([1], 1, order="C"),
        ValueError,
        "full_like: the argument `order` is not supported. Omit it.",
    ),
    (
        lambda: tnp.arange(3, step=0),
        ValueError,
        "arange: `step` must not be zero. Received: 0.",
    ),
    (
        lambda: tnp.linspace(0, 1, -1),
        ValueError,
        "linspace: `num` must not be negative. Received: -1.",
    ),
    (
        lambda: tnp.tril([1]),
        ValueError,
        "tril: expected a matrix, or more axes. Received: shape (1,).",
    ),
    (
        lambda: tnp.diag([[[1]]]),
        ValueError,
        "diag: expected a vector or a matrix. Received: shape (1, 1, 1).",
    ),
    (
        lambda: tnp.diagonal([1]),
        tf.errors.InvalidArgumentError,
        "diagonal: expected at least two axes. Received: shape (1,).",
    ),
    (lambda: tnp.vander([[1]]), ValueError, "vander: expected a vector. Received: shape (1, 1)."),
    (lambda: tnp.vander([1], -1), ValueError, "vander: `N` must not be negative. Received: -1."),
    (
        lambda: tnp.diag_indices(-1),
        ValueError,
        "diag_indices: `n` must not be negative. Received: -1.",
    ),
    (
        lambda: tnp.ix_([0], [[1]]),
        ValueError,
        "ix_: expected vectors. Received: shape (1, 1) for argument 1.",
    ),
    (
        lambda: tnp.ix_([0.5]),
        ValueError,
        "ix_: expected integers or bool. Received: float64 for argument 0.",
    ),
    (lambda: tnp.gcd(1.0, 2.0), ValueError, "gcd: expected integers. Received: float64."),
    (
        lambda: tnp.clip(1, None, None),
        ValueError,
        "clip: expected at least one of `a_min` and `a_max`.",
    ),
    (
        lambda: tnp.sign(1.0, where=True),
        ValueError,
        "sign: the argument `where` is not supported. Omit it.",
    ),
    (lambda: tnp.diff([1], -1), ValueError, "diff: `n` must not be negative. Received: -1."),
    (lambda: tnp.diff([1], axis=2), ValueError, "diff: there is no axis 2 in shape (1,)."),
    (
        lambda: tnp.average([1.0], (0,)),
        ValueError,
        "average: `axis` must be an integer or None. Received: (0,).",
    ),
    (
        lambda: tnp.average([[1.0, 2.0]], weights=[1, 3]),
        tf.errors.InvalidArgumentError,
        "average: the weights have shape (2,), the array (1, 2). Expected equal shapes, or a "
        "vector of weights and an axis.",
    ),
    (
        lambda: tnp.matmul(1, [1]),
        ValueError,
        "matmul: expected vectors or matrices. Received: shapes () and (1,).",
    ),
    (
        lambda: tnp.cross([1, 2, 3, 4], [1, 2, 3]),
        tf.errors.FailedPreconditionError,
        "cross: expected vectors of length 2 or 3. Received: lengths (4, 3).",
    ),
    (
        lambda: tnp.einsum("i->", [1], casting="unsafe"),
        ValueError,
        "einsum: `casting` must be 'safe' or 'no'. Received: 'unsafe'.",
    ),
    (
        lambda: tnp.einsum("i->", [1], optimize="x"),
        ValueError,
        "einsum: `optimize` must be a bool, 'greedy' or 'optimal'. Received: 'x'.",
    ),
    (
        lambda: tnp.size([1], axis=0),
        NotImplementedError,
        "size: the argument `axis` is not supported. Use shape instead.",
    ),
    (
        lambda: tnp.reshape([1], [1], order="A"),
        ValueError,
        "reshape: `order` must be 'C' or 'F'. Received: 'A'.",
    ),
    (
        lambda: tnp.flatten([1], "Z"),
        ValueError,
        "flatten: `order` must be 'C', 'A', 'K' or 'F'. Received: 'Z'.",
    ),
    (
        lambda: tnp.moveaxis([[1]], (0, 1), (0,)),
        ValueError,
        "moveaxis: 2 sources, (0, 1), and 1 destinations, (0,). Expected the same number.",
    ),
    (
        lambda: tnp.moveaxis([[1]], (0, -2), (0, 1)),
        tf.errors.InvalidArgumentError,
        "moveaxis: an axis is repeated in (0, 0).",
    ),
    (
        lambda: tnp.concatenate([]),
        ValueError,
        "concatenate: expected at least one array. Received: [].",
    ),
    (lambda: tnp.hstack([]), ValueError, "hstack: expected at least one array. Received: []."),
    (
        lambda: tnp.split([1, 2], [1], axis=1),
        ValueError,
        "split: axis 1 is out of range for shape (2,).",
    ),
    (
        lambda: tnp.split([1, 2], [1], axis=-7),
        ValueError,
        "split: axis -7 is out of range for shape (2,).",
    ),
    (
        lambda: tnp.trace([1]),
        tf.errors.InvalidArgumentError,
        "diagonal: expected at least two axes. Received: shape (1,).",
    ),
    (
        lambda: tnp.split([1, 2, 3], [2, 1]),
        ValueError,
        "split: expected indices in ascending order. Received: [2, 1].",
    ),
    (
        lambda: tnp.vsplit([[1], [2], [3]], 2),
        ValueError,
        "vsplit: cannot split 3 elements into 2 equal parts.",
    ),
    (
        lambda: tnp.pad([1], [[1, 1]], "edge"),
        ValueError,
        "pad: `mode` must be 'constant', 'reflect' or 'symmetric'. Received: 'edge'.",
    ),
    (
        lambda: tnp.take([1], [0], mode="raise"),
        ValueError,
        "take: `mode` must be 'clip' or 'wrap'. Received: 'raise'.",
    ),
    (
        lambda: tnp.take_along_axis([[1]], [0], 0),
        ValueError,
        "take_along_axis: the array has shape (1, 1), the indices have shape (1,). Expected the "
        "same number of axes.",
    ),
    (
        lambda: tnp.compress([[True]], [1]),
        ValueError,
        "compress: `condition` must be a vector. Received: shape (1, 1).",
    ),
    (
        lambda: tnp.where([True], 1),
        ValueError,
        "where: expected both `x` and `y`, or neither.",
    ),
    (
        lambda: tnp.select([[True]], []),
        ValueError,
        "select: received 1 conditions and 0 choices. Expected the same number.",
    ),
    (lambda: tnp.select([], []), ValueError, "select: expected at least one condition."),
    (
        lambda: tnp.sort([1], kind="stable"),
        ValueError,
        "sort: `kind` must be 'quicksort'. Received: 'stable'.",
    ),
    (
        lambda: tnp.argsort([1], kind="heap"),
        ValueError,
        "argsort: `kind` must be 'quicksort' or 'stable'. Received: 'heap'.",
    ),
    (
        lambda: tnp.argsort([1j]),
        TypeError,
        "argsort: complex numbers have no order. Received: complex128.",
    ),
    (
        lambda: tnp.broadcast_arrays([1, 2], [1, 2, 3]),
        ValueError,
        "Shapes (2,), (3,) cannot be broadcast to one.",
    ),
    (
        lambda: tnp.random.uniform([1, 2], [1, 2, 3]),
        ValueError,
        "uniform: the shapes of low and high must broadcast. Received: (2,) and (3,).",
    ),
    (
        lambda: tnp.random.randint(3, dtype=float),
        ValueError,
        "randint: `dtype` must be int32 or int64. Received: float64.",
    ),
    (lambda: tnp.random.seed(None), ValueError, "seed: expected an integer. Received: None."),
    (
        lambda: tnp.experimental_enable_numpy_behavior(dtype_conversion_mode="x"),
        ValueError,
        "experimental_enable_numpy_behavior: `dtype_conversion_mode` must be 'legacy', 'off', "
        "'safe' or 'all'. Received: 'x'.",
    ),
]


@pytest.mark.parametrize(
    ("call", "error", "message"), ERRORS, ids=[message[:40] for *_, message in ERRORS]
)
def test_errors(call, error, message):
    assert_raises(call, error, message)


# NumPy behavior of tensors


def test_without_numpy_behavior_operators_are_strict():
    with pytest.raises(tf.errors.InvalidArgumentError):
        tnp.asarray([1]) + tnp.asarray([0.5])
    with pytest.raises(AttributeError):
        tf.constant([1]).T  # noqa: B018


def test_the_mode_off_keeps_operators_strict(numpy_behavior):
    numpy_behavior(dtype_conversion_mode="off")

    assert tf.constant([[1, 2]]).T.shape == (2, 1)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.constant([1]) + tf.constant([0.5])


def test_python_floats_can_count_as_float32(numpy_behavior):
    numpy_behavior(prefer_float32=True)

    assert tnp.asarray([1.5]).dtype == tnp.linspace(0, 1, 3).dtype == tf.float32
    assert tnp.asarray(1j).dtype == tf.complex64
    assert (tf.constant([1], tf.int8) + 1.5).dtype == tf.float32
    assert (tf.constant([1.0], tf.float16) + 1.5).dtype == tf.float16


@pytest.mark.usefixtures("numpy_behavior")
def test_operators_still_dispatch_to_composite_tensors():
    ragged = tf.ragged.constant([[1.0], [2.0, 3.0]])

    assert (tf.constant(2.0) * ragged).to_list() == [[2.0], [4.0, 6.0]]
    assert (tf.constant([1]) == None) is False  # noqa: E711


@pytest.mark.usefixtures("numpy_behavior")
def test_errors_of_numpy_behavior():
    x = tf.constant([[1, 2]])
    assert_raises(
        lambda: x.reshape(2, foo=1), ValueError, "reshape: the argument `foo` is not supported."
    )
    assert_raises(
        lambda: x[1.5],
        IndexError,
        "Only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and arrays of integers or "
        "of bool are valid indices, got 1.5.",
    )
    assert_raises(
        lambda: x[0, np.array([[True]])],
        NotImplementedError,
        "A mask among other indices must be a vector. Received: (1, 1).",
    )
