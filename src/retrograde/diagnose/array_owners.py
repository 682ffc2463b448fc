"""Who holds the arrays of a tape: the tape alone, or someone else besides."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from retrograde.core.rules import Outputs
from retrograde.core.tensor import Tensor
from retrograde.derivatives.checkpointing import is_freed, owner_of


def tensors_in(saved: tuple) -> Iterator[Tensor]:
    """The tensors that a tape kept of a call."""
    for value in saved:
        for part in value if type(value) is Outputs else (value,):
            if isinstance(part, Tensor) and not is_freed(part):
                yield part


def _references(x: Any) -> int:
    return sys.getrefcount(x)


_OF_THE_CALL = _references(object())  # how many of them are those of asking


def held_alone(entries: Iterable[tuple], holders: Iterable[Any]) -> set[int]:
    """The `id` of the owners of memory that would be freed with `entries` and `holders`.

    It is found by counting references: those from the entries and holders are known, and if there
    are more, they are someone else's.
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
    return _owners_alone(tensors, known)


def _owners_alone(tensors: dict[int, Tensor], known: Counter) -> set[int]:
    owners: dict[int, Any] = {}
    from_here: Counter = Counter()
    shared = set()
    views = set()
    for key in tensors:
        elsewhere = _references(tensors[key]) - _OF_THE_CALL - known[key] - 1 > 0
        whole = id(owner_of(tensors[key]._array))
        part = id(tensors[key]._array)
        owners[whole] = owner_of(tensors[key]._array)
        if part == whole:
            from_here[whole] += 1
        elif part not in views:
            views.add(part)
            from_here[whole] += 1
            elsewhere |= _references(tensors[key]._array) - _OF_THE_CALL > 1
        if elsewhere:
            shared.add(whole)
    alone = set()
    for key in owners:
        if key not in shared and _references(owners[key]) - _OF_THE_CALL == from_here[key] + 1:
            alone.add(key)
    return alone
