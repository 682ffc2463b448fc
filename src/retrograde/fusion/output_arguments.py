"""Elementwise kernels that accept `out`, for blockwise evaluation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.core.rules import Spec
from retrograde.fusion import blocks
from retrograde.values.dtypes import SINGLE_AND_DOUBLE

COSTLY: set[Primitive] = set()  # primitives that are bound by arithmetic, not by memory


class OutArgument(NamedTuple):
    """Declares that a kernel accepts `out`, writes its result there and returns it.

    `may_alias` are the positions of inputs that can be the same array as `out`.
    `supports(*specs, **attrs)` returns whether the kernel accepts `out` for such inputs, which
    broadcast to the shape of `out`.
    """

    may_alias: tuple[int, ...] = ()
    supports: Callable[..., bool] = lambda *_specs, **_attrs: True


def is_float(x: Spec, *_others: Spec, **_attrs: Any) -> bool:
    """Returns whether the first input has one of NumPy's float dtypes."""
    return x.dtype.kind == "f"


def is_single_or_double(x: Spec, *_others: Spec, **_attrs: Any) -> bool:
    """Returns whether the first input is float32 or float64, which kernels can view as integers."""
    return x.dtype in SINGLE_AND_DOUBLE


_AS_UFUNC = OutArgument(may_alias=(0, 1, 2))


def out_argument_of(
    primitive: Primitive, specs: tuple[Spec, ...], attrs: dict[str, Any]
) -> OutArgument | None:
    """Returns the `OutArgument` of the NumPy kernel for inputs of these `specs`, or `None`."""
    if isinstance(primitive.on_numpy, np.ufunc):
        return None if attrs else _AS_UFUNC
    writes = primitive.writes
    return writes if writes is not None and writes.supports(*specs, **attrs) else None


def large_array_kernel(primitive: Primitive) -> Callable:
    """Returns a kernel of an elementwise primitive for large arrays, with blocks and threads.

    Memory-bound kernels use threads on very large arrays only.
    """
    kernel = primitive.on_numpy
    costly = primitive in COSTLY
    run_in_blocks = blocks.run_in_blocks
    if not (costly or isinstance(kernel, np.ufunc) or primitive.writes):
        return kernel

    def run(*arrays: Any, out: np.ndarray | None = None, **attrs: Any) -> Any:
        first = arrays[0]
        min_size = (
            blocks.MIN_THREADED_SIZE_IF_COSTLY if costly else blocks.MIN_THREADED_SIZE_IF_CHEAP
        )
        if type(first) is np.ndarray and first.size >= min_size and first.dtype.kind != "O":
            if out_argument_of(primitive, arrays, attrs) is not None:
                return run_in_blocks(
                    kernel, arrays, attrs, output_dtype(kernel, arrays), costly, out
                )
            if costly:
                return run_in_blocks(kernel, arrays, attrs)
        return kernel(*arrays, **attrs) if out is None else kernel(*arrays, out=out, **attrs)

    return run


def output_dtype(kernel: Callable, arrays: Sequence) -> np.dtype:
    """Returns the dtype of the result of a kernel."""
    if isinstance(kernel, np.ufunc):
        return kernel.resolve_dtypes((*(a.dtype for a in arrays), None))[-1]
    return np.result_type(*(a.dtype for a in arrays))
