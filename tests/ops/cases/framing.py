"""Frames of a signal."""

from __future__ import annotations

import numpy as np

from tests.ops.cases._table import COMPLEXES, FLOATS, INTEGERS, between, case, complexes


def _frame(x, *, axis, count, length, step):
    parts = [x.take(range(k * step, k * step + length), axis) for k in range(count)]
    empty = np.zeros((*x.shape[:axis], 0, length, *x.shape[axis + 1 :]))
    return np.stack(parts, axis) if parts else empty


def _overlap_add(x, *, axis, size, step):
    y = np.zeros((*x.shape[:axis], size, *x.shape[axis + 2 :]), x.dtype)
    for k in range(x.shape[axis]):
        key = slice(k * step, k * step + x.shape[axis + 1])
        y[(slice(None),) * axis + (key,)] += x.take(k, axis)
    return y


for label, shape, axis, count, length, step in [
    ("overlapping", (7,), 0, 3, 3, 2),
    ("with_gaps", (8,), 0, 3, 2, 3),
    ("with_a_remainder", (2, 9), 1, 2, 4, 3),
    ("in_the_middle", (2, 7, 3), 1, 2, 5, 2),
    ("none", (2, 3), 1, 0, 4, 2),
    ("without_length", (4,), 0, 3, 0, 2),
    ("no_rows", (0, 5), 1, 2, 3, 2),
]:
    attrs = {"axis": axis, "count": count, "length": length, "step": step}
    x = between(-1, 1, *shape)
    case("frame", x, label, _frame, attrs=attrs)
    case("overlap_add", _frame(x, **attrs), label, _overlap_add,
         attrs={"axis": axis, "size": shape[axis], "step": step},
         dtypes=FLOATS + COMPLEXES + INTEGERS)  # fmt: skip
attrs = {"axis": 0, "count": 3, "length": 3, "step": 1}
case("frame", complexes(5), "complex", _frame, attrs=attrs)
