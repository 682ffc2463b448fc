"""Elementwise kernels that write into an array they are given, for work block by block.

A ufunc does so by itself. Here are the other primitives that programs use most; what is not here is
computed by its own kernel. Each does the same arithmetic as the kernel, in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from retrograde.core.rules import Spec
from retrograde.ops._arrays import SINGLE_AND_DOUBLE, bits, scalar, zero


class Writer(NamedTuple):
    """`write(*inputs, out=…, **attrs)` returns `out`, the result being in it.

    `in_place` says that `out` may be one of the inputs. `fits(*specs, **attrs)` tells whether it
    does as the kernel does on such inputs.
    """

    write: Callable
    in_place: bool
    fits: Callable[..., bool] = lambda *_specs, **_attrs: True


def writer_of(primitive: Any, specs: tuple[Spec, ...], attrs: dict[str, Any]) -> Writer | None:
    """What writes the result of `primitive` on inputs of these `specs` into an array, if any."""
    if isinstance(primitive.on_numpy, np.ufunc) and not attrs:
        return Writer(primitive.on_numpy, in_place=True)
    writer = WRITERS.get(primitive.name)
    return writer if writer is not None and writer.fits(*specs, **attrs) else None


def _mended(g, out):
    """`out`, and 0 where g is 0. Only where a nan came out is there anything to mend."""
    if (g.ndim or not g) and np.isnan(np.minimum.reduce(out, axis=None)):
        np.copyto(out, zero(out.dtype), where=np.equal(g, 0) & np.isnan(out))
    return out


def _guarded_multiply(g, d, out):
    return _mended(g, np.multiply(g, d, out=out))


def _times(g, out):
    """`out` times g, which is most often 1 all over: behind a sum."""
    return out if not g.ndim and g == 1 else _guarded_multiply(g, out, out)


def _guarded_divide(g, d, out):
    return _mended(g, np.divide(g, d, out=out))


def _tanh_back(g, y, out):
    np.multiply(y, y, out=out)
    np.subtract(scalar(1, out), out, out=out)
    return _times(g, out)


def _sigmoid_back(g, y, out):
    np.subtract(scalar(1, out), y, out=out)
    np.multiply(y, out, out=out)
    return _times(g, out)


def _triple(a, b, c, out, *, scale):
    np.multiply(a, b, out=out)
    np.multiply(c, out, out=out)
    return _mended(a, np.multiply(scalar(scale, out), out, out=out))


def _sigmoid(x, out):
    np.negative(x, out=out)
    np.exp(out, out=out)
    np.add(out, 1, out=out)
    return np.divide(1, out, out=out)


def _reciprocal(x, out):
    return np.divide(1, x, out=out)


def _rsqrt(x, out):
    np.sqrt(x, out=out)
    return np.divide(1, out, out=out)


def _softplus(x, out):
    return np.logaddexp(x, zero(out.dtype), out=out)


def _relu(x, out):
    return np.maximum(x, zero(out.dtype), out=out)


def _squared_difference(x1, x2, out):
    np.subtract(x1, x2, out=out)
    return np.multiply(out, out, out=out)


def _mask(x, keep, out):
    np.multiply(bits(x), keep, out=bits(out))
    return out


def _select(condition, x1, x2, out):
    y = np.bitwise_xor(bits(x1), bits(x2), out=bits(out))
    np.multiply(y, condition, out=y)
    np.bitwise_xor(y, bits(x2), out=y)
    return out


def _gate(g, s, out, **_):
    return _mask(g, np.greater(s, 0), out=out)


def _cast(x, out, *, dtype):
    del dtype  # that of out
    np.copyto(out, x, casting="unsafe")
    return out


def _zeros_like(_x, out):
    out.fill(0)
    return out


def _ones_like(_x, out):
    out.fill(1)
    return out


def _is_plain_gate(g, _s, *, upper, slope):
    return upper is None and not slope and g.dtype in SINGLE_AND_DOUBLE


def _is_plain_cast(x, *, dtype):
    """Not where the kernel drops an imaginary part, or goes by int32 to small integers."""
    return (x.dtype.kind != "c" or dtype.kind == "c") and (
        dtype.kind not in "iu" or x.dtype.kind in "iub" or dtype.itemsize >= 4
    )


def _is_float(x, *_others, **_attrs):
    return x.dtype.kind == "f"


def _is_selection(condition, x1, _x2):
    return condition.dtype == bool and x1.dtype in SINGLE_AND_DOUBLE


def _is_single_or_double(x, *_others, **_attrs):
    return x.dtype in SINGLE_AND_DOUBLE


WRITERS = {
    "cast": Writer(_cast, in_place=False, fits=_is_plain_cast),
    "cast_discrete": Writer(_cast, in_place=False, fits=_is_plain_cast),
    "gate": Writer(_gate, in_place=False, fits=_is_plain_gate),
    "guarded_divide": Writer(_guarded_divide, in_place=False, fits=_is_float),
    "guarded_multiply": Writer(_guarded_multiply, in_place=False, fits=_is_float),
    "mask": Writer(_mask, in_place=False, fits=_is_single_or_double),
    "ones_like": Writer(_ones_like, in_place=True),
    "reciprocal": Writer(_reciprocal, in_place=True, fits=_is_float),
    "relu": Writer(_relu, in_place=True),
    "rsqrt": Writer(_rsqrt, in_place=True, fits=_is_float),
    "select": Writer(_select, in_place=False, fits=_is_selection),
    "sigmoid": Writer(_sigmoid, in_place=True, fits=_is_float),
    "sigmoid_back": Writer(_sigmoid_back, in_place=False, fits=_is_float),
    "softplus": Writer(_softplus, in_place=True, fits=_is_float),
    "squared_difference": Writer(_squared_difference, in_place=False, fits=_is_float),
    "tanh_back": Writer(_tanh_back, in_place=False, fits=_is_float),
    "triple": Writer(_triple, in_place=False, fits=_is_float),
    "zeros_like": Writer(_zeros_like, in_place=True),
}
