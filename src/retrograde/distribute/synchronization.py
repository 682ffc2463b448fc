"""Checks that mirrored variables are the same in all replicas."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograde.core.variable import VariableSynchronization
from retrograde.ops.collectives import current_group
from retrograde.values.errors import FailedPreconditionError


def check_in_sync(strategy: Any, variables: Sequence[Any]) -> None:
    """Raises a `FailedPreconditionError` that names the variables whose values differ."""
    checked = [
        (v.name, _digest(v))
        for v in map(_unwrap, variables)
        if v.synchronization is not VariableSynchronization.ON_READ
    ]
    group = current_group()
    if group.size == 1 or not checked:
        return
    digests = np.array([digest for _, digest in checked], np.int64)
    gathered = group.all_gather(digests[None], 0)
    different = [
        name
        for (name, _), column in zip(checked, gathered.T, strict=True)
        if len(set(column.tolist())) > 1
    ]
    if different:
        raise FailedPreconditionError(
            None,
            None,
            f"{len(different)} of {len(checked)} variables differ between replicas: "
            f"{', '.join(different[:10])}. Assign to mirrored variables only values that are the "
            "same in all replicas: reduce gradients with tf.distribute.get_replica_context()."
            "all_reduce, or let optimizer.apply_gradients do it.",
        )


def variables_of_all_workers(created: Sequence[Any]) -> list[Any]:
    """Returns the variables of weak references that still exist in all workers.

    Workers create the same variables in the same order, but may free them at different times.
    """
    alive = {i: v for i, v in enumerate([ref() for ref in created]) if v is not None}
    group = current_group()
    if group.size == 1:
        return list(alive.values())
    numbers, counts = np.unique(
        group.all_gather(np.array(list(alive), np.int64), 0), return_counts=True
    )
    return [alive[i] for i in numbers[counts == group.size].tolist()]


def _unwrap(variable: Any) -> Any:
    """Returns the variable that a Keras variable holds."""
    return getattr(variable, "_value", variable)


def _digest(variable: Any) -> int:
    array = np.ascontiguousarray(variable._array)
    return int.from_bytes(hashlib.sha256(array).digest()[:8], "little", signed=True)
