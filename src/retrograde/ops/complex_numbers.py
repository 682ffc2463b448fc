"""Complex numbers. The gradient of a real L with respect to z = x + iy is dL/dx + i dL/dy."""

from __future__ import annotations

import numpy as np

from retrograde.ops._families import elementwise
from retrograde.ops.arithmetic import sign
from retrograde.ops.casting import zeros_like
from retrograde.values import dtypes


def make_complex_kernel(xp, x1, x2):
    """Returns the complex numbers with real part `x1` and imaginary part `x2`."""
    dtype = np.dtype(np.complex64 if x1.dtype == np.float32 else np.complex128)
    if xp is np:  # x1 + 1j * x2 would be NaN where a part is infinite
        y = np.empty(np.broadcast_shapes(x1.shape, x2.shape), dtype)
        y.real, y.imag = x1, x2
        return y
    from jax import lax

    return lax.complex(*xp.broadcast_arrays(x1, x2))


make_complex = elementwise(
    "make_complex",
    make_complex_kernel,
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
    lambda g, _y, x: make_complex(g, zeros_like(g)) * sign(x),  # sign(z) is z / |z|, and 0 at 0
    accepts=dtypes.COMPLEX,
    holomorphic=False,
)
