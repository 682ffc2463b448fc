"""The causes of NaN and Inf, with explanations and fixes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograde.values import dtypes


class Cause(NamedTuple):
    """A cause of NaN or Inf: its name, an explanation and a fix."""

    name: str
    why: str
    fix: str


LOG_OF_ZERO = Cause(
    "logarithm of zero",
    "The logarithm of 0 is -Inf.",
    "Use tf.math.xlogy(p, p) for p * log(p), tf.nn.log_softmax(x) for log(softmax(x)), and a loss "
    "that takes logits for a cross entropy (tf.nn.softmax_cross_entropy_with_logits, "
    "tf.nn.sigmoid_cross_entropy_with_logits). Or keep x away from 0: "
    "tf.math.log(tf.maximum(x, 1e-7)).",
)
LOG_OF_NEGATIVE = Cause(
    "logarithm of a negative number",
    "The logarithm is defined only for positive numbers.",
    "Check why x is negative. If it should be positive, compute it with tf.nn.softplus, tf.exp or "
    "tf.square. If it is negative only because of rounding, use tf.maximum(x, 1e-7).",
)
DIVISION_BY_ZERO = Cause(
    "division by zero",
    "x / 0 is Inf, and 0 / 0 is NaN.",
    "Use tf.math.divide_no_nan(x, y), which is 0 where y is 0, or x / (y + 1e-7) for"
    " non-negative y.",
)
ROOT_OF_NEGATIVE = Cause(
    "square root of a negative number",
    "The square root is defined only for numbers >= 0.",
    "If x is negative only because of rounding, as in mean(x**2) - mean(x)**2, use "
    "tf.sqrt(tf.maximum(x, 0.0) + 1e-12) or tf.math.reduce_std.",
)
POWER_OF_NEGATIVE = Cause(
    "non-integer power of a negative number",
    "A negative number raised to a non-integer power is not a real number.",
    "Use tf.pow(tf.abs(x), p), multiplied by tf.sign(x) to keep the sign.",
)
EXP_OVERFLOW = Cause(
    "overflow in exp",
    "The exponential of a number above 88.7 overflows in float32 (709.8 in float64, 11.1 in "
    "float16).",
    "Compute with logarithms: tf.reduce_logsumexp for log(sum(exp(x))), tf.nn.softplus(x) for "
    "log(1 + exp(x)), tf.sigmoid(x) for 1 / (1 + exp(-x)), tf.nn.softmax(x) for "
    "exp(x) / sum(exp(x)). Or limit x: tf.minimum(x, 80.0).",
)
OVERFLOW = Cause(
    "overflow",
    "The result exceeds the largest number of its dtype.",
    "Check why the values are so large. Common reasons are a learning rate that is too high, "
    "inputs that are not normalized, and products of many factors (sum their logarithms instead). "
    "tf.clip_by_global_norm limits gradients.",
)
HALF_OVERFLOW = Cause(
    "float16 overflow",
    "The largest float16 number is 65504.",
    "Compute this part in float32 (tf.cast), or use bfloat16, which has the range of float32. If "
    "loss scaling causes the overflow, decrease the scale.",
)
OUT_OF_DOMAIN = Cause(
    "argument outside the domain",
    "The function is undefined or infinite at this argument.",
    "Keep the argument inside the domain: tf.clip_by_value(x, low, high).",
)
EMPTY = Cause(
    "reduction of an empty tensor",
    "The mean of zero elements is 0 / 0, and their maximum is -Inf.",
    "Check why the axis is empty (for example a mask that is all False, or an empty last batch), "
    "or skip such cases. For a masked mean, use tf.math.divide_no_nan(sum, count).",
)
NOT_POSITIVE_DEFINITE = Cause(
    "matrix not positive definite",
    "The Cholesky decomposition exists only for positive definite matrices.",
    "Symmetrize the matrix, (a + transpose(a)) / 2, and add a small value to its diagonal: "
    "a + 1e-6 * tf.eye(n).",
)
SINGULAR = Cause(
    "singular matrix",
    "The matrix is singular or nearly singular.",
    "Add a small value to its diagonal, a + 1e-6 * tf.eye(n), or use tf.linalg.pinv or "
    "tf.linalg.lstsq(..., l2_regularizer=1e-6).",
)
NORM_AT_ZERO = Cause(
    "gradient of a norm at zero",
    "The gradient of a norm is undefined at 0: the derivative of sqrt divides by 0.",
    "Add a small epsilon inside the sqrt: tf.sqrt(tf.reduce_sum(x * x, axis) + 1e-12). To divide "
    "by the norm, use tf.nn.l2_normalize(x, axis).",
)
STD_OF_EQUAL_VALUES = Cause(
    "standard deviation of equal values",
    "The standard deviation of equal values is 0, where its gradient is undefined: the derivative "
    "of sqrt divides by 0.",
    "Add a small epsilon inside the sqrt: tf.sqrt(tf.math.reduce_variance(x, axis) + 1e-12). Or "
    "use the variance.",
)
ROOT_AT_ZERO = Cause(
    "gradient of sqrt at zero",
    "The derivative of the square root, or of a power below 1, is infinite at 0.",
    "Add a small epsilon inside the sqrt, tf.sqrt(x + 1e-12). If zeros should be ignored, use "
    "tf.where twice: tf.where(x > 0, tf.sqrt(tf.where(x > 0, x, 1.0)), 0.0).",
)
INFINITE_DERIVATIVE = Cause(
    "infinite derivative",
    "The function is finite here, but its derivative is infinite or overflows.",
    "Keep the argument away from this point (tf.maximum(x, 1e-7), tf.clip_by_value), or use "
    "tf.where twice, so that the function is never evaluated there: "
    "tf.where(ok, f(tf.where(ok, x, 1.0)), 0.0).",
)
CUSTOM_GRADIENT = Cause(
    "NaN or Inf in a custom gradient",
    "The gradient function of this custom_gradient returned NaN or Inf.",
    "Check the gradient function for these values; tape.verify compares it with finite "
    "differences.",
)
CUSTOM_GRADIENT_AT_ZERO = Cause(
    "0 * Inf in a custom gradient",
    "The upstream gradient is 0 here, and the gradient function of this custom_gradient returned "
    "NaN: 0 * Inf.",
    "In the gradient function, use tf.math.multiply_no_nan(derivative, upstream). Or use tf.where "
    "twice, so that the function is never evaluated at unused elements: "
    "f(tf.where(ok, x, 1.0)).",
)
BACKWARD_OVERFLOW = Cause(
    "gradient overflow",
    "The gradient exceeds the largest number of its dtype.",
    "The gradient explodes along this path. Normalize between layers, decrease the initial "
    "weights, or scale the loss down. tf.clip_by_global_norm helps only while gradients are "
    "finite.",
)
VARIABLE = Cause(
    "non-finite variable",
    "The variable already contained NaN or Inf when it was read.",
    "An earlier update wrote this value. Check the previous step, and do not apply non-finite "
    "gradients. tf.debugging.nonfinite('raise') around the training loop stops at the first one.",
)
INPUT = Cause(
    "non-finite input",
    "The value comes from outside: no call on this tape produced it.",
    "Check the data: use tf.debugging.assert_all_finite(x, 'x') where it is loaded, or replace "
    "missing values with tf.where(tf.math.is_finite(x), x, 0.0). In masks, use a large negative "
    "number such as -1e9 instead of -Inf.",
)
OUTPUT_GRADIENTS = Cause(
    "non-finite output_gradients",
    "The `output_gradients` passed to gradient() contained NaN or Inf.",
    "Check where they are computed.",
)
UNKNOWN = Cause(
    "unknown origin",
    "The call that produced the value raised no floating-point exception flag, so the tape had "
    "already freed that call. XLA, SciPy's special functions and other threads do not raise the "
    "flag.",
    "Create the tape with lines=True, which keeps all values, and run it again.",
)
NO_DERIVATIVE = Cause(
    "non-differentiable decomposition",
    "The gradient divides by singular values or by differences of eigenvalues, and one of them is "
    "0.",
    "Add a small value to the diagonal, a + 1e-6 * tf.eye(n), or use an operation that is "
    "differentiable there: tf.linalg.pinv, tf.linalg.solve, or singular values without vectors "
    "(compute_uv=False).",
)
INPUTS_NOT_SAVED = Cause(
    "inputs not saved",
    "The tape did not save the inputs of this call. They may already have contained NaN or Inf.",
    "Create the tape with lines=True, which keeps all values, and run it again.",
)
CUSTOM_FUNCTION = Cause(
    "NaN or Inf in a custom_gradient function",
    "The function decorated with custom_gradient returned NaN or Inf.",
    "Call it inside `with tf.debugging.nonfinite('raise'):` to find the operation in it.",
)

NAN_REASONS = {
    "subtract": "Inf - Inf is NaN",
    "add": "Inf + (-Inf) is NaN",
    "multiply": "0 * Inf is NaN",
    "matmul": "0 * Inf and Inf - Inf are NaN",
    "divide": "Inf / Inf is NaN",
    "softmax": "the softmax of a row of -Inf is undefined",
    "log_softmax": "the softmax of a row of -Inf is undefined",
    "sum": "Inf + (-Inf) is NaN",
    "mean": "Inf + (-Inf) is NaN",
}

Test = Callable[..., bool]


def _all_known(*inputs: Any) -> bool:
    return all(x is not None for x in inputs)


# By primitive: causes, each with a test of the inputs at the element, in order.
_FORWARD: dict[str, list[tuple[Cause, Test]]] = {
    "log": [(LOG_OF_ZERO, lambda x: x == 0), (LOG_OF_NEGATIVE, lambda x: x < 0)],
    "log1p": [(LOG_OF_ZERO, lambda x: x == -1), (LOG_OF_NEGATIVE, lambda x: x < -1)],
    "divide": [(DIVISION_BY_ZERO, lambda _, x2: x2 == 0)],
    "reciprocal": [(DIVISION_BY_ZERO, lambda x: x == 0)],
    "mod": [(DIVISION_BY_ZERO, _all_known)],
    "truncate_mod": [(DIVISION_BY_ZERO, _all_known)],
    "sqrt": [(ROOT_OF_NEGATIVE, lambda x: x < 0)],
    "rsqrt": [(DIVISION_BY_ZERO, lambda x: x == 0), (ROOT_OF_NEGATIVE, lambda x: x < 0)],
    "power": [
        (DIVISION_BY_ZERO, lambda x1, x2: x1 == 0 and x2 < 0),
        (POWER_OF_NEGATIVE, lambda x1, x2: x1 < 0 and x2 != np.round(x2)),
    ],
    # Only rules call this primitive: it appears in the backward pass of functions.
    "guarded_divide": [(INFINITE_DERIVATIVE, lambda _, x2: x2 == 0)],
    "exp": [(EXP_OVERFLOW, _all_known)],
    "expm1": [(EXP_OVERFLOW, _all_known)],
    "sinh": [(EXP_OVERFLOW, _all_known)],
    "cosh": [(EXP_OVERFLOW, _all_known)],
}
_WITH_DOMAIN = (
    "acos acosh asin atanh erfinv ndtri lgamma digamma zeta polygamma expint bessel_k bessel_ke "
    "bessel_y"
)
_FORWARD |= {name: [(OUT_OF_DOMAIN, _all_known)] for name in _WITH_DOMAIN.split()}

# The same for gradients: the tests take the output first.
_BACKWARD: dict[str, list[tuple[Cause, Test]]] = {
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
# Their derivatives are finite at every finite argument.
_SMOOTH = {"multiply", "add", "subtract", "negative", "square", "squared_difference", "identity"}
_REDUCTIONS = {"mean", "max", "min", "logsumexp", "segment_max", "segment_min"}


def forward_cause(name: str, inputs: list, element: tuple | None, value: Any) -> Cause:
    """Returns why the primitive `name` produced the non-finite `value` from finite inputs.

    `element` are the inputs at that element, if the primitive is elementwise.
    """
    cause = _first(_FORWARD.get(name, ()), element)
    if cause is not None:
        return cause
    if any(x is None for x in inputs):
        return INPUTS_NOT_SAVED
    if name in _MATRICES:
        return _MATRICES[name]
    if name in _REDUCTIONS and any(x is not None and not np.size(x) for x in inputs):
        return EMPTY
    if element is not None and np.isnan(value):
        return OUT_OF_DOMAIN
    return _overflow(value, OVERFLOW)


def backward_cause(name: str, element: tuple | None, value: Any, sums: str | None) -> Cause:
    """Returns why the gradient of `name` produced the non-finite `value` from finite inputs.

    `element` are the output and the inputs at that element, if the primitive is elementwise.
    `sums` names the terms that the input of the call is a sum or mean of, if known.
    """
    cause = _first(_BACKWARD.get(name, ()), element)
    if cause is not None:
        return {"squares": NORM_AT_ZERO, "deviations": STD_OF_EQUAL_VALUES}.get(sums, cause)
    if name in _DECOMPOSITIONS:
        return NO_DERIVATIVE
    if element is not None and name not in _SMOOTH:
        return INFINITE_DERIVATIVE
    return _overflow(value, BACKWARD_OVERFLOW)


def _first(causes: Sequence[tuple[Cause, Test]], element: tuple | None) -> Cause | None:
    """Returns the first cause whose test holds for the inputs at an element."""
    if element is None:
        return None
    return next((cause for cause, test in causes if _holds(test, element)), None)


def _holds(test: Test, element: tuple) -> bool:
    try:
        return bool(test(*element))
    except TypeError:  # an input that the test reads is unknown or complex
        return False


def custom_gradient_cause(value: Any, g: Any) -> Cause:
    """Returns why a custom gradient returned the non-finite `value` for the cotangent `g`."""
    at_zero = g is not None and g == 0 and np.isnan(value)
    return CUSTOM_GRADIENT_AT_ZERO if at_zero else CUSTOM_GRADIENT


def _overflow(value: Any, otherwise: Cause) -> Cause:
    return HALF_OVERFLOW if value.dtype == dtypes.float16.numpy_dtype else otherwise
