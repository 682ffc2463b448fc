"""Complex numbers and their parts. The gradient of a real L by z = x + iy is dL/dx + i dL/dy."""

from __future__ import annotations

import numpy as np

from retrograde.ops._families import elementwise
from retrograde.ops.arithmetic import sign
from retrograde.ops.casting import zeros_like
from retrograde.values import dtypes


def joined(xp, x1, x2):
    """Complex numbers of their two parts."""
    dtype = np.dtype(np.complex64 if x1.dtype == np.float32 else np.complex128)
    if xp is np:  # not a sum: an infinite part would make the other one nan
        y = np.empty(np.broadcast_shapes(x1.shape, x2.shape), dtype)
        y.real, y.imag = x1, x2
        return y
    from jax import lax

    return lax.complex(*xp.broadcast_arrays(x1, x2))


make_complex = elementwise(
    "make_complex",
    joined,
    lambda g, _y, _x1, _x2: real(g),
    lambda g, _y, _x1, _x2: imag(g),
    accepts=frozenset({np.dtype(np.float32), np.dtype(np.float64)}),
    holomorphic=False,
    linear=True,
)
real = elementwise(
    "real",
    "real",
    lambda g, _y, _x: make_complex(g, zeros_like(g)),
    accepts=dtypes.COMPLEX,
    holomorphic=False,
    linear=True,
)
imag = elementwise(
    "imag",
    "imag",
    lambda g, _y, _x: make_complex(zeros_like(g), g),
    accepts=dtypes.COMPLEX,
    holomorphic=False,
    linear=True,
)
complex_abs = elementwise(
    "complex_abs",
    "absolute",
    lambda g, _y, x: make_complex(g, zeros_like(g)) * sign(x),  # sign is z / |z|, and 0 at 0
    accepts=dtypes.COMPLEX,
    holomorphic=False,
)
