"""Elements that are chosen from several datasets, or collected by a key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from retrograde.data._structure import call
from retrograde.data._workers import Run
from retrograde.ops.conversion import as_tensor
from retrograde.values.errors import invalid


def chosen(nodes: Sequence[Any], choices: Iterable[int], stop: bool, run: Run) -> Iterator:
    """The next element of the dataset that each choice names; of one at its end, none."""
    streams = [node.open(run) for node in nodes]
    ended: set[int] = set()
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


def drawn(count: int, weights: Any, rng: np.random.Generator) -> Iterator[int]:
    """Choices at random, without end."""
    p = np.full(count, 1 / count) if weights is None else np.asarray(weights, float)
    while True:
        yield from rng.choice(count, size=256, p=p / p.sum()).tolist()


def by_key(
    elements: Iterator, key_func: Callable, reduce: Callable, size_of: Callable, run: Run
) -> Iterator:
    """The elements of `reduce(key, window)` for each key, as soon as its window is full."""
    windows: dict[int, list] = {}
    for element in elements:
        key = int(as_tensor(call(key_func, element), np.dtype(np.int64)))
        window = windows.setdefault(key, [])
        window.append(element)
        if len(window) == size_of(key):
            yield from reduce(key, windows.pop(key)).open(run)
    for key, window in sorted(windows.items()):
        yield from reduce(key, window).open(run)
