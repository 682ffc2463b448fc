"""Isotonic regression."""

from __future__ import annotations

import numpy as np
import scipy.optimize

from tests.ops.cases._table import between, case


def _pooled_blocks(x):
    """Uses SciPy, row by row. Without ties the result is unique."""
    blocks = np.empty(x.shape, np.int32)
    for row in np.ndindex(x.shape[:-1]):
        ends = scipy.optimize.isotonic_regression(x[row], increasing=False).blocks
        blocks[row] = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    return blocks


case("pooled_blocks", between(-1, 1, 3, 7), "rows", _pooled_blocks)
case("pooled_blocks", between(-1, 1, 9), "one_row", _pooled_blocks)
case("pooled_blocks", np.arange(4.0), "increasing", _pooled_blocks)
case("pooled_blocks", between(0, 1, 0, 3), "no_rows", _pooled_blocks)
case("pooled_blocks", between(0, 1, 2, 0), "no_columns", lambda x: x)
