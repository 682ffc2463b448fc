"""Inlined kernels: source that calls NumPy directly.

A kernel chooses a NumPy function by the shapes and dtypes of its inputs. For small arrays, this
takes as long as the computation. A replay has fixed shapes and dtypes, so it chooses once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograde.fusion.blas_threads import MAX_CAPPED_WORK, MAX_SINGLE_THREADED_WORK, dot
from retrograde.ops._sums import as_product, ones
from retrograde.values.dtypes import SINGLE_AND_DOUBLE
from retrograde.values.source import literal

# The names that the source may use, in addition to its arrays.
NAMES = {"np": np, "ones": ones, "dot": dot}


def _matmul(specs, a, b, *, transpose_a=False, transpose_b=False):
    if any([len(s.shape) != 2 or s.dtype not in SINGLE_AND_DOUBLE for s in specs]):
        return None
    first, second = (spec.shape for spec in specs)
    work = math.prod(first) * second[0 if transpose_b else 1]
    dot = "dot" if MAX_SINGLE_THREADED_WORK < work <= MAX_CAPPED_WORK else "np.dot"
    return f"{dot}({a}{'.T' if transpose_a else ''}, {b}{'.T' if transpose_b else ''})"


def _sum(specs, x, *, axis, keepdims):
    (spec,) = specs
    if spec.dtype not in SINGLE_AND_DOUBLE:
        return None
    product = as_product(spec.shape, spec.dtype, axis, keepdims)
    if product is None:
        return f"np.add.reduce({x}, axis={literal(axis)}{', keepdims=True' if keepdims else ''})"
    row = f"ones({literal(product.ones.size)}, {literal(spec.dtype.char)})"
    matrix = x if product.matrix_shape is None else f"{x}.reshape({literal(product.matrix_shape)})"
    y = f"np.dot({row}, {matrix})" if product.ones_first else f"np.dot({matrix}, {row})"
    return y if product.result_shape is None else f"{y}.reshape({literal(product.result_shape)})"


def _mean(specs, x, *, axis, keepdims):
    total = _sum(specs, x, axis=axis, keepdims=keepdims)
    count = math.prod(specs[0].shape[i] for i in axis)
    return f"{total} / {literal(count)}" if total and count else None


def _sum_to(specs, x, *, shape):
    full_shape = specs[0].shape
    added = len(full_shape) - len(shape)
    stretched = [i for i, n in enumerate(shape, added) if n == 1 and full_shape[i] != 1]
    total = _sum(specs, x, axis=(*range(added), *stretched), keepdims=False)
    return f"{total}.reshape({literal(shape)})" if total and stretched else total


def _take_slice(_specs, x, *, where):
    if not where:
        return None
    parts = [
        f"{literal(a)}:{'' if b < 0 else literal(b)}{'' if s == 1 else f':{literal(s)}'}"
        for a, b, s in where
    ]
    return f"{x}[{', '.join(parts)}]"


def _reshape(_specs, x, *, shape):
    return f"{x}.reshape({literal(tuple(shape))})"


def _transpose(_specs, x, *, perm):
    return f"{x}.transpose({literal(tuple(perm))})"


# Functions `write(specs, *names, **attrs)` that return source for the kernel of a primitive on
# arrays with these specs and names, or `None` if the kernel has to be called.
WRITERS: dict[str, Any] = {
    "matmul": _matmul,
    "mean": _mean,
    "reshape": _reshape,
    "sum": _sum,
    "sum_to": _sum_to,
    "take_slice": _take_slice,
    "transpose": _transpose,
}
