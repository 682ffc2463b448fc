"""Permutations that need no memory: where an index goes, and rows in a new order."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops import casting, indexing
from retrograde.ops.arguments import integer_array
from retrograde.ops.conversion import as_tensor, same_dtype
from retrograde.ops.host_functions import host_function
from retrograde.random._sampling import anew, permutation, stateless_draw
from retrograde.values.arguments import as_int
from retrograde.values.errors import invalid

_INDEX_DTYPES = ("int32", "uint32", "int64", "uint64")


@host_function
def random_index_shuffle(
    index: Any, seed: Any, max_index: Any, rounds: int = 4, name: str | None = None
) -> Tensor:
    """Where a random permutation of the integers from 0 to `max_index` puts `index`.

    The permutation follows from `seed`, three integers, and from `rounds`, how often they are
    mixed; nothing of its size is ever held. `index`, `seed` and `max_index` may each have one more
    axis, for several at once.

    >>> sorted(tf.random_index_shuffle([0, 1, 2, 3], [1, 2, 3], max_index=3).numpy().tolist())
    [0, 1, 2, 3]
    """
    index, last = same_dtype(index, max_index)
    if index.dtype.name not in _INDEX_DTYPES or last.dtype != index.dtype:
        raise invalid(
            f"random_index_shuffle: `index` and `max_index` have dtypes {index.dtype.name} and "
            f"{last.dtype.name}. Expected one of {', '.join(_INDEX_DTYPES)} for both."
        )
    places, ends = np.asarray(index), np.asarray(last)
    _check_indices(places, ends)
    seeds = integer_array(seed, "seed")
    count = max(np.size(places), np.size(ends), len(seeds) if seeds.ndim == 2 else 1)
    if seeds.shape not in {(3,), (count, 3)}:
        raise invalid(
            f"random_index_shuffle: expected a seed of shape (3,) or ({count}, 3). Received: shape "
            f"{seeds.shape}."
        )
    shape = np.broadcast_shapes(places.shape, ends.shape, seeds.shape[:-1])
    shuffled = _permuted(
        np.broadcast_to(places, shape).astype(np.uint64),
        np.broadcast_to(ends, shape).astype(np.uint64),
        [np.broadcast_to(seeds[..., i], shape).astype(np.uint64) for i in range(3)],
        as_int(rounds, "index_shuffle: rounds"),
    )
    return Tensor(shuffled.astype(places.dtype)[()])


def _check_indices(places: np.ndarray, ends: np.ndarray) -> None:
    if places.ndim > 1 or ends.ndim > 1 or (places.ndim and ends.ndim and len(places) != len(ends)):
        raise invalid(
            "random_index_shuffle: expected `index` and `max_index` without axes, or with one and "
            f"as long as each other. Received: shapes {places.shape} and {ends.shape}."
        )
    wrong = (places < 0) | (ends < places)
    if np.any(wrong):
        place, end = (np.broadcast_to(x, wrong.shape)[wrong][0] for x in (places, ends))
        raise invalid(
            f"random_index_shuffle: expected 0 <= index <= max_index. Received: index {place} and "
            f"max_index {end}."
        )


def _permuted(x: Any, last: Any, seeds: list, rounds: int) -> np.ndarray:
    """By a Feistel network over the least even number of bits that holds `last`.

    What lands beyond `last` goes through it again, until it does not: a cycle of a permutation
    comes back to where it started, so at the latest there.
    """
    half = np.maximum((_bit_length(last) + 1) // 2, 1).astype(np.uint64)
    result = _mixed(x, half, seeds, rounds)
    while (outside := result > last).any():
        again = _mixed(result[outside], half[outside], [s[outside] for s in seeds], rounds)
        result = np.array(result)
        result[outside] = again
    return result


def _mixed(x: Any, half: Any, seeds: list, rounds: int) -> np.ndarray:
    low_bits = (np.uint64(1) << half) - np.uint64(1)
    left, right = x >> half, x & low_bits
    for k in range(4 * max(rounds, 1)):  # few bits need more steps than many
        left, right = right, left ^ (_hash(right, seeds, k) & low_bits)
    return left << half | right


def _hash(x: Any, seeds: list, k: int) -> np.ndarray:
    """64 bits of which each depends on all of `x`, of the seeds and of `k`."""
    with np.errstate(over="ignore"):  # integers that wrap around are the point
        y = x + np.uint64(k + 1) * np.uint64(0x9E3779B97F4A7C15)
        for seed in seeds:
            y = (y ^ seed) * np.uint64(0xBF58476D1CE4E5B9)
            y = (y ^ (y >> np.uint64(29))) * np.uint64(0x94D049BB133111EB)
            y = y ^ (y >> np.uint64(32))
    return y


def _bit_length(x: np.ndarray) -> np.ndarray:
    """How many bits each integer takes."""
    return sum((x >> np.uint64(k) > 0).astype(np.int64) for k in range(64))


@host_function
def index_shuffle(index: Any, seed: Any, max_index: Any) -> Tensor:
    """As `tf.random_index_shuffle`, with a seed of two integers."""
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
    """The rows of a tensor in an order that follows from `seed`, a pair of integers."""
    draw = stateless_draw(seed, alg)
    x = as_tensor(value)
    if not x._spec.ndim:
        return casting.identity(x)
    order = anew(permutation, draw, size=x._spec.shape[0])
    return indexing.gather(x, order, axis=0, whole=True)
