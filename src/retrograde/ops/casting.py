"""Casts, the identity, and arrays of zeros and ones."""

from __future__ import annotations

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.core.rules import identity_rule
from retrograde.fusion.output_arguments import OutArgument
from retrograde.ops._families import elementwise
from retrograde.values import dtypes


def _cast_kernel(xp, x, *, dtype, out=None):
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = xp.real(x)
    if dtype.kind in "iu" and x.dtype.kind not in "iub" and xp is np and dtype.itemsize < 4:
        x = x.astype(np.int32)  # truncates and wraps, as TensorFlow's CPU kernels do
    if out is None:
        return x.astype(dtype)
    np.copyto(out, x, casting="unsafe")
    return out


cast = Primitive(
    "cast",
    _cast_kernel,
    vjps=(lambda g, _y, _x, **_: cast(g, dtype=_x.dtype),),
    batch=lambda _, x, *, dtype: cast(x, dtype=dtype),
    linear=True,
)

cast_discrete = Primitive(  # to integers and bool, without a gradient
    "cast_discrete",
    _cast_kernel,
    vjps=None,
    batch=lambda _, x, *, dtype: cast_discrete(x, dtype=dtype),
)


cast.writes = cast_discrete.writes = OutArgument()


def to_dtype(x, dtype):
    """Casts `x` to a NumPy dtype with `cast` or `cast_discrete`."""
    if getattr(x, "_array", x).dtype == dtype:  # faster than x.dtype of a tensor
        return x
    return cast(x, dtype=dtype) if dtype in dtypes.INEXACT else cast_discrete(x, dtype=dtype)


identity = elementwise(
    "identity",
    lambda _, x: x,
    identity_rule,
    accepts=dtypes.ANY,
    holomorphic=False,
    linear=True,
)

stop_gradient = elementwise("stop_gradient", lambda _, x: x, None, accepts=dtypes.ANY)


def _zeros_like_kernel(xp, x, out=None):
    if out is not None:
        return _fill(out, 0)
    return xp.zeros(x.shape, x.dtype) if x.dtype != object else xp.full(x.shape, b"", object)


def _ones_like_kernel(xp, x, out=None):
    return xp.ones(x.shape, x.dtype) if out is None else _fill(out, 1)


def _fill(out, value):
    out.fill(value)
    return out


zeros_like = elementwise(
    "zeros_like", _zeros_like_kernel, None, accepts=dtypes.ANY, writes=OutArgument(may_alias=(0,))
)
ones_like = elementwise(
    "ones_like",
    _ones_like_kernel,
    None,
    accepts=dtypes.NUMERIC | dtypes.BOOL,
    writes=OutArgument(may_alias=(0,)),
)
