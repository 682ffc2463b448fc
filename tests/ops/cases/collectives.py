"""Collectives with one replica. tests/distribute tests several replicas."""

from __future__ import annotations

from tests.ops.cases._table import between, case, complexes, integers

for label, x in [
    ("one", [between(-1, 1, 2, 3)]),
    ("two", [between(-1, 1, 2), between(-1, 1)]),
    ("empty", [between(-1, 1, 0, 3)]),
    ("complex", [complexes(2, 2)]),
]:
    case("all_reduce", x, label, lambda *xs: xs)
for label, xs in [
    ("one tensor", [between(-1, 1, 2, 3) for _ in range(2)]),
    ("two tensors", [*[between(-1, 1, 2) for _ in range(2)], *[between(-1, 1) for _ in range(2)]]),
    ("empty", [between(-1, 1, 0, 3) for _ in range(2)]),
    ("complex", [complexes(2, 2) for _ in range(2)]),
]:
    case("sum_replicas", xs, label,
         lambda *xs, **_: tuple(x1 + x2 for x1, x2 in zip(xs[::2], xs[1::2], strict=True)),
         attrs={"replicas": 2})  # fmt: skip
case("broadcast_from_first", [between(-1, 1, 2, 3), integers(0, 9, 2)], "two", lambda *xs: xs)
for axis in (0, 1):
    x = between(-1, 1, 2, 3)
    case("all_gather", x, f"axis {axis}", lambda x, **_: x, attrs={"axis": axis})
    case("reduce_scatter", x, f"axis {axis}", lambda x, **_: x,
         attrs={"axis": axis, "size": x.shape[axis]})  # fmt: skip
