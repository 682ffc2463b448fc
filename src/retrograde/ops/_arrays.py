"""Where numpy and jax.numpy really differ, and how both compute with half precision."""

from __future__ import annotations

import numpy as np

from retrograde.core import dtypes

_HALF = frozenset({dtypes.float16.numpy_dtype, dtypes.bfloat16.numpy_dtype})


def wide(dtype):
    """The dtype to add up in: float32 for the half-precision ones, else the same."""
    return np.dtype(np.float32) if dtype in _HALF else dtype


def widened(x):
    """`x` in the dtype to compute in; a copy only for half precision."""
    return x.astype(np.float32) if x.dtype in _HALF else x


def special(xp, name):
    """A function of `scipy.special`, or of its twin in JAX."""
    if xp is np:
        import scipy.special

        return getattr(scipy.special, name)
    import jax.scipy.special

    return getattr(jax.scipy.special, name)


def add_at(xp, y, indices, values):
    """`y` with `values` added at `indices` of its first axis; repeated ones add up."""
    if xp is not np:
        return y.at[indices].add(values)
    np.add.at(y, indices, values)
    return y
