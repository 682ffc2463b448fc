"""Finds the arrays that only a tape references."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from retrograde.core.rules import Outputs
from retrograde.core.tensor import Tensor
from retrograde.derivatives.checkpointing import is_freed, owner_of


def tensors_in(saved: tuple) -> Iterator[Tensor]:
    """Yields the tensors among the saved values of a call."""
    for value in saved:
        for part in value if type(value) is Outputs else (value,):
            if isinstance(part, Tensor) and not is_freed(part):
                yield part


def _references(x: Any) -> int:
    return sys.getrefcount(x)


_COUNTING_OVERHEAD = _references(object())  # references that `_references` itself adds


def exclusive_array_ids(entries: Iterable[tuple], holders: Iterable[Any]) -> set[int]:
    """Returns the `id` of each array that would be freed with `entries` and `holders`.

    It compares reference counts with the number of references from `entries` and `holders`. Any
    further references come from elsewhere.
    """
    known: Counter = Counter()
    tensors: dict[int, Any] = {}
    for entry in entries:
        for tensor in tensors_in(entry[3]):
            known[id(tensor)] += 1
            tensors[id(tensor)] = tensor
    for holder in holders:
        known[id(holder)] += 1
    tensor = holder = None
    return _exclusive_owners(tensors, known)


def _exclusive_owners(tensors: dict[int, Tensor], known: Counter) -> set[int]:
    owners: dict[int, Any] = {}
    references: Counter = Counter()
    shared = set()
    views = set()
    for key in tensors:
        has_other_references = _references(tensors[key]) - _COUNTING_OVERHEAD - known[key] - 1 > 0
        owner = id(owner_of(tensors[key]._array))
        view = id(tensors[key]._array)
        owners[owner] = owner_of(tensors[key]._array)
        if view == owner:
            references[owner] += 1
        elif view not in views:
            views.add(view)
            references[owner] += 1
            has_other_references |= _references(tensors[key]._array) - _COUNTING_OVERHEAD > 1
        if has_other_references:
            shared.add(owner)
    exclusive = set()
    for key in owners:
        if (
            key not in shared
            and _references(owners[key]) - _COUNTING_OVERHEAD == references[key] + 1
        ):
            exclusive.add(key)
    return exclusive
