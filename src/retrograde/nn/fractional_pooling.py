"""Pooling by a fractional ratio: windows of two sizes, in random order."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.ops import pooling, random_state
from retrograde.ops._windows import Windows
from retrograde.ops.casting import cast, cast_discrete
from retrograde.ops.conversion import as_tensor
from retrograde.ops.elementary import rint
from retrograde.ops.indexing import gather
from retrograde.ops.random_state import Draw
from retrograde.random._sampling import generator_of
from retrograde.values.arguments import as_float, as_text
from retrograde.values.errors import invalid, to_list


class FractionalMaxPool(NamedTuple):
    """The output and the window boundaries along rows and columns."""

    output: Tensor
    row_pooling_sequence: Tensor
    col_pooling_sequence: Tensor


class FractionalAvgPool(FractionalMaxPool):
    """The output and the window boundaries along rows and columns."""


def fractional_max_pool(
    value: Any,
    pooling_ratio: Any,
    pseudo_random: bool = False,
    overlapping: bool = False,
    seed: int = 0,
    name: str | None = None,
) -> FractionalMaxPool:
    """Computes the maximum of each window; the output is `pooling_ratio` times smaller.

    Window sizes are the two integers next to the ratio, in random order; with `pseudo_random` they
    are spread evenly from a random start. If windows are `overlapping`, each also includes the
    first element of the next window. A nonzero `seed` gives the same windows on every call.
    """
    windows = _sequences(value, pooling_ratio, pseudo_random, seed, "fractional_max_pool")
    x, rows, columns = windows
    x, size, _ = _equalize_windows(x, rows, columns, overlapping)
    y = apply(pooling.max_pool, (x,), {"windows": size})
    return FractionalMaxPool(y, Tensor(rows), Tensor(columns))


def fractional_avg_pool(
    value: Any,
    pooling_ratio: Any,
    pseudo_random: bool = False,
    overlapping: bool = False,
    seed: int = 0,
    name: str | None = None,
) -> FractionalAvgPool:
    """Computes the average of each window, with the windows of `fractional_max_pool`."""
    windows = _sequences(value, pooling_ratio, pseudo_random, seed, "fractional_avg_pool")
    x, rows, columns = windows
    x, size, weights = _equalize_windows(x, rows, columns, overlapping)
    average = _average_integers if x._spec.dtype.kind in "iu" else _average
    return FractionalAvgPool(average(x, size, weights), Tensor(rows), Tensor(columns))


def _average(x: Tensor, size: Windows, weights: np.ndarray) -> Tensor:
    x = x * Tensor(weights.astype(x._spec.dtype))
    return apply(pooling.average_pool, (x,), {"windows": size})


def _average_integers(x: Tensor, size: Windows, weights: np.ndarray) -> Tensor:
    """Returns quotients of integers, rounded toward zero."""
    is_counted = Tensor((weights > 0).astype(np.float64))
    area = math.prod(size.size)
    sums, counts = (
        apply(pooling.average_pool, (values,), {"windows": size}) * area
        for values in (cast(x, dtype=np.dtype(np.float64)) * is_counted, is_counted)
    )
    return cast_discrete(rint(sums) / rint(counts), dtype=x._spec.dtype)


def _sequences(
    value: Any, ratio: Any, pseudo_random: bool, seed: int, op_name: str
) -> tuple[Tensor, np.ndarray, np.ndarray]:
    """Returns the input and the window boundaries along its rows and columns."""
    x = as_tensor(value)
    ratios = _ratios(ratio, op_name)
    if x.ndim != 4:
        raise invalid(f"{op_name}: the input must have 4 axes. Received: shape {x._spec.shape}.")
    generator = generator_of(Draw((seed % 2**64, 0), (0, 0)) if seed else random_state.draw_key())
    bounds = []
    for n, r in zip(x._spec.shape[1:3], ratios, strict=True):
        count = int(n / r)
        if not count:
            raise invalid(f"{op_name}: a ratio of {r} leaves no windows over {n} elements.")
        draw = _even_bounds if pseudo_random else _random_bounds
        bounds.append(draw(generator, n, count))
    return x, *bounds


def _ratios(ratio: Any, op_name: str) -> tuple[float, float]:
    ratios = (
        [1.0, ratio, ratio, 1.0] if isinstance(ratio, (int, float)) else to_list(op_name, ratio)
    )
    if len(ratios) != 4 or ratios[0] != 1 or ratios[-1] != 1:
        raise ValueError(
            f"{op_name}: pooling_ratio must be a number or [1.0, rows, columns, 1.0]. Received: "
            f"{as_text(ratio)}."
        )
    if min(ratios) < 1:
        raise ValueError(f"{op_name}: pooling_ratio should be >= 1.0. Received: {as_text(ratio)}.")
    rows, columns = (as_float(r, f"{op_name}: pooling_ratio") for r in ratios[1:3])
    return rows, columns


def _random_bounds(generator: np.random.Generator, n: int, count: int) -> np.ndarray:
    sizes = np.full(count, n // count, np.int64)
    sizes[: n % count] += 1
    return np.concatenate([[0], np.cumsum(generator.permutation(sizes))])


def _even_bounds(generator: np.random.Generator, n: int, count: int) -> np.ndarray:
    start = int(generator.integers(count))  # in units of 1 / count, to stay in integers
    bounds = (np.arange(count + 1, dtype=np.int64) * n + start) // count
    return bounds - bounds[0]


def _equalize_windows(
    x: Tensor, rows: np.ndarray, columns: np.ndarray, overlapping: bool
) -> tuple[Tensor, Windows, np.ndarray]:
    """Repeats elements until all windows have the same size and do not overlap.

    The weights are 0 for repeated elements and scale the others so that averages stay correct.
    """
    sizes, weights = [], []
    for axis, bounds in ((1, rows), (2, columns)):
        ends = np.minimum(bounds[1:] + overlapping, bounds[-1])
        lengths = ends - bounds[:-1]
        size = int(lengths.max())
        steps = np.arange(size)
        indices = np.minimum(bounds[:-1, None] + steps, ends[:, None] - 1)
        x = gather(x, Tensor(indices.reshape(-1)), axis=axis)
        sizes.append(size)
        weights.append(((steps < lengths[:, None]) * (size / lengths[:, None])).reshape(-1))
    windows = Windows(tuple(sizes), tuple(sizes), ((0, 0), (0, 0)), (1, 1))
    return x, windows, np.multiply.outer(*weights)[None, :, :, None]
