"""Shuffles indices, without storing the permutation, and rows of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops import casting, indexing
from retrograde.ops.arguments import integer_array
from retrograde.ops.conversion import as_tensor, same_dtype
from retrograde.ops.host_functions import host_function
from retrograde.random._sampling import call_each_time, permutation, stateless_draw
from retrograde.values.arguments import as_int
from retrograde.values.errors import invalid

_INDEX_DTYPES = ("int32", "uint32", "int64", "uint64")


@host_function
def random_index_shuffle(
    index: Any, seed: Any, max_index: Any, rounds: int = 4, name: str | None = None
) -> Tensor:
    """Returns the position of `index` in a random permutation of 0 to `max_index`.

    The permutation depends on `seed`, three integers, and on `rounds`, the number of mixing rounds.
    It is never stored. `index`, `seed` and `max_index` may each have an additional axis, for
    several permutations at once.

    >>> sorted(tf.random_index_shuffle([0, 1, 2, 3], [1, 2, 3], max_index=3).numpy().tolist())
    [0, 1, 2, 3]
    """
    index, last = same_dtype(index, max_index)
    if index.dtype.name not in _INDEX_DTYPES or last.dtype != index.dtype:
        raise invalid(
            f"random_index_shuffle: `index` and `max_index` have dtypes {index.dtype.name} and "
            f"{last.dtype.name}. Expected one of {', '.join(_INDEX_DTYPES)} for both."
        )
    indices, max_indices = np.asarray(index), np.asarray(last)
    _check_indices(indices, max_indices)
    seeds = integer_array(seed, "seed")
    count = max(np.size(indices), np.size(max_indices), len(seeds) if seeds.ndim == 2 else 1)
    if seeds.shape not in {(3,), (count, 3)}:
        raise invalid(
            f"random_index_shuffle: expected a seed of shape (3,) or ({count}, 3). Received: shape "
            f"{seeds.shape}."
        )
    shape = np.broadcast_shapes(indices.shape, max_indices.shape, seeds.shape[:-1])
    shuffled = _permute(
        np.broadcast_to(indices, shape).astype(np.uint64),
        np.broadcast_to(max_indices, shape).astype(np.uint64),
        [np.broadcast_to(seeds[..., i], shape).astype(np.uint64) for i in range(3)],
        as_int(rounds, "index_shuffle: rounds"),
    )
    return Tensor(shuffled.astype(indices.dtype)[()])


def _check_indices(indices: np.ndarray, max_indices: np.ndarray) -> None:
    if (
        indices.ndim > 1
        or max_indices.ndim > 1
        or (indices.ndim and max_indices.ndim and len(indices) != len(max_indices))
    ):
        raise invalid(
            "random_index_shuffle: expected `index` and `max_index` to be scalars or vectors of "
            f"the same length. Received: shapes {indices.shape} and {max_indices.shape}."
        )
    out_of_range = (indices < 0) | (max_indices < indices)
    if np.any(out_of_range):
        first, limit = (
            np.broadcast_to(x, out_of_range.shape)[out_of_range][0] for x in (indices, max_indices)
        )
        raise invalid(
            f"random_index_shuffle: expected 0 <= index <= max_index. Received: index {first} and "
            f"max_index {limit}."
        )


def _permute(x: Any, last: Any, seeds: list, rounds: int) -> np.ndarray:
    """Permutes `x` by a Feistel network over the smallest even number of bits that holds `last`.

    Results beyond `last` go through the network again (cycle walking). This terminates, because the
    cycle returns to `x`.
    """
    half = np.maximum((_bit_length(last) + 1) // 2, 1).astype(np.uint64)
    result = _mix(x, half, seeds, rounds)
    while (outside := result > last).any():
        redone = _mix(result[outside], half[outside], [s[outside] for s in seeds], rounds)
        result = np.array(result)
        result[outside] = redone
    return result


def _mix(x: Any, half: Any, seeds: list, rounds: int) -> np.ndarray:
    low_bits = (np.uint64(1) << half) - np.uint64(1)
    left, right = x >> half, x & low_bits
    for k in range(4 * max(rounds, 1)):  # small ranges need more rounds
        left, right = right, left ^ (_hash(right, seeds, k) & low_bits)
    return left << half | right


def _hash(x: Any, seeds: list, k: int) -> np.ndarray:
    """Returns 64 bits that each depend on all bits of `x`, the seeds and `k`."""
    with np.errstate(over="ignore"):  # wraparound is intended
        y = x + np.uint64(k + 1) * np.uint64(0x9E3779B97F4A7C15)
        for seed in seeds:
            y = (y ^ seed) * np.uint64(0xBF58476D1CE4E5B9)
            y = (y ^ (y >> np.uint64(29))) * np.uint64(0x94D049BB133111EB)
            y = y ^ (y >> np.uint64(32))
    return y


def _bit_length(x: np.ndarray) -> np.ndarray:
    """Returns the number of bits of each integer."""
    return sum((x >> np.uint64(k) > 0).astype(np.int64) for k in range(64))


@host_function
def index_shuffle(index: Any, seed: Any, max_index: Any) -> Tensor:
    """Shuffles indices like `tf.random_index_shuffle`, with a seed of two integers."""
    pair = integer_array(seed, "seed")
    if pair.ndim not in (1, 2) or pair.shape[-1] != 2:
        raise invalid(
            f"index_shuffle: expected a seed of shape (2,) or (n, 2). Received: {pair.shape}."
        )
    padded = np.concatenate([pair, np.zeros_like(pair[..., :1])], -1)
    return random_index_shuffle(index, padded, max_index)


def stateless_shuffle(
    value: Any, seed: Any, alg: Any = "auto_select", name: str | None = None
) -> Tensor:
    """Shuffles the rows of a tensor; the order depends only on `seed`, a pair of integers."""
    draw = stateless_draw(seed, alg)
    x = as_tensor(value)
    if not x._spec.ndim:
        return casting.identity(x)
    order = call_each_time(permutation, draw, size=x._spec.shape[0])
    return indexing.gather(x, order, axis=0, dense_gradient=True)
