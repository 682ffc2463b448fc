"""Layouts. tests/distribute has those over several devices."""

from __future__ import annotations

from tests.ops.cases._table import between, case, complexes

for label, x in [("matrix", between(-1, 1, 2, 3)), ("complex", complexes(2, 2))]:
    case("with_layout", x, label, lambda x, **_: x, attrs={"sharding": None})
