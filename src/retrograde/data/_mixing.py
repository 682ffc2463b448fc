"""Choosing elements from several datasets, and grouping elements by key."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from retrograde.data._elements import call
from retrograde.data._workers import Run
from retrograde.ops.conversion import as_tensor
from retrograde.values.errors import invalid


def choose_elements(
    nodes: Sequence[Any], choices: Iterable[int], stop: bool, run: Run, never: Collection[int] = ()
) -> Iterator:
    """Yields the next element of the chosen dataset for each choice. Skips exhausted ones.

    The datasets in `never` are not chosen.
    """
    streams = [node.open(run) for node in nodes]
    ended = set(never)
    for choice in choices:
        if not 0 <= choice < len(streams):
            raise invalid(f"Selector index out of range: {choice} >= {len(streams)}.")
        if choice in ended:
            continue
        try:
            element = next(streams[choice])
        except StopIteration:
            ended.add(choice)
            if stop or len(ended) == len(streams):
                return
            continue
        yield element


def draw_choices(count: int, weights: Any, rng: np.random.Generator) -> Iterator[int]:
    """Yields random choices forever."""
    p = np.full(count, 1 / count) if weights is None else np.asarray(weights, float)
    if not p.any():
        return
    while True:
        yield from rng.choice(count, size=256, p=p / p.sum()).tolist()


def draw_changing_choices(weights: Iterator, rng: np.random.Generator) -> Iterator[int]:
    """Yields a random choice for each vector of weights."""
    for vector in weights:
        p = np.asarray(vector._array, float)
        yield int(rng.choice(len(p), p=p / p.sum()))


def group_by_key(
    elements: Iterator, key_func: Callable, reduce: Callable, size_of: Callable, run: Run
) -> Iterator:
    """Yields the elements of `reduce(key, window)` for each key when its window is full."""
    windows: dict[int, list] = {}
    for element in elements:
        key = int(as_tensor(call(key_func, element), np.dtype(np.int64)))
        window = windows.setdefault(key, [])
        window.append(element)
        if len(window) == size_of(key):
            yield from reduce(key, windows.pop(key)).open(run)
    for key, window in sorted(windows.items()):
        yield from reduce(key, window).open(run)
