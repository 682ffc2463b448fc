"""Cumulative operations along one axis."""

from __future__ import annotations

import itertools

import numpy as np

from tests.ops.cases._table import between, case, complexes, off_zero


def _cumsum(x, *, axis, exclusive, reverse):
    x = np.flip(x, axis) if reverse else x
    y = np.add.accumulate(x, axis) - (x if exclusive else 0)
    return np.flip(y, axis) if reverse else y


def _recurrence(factor, x, *, axis, reverse):
    order = range(x.shape[axis])
    y, last = np.zeros_like(x), 0
    for k in reversed(order) if reverse else order:
        key = (slice(None),) * axis + (k,)
        y[key] = last = x[key] + factor[key] * last
    return y


for axis, shape in enumerate([(4, 2), (2, 5), (2, 1, 3)]):
    for exclusive, reverse in itertools.product((False, True), repeat=2):
        attrs = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
        label = f"axis{axis}{'_exclusive' * exclusive}{'_reverse' * reverse}"
        case("cumsum", off_zero(*shape), label, _cumsum, attrs=attrs)
    for reverse in (False, True):
        case("recurrence", [off_zero(*shape), off_zero(*shape)],
             f"axis{axis}{'_reverse' * reverse}", _recurrence,
             attrs={"axis": axis, "reverse": reverse})  # fmt: skip
    case("cumprod", off_zero(*shape), f"axis{axis}", np.multiply.accumulate, attrs={"axis": axis})
    case("cumulative_logsumexp", between(-2, 2, *shape), f"axis{axis}",
         lambda x, *, axis: np.log(np.add.accumulate(np.exp(x), axis)),
         attrs={"axis": axis})  # fmt: skip
case("cumsum", complexes(3), "complex", _cumsum,
     attrs={"axis": 0, "exclusive": False, "reverse": True})  # fmt: skip
case("cumsum", off_zero(2, 0), "empty", _cumsum,
     attrs={"axis": 1, "exclusive": True, "reverse": False})  # fmt: skip
case("recurrence", [complexes(5), complexes(5)], "complex", _recurrence,
     attrs={"axis": 0, "reverse": False})  # fmt: skip
case("cumprod", complexes(5), "complex", np.multiply.accumulate, attrs={"axis": 0})
case("cumprod", np.array([1.5, 0.0, -2.0, 0.0, 3.0]), "zeros", np.multiply.accumulate,
     attrs={"axis": 0}, jax_rule=False)  # fmt: skip
case("cumprod", off_zero(2, 0), "empty", np.multiply.accumulate, attrs={"axis": 1})
