"""What the functions with sliding windows make of their arguments: sizes, strides, paddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrograde.core.errors import invalid
from retrograde.ops._windows import Windows


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


def check_fit(windows: Windows, space: Sequence[int], what: str) -> None:
    """Refuses windows that are larger than the padded space."""
    for n, size, stride, (low, high), dilation in zip(space, *windows, strict=True):
        extent = (size - 1) * dilation + 1
        if extent > n + low + high + (stride - 1):
            raise invalid(
                f"{what}: a window that spans {extent} cells does not fit into {n + low + high}, "
                "padding included. Expected a smaller window, a smaller dilation or more padding."
            )


def padding_name(padding: Any, allowed: tuple[str, ...], what: str) -> str:
    """`padding`, if it is one of the names `allowed`."""
    if padding not in allowed:
        expected = " or ".join(f'"{name}"' for name in allowed)
        raise invalid(f"{what}: padding is {padding!r}. Expected {expected}.")
    return padding
