"""Arithmetic, comparison, logic and selection."""

from __future__ import annotations

import math

import numpy as np

from retrograde.core.rules import identity_rule
from retrograde.fusion.output_arguments import OutArgument, is_float, is_single_or_double
from retrograde.ops._arrays import SMALL_ARRAY_SIZE, fast_mask, fast_where, in_place, zero
from retrograde.ops._families import conj, elementwise
from retrograde.ops.casting import ones_like, zeros_like
from retrograde.values import dtypes
from retrograde.values.dtypes import SINGLE_AND_DOUBLE
from retrograde.values.errors import invalid
from retrograde.values.shapes import broadcast
from retrograde.values.thresholds import LARGE_ARRAY_SIZE

add = elementwise(
    "add",
    "add",
    identity_rule,
    identity_rule,
    holomorphic=False,
    linear=True,
)


def _concatenate_strings(x1, x2):
    if broadcast(x1.shape, x2.shape) is None:
        raise invalid(f"add: strings of shapes {x1.shape} and {x2.shape} do not broadcast.")
    return np.asarray(x1 + x2, object)


add.on_strings = _concatenate_strings

subtract = elementwise(
    "subtract",
    "subtract",
    identity_rule,
    lambda g, _y, _x1, _x2: -g,
    holomorphic=False,
    linear=True,
)
multiply = elementwise(
    "multiply",
    "multiply",
    lambda g, _y, _x1, x2: guarded_product(g, x2),
    lambda g, _y, x1, _x2: guarded_product(g, x1),
)
negative = elementwise(
    "negative",
    "negative",
    lambda g, _y, _x: -g,
    accepts=dtypes.SIGNED,
    holomorphic=False,
    linear=True,
)


# NaN-safe zero cotangents: where the cotangent is exactly zero, its product with a non-finite local
# derivative is zero. So the branch that `where` did not select cannot turn the gradient into NaN.

_ONE_THREAD = 10_000  # for at most this many elements, BLAS uses one thread


def _has_nan(x):
    can_use_blas = x.size <= _ONE_THREAD and x.dtype in SINGLE_AND_DOUBLE and x.flags.c_contiguous
    if can_use_blas and math.isfinite(np.vdot(x, x)):
        return False
    return np.isnan(np.minimum.reduce(x, axis=None))


def no_nan(xp, g, result):
    """Replaces NaN in `result` by 0 where g is 0. `result` may be overwritten."""
    if xp is not np:
        return xp.where(g == 0, xp.zeros((), result.dtype), result)
    if (result.size < SMALL_ARRAY_SIZE or not g.ndim) and np.count_nonzero(g) == g.size:
        return result
    if not (result.size and _has_nan(result)):
        return result
    replaced = (g == 0) & np.isnan(result)
    if type(result) is not np.ndarray:
        return np.where(replaced, zero(result.dtype), result)
    np.copyto(result, zero(result.dtype), where=replaced)
    return result


guarded_multiply = elementwise(  # g * d, but 0 where g is 0, even if d is not finite
    "guarded_multiply",
    lambda xp, g, d, out=None: no_nan(xp, g, g * d if out is None else np.multiply(g, d, out)),
    lambda h, _y, _g, d: guarded_multiply(h, d),
    lambda h, _y, g, _d: guarded_multiply(g, h),
    accepts=dtypes.INEXACT,
    writes=OutArgument(may_alias=(1,), supports=is_float),
)


def _same_spec(g, d):
    return type(d) is np.ndarray and d.shape == g.shape and d.dtype == g.dtype


def guarded_product(g, d, owned=False):
    """Computes `guarded_multiply(g, d)`, with a shortcut if g is an array without zeros.

    `owned` says that the caller owns d, so that a large array can be overwritten.
    """
    if type(g) is np.ndarray:
        if g.size < SMALL_ARRAY_SIZE:
            if np.count_nonzero(g) == g.size:
                return g * d
        elif not any(g.strides) and (number := g.flat[0]):  # as in the gradient of a sum
            return d if number == 1 and _same_spec(g, d) else multiply(g, d)
        elif owned and g.size >= LARGE_ARRAY_SIZE and _same_spec(g, d) and is_float(d):
            return guarded_multiply.on_many(g, d, out=d)
    elif isinstance(g, np.floating) and g:
        return g * d
    return guarded_multiply(g, d)


guarded_divide = elementwise(  # g / d, but 0 where g is 0, even if d is not finite
    "guarded_divide",
    lambda xp, g, d, out=None: no_nan(xp, g, g / d if out is None else np.divide(g, d, out)),
    lambda h, _y, _g, d: guarded_divide(h, d),
    lambda h, y, _g, d: -guarded_divide(guarded_multiply(y, h), d),
    accepts=dtypes.INEXACT,
    writes=OutArgument(may_alias=(1,), supports=is_float),
)

divide = elementwise(
    "divide",
    "divide",
    lambda g, _y, _x1, x2: guarded_divide(g, x2),
    lambda g, y, _x1, x2: -guarded_divide(guarded_product(g, y), x2),  # y = x1 / x2 saves an array
    accepts=dtypes.INEXACT,
)
divide_no_nan = elementwise(
    "divide_no_nan",
    lambda xp, x1, x2: xp.where(x2 == 0, xp.zeros((), x1.dtype), x1 / x2),
    lambda g, _y, _x1, x2: divide_no_nan(g, x2),
    lambda g, y, _x1, x2: -g * divide_no_nan(y, x2),
    accepts=dtypes.INEXACT,
)


def _check_divisor(xp, x1, x2):
    """Raises an error for integer division by zero, as TensorFlow does. XLA cannot check."""
    if xp is np and x1.size and x1.dtype.kind in "iu" and np.count_nonzero(x2) != x2.size:
        raise invalid("Integer division by zero. Expected a divisor without zeros.")


def _floor_divide_kernel(xp, x1, x2):
    _check_divisor(xp, x1, x2)
    return xp.floor_divide(x1, x2) if x1.dtype.kind in "iu" else xp.floor(x1 / x2)


def _mod_kernel(xp, x1, x2):
    _check_divisor(xp, x1, x2)
    return xp.mod(x1, x2)


def _truncate_divide_kernel(xp, x1, x2):
    _check_divisor(xp, x1, x2)
    if x1.dtype.kind in "iu":
        return ((x1 - xp.fmod(x1, x2)) // x2).astype(x1.dtype)
    return xp.trunc(x1 / x2)


floor_divide = elementwise("floor_divide", _floor_divide_kernel, None, None, accepts=dtypes.REAL)
truncate_divide = elementwise(
    "truncate_divide", _truncate_divide_kernel, None, None, accepts=dtypes.REAL
)
mod = elementwise(
    "mod",
    _mod_kernel,
    identity_rule,
    lambda g, _y, x1, x2: -guarded_product(g, floor_divide(x1, x2)),
    accepts=dtypes.REAL,
)
truncate_mod = elementwise(
    "truncate_mod",
    lambda xp, x1, x2: (_check_divisor(xp, x1, x2), xp.fmod(x1, x2))[1],
    identity_rule,
    lambda g, _y, x1, x2: -guarded_product(g, truncate_divide(x1, x2)),
    accepts=dtypes.REAL,
)


log = elementwise(
    "log",
    "log",
    lambda g, _y, x: guarded_divide(g, x),
    accepts=dtypes.INEXACT,
    costly=True,
    cheap_rule=True,
)


def _log_of_base(x):
    """Returns log(x) where d(x**p)/dp exists, else 0, so that negative x give no NaN."""
    usable = not_equal(x, zeros_like(x)) if x.dtype.kind == "c" else x > 0
    return mask(log(select(usable, x, ones_like(x))), usable)


power = elementwise(
    "power",
    "power",
    lambda g, _y, x1, x2: guarded_product(guarded_product(g, power(x1, x2 - 1)), x2),
    lambda g, y, x1, _x2: guarded_product(guarded_product(g, y), _log_of_base(x1)),
    costly=True,
)
square = elementwise("square", "square", lambda g, _y, x: guarded_product(g, x + x))
reciprocal = elementwise(
    "reciprocal",
    lambda _, x, out=None: 1 / x if out is None else np.divide(1, x, out),
    lambda g, y, _x: -guarded_product(guarded_product(g, y), y),
    accepts=dtypes.INEXACT,
    writes=OutArgument(may_alias=(0,), supports=is_float),
)


def _squared_difference_kernel(xp, x1, x2, out=None):
    d = x1 - x2 if out is None else np.subtract(x1, x2, out)
    return d * xp.conj(d) if d.dtype.kind == "c" else in_place(xp.multiply, d, d, out)


def _twice_real(g):
    """Returns 2 * real(g), because a squared absolute value is real."""
    return g + conj(g)


squared_difference = elementwise(
    "squared_difference",
    _squared_difference_kernel,
    lambda g, _y, x1, x2: guarded_product(_twice_real(g), x1 - x2),
    lambda g, _y, x1, x2: guarded_product(_twice_real(g), x2 - x1),
    holomorphic=False,
    writes=OutArgument(may_alias=(0, 1), supports=is_float),
)


def _sign_partial(g, y, x):
    """Returns 0 for real numbers. For complex ones, only the phase of x changes y."""
    if g.dtype.kind != "c":
        return zeros_like(g)
    return divide_no_nan((g - y * y * conj(g)) * y, x + x)


sign = elementwise("sign", "sign", _sign_partial, holomorphic=False)
absolute = elementwise(
    "absolute", "absolute", lambda g, _y, x: guarded_product(g, sign(x)), accepts=dtypes.REAL
)

# In a tie, the gradient goes to the first input. If an input is NaN, it goes to the second one.
maximum = elementwise(
    "maximum",
    "maximum",
    lambda g, _y, x1, x2: mask(g, x1 >= x2),
    lambda g, _y, x1, x2: mask(g, logical_not(x1 >= x2)),
    accepts=dtypes.REAL,
)
minimum = elementwise(
    "minimum",
    "minimum",
    lambda g, _y, x1, x2: mask(g, x1 <= x2),
    lambda g, _y, x1, x2: mask(g, logical_not(x1 <= x2)),
    accepts=dtypes.REAL,
)

# Comparison and logic: no gradient flows

equal = elementwise("equal", "equal", None, None, accepts=dtypes.ANY)
not_equal = elementwise("not_equal", "not_equal", None, None, accepts=dtypes.ANY)
less = elementwise("less", "less", None, None, accepts=dtypes.REAL)
less_equal = elementwise("less_equal", "less_equal", None, None, accepts=dtypes.REAL)
greater = elementwise("greater", "greater", None, None, accepts=dtypes.REAL)
greater_equal = elementwise("greater_equal", "greater_equal", None, None, accepts=dtypes.REAL)

logical_and = elementwise("logical_and", "logical_and", None, None, accepts=dtypes.BOOL)
logical_or = elementwise("logical_or", "logical_or", None, None, accepts=dtypes.BOOL)
logical_xor = elementwise("logical_xor", "logical_xor", None, None, accepts=dtypes.BOOL)
logical_not = elementwise("logical_not", "logical_not", None, accepts=dtypes.BOOL)

bitwise_and = elementwise("bitwise_and", "bitwise_and", None, None, accepts=dtypes.INTEGER)
bitwise_or = elementwise("bitwise_or", "bitwise_or", None, None, accepts=dtypes.INTEGER)
bitwise_xor = elementwise("bitwise_xor", "bitwise_xor", None, None, accepts=dtypes.INTEGER)
invert = elementwise("invert", "invert", None, accepts=dtypes.INTEGER)

gcd = elementwise("gcd", "gcd", None, None, accepts=dtypes.INTEGER)
lcm = elementwise("lcm", "lcm", None, None, accepts=dtypes.INTEGER)


def _shift_kernel(name):
    """Creates a shift kernel that clips shifts to the width of the dtype, as TensorFlow does."""

    def kernel(xp, x, shift):
        return getattr(xp, name)(x, xp.clip(shift, 0, 8 * x.dtype.itemsize - 1))

    return kernel


left_shift = elementwise(
    "left_shift", _shift_kernel("left_shift"), None, None, accepts=dtypes.INTEGER
)
right_shift = elementwise(
    "right_shift", _shift_kernel("right_shift"), None, None, accepts=dtypes.INTEGER
)

is_nan = elementwise("is_nan", "isnan", None, accepts=dtypes.INEXACT)
is_inf = elementwise("is_inf", "isinf", None, accepts=dtypes.INEXACT)
is_finite = elementwise("is_finite", "isfinite", None, accepts=dtypes.INEXACT)
sign_bit = elementwise("sign_bit", "signbit", None, accepts=dtypes.REAL)  # True for -0.0


# Selection

mask = elementwise(  # x where keep is true, else 0
    "mask",
    lambda xp, x, keep, out=None: fast_mask(xp, keep, x, out),
    lambda g, _y, _x, keep: mask(g, keep),
    None,
    accepts=None,
    holomorphic=False,
    writes=OutArgument(may_alias=(0,), supports=is_single_or_double),
)
select = elementwise(  # x1 where condition is true, else x2
    "select",
    fast_where,
    None,
    lambda g, _y, condition, _x1, _x2: mask(g, condition),
    lambda g, _y, condition, _x1, _x2: mask(g, logical_not(condition)),
    accepts=None,
    holomorphic=False,
    writes=OutArgument(
        may_alias=(1,),
        supports=lambda condition, x1, _: condition.dtype == bool and is_single_or_double(x1),
    ),
)
