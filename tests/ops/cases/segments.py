"""Reductions over segments."""

from __future__ import annotations

import numpy as np

from tests.ops.cases._table import COMPLEXES, FLOATS, INTEGERS, between, case, complexes


def _rows(ids, *, num_segments):
    return np.where(ids < 0, num_segments, ids)


case("segment_rows", np.array([2, -1, 0, -3], "int32"), "some_ignored", _rows,
     attrs={"num_segments": 3})  # fmt: skip
case("segment_rows", np.array([[1, -1], [0, 1]], "int64"), "matrix", _rows,
     attrs={"num_segments": 2})  # fmt: skip


def _segment_reduction(function):
    def reference(x, ids, *, num_segments, empty=1):
        rows = [x[ids == i] for i in range(num_segments)]
        empties = np.full(x.shape[1:], empty, x.dtype)
        return np.stack([function(r, axis=0) if len(r) else empties for r in rows])

    return reference


def _others(x, ids, **_):
    y = np.ones_like(x)
    for i, j in np.ndindex(len(ids), len(ids)):
        if i != j and ids[i] == ids[j]:
            y[i] *= x[j]
    return y


IDS = {
    "sorted": ([0, 0, 1, 3], (2,), 4),
    "unsorted": ([2, 0, 2, 0, 2, 1], (), 3),
    "matrices": ([1, 1, 1], (2, 2), 2),
    "none": ([], (2,), 2),
}
for label, (ids, rest, size) in IDS.items():
    ids = np.array(ids, "int32" if label == "sorted" else "int64")
    x, attrs = between(0.5, 1.5, len(ids), *rest), {"num_segments": size}
    for name, function, empty in (("max", np.max, 0), ("min", np.min, -3.0)):
        case(f"segment_{name}", [x, ids], label, _segment_reduction(function),
             attrs={**attrs, "empty": empty}, dtypes=FLOATS + INTEGERS)  # fmt: skip
    case("segment_prod", [x, ids], label, _segment_reduction(np.prod), attrs=attrs,
         dtypes=FLOATS + COMPLEXES + INTEGERS, jax_rule=False)  # fmt: skip
    case("segment_others", [x, ids], label, _others, attrs=attrs, dtypes=FLOATS + COMPLEXES,
         jax_rule=False)  # fmt: skip
zeros = np.array([0.0, 2.0, 0.0, 3.0, 0.0, 0.0, 0.0, 1.0, 0.7])
ids = np.array([0, 0, 1, 1, 1, 2, 2, 2, 3])
for name, reference in (("segment_prod", _segment_reduction(np.prod)), ("segment_others", _others)):
    case(name, [zeros, ids], "zeros", reference, attrs={"num_segments": 4}, jax_rule=False,
         dtypes=FLOATS + COMPLEXES)  # fmt: skip
    case(name, [complexes(4, 2), np.array([0, 1, 0, 0])], "complex", reference,
         attrs={"num_segments": 2}, jax_rule=False, dtypes=COMPLEXES)  # fmt: skip
