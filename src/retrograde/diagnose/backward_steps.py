"""The backward pass over a tape, one call at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core.backward import Cotangents, backward_pass
from retrograde.core.batching import Batched
from retrograde.core.indexed_slices import IndexedSlices

StepCallback = Callable[[tuple, tuple, Cotangents], None]


def step_by_step(
    entries: list[tuple],
    cotangents: Cotangents,
    source_ids: set[int],
    needed: set | None,
    callback: StepCallback,
) -> None:
    """Runs a `backward_pass` and calls `callback(entry, gs, cotangents)` after each step.

    `gs` are the cotangents of the outputs before the step, `None` where there is none.
    """
    cotangents.monitored = False  # each step is checked here
    while entries:
        entry = entries.pop()
        gs = tuple([cotangents.get(i) for i in outputs_of(entry)])
        if all(g is None for g in gs):
            continue
        backward_pass([entry], cotangents, source_ids, needed)
        callback(entry, gs, cotangents)


def outputs_of(entry: tuple) -> tuple[int, ...]:
    """Returns the ids of the outputs of an entry of a tape."""
    out = entry[2]
    return tuple([i for i, _ in out]) if type(out) is tuple else (out,)


def to_numpy(value: Any) -> np.ndarray | None:
    """Returns a value or cotangent of any kind as a NumPy array; `None` for `None`."""
    if isinstance(value, IndexedSlices):
        value = value._values
    value = getattr(value, "_array", value)
    while type(value) is Batched:
        value = getattr(value.value, "_array", value.value)
    return None if value is None else np.asarray(value)


def is_finite(value: Any) -> bool:
    """Returns whether a value or cotangent is `None` or contains neither NaN nor Inf."""
    array = to_numpy(value)
    return array is None or array.dtype.kind in "biuOSU" or bool(np.isfinite(array).all())
