"""Reductions."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tests.ops.cases._table import booleans, case, complexes, off_zero

AXES = [
    ("all", (2, 3), (0, 1), False),
    ("rows", (2, 3), (0,), False),
    ("columns_kept", (2, 3), (1,), True),
    ("outer", (2, 3, 2), (0, 2), False),
    ("all_kept", (2, 2), (0, 1), True),
    ("no_axes", (2, 3), (), False),
    ("scalar", (), (), False),
    ("empty_result", (0, 3), (1,), False),
]


def reductions(name: str, reference: Callable, *shapes: tuple, draw: Callable = off_zero) -> None:
    for label, shape, axis, keepdims in [*AXES, *shapes]:
        # Tangents of an empty mean or maximum are NaN in JAX.
        usual = name in ("sum", "prod") or "empty_axis" not in label
        case(name, draw(*shape), label, reference, attrs={"axis": axis, "keepdims": keepdims},
             jax_rule=usual, differences=usual)  # fmt: skip


def _mean(x, *, axis, keepdims):
    if not math.prod(x.shape[a] for a in axis):
        return np.full_like(np.sum(x, axis=axis, keepdims=keepdims), np.nan)
    return np.mean(x, axis=axis, keepdims=keepdims)


def _logsumexp(x, *, axis, keepdims):
    with np.errstate(divide="ignore"):
        return np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))


EMPTY_AXIS = [("empty_axis", (2, 0), (1,), False), ("empty_axis_kept", (0, 2), (0,), True)]
reductions("sum", np.sum, *EMPTY_AXIS)
reductions("mean", _mean, *EMPTY_AXIS)
reductions("prod", np.prod, *EMPTY_AXIS, ("odd", (2, 5), (1,), False))
reductions("max", lambda x, **kw: np.max(x, **kw, initial=-np.inf), *EMPTY_AXIS)
reductions("min", lambda x, **kw: np.min(x, **kw, initial=np.inf), *EMPTY_AXIS)
reductions("logsumexp", _logsumexp, *EMPTY_AXIS)
reductions("any", np.any, *EMPTY_AXIS, draw=booleans)
reductions("all", np.all, *EMPTY_AXIS, draw=booleans)
for name in ("sum", "mean", "prod"):
    reference = {"sum": np.sum, "mean": np.mean, "prod": np.prod}[name]
    attrs = {"axis": (0,), "keepdims": False}
    case(name, complexes(2, 3), "complex", reference, attrs=attrs)
case("prod", np.array([[2.0, 0.0, 3.0], [0.0, 5.0, 0.0], [1.0, 2.0, 4.0]]), "zeros", np.prod,
     attrs={"axis": (1,), "keepdims": False})  # fmt: skip
for name, f in {"argmax": np.argmax, "argmin": np.argmin}.items():
    for axis, dtype in ((0, "int64"), (1, "int32")):
        case(name, off_zero(2, 3), f"axis{axis}",
             lambda x, *, axis, dtype, f=f: f(x, axis).astype(dtype),
             attrs={"axis": axis, "dtype": np.dtype(dtype)})  # fmt: skip
case("argmax", booleans(4), "bool", lambda x, *, axis, dtype: np.argmax(x, axis).astype(dtype),
     attrs={"axis": 0, "dtype": np.dtype("int64")})  # fmt: skip
