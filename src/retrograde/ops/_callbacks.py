"""Host callbacks in compiled programs.

XLA runs callbacks in its own threads. There JAX has 64-bit dtypes disabled, even if they were
enabled when the program was compiled, and would truncate such numbers. So 64-bit values are passed
as pairs of 32-bit words.
"""

from __future__ import annotations

import numpy as np

from retrograde.core.rules import Spec

_WORD = np.dtype(np.uint32)


def call_on_host(f, results, arrays):
    """Returns `f(*arrays)` as a tuple of JAX arrays. `f` receives and returns NumPy arrays.

    `results` are the Specs of the arrays that `f` returns.
    """
    import jax

    dtypes = [np.dtype(x.dtype) for x in arrays]
    expected = [jax.ShapeDtypeStruct(*_spec_in_words(spec)) for spec in results]

    def call(*args):
        pairs = zip(map(np.asarray, args), dtypes, strict=True)
        y = f(*[x.view(dtype)[..., 0] if _is_long(dtype) else x for x, dtype in pairs])
        return [_numpy_in_words(np.asarray(part)) for part in y]

    y = jax.pure_callback(call, expected, *map(_jax_in_words, arrays))
    return tuple([_from_words(x, spec.dtype) for x, spec in zip(y, results, strict=True)])


def _is_long(dtype):
    return dtype.itemsize > (8 if dtype.kind == "c" else 4)


def _spec_in_words(spec):
    if not _is_long(spec.dtype):
        return spec
    return Spec((*spec.shape, spec.dtype.itemsize // _WORD.itemsize), _WORD)


def _numpy_in_words(x):
    if not _is_long(x.dtype):
        return x
    return np.ascontiguousarray(x).reshape(*x.shape, 1).view(_WORD)


def _jax_in_words(x):
    from jax import lax, numpy

    if not _is_long(x.dtype):
        return x
    if x.dtype.kind == "c":
        return numpy.concatenate([_jax_in_words(lax.real(x)), _jax_in_words(lax.imag(x))], -1)
    return lax.bitcast_convert_type(x, _WORD)


def _from_words(x, dtype):
    from jax import lax

    if not _is_long(dtype):
        return x
    if dtype.kind == "c":
        double = np.dtype(np.float64)
        return lax.complex(_from_words(x[..., :2], double), _from_words(x[..., 2:], double))
    return lax.bitcast_convert_type(x, dtype)
