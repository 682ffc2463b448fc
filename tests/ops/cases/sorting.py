"""Top-k, permutations, binning and search."""

from __future__ import annotations

import math

import numpy as np

from tests.ops.cases._table import FLOATS, between, case, integers


def _top_k_indices(x, *, k, dtype):
    rows = x.reshape(-1, x.shape[-1]).tolist()
    order = [sorted(range(len(row)), key=lambda i, row=row: (-row[i], i))[:k] for row in rows]
    return np.array(order, dtype).reshape(*x.shape[:-1], k)


for label, x, k, dtype in [
    ("row", between(-1, 1, 5), 3, "int32"),
    ("rows", between(-1, 1, 2, 3, 4), 2, "int64"),
    ("ties", integers(0, 3, 3, 12), 5, "int32"),
    ("many", between(-1, 1, 2, 200), 7, "int32"),
    ("many_ties", integers(0, 40, 2, 300), 20, "int16"),
    ("none", between(-1, 1, 2, 3), 0, "int32"),
    ("all", between(-1, 1, 2, 3), 3, "int32"),
]:
    case("top_k_indices", x, label, _top_k_indices, attrs={"k": k, "dtype": np.dtype(dtype)},
         dtypes=() if "ties" in label else None)  # fmt: skip


def _in_top_k(predictions, targets, *, k):
    order = _top_k_indices(predictions, k=k, dtype="int64")
    return np.array([t in row for t, row in zip(targets, order, strict=True)])


case("in_top_k", [between(0, 1, 4, 5), np.array([0, 3, 7, -1])], "rows", _in_top_k,
     attrs={"k": 2}, dtypes=FLOATS)  # fmt: skip
case("in_top_k", [np.array([[0.1, 0.2, 0.9], [0.8, 0.4, 0.1]]), np.array([2, 2])], "last_class",
     _in_top_k, attrs={"k": 1})  # fmt: skip


def _invert_permutation(x):
    y = np.zeros_like(x)
    for i, j in enumerate(x):
        y[j] = i
    return y


case("invert_permutation", np.array([3, 0, 2, 1], "int32"), "four", _invert_permutation)
case("invert_permutation", np.array([], "int64"), "none", _invert_permutation)


def _bins(x, *, low, high, count, **_):
    edges = np.linspace(low, high, count + 1)[1:-1]
    return np.searchsorted(edges, x, side="right").astype("int32")


ATTRS = {"low": -1.0, "high": 2.0, "count": 6, "strict": True}
case("bins", between(-2, 3, 3, 4), "floats", _bins, attrs=ATTRS, dtypes=FLOATS[2:])
case("bins", integers(-3, 4, 6), "integers", _bins, attrs=ATTRS)
case("bins", np.array([-math.inf, math.inf]), "infinite", _bins, attrs=ATTRS, dtypes=FLOATS)


def _search_sorted(sequence, values, *, side, dtype):
    before = np.less if side == "left" else np.less_equal
    return before(sequence, values[..., None]).sum(-1).astype(dtype)


ORDERED = np.sort(between(-1, 1, 5))
for side in ("left", "right"):
    attrs = {"side": side, "dtype": np.dtype("int32")}
    case("search_sorted", [ORDERED, between(-2, 2, 2, 3)], f"{side}-matrix", _search_sorted,
         attrs=attrs)  # fmt: skip
    case("search_sorted", [np.array([1.0, 2.0, 2.0, 3.0]), np.array(2.0)], f"{side}-ties",
         _search_sorted, attrs=attrs)  # fmt: skip
    case("search_sorted", [ORDERED[:0], between(-2, 2, 2)], f"{side}-empty",
         _search_sorted, attrs=attrs)  # fmt: skip


def _is_in(x, elements):
    return np.array([value in elements.tolist() for value in x.ravel()], bool).reshape(x.shape)


case("is_in", [integers(0, 6, 2, 3), integers(0, 6, 3)], "integers", _is_in)
case("is_in", [between(-1, 1, 3), between(-1, 1, 2)], "floats", _is_in)
case("is_in", [np.array(1.5), np.array([0.5, 1.5])], "scalar", _is_in)
case("is_in", [between(-1, 1, 3), between(-1, 1, 0)], "in_empty", _is_in)
