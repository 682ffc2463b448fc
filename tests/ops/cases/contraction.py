"""Matrix products."""

from __future__ import annotations

import itertools

import numpy as np

from tests.ops.cases._table import case, complexes, off_zero


def _product(a, b, *, transpose_a, transpose_b):
    a = np.swapaxes(a, -1, -2) if transpose_a else a
    b = np.swapaxes(b, -1, -2) if transpose_b else b
    return np.einsum("...ij,...jk->...ik", a, b)


def matmul(a: tuple, b: tuple, label: str, flags: tuple = (False, False), draw=off_zero) -> None:
    case("matmul", [draw(*a), draw(*b)], label, _product,
         attrs={"transpose_a": flags[0], "transpose_b": flags[1]})  # fmt: skip


for flags in itertools.product((False, True), repeat=2):
    name = "".join("t" if flag else "n" for flag in flags)
    a, b = (3, 2) if flags[0] else (2, 3), (4, 3) if flags[1] else (3, 4)
    matmul(a, b, name, flags)
    matmul(a, b, f"{name}_complex", flags, complexes)
    matmul((2, *a), (3, 1, *b), f"{name}_batches", flags)
matmul((2, 2, 3), (3, 2), "shared_right")
matmul((2, 2, 3), (2, 3), "shared_right_transposed", (False, True))
matmul((2, 3, 2), (3, 2), "shared_right_of_transposed", (True, False))
matmul((2, 1, 2, 3), (3, 2), "shared_right_complex", draw=complexes)
matmul((2, 3), (2, 3, 2), "shared_left")
for flags in itertools.product((False, True), repeat=2):
    name = "".join("t" if flag else "n" for flag in flags)
    matmul((3, 2) if flags[0] else (2, 3), (1, 3) if flags[1] else (3, 1), f"{name}_column", flags)
matmul((2, 0), (0, 1), "no_column")
matmul((0, 3), (3, 2), "no_rows")
matmul((2, 0), (0, 3), "empty_sum")
matmul((0, 2, 2), (2, 2), "empty_batch")
