"""Linear maps along an axis."""

from __future__ import annotations

import numpy as np

from retrograde.ops.resampling import Weights
from tests.ops.cases._table import COMPLEXES, FLOATS, case, complexes, integers, off_zero


def _product(x, *, axis, weights):
    """Multiplies by the dense matrix, built entry by entry."""
    matrix = np.zeros((len(weights.indices), weights.size))
    for i, row in enumerate(weights.indices):
        for k, j in enumerate(row):
            matrix[i, j] += weights.factors[i, k]
    y = np.moveaxis(x, axis, -1) @ matrix.T
    return np.moveaxis(y, -1, axis).astype(x.dtype)


def resample(x: np.ndarray, label: str, weights: Weights, axis: int = 0, **options) -> None:
    options.setdefault("dtypes", FLOATS + COMPLEXES)
    case("resample", x, label, _product, attrs={"axis": axis, "weights": weights}, **options)


_WEIGHTS = Weights(
    np.array([[0, 0], [0, 1], [3, 1], [2, 0]]),
    np.array([[0.25, 0.5], [0.75, -0.5], [0.5, 1.0], [2.0, 0.0]], np.float32),
    4,
)
_GATHER = Weights(np.array([[2], [0], [2]]), np.ones((3, 1), np.float32), 3)
_ONE_TO_MANY = Weights(np.zeros((3, 1), int), np.array([[0.5], [2.0], [1.0]], np.float32), 1)

resample(off_zero(4), "vector", _WEIGHTS)
resample(off_zero(4, 20), "long_rows", _WEIGHTS)
resample(off_zero(2, 4, 3), "short_rows", _WEIGHTS, axis=1)
resample(off_zero(2, 4), "last_axis", _WEIGHTS, axis=1)
resample(complexes(4, 2), "complex", _WEIGHTS)
resample(off_zero(0, 4, 2), "empty", _WEIGHTS, axis=1)
resample(off_zero(3, 4), "transposed", _WEIGHTS.T, axis=1)
resample(off_zero(2, 1), "one_to_many", _ONE_TO_MANY, axis=1)
resample(off_zero(2, 3, 2), "many_to_one", _ONE_TO_MANY.T, axis=1)
resample(off_zero(2, 3), "gather", _GATHER, axis=1, dtypes=None)
resample(integers(0, 9, 3, 2), "integers", _GATHER, dtypes=None)
