"""Powers and logarithms to bases 2 and 10, the cube root, and hypot."""

from __future__ import annotations

import math

from retrograde.ops._arrays import scalar, widen
from retrograde.ops._families import elementwise
from retrograde.ops.arithmetic import divide_no_nan, guarded_divide, guarded_product
from retrograde.ops.elementary import function
from retrograde.values import dtypes

_LOG_2, _LOG_10 = math.log(2), math.log(10)


def _widened_kernel(name):
    """Returns the kernel of `xp.<name>`, computed in float32 for half precision."""
    return lambda xp, *xs: getattr(xp, name)(*map(widen, xs)).astype(xs[0].dtype)


exp2 = function(
    "exp2",
    _widened_kernel("exp2"),
    lambda g, y, _x: guarded_product(g, y) * scalar(_LOG_2, y),
    accepts=dtypes.FLOATING,
)
log2 = function(
    "log2",
    _widened_kernel("log2"),
    lambda g, _y, x: guarded_divide(g, x * scalar(_LOG_2, x)),
)
log10 = function(
    "log10",
    _widened_kernel("log10"),
    lambda g, _y, x: guarded_divide(g, x * scalar(_LOG_10, x)),
)
cube_root = function(
    "cube_root",
    _widened_kernel("cbrt"),
    lambda g, y, _x: guarded_divide(g, y * y * 3),
    accepts=dtypes.FLOATING,
)
hypot = elementwise(  # sqrt(x1**2 + x2**2); its derivative at the origin is 0
    "hypot",
    _widened_kernel("hypot"),
    lambda g, y, x1, _x2: guarded_product(g, divide_no_nan(x1, y)),
    lambda g, y, _x1, x2: guarded_product(g, divide_no_nan(x2, y)),
    accepts=dtypes.FLOATING,
    costly=True,
)
