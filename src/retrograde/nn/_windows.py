"""What the functions with sliding windows make of their arguments: sizes, strides, paddings."""

from __future__ import annotations

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
    """How many axes a window slides over, and on which side of them the channels are."""

    ndim: int
    channels_first: bool
    op_name: str  # the function that asks, for messages

    @classmethod
    def of(cls, data_format: str | None, ndim: int, op_name: str) -> Layout:
        """The layout that TensorFlow's name of a data format stands for; the last if `None`."""
        last, first = _FORMATS[ndim]
        if data_format not in (None, last, first):
            error = ValueError if ndim == 1 else invalid
            raise error(
                f'{op_name}: data_format is {shown(data_format)}. Expected "{last}" or "{first}".'
            )
        return cls(ndim, data_format == first, op_name)

    def along_space(self, value: Any, name: str) -> tuple[int, ...]:
        """One number for each axis of space, from one for all, or one for each, or `None` for 1.

        A list may have numbers for the batch and the channels as well, which have to be 1.
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
            numbers = self._without_ends(numbers, name)
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

    def _without_ends(self, numbers: list[int], name: str) -> list[int]:
        ends = [0, 1] if self.channels_first else [0, -1]
        if [numbers[i] for i in ends] != [1, 1]:
            raise UnimplementedError(
                None,
                None,
                f"{self.op_name}: {name} is {numbers}. Expected 1 for the batch and for the "
                "channels.",
            )
        return self.space_of(numbers)

    def space_of(self, shape: Sequence) -> Sequence:
        """The sizes of space, out of a shape in this layout with one batch axis."""
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
        """The windows over `space`. `explicit` says that padding may be a list of pairs."""
        if isinstance(padding, str):
            windows = padded(
                padding_name(padding, ("SAME", "VALID"), self.op_name),
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
            pairs = self._pairs(padding)
            windows = Windows(tuple(size), tuple(strides), pairs, tuple(dilations))
        check_fit(windows, space, self.op_name)
        return windows

    def _pairs(self, padding: Sequence) -> tuple[tuple[int, int], ...]:
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
        return tuple(self.space_of(pairs))

    def over_batch(self, f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        """`f`, which takes one batch axis and channels last, of `x` with any number of them."""
        shape = x._spec.shape
        batch = shape[: max(0, x.ndim - self.ndim - 1)]
        if not batch:
            raise invalid(
                f"{self.op_name}: the input must have {self.ndim + 2} axes or more. Received: "
                f"shape {shape}."
            )
        if len(batch) > 1:
            count = int(np.prod(batch))
            x = reshape(x, shape=(count, *shape[len(batch) :]))
        y = self.from_last(f(self.to_last(x)))
        return reshape(y, shape=(*batch, *y._spec.shape[1:])) if len(batch) > 1 else y

    def to_last(self, x: Tensor) -> Tensor:
        """`x` in this layout, with the channels moved to the end."""
        if not self.channels_first:
            return x
        return transpose(x, perm=(0, *range(2, self.ndim + 2), 1))

    def from_last(self, x: Tensor) -> Tensor:
        """`x` with the channels at the end, in this layout."""
        if not self.channels_first:
            return x
        return transpose(x, perm=(0, self.ndim + 1, *range(1, self.ndim + 1)))


def padded(
    padding: str,
    space: Sequence[int],
    size: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> Windows:
    """The windows over `space` with "SAME" or "VALID" padding."""
    size, strides, dilations = tuple(size), tuple(strides), tuple(dilations)
    if padding == "VALID":
        return Windows(size, strides, ((0, 0),) * len(size), dilations)
    axes = zip(space, size, strides, dilations, strict=True)
    return Windows(size, strides, tuple(_same(*axis) for axis in axes), dilations)


def _same(n: int, size: int, stride: int, dilation: int) -> tuple[int, int]:
    """The padding that gives `ceil(n / stride)` windows, the odd cell behind."""
    total = max(0, (-(-n // stride) - 1) * stride + (size - 1) * dilation + 1 - n)
    return total // 2, total - total // 2


def check_fit(windows: Windows, space: Sequence[int], op_name: str) -> None:
    """Refuses windows too large for the padded space; a little too large means no window at all."""
    for n, size, stride, (low, high), dilation in zip(space, *windows, strict=True):
        extent = (size - 1) * dilation + 1
        if extent >= n + low + high + 2 * stride:
            raise invalid(
                f"{op_name}: a window that spans {extent} cells does not fit into "
                f"{n + low + high}, padding included. Expected a smaller window, a smaller "
                "dilation or more padding."
            )


def padding_name(padding: Any, allowed: tuple[str, ...], op_name: str) -> str:
    """`padding`, if it is one of the names `allowed`."""
    if padding not in allowed:
        expected = " or ".join(f'"{name}"' for name in allowed)
        raise invalid(f"{op_name}: padding is {shown(padding)}. Expected {expected}.")
    return padding
