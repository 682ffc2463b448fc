"""Reshaping, broadcasting, slicing and joining."""

from __future__ import annotations

import numpy as np

from tests.ops.cases._table import COMPLEXES, FLOATS, INTEGERS, between, case, complexes

for label, x, shape in [
    ("matrix", between(-1, 1, 2, 3), (3, 2)),
    ("flat", between(-1, 1, 2, 3), (6,)),
    ("to_scalar", between(-1, 1, 1, 1), ()),
    ("scalar", between(-1, 1), (1, 1)),
    ("empty", between(-1, 1, 0, 3), (3, 0, 2)),
    ("complex", complexes(2, 2), (4,)),
]:
    case("reshape", x, label, lambda x, *, shape: np.reshape(x, shape), attrs={"shape": shape})

for label, x, perm in [
    ("matrix", between(-1, 1, 2, 3), (1, 0)),
    ("cycle", between(-1, 1, 2, 3, 4), (2, 0, 1)),
    ("identity", between(-1, 1, 2, 3), (0, 1)),
    ("scalar", between(-1, 1), ()),
    ("empty", between(-1, 1, 2, 0, 1), (2, 0, 1)),
    ("complex", complexes(2, 3), (1, 0)),
]:
    case("transpose", x, label, lambda x, *, perm: np.transpose(x, perm), attrs={"perm": perm})

for label, x, axis in [
    ("one", between(-1, 1, 3), (0,)),
    ("two", between(-1, 1, 2, 3, 2), (0, 2)),
    ("none", between(-1, 1, 2, 3), ()),
    ("empty", between(-1, 1, 0, 3), (0,)),
]:
    case("reverse", x, label, lambda x, *, axis: np.flip(x, axis), attrs={"axis": axis})

for label, small, large in [
    ("added", (3,), (2, 3)),
    ("stretched", (2, 1, 3), (2, 2, 3)),
    ("both", (1, 3), (2, 2, 3)),
    ("scalar", (), (2, 2)),
    ("same", (2, 3), (2, 3)),
    ("to_empty", (1, 2), (0, 2)),
    ("of_empty", (0,), (2, 0)),
    ("many", (2,), (2100, 2)),
]:
    case("broadcast_to", between(-1, 1, *small), label,
         lambda x, *, shape: np.broadcast_to(x, shape), attrs={"shape": large})  # fmt: skip
    if label == "many":
        continue
    case("sum_to", between(-1, 1, *large), label,
         lambda x, *, shape: np.einsum(_sum_subscripts(x.ndim, shape), x).reshape(shape),
         attrs={"shape": small}, dtypes=FLOATS + COMPLEXES + INTEGERS)  # fmt: skip
case("broadcast_to", complexes(2, 1), "complex", lambda x, *, shape: x + np.zeros(shape),
     attrs={"shape": (2, 3)})  # fmt: skip


def _sum_subscripts(ndim: int, shape: tuple) -> str:
    """Returns the einsum subscripts that sum `ndim` axes to `shape`, without axes of size 1."""
    letters = "abcdefgh"[:ndim]
    kept = letters[ndim - len(shape) :]
    return f"{letters}->{''.join(a for a, n in zip(kept, shape, strict=True) if n != 1)}"


def _slices(where: tuple) -> tuple:
    return tuple(list(range(*triple)) for triple in where)


def _take(x, *, where):
    return x[np.ix_(*_slices(where))]


def _put(x, *, shape, where):
    y = np.zeros(shape, x.dtype)
    y[np.ix_(*_slices(where))] = x
    return y


for label, shape, where in [
    ("front", (4, 3), ((0, 2, 1), (0, 3, 1))),
    ("strided", (5, 4), ((1, 5, 2), (0, 4, 3))),
    ("reversed", (5,), ((4, -1, -1),)),
    ("reversed_strided", (5, 3), ((4, 0, -2), (2, -1, -2))),
    ("empty", (3, 2), ((2, 2, 1), (0, 2, 1))),
    ("of_empty", (0, 2), ((0, 0, 1), (1, 2, 1))),
    ("past_the_end", (3,), ((1, 3, 4),)),
]:
    x = between(-1, 1, *shape)
    case("take_slice", x, label, _take, attrs={"where": where})
    case("put_slice", _take(x, where=where), label, _put, attrs={"shape": shape, "where": where})
case("take_slice", complexes(3), "complex", _take, attrs={"where": ((2, -1, -1),)})

JOINED = [
    ("rows", [(1, 3), (2, 3)], 0),
    ("columns", [(2, 1), (2, 2), (2, 3)], 1),
    ("with_empty", [(0, 2), (3, 2)], 0),
    ("one", [(2, 2)], 1),
]
for label, shapes, axis in JOINED:
    xs = [between(-1, 1, *shape) for shape in shapes]
    case("concat", xs, label, lambda *xs, axis: np.concatenate(xs, axis), attrs={"axis": axis})
    case("split", np.concatenate(xs, axis), label,
         lambda x, *, sizes, axis: np.split(x, np.cumsum(sizes)[:-1], axis),
         attrs={"sizes": tuple(shape[axis] for shape in shapes), "axis": axis})  # fmt: skip
case("concat", [complexes(2), complexes(1)], "complex",
     lambda *xs, axis: np.concatenate(xs, axis), attrs={"axis": 0})  # fmt: skip
for label, count, shape, axis in [
    ("front", 2, (2, 3), 0),
    ("last", 3, (2,), 1),
    ("scalars", 3, (), 0),
    ("empty", 2, (0, 2), 1),
    ("one", 1, (2,), 0),
]:
    xs = [between(-1, 1, *shape) for _ in range(count)]
    case("stack", xs, label, lambda *xs, axis: np.stack(xs, axis), attrs={"axis": axis})
    case("unstack", np.stack(xs, axis), label,
         lambda x, *, axis: [x.take(i, axis) for i in range(x.shape[axis])],
         attrs={"axis": axis})  # fmt: skip
