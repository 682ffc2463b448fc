"""Matrix products."""

from __future__ import annotations

import math

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.fusion import blas_threads
from retrograde.ops._arrays import HALF
from retrograde.ops._families import align_batched, conj
from retrograde.ops.shaping import reshape, sum_to
from retrograde.values import dtypes
from retrograde.values.thresholds import MAX_SINGLE_THREADED_WORK


def _matmul_kernel(xp, a, b, *, transpose_a=False, transpose_b=False):
    if a.ndim < 2 or b.ndim < 2:
        raise ValueError("expected at least 2 axes")
    half = a.dtype if xp is np and a.dtype in HALF else None
    if half is not None:  # BLAS has no half precision
        a, b = a.astype(np.float32), b.astype(np.float32)
    if transpose_a:
        a = a.mT
    if transpose_b:
        b = b.mT
    y = xp.matmul(a, b) if xp is not np else _batched_matmul(a, b)
    return y if half is None else y.astype(half)


def _matmul_on_numpy(a, b, *, transpose_a=False, transpose_b=False):
    if a.ndim == 2 == b.ndim and a.dtype not in HALF:  # calls BLAS directly
        if transpose_a:
            a = a.T
        if transpose_b:
            b = b.T
        # Small products use one thread. Reading sizes is faster than reading shapes, and the
        # product of the sizes is at least the number of multiplications.
        return a.dot(b) if a.size * b.size <= MAX_SINGLE_THREADED_WORK else blas_threads.dot(a, b)
    return _matmul_kernel(np, a, b, transpose_a=transpose_a, transpose_b=transpose_b)


def _batched_matmul(a, b):
    """Multiplies stacks of matrices with as few BLAS calls as possible."""
    if a.shape[-1] == 1 == b.shape[-2]:
        return a * b
    if b.ndim == 2 and a.flags.c_contiguous and a.size and b.size:
        return blas_threads.dot(a.reshape(-1, a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[-1])
    return blas_threads.matmul_stacks(a, b)


def _matmul_error_message(a, b, *, transpose_a=False, transpose_b=False):
    if a.ndim < 2 or b.ndim < 2:
        return (
            f"matmul: In[0] has ndims {a.ndim} and In[1] has ndims {b.ndim}. Expected at least 2 "
            "axes each: use tf.linalg.matvec or tf.tensordot for vectors."
        )
    inner = a.shape[-2 if transpose_a else -1], b.shape[-1 if transpose_b else -2]
    if inner[0] == inner[1]:
        return f"matmul: the batch axes of {a.shape} and {b.shape} do not broadcast."
    message = (
        f"matmul: the inner dimensions differ, {inner[0]} and {inner[1]}.\n"
        f"  a: shape {a.shape}{', transposed' if transpose_a else ''}\n"
        f"  b: shape {b.shape}{', transposed' if transpose_b else ''}\n"
        f"Expected a.shape[{-2 if transpose_a else -1}] == b.shape[{-1 if transpose_b else -2}]."
    )
    if not (transpose_a or transpose_b):
        if a.shape[-1] == b.shape[-1]:
            message += " They agree with transpose_b=True."
        elif a.shape[-2] == b.shape[-2]:
            message += " They agree with transpose_a=True."
    return message


def _product(a, b, transpose_a, transpose_b, shape):
    """Returns a matrix product, summed over the batch axes that were broadcast."""
    multiply = _matmul_on_numpy if type(a) is np.ndarray is type(b) else matmul
    y = multiply(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
    if y.ndim == 2 == len(shape) or tuple(y.shape) == tuple(shape):
        return y
    return sum_to(y, shape=tuple(shape))


def _flatten_batch(x):
    return reshape(x, shape=(math.prod(x.shape[:-1]), x.shape[-1]))


def _vjp_a(g, _y, _a, b, *, transpose_a=False, transpose_b=False):
    if transpose_a:
        return _product(conj(b), g, transpose_b, True, _a.shape)
    return _product(g, conj(b), False, not transpose_b, _a.shape)


def _vjp_b(g, _y, a, _b, *, transpose_a=False, transpose_b=False):
    if a.ndim > 2 == _b.ndim and not transpose_a:  # b is not batched, so one product is enough
        a, g = _flatten_batch(a), _flatten_batch(g)
    if transpose_b:
        return _product(g, conj(a), True, transpose_a, _b.shape)
    return _product(conj(a), g, not transpose_a, False, _b.shape)


def _matmul_batch(batched, a, b, *, transpose_a=False, transpose_b=False):
    if batched == (False, True) and a.ndim == 2 and b.ndim == 3:
        count, *shape = b.shape
        if shape[0 if transpose_b else 1] == 1:  # one product multiplies all columns by `a`
            rows = reshape(b, shape=(count, math.prod(shape)))
            y = matmul(rows, a, transpose_a=False, transpose_b=not transpose_a)
            return reshape(y, shape=(*y.shape, 1))
    a, b = align_batched(batched, (a, b))
    return matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b)


matmul = Primitive(
    "matmul",
    _matmul_kernel,
    on_numpy=_matmul_on_numpy,
    vjps=(_vjp_a, _vjp_b),
    batch=_matmul_batch,
    accepts=dtypes.NUMERIC,
    error_message=_matmul_error_message,
)
