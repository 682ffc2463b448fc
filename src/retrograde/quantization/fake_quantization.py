"""tf.quantization: fake quantization, which rounds values and passes gradients through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core.custom_gradient import custom_gradient
from retrograde.core.tensor import Tensor
from retrograde.math.arithmetic import maximum, minimum
from retrograde.math.elementary import floor, rint
from retrograde.math.reductions import reduce_max, reduce_min, reduce_sum
from retrograde.ops.conversion import as_tensor
from retrograde.toplevel.creation import zeros_like
from retrograde.toplevel.indexing import where
from retrograde.toplevel.shaping import reshape, stop_gradient
from retrograde.values.arguments import shown
from retrograde.values.errors import invalid

_FLOAT = np.dtype(np.float32)
_LARGEST = float(np.finfo(np.float32).max)


def fake_quant_with_min_max_args(
    inputs: Any,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Rounds values to `2 ** num_bits` levels between `min` and `max`, which are numbers.

    The range is shifted so that it contains 0 exactly. `narrow_range` uses one level less.
    Gradients flow to the inputs inside the range.

    >>> tf.quantization.fake_quant_with_min_max_args([-9.0, 0.1, 9.0]).numpy().round(4)
    array([-6.0235,  0.0941,  5.9765], dtype=float32)
    """
    _check_range(min, max)
    return fake_quant_with_min_max_vars(inputs, float(min), float(max), num_bits, narrow_range)


def fake_quant_with_min_max_args_gradient(
    gradients: Any,
    inputs: Any,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Computes the gradient of `fake_quant_with_min_max_args` with respect to its inputs."""
    _check_range(min, max)
    return fake_quant_with_min_max_vars_gradient(
        gradients, inputs, float(min), float(max), num_bits, narrow_range
    )[0]


def fake_quant_with_min_max_vars(
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Rounds values to levels between `min` and `max`, which are scalars, usually variables.

    Gradients flow to the inputs inside the range, and from values outside it to `min` or `max`.

    >>> low, high = tf.Variable(-1.0), tf.Variable(3.0)
    >>> with tf.GradientTape() as tape:
    ...     y = tf.quantization.fake_quant_with_min_max_vars([-2.0, 0.5, 9.0, 9.0], low, high)
    >>> [g.numpy() for g in tape.gradient(y, [low, high])]
    [np.float32(1.0), np.float32(2.0)]
    """
    return _fake_quantize(inputs, min, max, num_bits, narrow_range, _scalar_range)


def fake_quant_with_min_max_vars_gradient(
    gradients: Any,
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Computes the gradients of `fake_quant_with_min_max_vars` for inputs, `min` and `max`."""
    return _gradient(gradients, inputs, min, max, num_bits, narrow_range, _scalar_range)


def fake_quant_with_min_max_vars_per_channel(
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Rounds values to levels between `min` and `max`, which have a value for each channel.

    Channels are the last axis. See `fake_quant_with_min_max_vars`.

    >>> x = tf.constant([[-9.0, 9.0]])
    >>> tf.quantization.fake_quant_with_min_max_vars_per_channel(x, [0.0, 0.0], [1.0, 2.0]).numpy()
    array([[0., 2.]], dtype=float32)
    """
    return _fake_quantize(inputs, min, max, num_bits, narrow_range, _channel_range)


def fake_quant_with_min_max_vars_per_channel_gradient(
    gradients: Any,
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Computes the gradients of `fake_quant_with_min_max_vars_per_channel`."""
    return _gradient(gradients, inputs, min, max, num_bits, narrow_range, _channel_range)


def _check_range(low: float, high: float) -> None:
    if not low < high:
        raise invalid(f"min has to be smaller than max, was: {low} >= {high}")


def _scalar_range(x: Tensor, *ends: Tensor) -> None:
    for end in ends:
        if end.ndim:
            raise invalid(f"`min` and `max` must be rank 0. Received: shape {end._spec.shape}.")


def _channel_range(x: Tensor, *ends: Tensor) -> None:
    for end in ends:
        if not x.ndim or end._spec.shape != x._spec.shape[-1:]:
            raise invalid(
                f"`min` and `max` must have a value for each channel, the last axis of shape "
                f"{x._spec.shape}. Received: shape {end._spec.shape}."
            )


def _fake_quantize(
    inputs: Any, low: Any, high: Any, bits: int, narrow: bool, check: Callable
) -> Tensor:
    first, last = _level_range(bits, narrow)

    @custom_gradient
    def quantize(x: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Callable]:
        start, end, scale = _nudge_range(low, high, first, last)
        shifted = minimum(maximum(x, start), end) - start
        y = floor(shifted / scale + 0.5) * scale + start
        result = where(_is_empty(low, high), zeros_like(y), y)
        return result, lambda g: _straight_through_gradient(g, x, low, high, first, last)

    x, low, high = (as_tensor(value, _FLOAT) for value in (inputs, low, high))
    check(x, low, high)
    return quantize(x, low, high)


def _gradient(
    g: Any, inputs: Any, low: Any, high: Any, bits: int, narrow: bool, check: Callable
) -> tuple[Tensor, Tensor, Tensor]:
    g, x, low, high = (as_tensor(value, _FLOAT) for value in (g, inputs, low, high))
    check(x, low, high)
    if g._spec.shape != x._spec.shape:
        raise invalid(
            f"gradient and input must be the same size. Received: shapes {g._spec.shape} and "
            f"{x._spec.shape}."
        )
    return _straight_through_gradient(g, x, low, high, *_level_range(bits, narrow))


def _level_range(bits: int, narrow: bool) -> tuple[int, int]:
    if not 2 <= bits <= 16:
        raise invalid(f"num_bits must be between 2 and 16, inclusive. Received: {shown(bits)}.")
    return int(narrow), 2**bits - 1


def _is_empty(low: Tensor, high: Tensor) -> Tensor:
    return (low == 0.0) & (high == 0.0)


def _nudge_range(low: Tensor, high: Tensor, first: int, last: int) -> tuple[Tensor, Tensor, Tensor]:
    """Shifts a range so that 0 is a level. Returns its ends and the distance of levels."""
    scale = where(_is_empty(low, high), 1.0, (high - low) / float(last - first))
    zero = float(first) - low / scale
    zero = minimum(maximum(floor(zero + 0.5), float(first)), float(last))
    return (float(first) - zero) * scale, (float(last) - zero) * scale, scale


def _straight_through_gradient(
    g: Tensor, x: Tensor, low: Tensor, high: Tensor, first: int, last: int
) -> tuple[Tensor, Tensor, Tensor]:
    start, end, _ = _nudge_range(low, high, first, last)
    empty = _is_empty(low, high)
    zeros = zeros_like(g)
    below, above = x < start, x > end
    inside = where(below | above, zeros, g)
    axes = list(range(x.ndim - low.ndim))
    parts = [reduce_sum(where(outside, g, zeros), axes) for outside in (below, above)]
    return (
        where(empty, g, inside),
        where(empty, zeros_like(low), parts[0]),
        where(empty, zeros_like(high), parts[1]),
    )


def quantize_and_dequantize_v2(
    input: Any,
    input_min: Any,
    input_max: Any,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
) -> Tensor:
    """Rounds values to multiples of a scale that maps the range to integers of `num_bits` bits.

    Without `range_given`, the values determine the range. With an `axis`, each of its slices has
    its own range. Gradients flow to inputs between `input_min` and `input_max`.

    >>> x = tf.constant([-1.0, 0.3, 0.5])
    >>> tf.quantization.quantize_and_dequantize_v2(x, -1.0, 1.0, num_bits=3).numpy().round(4)
    array([-1.  ,  0.25,  0.5 ], dtype=float32)
    """
    x = as_tensor(input)
    low, high = (as_tensor(value, x._spec.dtype) for value in (input_min, input_max))

    @custom_gradient
    def quantize(x: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Callable]:
        y = _round_to_scale(
            x, low, high, signed_input, num_bits, range_given, round_mode, narrow_range, axis
        )

        def grad(g: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            outside = (x < _reshape_along_axis(low, x, axis)) | (
                x > _reshape_along_axis(high, x, axis)
            )
            return where(outside, zeros_like(g), g), zeros_like(low), zeros_like(high)

        return y, grad

    return quantize(x, low, high)


def quantize_and_dequantize(
    input: Any,
    input_min: Any,
    input_max: Any,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
) -> Tensor:
    """Rounds like `quantize_and_dequantize_v2`, but passes gradients to all inputs.

    >>> tf.quantization.quantize_and_dequantize([-1.0, 0.3], -1.0, 1.0, num_bits=3).numpy()
    array([-1.  ,  0.25], dtype=float32)
    """
    low, high = stop_gradient(input_min), stop_gradient(input_max)

    @custom_gradient
    def quantize(x: Tensor) -> tuple[Tensor, Callable]:
        y = _round_to_scale(
            x, low, high, signed_input, num_bits, range_given, round_mode, narrow_range, axis
        )
        return y, lambda g: g

    return quantize(as_tensor(input))


def _reshape_along_axis(end: Tensor, x: Tensor, axis: int | None) -> Tensor:
    """Reshapes the ends of ranges so that they broadcast along an axis."""
    if axis is None or not end.ndim:
        return end
    return reshape(end, [-1 if n == axis % x.ndim else 1 for n in range(x.ndim)])


def _round_to_scale(
    x: Tensor,
    low: Tensor,
    high: Tensor,
    signed: bool,
    bits: int,
    range_given: bool,
    round_mode: str,
    narrow: bool,
    axis: int | None,
) -> Tensor:
    if round_mode not in ("HALF_TO_EVEN", "HALF_UP"):
        raise invalid(
            f"round_mode must be 'HALF_TO_EVEN' or 'HALF_UP'. Received: {shown(round_mode)}."
        )
    if range_given:
        low, high = _reshape_along_axis(low, x, axis), _reshape_along_axis(high, x, axis)
    else:
        axes = [n for n in range(x.ndim) if axis is None or n != axis % x.ndim]
        low, high = (f(x, axes, keepdims=True) for f in (reduce_min, reduce_max))
    first = -(2.0 ** (bits - 1)) + narrow if signed else float(narrow and 0)
    last = 2.0 ** (bits - 1) - 1 if signed else 2.0**bits - 1
    from_low = where(first * low > 0.0, first / where(low == 0.0, 1.0, low), _LARGEST)
    from_high = where(last * high > 0.0, last / where(high == 0.0, 1.0, high), _LARGEST)
    use_low = from_low < from_high
    inverse = where(use_low, low / (first or 1.0), high / last)
    scale = where(use_low, from_low, from_high)
    low, high = where(use_low, low, first * inverse), where(use_low, last * inverse, high)
    scaled = minimum(maximum(x, low), high) * scale
    rounded = rint(scaled) if round_mode == "HALF_TO_EVEN" else floor(scaled + 0.5)
    return rounded * inverse
