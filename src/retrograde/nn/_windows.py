"""Arguments of operations with sliding windows: sizes, strides, paddings, data formats."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops._windows import Windows
from retrograde.ops.arguments import integer_array
from retrograde.ops.shaping import reshape, transpose
from retrograde.values.arguments import as_int, as_text, shown
from retrograde.values.errors import UnimplementedError, invalid

_FORMATS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}


class Layout(NamedTuple):
    """The number of spatial axes, and whether the channels come before or after them."""

    ndim: int
    channels_first: bool
    op_name: str  # for messages

    @classmethod
    def from_data_format(cls, data_format: str | None, ndim: int, op_name: str) -> Layout:
        """Returns the layout of a TensorFlow data format; channels last if it is `None`."""
        last, first = _FORMATS[ndim]
        if data_format not in (None, last, first):
            error = ValueError if ndim == 1 else invalid
            raise error(
                f'{op_name}: data_format is {shown(data_format)}. Expected "{last}" or "{first}".'
            )
        return cls(ndim, data_format == first, op_name)

    def per_spatial_axis(self, value: Any, name: str) -> tuple[int, ...]:
        """Returns one number per spatial axis.

        `value` is one number for all axes, one per axis, or `None` for 1. A list may also have
        numbers for the batch and the channels, which must be 1.
        """
        if value is None:
            return (1,) * self.ndim
        if type(value) is int:
            numbers = [value]
        else:
            numbers = np.ravel(integer_array(value, f"{self.op_name}: {name}", TypeError)).tolist()
        if len(numbers) == 1:
            numbers *= self.ndim
        elif len(numbers) == self.ndim + 2:
            numbers = self._drop_batch_and_channels(numbers, name)
        elif len(numbers) != self.ndim:
            raise ValueError(
                f"{self.op_name}: {name} should be of length 1, {self.ndim} or {self.ndim + 2}. "
                f"Received: {name}={as_text(value)} of length {len(numbers)}."
            )
        if min(numbers) < 1:
            raise invalid(
                f"{self.op_name}: {name} should be larger than 0. Received: {as_text(value)}."
            )
        return tuple(numbers)

    def _drop_batch_and_channels(self, numbers: list[int], name: str) -> list[int]:
        axes = [0, 1] if self.channels_first else [0, -1]
        if [numbers[i] for i in axes] != [1, 1]:
            raise UnimplementedError(
                None,
                None,
                f"{self.op_name}: {name} is {numbers}. Expected 1 for the batch and for the "
                "channels.",
            )
        return self.spatial_part(numbers)

    def spatial_part(self, shape: Sequence) -> Sequence:
        """Returns the spatial dimensions of `shape`, which has this layout and one batch axis."""
        return shape[2:] if self.channels_first else shape[1:-1]

    def windows(
        self,
        padding: Any,
        space: Sequence[int],
        size: Sequence[int],
        strides: Sequence[int],
        dilations: Sequence[int],
        explicit: bool = False,
    ) -> Windows:
        """Returns the windows over `space`; if `explicit`, padding may be a list of pairs."""
        if isinstance(padding, str):
            windows = padded_windows(
                check_padding(padding, ("SAME", "VALID"), self.op_name),
                space,
                size,
                strides,
                dilations,
            )
        elif not explicit or not isinstance(padding, (list, tuple)):
            raise TypeError(
                f'{self.op_name}: expected "SAME" or "VALID"'
                f"{', or a list of pairs,' if explicit else ''} for padding. "
                f"Received: {shown(padding)}."
            )
        else:
            pairs = self._explicit_padding(padding)
            windows = Windows(tuple(size), tuple(strides), pairs, tuple(dilations))
        check_fit(windows, space, self.op_name)
        return windows

    def _explicit_padding(self, padding: Sequence) -> tuple[tuple[int, int], ...]:
        if len(padding) != self.ndim + 2:
            raise ValueError(
                f"{self.op_name}: a list of paddings must have {self.ndim + 2} pairs. Received: "
                f"{as_text(padding)}."
            )
        for pair in padding:
            if not isinstance(pair, (list, tuple)) or len(pair) != 2:
                raise ValueError(
                    f"{self.op_name}: each element of a list of paddings must be a pair. Received: "
                    f"{as_text(padding)}."
                )
        if min(map(min, padding)) < 0:
            raise invalid(
                f"{self.op_name}: paddings must not be negative. Received: {as_text(padding)}."
            )
        pairs = [tuple([as_int(n, f"{self.op_name}: padding") for n in pair]) for pair in padding]
        if any(map(any, (pairs[0], pairs[1 if self.channels_first else -1]))):
            raise invalid(
                f"{self.op_name}: the batch and the channels cannot be padded. Received: "
                f"{as_text(padding)}."
            )
        return tuple(self.spatial_part(pairs))

    def apply_channels_last(self, f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        """Applies `f`, which expects one batch axis and channels last, to `x`."""
        shape = x._spec.shape
        batch = shape[: max(0, x.ndim - self.ndim - 1)]
        if not batch:
            raise invalid(
                f"{self.op_name}: the input must have {self.ndim + 2} axes or more. Received: "
                f"shape {shape}."
            )
        if len(batch) > 1:
            count = math.prod(batch)
            x = reshape(x, shape=(count, *shape[len(batch) :]))
        y = self.from_channels_last(f(self.to_channels_last(x)))
        return reshape(y, shape=(*batch, *y._spec.shape[1:])) if len(batch) > 1 else y

    def to_channels_last(self, x: Tensor) -> Tensor:
        """Transposes `x` from this layout to channels-last."""
        if not self.channels_first:
            return x
        return transpose(x, perm=(0, *range(2, self.ndim + 2), 1))

    def from_channels_last(self, x: Tensor) -> Tensor:
        """Transposes `x` from channels-last to this layout."""
        if not self.channels_first:
            return x
        return transpose(x, perm=(0, self.ndim + 1, *range(1, self.ndim + 1)))


def padded_windows(
    padding: str,
    space: Sequence[int],
    size: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> Windows:
    """Returns the windows over `space` with "SAME" or "VALID" padding."""
    size, strides, dilations = tuple(size), tuple(strides), tuple(dilations)
    if padding == "VALID":
        return Windows(size, strides, ((0, 0),) * len(size), dilations)
    axes = zip(space, size, strides, dilations, strict=True)
    return Windows(size, strides, tuple(_same_padding(*axis) for axis in axes), dilations)


def _same_padding(n: int, size: int, stride: int, dilation: int) -> tuple[int, int]:
    """Computes the padding for `ceil(n / stride)` windows, with the extra element at the end."""
    total = max(0, (-(-n // stride) - 1) * stride + (size - 1) * dilation + 1 - n)
    return total // 2, total - total // 2


def check_fit(windows: Windows, space: Sequence[int], op_name: str) -> None:
    """Raises an error if windows are too large for the padded space.

    Windows that are only slightly too large give an empty result, as in TensorFlow.
    """
    for n, size, stride, (low, high), dilation in zip(space, *windows, strict=True):
        extent = (size - 1) * dilation + 1
        if extent >= n + low + high + 2 * stride:
            raise invalid(
                f"{op_name}: a window of {extent} elements is larger than the padded input, "
                f"which has {n + low + high}. Use a smaller window, a smaller dilation or more "
                "padding."
            )


def check_padding(padding: Any, allowed: tuple[str, ...], op_name: str) -> str:
    """Returns `padding` if it is one of `allowed`."""
    if padding not in allowed:
        expected = " or ".join(f'"{name}"' for name in allowed)
        raise invalid(f"{op_name}: padding is {shown(padding)}. Expected {expected}.")
    return padding
