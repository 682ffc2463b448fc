"""Norms of vectors and matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.ops import reduction
from retrograde.ops._families import conj
from retrograde.ops.casting import to_dtype
from retrograde.ops.conversion import as_tensor
from retrograde.ops.decomposition import singular_values
from retrograde.ops.elementary import sqrt
from retrograde.ops.operators import absolute_of
from retrograde.ops.shaping import reshape, transpose
from retrograde.values.arguments import as_text
from retrograde.values.shapes import normalize_axes


def norm(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
) -> Tensor:
    """Computes the norm of vectors along `axis`, or of matrices in a pair of axes.

    Without `axis`, all elements form one vector. For vectors, `ord` is "euclidean", 1, 2, infinity
    or any positive number; for matrices it is "euclidean", "fro", 1, 2 or infinity. The gradient of
    the Euclidean norm is NaN at 0.

    >>> tf.linalg.norm([3.0, 4.0]).numpy()
    np.float32(5.0)
    >>> tf.linalg.norm([[1.0, -2.0], [3.0, 4.0]], ord=1, axis=(0, 1)).numpy()
    np.float32(6.0)
    """
    x = as_tensor(tensor)
    is_matrix = _is_matrix_norm(axis)
    _check_order(ord, is_matrix)
    axes = normalize_axes(axis, x.ndim, "norm")
    if ord in ("euclidean", "fro") or (ord == 2 and not is_matrix):
        total = _reduce(reduction.sum, x * conj(x), axes, keepdims)
        return sqrt(total)
    if is_matrix and ord == 2:
        return _spectral_norm(x, axis, keepdims)
    if is_matrix:
        return _operator_norm(absolute_of(x), ord, axis, keepdims)
    return _vector_norm(absolute_of(x), ord, axes, keepdims)


def _vector_norm(magnitudes: Tensor, ord: float, axes: tuple[int, ...], keepdims: Any) -> Tensor:
    if ord == 1:
        return _reduce(reduction.sum, magnitudes, axes, keepdims)
    if ord == math.inf:
        return _reduce(reduction.max, magnitudes, axes, keepdims)
    return _reduce(reduction.sum, magnitudes**ord, axes, keepdims) ** (1.0 / ord)


def _operator_norm(magnitudes: Tensor, ord: float, axis: Any, keepdims: Any) -> Tensor:
    """Computes the largest absolute column sum, or for infinity the largest row sum."""
    rows, columns = (normalize_axes(a, magnitudes.ndim, "norm")[0] for a in axis)
    summed, maximized = (rows, columns) if ord == 1 else (columns, rows)
    sums = _reduce(reduction.sum, magnitudes, (summed,), True)
    y = _reduce(reduction.max, sums, (maximized,), True)
    if keepdims:
        return y
    reduced = {rows, columns}
    return reshape(y, shape=tuple(n for i, n in enumerate(y._spec.shape) if i not in reduced))


def _spectral_norm(x: Tensor, axis: Any, keepdims: Any) -> Tensor:
    """Computes the largest singular value."""
    pair = tuple(normalize_axes(a, x.ndim, "norm")[0] for a in axis)
    rest = tuple(i for i in range(x.ndim) if i not in pair)
    s = apply(singular_values, (transpose(x, perm=(*rest, *pair)),))
    y = _reduce(reduction.max, s, (s.ndim - 1,), False)
    if not keepdims:
        return y
    return reshape(y, shape=tuple(1 if i in pair else n for i, n in enumerate(x._spec.shape)))


def _reduce(primitive: Any, x: Tensor, axes: tuple[int, ...], keepdims: Any) -> Tensor:
    return apply(primitive, (x,), {"axis": axes, "keepdims": bool(keepdims)})


def _is_matrix_norm(axis: Any) -> bool:
    if isinstance(axis, (list, tuple)):
        if len(axis) == 2 and axis[0] != axis[1]:
            return True
    elif axis is None or (isinstance(axis, (int, np.integer)) and not isinstance(axis, bool)):
        return False
    raise ValueError(
        "norm: 'axis' must be None, an integer, or a tuple of 2 unique integers, got "
        f"{as_text(axis)}"
    )


def _check_order(ord: Any, is_matrix: bool) -> None:
    if is_matrix:
        if ord not in ("euclidean", "fro", 1, 2, math.inf):
            raise ValueError(
                "norm: 'ord' must be a supported matrix norm in ['euclidean', 'fro', 1, 2, inf], "
                f"got {as_text(ord)}"
            )
    elif ord != "euclidean" and (isinstance(ord, str) or not ord > 0):
        raise ValueError(f"norm: 'ord' must be a supported vector norm, got {as_text(ord)}")


def normalize(
    tensor: Any, ord: Any = "euclidean", axis: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Divides `tensor` by its norm and returns both.

    >>> unit, length = tf.linalg.normalize([3.0, 4.0])
    >>> unit.numpy(), length.numpy()
    (array([0.6, 0.8], dtype=float32), array([5.], dtype=float32))
    """
    x = as_tensor(tensor)
    length = norm(x, ord, axis, keepdims=True)
    return x / to_dtype(length, x._spec.dtype), length
