"""Powers and logarithms to other bases than e, the cube root, and lengths."""

from __future__ import annotations

import math

from retrograde.ops._arrays import scalar, widened
from retrograde.ops._families import elementwise
from retrograde.ops.arithmetic import divide_no_nan, guarded, guarded_divide
from retrograde.ops.elementary import function
from retrograde.values import dtypes

_LOG_2, _LOG_10 = math.log(2), math.log(10)


def _in_full(name):
    """The kernel `name`, computed in float32 for half precision."""
    return lambda xp, *xs: getattr(xp, name)(*map(widened, xs)).astype(xs[0].dtype)


exp2 = function(
    "exp2",
    _in_full("exp2"),
    lambda g, y, _x: guarded(g, y) * scalar(_LOG_2, y),
    accepts=dtypes.FLOATING,
)
log2 = function(
    "log2",
    _in_full("log2"),
    lambda g, _y, x: guarded_divide(g, x * scalar(_LOG_2, x)),
)
log10 = function(
    "log10",
    _in_full("log10"),
    lambda g, _y, x: guarded_divide(g, x * scalar(_LOG_10, x)),
)
cube_root = function(
    "cube_root",
    _in_full("cbrt"),
    lambda g, y, _x: guarded_divide(g, y * y * 3),
    accepts=dtypes.FLOATING,
)
hypot = elementwise(  # the length of (x1, x2); its derivative at the origin is 0
    "hypot",
    _in_full("hypot"),
    lambda g, y, x1, _x2: guarded(g, divide_no_nan(x1, y)),
    lambda g, y, _x1, x2: guarded(g, divide_no_nan(x2, y)),
    accepts=dtypes.FLOATING,
    costly=True,
)
