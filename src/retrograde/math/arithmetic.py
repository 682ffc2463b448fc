"""Arithmetic, comparison and logic."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.indexed_slices import IndexedSlices
from retrograde.core.tensor import Tensor
from retrograde.math._inputs import as_bool, binary, dtype_name, pair, unary
from retrograde.ops import arithmetic as ar
from retrograde.ops import elementary as el
from retrograde.ops.casting import identity, to_dtype, zeros_like
from retrograde.ops.conversion import as_tensor, one_dtype, same_dtype
from retrograde.ops.operators import dtype_mismatch_message, true_divide
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.composites import NotOneTensor, dispatch_to_composite, dispatched
from retrograde.values.errors import invalid, to_list
from retrograde.values.shapes import TensorShape


def add(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Computes `x + y` elementwise, with broadcasting.

    >>> tf.math.add([1.0, 2.0], 3.0).numpy()
    array([4., 5.], dtype=float32)
    """
    if type(x) is Tensor and type(y) is Tensor:
        return apply(ar.add, (x, y))
    try:
        return apply(ar.add, same_dtype(x, y))
    except NotOneTensor as refusal:
        return dispatch_to_composite(refusal, ar.add, x, y)


def subtract(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Computes `x - y` elementwise, with broadcasting."""
    return binary(ar.subtract, x, y)


def multiply(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Computes `x * y` elementwise, with broadcasting; IndexedSlices become dense first."""
    return binary(ar.multiply, x, y)


@dispatched
def multiply_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Computes `x * y`, and returns 0 where `y` is 0, even if `x` is Inf or NaN there.

    >>> tf.math.multiply_no_nan([np.inf, 3.0], [0.0, 2.0]).numpy()
    array([0., 6.], dtype=float32)
    """
    x1, x2 = _inexact_pair(x, y, "multiply_no_nan")
    return apply(ar.guarded_multiply, (x2, x1))


def _inexact_pair(x: Any, y: Any, op_name: str) -> tuple[Tensor, Tensor]:
    """Converts `x` and `y` to tensors of the same float or complex dtype."""
    x1, x2 = tensors = pair(x, y)
    if x1._spec.dtype != x2._spec.dtype or x1._spec.dtype not in dtypes.INEXACT:
        raise invalid(
            f"{op_name}: x and y must have the same dtype, float or complex. Received: "
            f"{dtype_name(x1)} and {dtype_name(x2)}. Use tf.cast."
        )
    return tensors


@dispatched
def truediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Computes `x / y` as Python 3 does: integers are divided as floats.

    8-bit and 16-bit integers give float32, wider ones float64.

    >>> tf.math.truediv([3, 4], 2)
    <tf.Tensor: shape=(2,), dtype=float64, numpy=array([1.5, 2. ])>
    """
    return true_divide(*_numeric_pair(x, y, "truediv"))


@dispatched
def divide(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Computes `x / y`, like the operator."""
    return true_divide(*_numeric_pair(x, y, "divide"))


@dispatched
def realdiv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Computes `x / y` for floats or complex numbers."""
    return binary(ar.divide, x, y)


@dispatched
def divide_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Computes `x / y`, and returns 0 where `y` is 0; the gradients are also 0 there.

    >>> tf.math.divide_no_nan([1.0, 6.0], [0.0, 3.0]).numpy()
    array([0., 2.], dtype=float32)
    """
    x1, x2 = _numeric_pair(x, y, "divide_no_nan")
    if x1._spec.dtype.kind in "iu":
        wide = np.dtype(np.float32 if x1._spec.dtype.itemsize < 4 else np.float64)
        x1, x2 = to_dtype(x1, wide), to_dtype(x2, wide)
    return apply(ar.divide_no_nan, (x1, x2))


def _numeric_pair(x: Any, y: Any, op_name: str) -> tuple[Tensor, Tensor]:
    """Converts `x` and `y` to tensors of one numeric dtype, or raises a `TypeError`."""
    x1, x2 = tensors = pair(x, y)
    message = dtype_mismatch_message(op_name, x1, x2)
    if message is not None:
        raise TypeError(message)
    if x1._spec.dtype not in dtypes.NUMERIC:
        raise TypeError(
            f"{op_name}: dtype {dtype_name(x1)} cannot be divided. Expected a numeric dtype."
        )
    return tensors


def floordiv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Computes `x // y`: the quotient rounded down. No gradient flows.

    >>> tf.math.floordiv([-7, 7], 2).numpy()
    array([-4,  3], dtype=int32)
    """
    return binary(ar.floor_divide, x, y)


def floormod(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Computes `x % y`: the remainder of `floordiv`, with the sign of `y`."""
    return binary(ar.mod, x, y)


mod = floormod


def truncatediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Computes the quotient of `x` and `y` rounded toward zero. No gradient flows."""
    return binary(ar.truncate_divide, x, y)


def truncatemod(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Computes the remainder of `truncatediv`, with the sign of `x`."""
    return binary(ar.truncate_mod, x, y)


def pow(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Computes `x` to the power of `y`.

    The derivative with respect to `y` is 0 where `x` is not positive.
    """
    return binary(ar.power, x, y)


def maximum(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Computes the elementwise maximum. In a tie the gradient goes to `x`."""
    return binary(ar.maximum, x, y)


def minimum(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Computes the elementwise minimum. In a tie the gradient goes to `x`."""
    return binary(ar.minimum, x, y)


def squared_difference(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Computes `(x - y) * conj(x - y)`."""
    return binary(ar.squared_difference, x, y)


# The gradients of these three are 0 where x is 0, regardless of y. The result does not depend on y
# there; TensorFlow sets the gradient of x to 0 as well.


@dispatched
def xlogy(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Computes `x * log(y)`, and returns 0 where `x` is 0.

    >>> tf.math.xlogy([0.0, 2.0], [0.0, 1.0]).numpy()
    array([0., 0.], dtype=float32)
    """
    x, safe, _ = _where_nonzero(x, y, 1, "xlogy")
    return x * apply(el.log, (safe,))


@dispatched
def xlog1py(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Computes `x * log(1 + y)`, and returns 0 where `x` is 0."""
    x, safe, _ = _where_nonzero(x, y, 0, "xlog1py")
    return x * apply(el.log1p, (safe,))


@dispatched
def xdivy(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Computes `x / y`, and returns 0 where `x` is 0."""
    x, safe, nonzero = _where_nonzero(x, y, 1, "xdivy")
    return apply(ar.mask, (apply(ar.divide, (x, safe)), nonzero))


def _where_nonzero(x: Any, y: Any, fill: int, op_name: str) -> tuple[Tensor, Tensor, Tensor]:
    """Returns `x`, `y` with `fill` where `x` is 0, and the mask `x != 0`."""
    x1, x2 = _inexact_pair(x, y, op_name)
    nonzero = apply(ar.not_equal, (x1, zeros_like(x1)))
    filler = Tensor(x2._spec.dtype.type(fill))
    return x1, apply(ar.select, (nonzero, x2, filler)), nonzero


def negative(x: Any, name: str | None = None) -> Tensor:
    """Computes `-x`."""
    return unary(ar.negative, x)


@dispatched
def add_n(inputs: Iterable[Any], name: str | None = None) -> Tensor:
    """Sums several tensors of the same shape and dtype.

    >>> tf.math.add_n([tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])]).numpy()
    array([4., 6.], dtype=float32)
    """
    values = to_list("add_n", inputs)
    if not values or any(value is None for value in values):
        raise ValueError(
            f"add_n: inputs must be an iterable of at least one tensor. Received: {values}."
        )
    total, *others = (as_tensor(value) for value in values)
    if not others:
        return total if total is values[0] else apply(identity, (total,))
    for other in others:
        if other._spec.shape != total._spec.shape:
            raise invalid(
                f"add_n: inputs must have the same shape. Received: {total._spec.shape} and "
                f"{other._spec.shape}."
            )
        total = apply(ar.add, (total, other))
    return total


def accumulate_n(
    inputs: Any, shape: Any = None, tensor_dtype: Any = None, name: str | None = None
) -> Tensor:
    """Sums a list of tensors, like `add_n`, and checks `shape` and `tensor_dtype` if given."""
    if not isinstance(inputs, (list, tuple)) or not inputs or _has_mixed_dtypes(inputs):
        raise ValueError(
            "accumulate_n: inputs must be a list of at least one tensor, all of the same dtype. "
            f"Received: {shown(inputs)}."
        )
    tensors = [as_tensor(value) for value in inputs]
    expected = TensorShape(shape)
    for tensor in tensors:
        expected = expected.merge_with(tensor.shape)
    if tensor_dtype is not None and tensors[0].dtype != tensor_dtype:
        raise TypeError(
            f"accumulate_n: `tensor_dtype` is {dtypes.as_dtype(tensor_dtype).name}, but the inputs "
            f"are {dtype_name(tensors[0])}. Use tf.cast on the inputs."
        )
    return add_n(tensors)


def _has_mixed_dtypes(inputs: list | tuple) -> bool:
    """Returns whether some of `inputs` are not tensors or the dtypes differ."""
    if any(value is None or isinstance(value, IndexedSlices) for value in inputs):
        return True
    return len({as_tensor(value)._spec.dtype for value in inputs}) > 1


@dispatched
def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Tensor | IndexedSlices:
    """Multiplies `x` by a scalar; IndexedSlices stay IndexedSlices.

    >>> tf.math.scalar_mul(2.0, tf.constant([1.0, 3.0])).numpy()
    array([2., 6.], dtype=float32)
    """
    if isinstance(x, IndexedSlices):
        return IndexedSlices(scalar_mul(scalar, x.values), x.indices, x.dense_shape)
    tensor = as_tensor(x)
    factor = as_tensor(scalar, tensor._spec.dtype)
    if factor.ndim:
        raise ValueError(
            f"scalar_mul: `scalar` must be a scalar. Received: shape {factor._spec.shape}."
        )
    return apply(ar.multiply, (factor, tensor))


def polyval(coeffs: list, x: Any, name: str | None = None) -> Tensor:
    """Evaluates the polynomial with coefficients `coeffs`, highest power first, at `x`.

    >>> tf.math.polyval([1.0, 0.0, -1.0], 3.0).numpy()
    np.float32(8.0)
    """
    if not isinstance(coeffs, list):
        raise ValueError(f"polyval: coeffs must be a list. Received: {type(coeffs)}.")
    x, *rest = one_dtype((x, *coeffs))
    if not rest:
        return zeros_like(x)
    result, *rest = rest
    for coefficient in rest:
        result = coefficient + result * x
    return apply(identity, (result,))


# Comparison and logic: no gradient flows


def equal(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Returns `x == y` elementwise.

    >>> tf.math.equal([1, 2], [1, 3]).numpy()
    array([ True, False])
    """
    return binary(ar.equal, x, y)


def not_equal(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Returns `x != y` elementwise."""
    return binary(ar.not_equal, x, y)


def less(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Returns `x < y` elementwise."""
    return binary(ar.less, x, y)


def less_equal(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Returns `x <= y` elementwise."""
    return binary(ar.less_equal, x, y)


def greater(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Returns `x > y` elementwise."""
    return binary(ar.greater, x, y)


def greater_equal(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Returns `x >= y` elementwise."""
    return binary(ar.greater_equal, x, y)


@dispatched
def logical_and(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Returns `x and y` elementwise.

    >>> tf.math.logical_and([True, True], [True, False]).numpy()
    array([ True, False])
    """
    return apply(ar.logical_and, (as_bool(x), as_bool(y)))


@dispatched
def logical_or(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Returns `x or y` elementwise."""
    return apply(ar.logical_or, (as_bool(x), as_bool(y)))


@dispatched
def logical_xor(x: Any, y: Any, name: str | None = "LogicalXor") -> Tensor:
    """Returns the exclusive or of `x` and `y` elementwise."""
    return apply(ar.logical_xor, (as_bool(x), as_bool(y)))


@dispatched
def logical_not(x: Any, name: str | None = None) -> Tensor:
    """Returns `not x` elementwise."""
    return apply(ar.logical_not, (as_bool(x),))
