"""Python code in the middle of a compiled program, which XLA calls back.

It calls from threads of its own, where JAX knows no dtypes of 64 bits, even if the program was made
where it does: there it would cut such numbers in half. So they go there and back in words of 32
bits.
"""

from __future__ import annotations

import numpy as np

from retrograde.core.rules import Spec

_WORD = np.dtype(np.uint32)


def called_back(f, results, arrays):
    """What `f` returns for arrays of NumPy, a tuple of arrays as `results` say; here, JAX's."""
    import jax

    dtypes = [np.dtype(x.dtype) for x in arrays]
    expected = [jax.ShapeDtypeStruct(*_spec_in_words(spec)) for spec in results]

    def call(*given):
        pairs = zip(map(np.asarray, given), dtypes, strict=True)
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
