"""Why a value is not finite, and what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograde.values import dtypes


class Kind(NamedTuple):
    """A way in which values cease to be finite: its name, why it happens, and what cures it."""

    name: str
    why: str
    cure: str


LOG_OF_ZERO = Kind(
    "logarithm of zero",
    "The logarithm of 0 is -inf.",
    "Write p * log(p) as tf.math.xlogy(p, p), a cross entropy from logits "
    "(tf.nn.softmax_cross_entropy_with_logits, tf.nn.sigmoid_cross_entropy_with_logits), "
    "log(softmax(x)) as tf.nn.log_softmax(x); or keep x away from 0: "
    "tf.math.log(tf.maximum(x, 1e-7)).",
)
LOG_OF_NEGATIVE = Kind(
    "logarithm of a negative number",
    "The logarithm is defined for positive numbers only.",
    "See why x is negative. If it should not be, make it positive where it is computed "
    "(tf.nn.softplus, tf.exp, tf.square); if rounding alone made it so, tf.maximum(x, 1e-7).",
)
DIVISION_BY_ZERO = Kind(
    "division by zero",
    "x / 0 is an infinity, and 0 / 0 is nan.",
    "Write tf.math.divide_no_nan(x, y), which is 0 where y is 0; or x / (y + 1e-7) if y is not "
    "negative.",
)
ROOT_OF_NEGATIVE = Kind(
    "root of a negative number",
    "The square root is defined for numbers from 0 on.",
    "If rounding made x negative, as in mean(x**2) - mean(x)**2, write "
    "tf.sqrt(tf.maximum(x, 0.0) + 1e-12), or tf.math.reduce_std.",
)
POWER_OF_NEGATIVE = Kind(
    "power of a negative number",
    "A negative number to a power that is no integer is not a real number.",
    "Write tf.pow(tf.abs(x), p), with tf.sign(x) in front if the sign should stay.",
)
EXP_OVERFLOW = Kind(
    "overflow of an exponential",
    "The exponential of a number above 88.7 does not fit into float32 (709.8 in float64, 11.1 in "
    "float16).",
    "Stay with logarithms: tf.reduce_logsumexp for log(sum(exp(x))), tf.nn.softplus(x) for "
    "log(1 + exp(x)), tf.sigmoid(x) for 1 / (1 + exp(-x)), tf.nn.softmax(x) for "
    "exp(x) / sum(exp(x)); or limit x: tf.minimum(x, 80.0).",
)
OVERFLOW = Kind(
    "overflow",
    "The result is larger than the largest number of its dtype.",
    "See why the numbers are so large: a learning rate too high, inputs not normalised, a product "
    "of many factors (add their logarithms instead). tf.clip_by_global_norm limits gradients.",
)
HALF_OVERFLOW = Kind(
    "overflow in half precision",
    "float16 ends at 65504.",
    "Compute this part in float32 (tf.cast), or use bfloat16, which reaches as far as float32. "
    "If a scaled loss is the reason, lower its scale.",
)
OUT_OF_DOMAIN = Kind(
    "outside the domain",
    "The function is not defined, or not finite, at this number.",
    "Keep the argument inside: tf.clip_by_value(x, low, high) with bounds a little inside the "
    "domain.",
)
EMPTY = Kind(
    "reduction of nothing",
    "There is nothing to reduce: the mean of no elements is 0 / 0, their maximum -inf.",
    "See why the axis is empty (a mask that keeps nothing, a last batch without elements), or "
    "leave such cases out. For a masked mean: tf.math.divide_no_nan(sum, count).",
)
NOT_POSITIVE_DEFINITE = Kind(
    "matrix not positive definite",
    "The matrix is not positive definite, so it has no Cholesky decomposition.",
    "Make it symmetric, (a + transpose(a)) / 2, and add a little to its diagonal: "
    "a + 1e-6 * tf.eye(n).",
)
SINGULAR = Kind(
    "singular matrix",
    "The matrix has no inverse, or next to none.",
    "Add a little to its diagonal, a + 1e-6 * tf.eye(n); or use tf.linalg.pinv or "
    "tf.linalg.lstsq(..., l2_regularizer=1e-6).",
)
NORM_AT_ZERO = Kind(
    "norm of zero",
    "The length of a vector has no slope at the origin: the rule of the root divides by 0.",
    "Put a small number under the root: tf.sqrt(tf.reduce_sum(x * x, axis) + 1e-12); to divide by "
    "the length, tf.nn.l2_normalize(x, axis).",
)
SPREAD_OF_EQUALS = Kind(
    "spread of equal numbers",
    "The standard deviation of equal numbers is 0 and has no slope there: the rule of the root "
    "divides by 0.",
    "Put a small number under the root: tf.sqrt(tf.math.reduce_variance(x, axis) + 1e-12); or use "
    "the variance itself.",
)
ROOT_AT_ZERO = Kind(
    "slope of a root at zero",
    "The slope of the square root, or of a power below 1, is infinite at 0.",
    "Put a small number under the root, tf.sqrt(x + 1e-12); or where zeros should have no part "
    "in it, use tf.where twice: tf.where(x > 0, tf.sqrt(tf.where(x > 0, x, 1.0)), 0.0).",
)
STEEP = Kind(
    "slope too steep",
    "The function is finite here; its slope is not, or it is larger than its dtype can hold.",
    "Keep the argument away from this point (tf.maximum(x, 1e-7), tf.clip_by_value), or use "
    "tf.where twice, so that the function itself never sees it: "
    "tf.where(ok, f(tf.where(ok, x, 1.0)), 0.0).",
)
OWN_RULE = Kind(
    "rule of a custom_gradient",
    "The gradient function of this custom_gradient returned it.",
    "Look at what it does with such values; tape.verify checks it against finite differences.",
)
OWN_RULE_AT_ZERO = Kind(
    "rule of a custom_gradient that spoils a zero",
    "The cotangent that came in is 0 here, and the gradient function of this custom_gradient "
    "made nan of it: 0 * inf.",
    "Inside of the gradient function write tf.math.multiply_no_nan(slope, upstream); or use "
    "tf.where twice, so that the function never sees the elements that are not used: "
    "f(tf.where(ok, x, 1.0)).",
)
BACKWARD_OVERFLOW = Kind(
    "overflow on the way back",
    "The cotangent is larger than the largest number of its dtype.",
    "The gradient explodes along this way: normalise between layers, lower the initial weights, "
    "scale the loss down; tf.clip_by_global_norm helps only while gradients are finite.",
)
VARIABLE = Kind(
    "variable not finite before",
    "The variable held it already when it was read.",
    "It was spoilt by an earlier update: look at the step before this one, and see to it that "
    "gradients that are not finite are not applied. tf.debugging.nonfinite('raise') around the "
    "training loop stops at the first of them.",
)
INPUT = Kind(
    "input not finite",
    "It came in from outside; no call on this tape made it.",
    "Look at the data: tf.debugging.assert_all_finite(x, 'x') where it comes in, "
    "tf.where(tf.math.is_finite(x), x, 0.0) to fill gaps. A mask of -inf is better a large "
    "number, -1e9.",
)
WEIGHTS = Kind(
    "output_gradients not finite",
    "The `output_gradients` given to gradient() hold it already.",
    "Look at where they are computed.",
)
UNHEARD = Kind(
    "made unheard",
    "The call that made it raised no alarm, like all that XLA, SciPy's special functions or "
    "other threads compute; and the tape let go of it before the alarm that came here.",
    "Make the tape with lines=True, which keeps everything, and ask again.",
)
NO_DERIVATIVE = Kind(
    "decomposition without a derivative",
    "The rule divides by singular values, or by differences of eigenvalues, and one of them is 0.",
    "Add a little to the diagonal, a + 1e-6 * tf.eye(n); or use what has a derivative there: "
    "tf.linalg.pinv, tf.linalg.solve, singular values without vectors (compute_uv=False).",
)
NOT_KEPT = Kind(
    "inputs not kept",
    "The tape did not keep what went into this call, so it may have come in with that.",
    "Make the tape with lines=True, which keeps everything, and ask again.",
)
OWN_FUNCTION = Kind(
    "function of a custom_gradient",
    "The function under this custom_gradient returned it.",
    "Put `with tf.debugging.nonfinite('raise'):` around the call: it names the operation inside.",
)

TURNS = {
    "subtract": "inf - inf is nan",
    "add": "inf + (-inf) is nan",
    "multiply": "0 * inf is nan",
    "matmul": "0 * inf and inf - inf are nan",
    "divide": "inf / inf is nan",
    "softmax": "a row of -inf alone has no softmax",
    "log_softmax": "a row of -inf alone has no softmax",
    "sum": "inf + (-inf) is nan",
    "mean": "inf + (-inf) is nan",
}

Test = Callable[..., bool]


def _known(*inputs: Any) -> bool:
    return all(x is not None for x in inputs)


# By primitive: kinds, each with a test of the inputs at the element, in order.
_FORWARDS: dict[str, list[tuple[Kind, Test]]] = {
    "log": [(LOG_OF_ZERO, lambda x: x == 0), (LOG_OF_NEGATIVE, lambda x: x < 0)],
    "log1p": [(LOG_OF_ZERO, lambda x: x == -1), (LOG_OF_NEGATIVE, lambda x: x < -1)],
    "divide": [(DIVISION_BY_ZERO, lambda _, x2: x2 == 0)],
    "reciprocal": [(DIVISION_BY_ZERO, lambda x: x == 0)],
    "mod": [(DIVISION_BY_ZERO, _known)],
    "truncate_mod": [(DIVISION_BY_ZERO, _known)],
    "sqrt": [(ROOT_OF_NEGATIVE, lambda x: x < 0)],
    "rsqrt": [(DIVISION_BY_ZERO, lambda x: x == 0), (ROOT_OF_NEGATIVE, lambda x: x < 0)],
    "power": [
        (DIVISION_BY_ZERO, lambda x1, x2: x1 == 0 and x2 < 0),
        (POWER_OF_NEGATIVE, lambda x1, x2: x1 < 0 and x2 != np.round(x2)),
    ],
    "guarded_divide": [(STEEP, lambda _, x2: x2 == 0)],  # of rules, inside of functions
    "exp": [(EXP_OVERFLOW, _known)],
    "expm1": [(EXP_OVERFLOW, _known)],
    "sinh": [(EXP_OVERFLOW, _known)],
    "cosh": [(EXP_OVERFLOW, _known)],
}
_DOMAINS = (
    "acos acosh asin atanh erfinv ndtri lgamma digamma zeta polygamma expint bessel_k bessel_ke "
    "bessel_y"
)
_FORWARDS |= {name: [(OUT_OF_DOMAIN, _known)] for name in _DOMAINS.split()}

# The same for rules: the tests take the result first.
_BACKWARDS: dict[str, list[tuple[Kind, Test]]] = {
    "sqrt": [(ROOT_AT_ZERO, lambda y, _: y == 0)],
    "power": [(ROOT_AT_ZERO, lambda _, x1, x2: x1 == 0 and x2 < 1)],
}

_MATRICES = {
    "cholesky": NOT_POSITIVE_DEFINITE,
    "inv": SINGULAR,
    "solve": SINGULAR,
    "triangular_solve": SINGULAR,
    "tridiagonal_solve": SINGULAR,
    "banded_solve": SINGULAR,
    "slogdet": SINGULAR,
    "logm": SINGULAR,
    "sqrtm": SINGULAR,
}
_DECOMPOSITIONS = {*_MATRICES, "qr", "svd", "eigh", "eig", "lu", "pinv", "det"}
_GENTLE = {"multiply", "add", "subtract", "negative", "square", "squared_difference", "identity"}
_REDUCTIONS = {"mean", "max", "min", "logsumexp", "segment_max", "segment_min"}


def kind_forwards(name: str, inputs: list, element: tuple | None, value: Any) -> Kind:
    """What happened where `name` made `value`, which is not finite, out of finite ones.

    `element` are the inputs there, if the primitive goes element by element.
    """
    kind = _first(_FORWARDS.get(name, ()), element)
    if kind is not None:
        return kind
    if any(x is None for x in inputs):
        return NOT_KEPT
    if name in _MATRICES:
        return _MATRICES[name]
    if name in _REDUCTIONS and any(x is not None and not np.size(x) for x in inputs):
        return EMPTY
    if element is not None and np.isnan(value):
        return OUT_OF_DOMAIN
    return _overflow(value, OVERFLOW)


def kind_backwards(name: str, element: tuple | None, value: Any, sums: str | None) -> Kind:
    """What happened where the rule of `name` made `value` out of a finite cotangent.

    `element` are the result and the inputs there, if the primitive goes element by element.
    `sums` says what the input of the call is a sum or mean of, if that is known.
    """
    kind = _first(_BACKWARDS.get(name, ()), element)
    if kind is not None:
        return {"squares": NORM_AT_ZERO, "deviations": SPREAD_OF_EQUALS}.get(sums, kind)
    if name in _DECOMPOSITIONS:
        return NO_DERIVATIVE
    if element is not None and name not in _GENTLE:
        return STEEP
    return _overflow(value, BACKWARD_OVERFLOW)


def _first(kinds: Sequence[tuple[Kind, Test]], element: tuple | None) -> Kind | None:
    """The first kind whose test holds for the inputs at an element."""
    if element is None:
        return None
    return next((kind for kind, test in kinds if _holds(test, element)), None)


def _holds(test: Test, element: tuple) -> bool:
    try:
        return bool(test(*element))
    except TypeError:  # an input that the test reads is not known, or is complex
        return False


def own_rule(value: Any, g: Any) -> Kind:
    """What happened where the user's own rule made `value` out of `g`."""
    return OWN_RULE_AT_ZERO if g is not None and g == 0 and np.isnan(value) else OWN_RULE


def _overflow(value: Any, otherwise: Kind) -> Kind:
    return HALF_OVERFLOW if value.dtype == dtypes.float16.numpy_dtype else otherwise
