"""Elementwise kernels that write into an array they are given, for work block by block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.core.rules import Spec
from retrograde.fusion import blocks
from retrograde.values.dtypes import SINGLE_AND_DOUBLE

COSTLY: set[Primitive] = set()  # those that compute more than they read and write


class OutArgument(NamedTuple):
    """Says that a kernel takes `out`, and returns it with the result in it.

    `over` are the positions of inputs that `out` may be; `fits(*specs, **attrs)` says whether the
    kernel writes with such inputs, which broadcast to the shape of `out`.
    """

    over: tuple[int, ...] = ()
    fits: Callable[..., bool] = lambda *_specs, **_attrs: True


def is_float(x: Spec, *_others: Spec, **_attrs: Any) -> bool:
    """Whether the first input has a float dtype of NumPy's own."""
    return x.dtype.kind == "f"


def is_single_or_double(x: Spec, *_others: Spec, **_attrs: Any) -> bool:
    """Whether the first input is of the float dtypes that are computed with by their bits."""
    return x.dtype in SINGLE_AND_DOUBLE


_AS_UFUNC = OutArgument(over=(0, 1, 2))


def out_argument_of(
    primitive: Primitive, specs: tuple[Spec, ...], attrs: dict[str, Any]
) -> OutArgument | None:
    """How the kernel of `primitive` on NumPy writes with inputs of these `specs`, if it does."""
    if isinstance(primitive.on_numpy, np.ufunc):
        return None if attrs else _AS_UFUNC
    writes = primitive.writes
    return writes if writes is not None and writes.fits(*specs, **attrs) else None


def large_array_kernel(primitive: Primitive) -> Callable:
    """The kernel of an elementwise primitive for large arrays: by blocks, over threads.

    What reads and writes more than it computes has use for threads on very large arrays only.
    """
    kernel = primitive.on_numpy
    costly = primitive in COSTLY
    run_in_blocks = blocks.run_in_blocks
    if not (costly or isinstance(kernel, np.ufunc) or primitive.writes):
        return kernel

    def run(*arrays: Any, out: np.ndarray | None = None, **attrs: Any) -> Any:
        first = arrays[0]
        worth = blocks.LARGE if costly else blocks.HUGE
        if type(first) is np.ndarray and first.size >= worth and first.dtype.kind != "O":
            if out_argument_of(primitive, arrays, attrs) is not None:
                return run_in_blocks(
                    kernel, arrays, attrs, output_dtype(kernel, arrays), costly, out
                )
            if costly:
                return run_in_blocks(kernel, arrays, attrs)
        return kernel(*arrays, **attrs) if out is None else kernel(*arrays, out=out, **attrs)

    return run


def output_dtype(kernel: Callable, arrays: Sequence) -> np.dtype:
    """The dtype of what a kernel writes."""
    if isinstance(kernel, np.ufunc):
        return kernel.resolve_dtypes((*(a.dtype for a in arrays), None))[-1]
    return np.result_type(*(a.dtype for a in arrays))
