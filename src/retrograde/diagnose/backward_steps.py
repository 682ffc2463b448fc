"""The walk back over a tape, with someone who looks at each step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core.backward import Cotangents, backward_pass
from retrograde.core.batching import Batched
from retrograde.core.indexed_slices import IndexedSlices

Look = Callable[[tuple, tuple, Cotangents], None]


def walk(
    entries: list[tuple], cotangents: Cotangents, wanted: set[int], leads: set | None, look: Look
) -> None:
    """As `backward_pass`, step by step: `look(entry, gs, cotangents)` is called after each.

    `gs` are the cotangents of the outputs as the step found them, `None` for those without.
    """
    cotangents.alert = False  # each step is looked at here
    while entries:
        entry = entries.pop()
        gs = tuple([cotangents.get(i) for i in outputs_of(entry)])
        if all(g is None for g in gs):
            continue
        backward_pass([entry], cotangents, wanted, leads)
        look(entry, gs, cotangents)


def outputs_of(entry: tuple) -> tuple[int, ...]:
    """The ids of what a call on a tape made."""
    out = entry[2]
    return tuple([i for i, _ in out]) if type(out) is tuple else (out,)


def raw(value: Any) -> np.ndarray | None:
    """The numbers in a value or cotangent of any kind, as an array; `None` for `None`."""
    if isinstance(value, IndexedSlices):
        value = value._values
    value = getattr(value, "_array", value)
    while type(value) is Batched:
        value = getattr(value.value, "_array", value.value)
    return None if value is None else np.asarray(value)


def is_finite(value: Any) -> bool:
    """Whether a value or cotangent has neither NaN nor infinity in it; or is `None`."""
    array = raw(value)
    return array is None or array.dtype.kind in "biuOSU" or bool(np.isfinite(array).all())
