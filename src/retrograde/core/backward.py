"""The backward pass over the entries of a tape."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from retrograde.core import indexed_slices, required
from retrograde.core.indexed_slices import IndexedSlices
from retrograde.core.lazy import waiting
from retrograde.core.plans import ON_ARRAYS, ON_TENSORS
from retrograde.core.recorders import thread
from retrograde.core.tape_arguments import seed
from retrograde.core.tensor import Tensor
from retrograde.values import dtypes
from retrograde.values.errors import exhausted, is_out_of_memory
from retrograde.values.reference_counts import count, unshared_count
from retrograde.values.thresholds import LARGE_ARRAY_SIZE, MAX_SIZE_CHECKED_FOR_NAN

_REAL_SCALARS = frozenset((np.float16, np.float32, np.float64))  # the types of most losses


def backward_pass(
    entries: list[tuple], cotangents: Cotangents, source_ids: set[int], needed: set | None
) -> None:
    """Propagates cotangents from targets to sources, and empties `entries` from the end.

    `source_ids` are the ids of the sources. Rules run only for inputs in `needed`, or for all
    inputs if it is `None`. Traces read `plan` and `out` from this frame to locate a rule.
    """
    mode = ON_TENSORS if cotangents.on_tensors else ON_ARRAYS
    # A rule on tensors applies primitives, which enter the quiet context themselves.
    run = cotangents.call if mode else thread.recorders.quietly
    runners = (run, cotangents.call)
    take, flags = cotangents.pop, thread.flags
    seen = flags.count
    try:
        while entries:
            plan, ids, out, saved, attrs = entry = entries.pop()
            if type(out) is tuple:
                g = cotangents.get_outputs(out, source_ids, plan.takes_none)
            else:
                g = cotangents.get(out) if out in source_ids else take(out, None)
            if type(g) is IndexedSlices and not plan.passes_rows:
                g = run(indexed_slices.dense, g)
            if g is not None:
                runners[plan.user_code](plan.pull[mode], cotangents, needed, g, ids, saved, attrs)
                if flags.count != seen:
                    seen = cotangents.check(entry, g, entries)
    except (MemoryError, ValueError) as error:
        if is_out_of_memory(error):
            raise exhausted(error, f"gradient of {plan.name}") from None
        raise


class NonFinite(NamedTuple):
    """The first call of a backward pass that produced a non-finite cotangent.

    `g` are the cotangents of its outputs, `before` are the entries that the pass had not reached,
    and `cotangents` are all cotangents at that point.
    """

    entry: tuple
    g: tuple
    before: list[tuple]
    cotangents: dict[int, Any]


class Cotangents(dict):
    """Cotangents by the id of their tensor. Cotangents for the same id are summed.

    They are raw arrays, or Tensors if the pass runs `on_tensors`, so that recorders observe its
    operations. If they are `monitored`, `nonfinite` is the call that produced the first NaN or Inf.
    """

    __slots__ = ("_owned", "monitored", "nonfinite", "on_tensors")

    def __init__(self, on_tensors: bool) -> None:
        self.on_tensors = on_tensors
        self.monitored = False
        self.nonfinite: NonFinite | None = None
        self._owned: set[int] = set()  # ids of sums computed here, which are updated in place

    def seed(self, targets: list, weights: list) -> bool:
        """Sets the cotangents of `targets`. Returns whether they are finite, if they are small.

        Integer targets have no cotangent, because no gradient flows through them.
        """
        finite = True
        for x, weight in zip(targets, weights, strict=True):
            array = x._array if x._device is None else x._spec  # without a transfer
            if array.dtype in dtypes.INEXACT:
                g = seed(x, weight, self.on_tensors)
                if x._id in self:
                    self.deposit(x._id, g)
                else:
                    self[x._id] = g
                if type(array) in _REAL_SCALARS and weight is None:
                    finite = finite and math.isfinite(array)
                else:
                    finite = finite and _are_finite(array, g)
        return finite

    def call(self, f: Any, *args: Any) -> Any:
        """Calls a rule that works on tensors."""
        result = f(*args)
        if waiting and self.monitored and len(args) > 1:
            for g in map(self.get, args[3]):  # of the inputs of this call
                if isinstance(g, Tensor):
                    g._array  # noqa: B018  materialize, so that flags belong to this call
        return result

    def deposit(self, key: int, value: Any) -> None:
        """Adds `value` to the cotangent of `key`."""
        if self.on_tensors or key not in self:
            self.add(key, value)
        else:
            thread.recorders.quietly(self.add, key, value)

    def add(self, key: int, value: Any) -> None:
        """Does the same as `deposit`, without NumPy warnings."""
        before = self.get(key)
        if before is None:
            if value is not None:
                self[key] = value
        elif key in self._owned and type(value) is np.ndarray and before.size < LARGE_ARRAY_SIZE:
            np.add(before, value, before)
        elif (
            type(before) is np.ndarray
            and before.size >= LARGE_ARRAY_SIZE
            and self._owns(key, value)
        ):
            required.add.on_many(before, value, out=before)
        elif value is not None:
            is_sparse = type(before) is IndexedSlices or type(value) is IndexedSlices
            if is_sparse or (type(before) is np.ndarray and before.size >= LARGE_ARRAY_SIZE):
                total = indexed_slices.add(before, value)
            else:
                total = before + value
            self[key] = total
            if type(total) is np.ndarray:
                self._owned.add(key)
            else:
                self._owned.discard(key)

    def _owns(self, key: int, value: Any) -> bool:
        """Returns whether `value` can be added in place: nothing else holds the array of `key`."""
        if type(value) is not np.ndarray:
            return False
        return key in self._owned or (
            count(self[key]) == _REFERENCES
            and self[key].base is None
            and self[key].flags.writeable
            and (self[key].shape, self[key].dtype) == (value.shape, value.dtype)
        )

    def deposit_results(self, ids: tuple, results: Any) -> None:
        """Adds the results of a user-defined rule, which are tensors, for the inputs `ids`."""
        for i, result in zip(ids, results, strict=True):
            self.deposit(i, result if self.on_tensors else _raw(result))

    def check(self, entry: tuple, g: Any, before: list[tuple]) -> int:
        """Keeps the state of the pass if the gradient of a call is the first non-finite one.

        `g` is the cotangent of its outputs, and `before` are the remaining entries. Returns the
        number of flags that have been set so far.
        """
        if self.monitored and not all(is_finite(self.get(i)) for i in entry[1]):
            self.monitored = False
            self._owned.clear()  # the kept arrays must not change
            kept = {i: _raw(g) for i, g in self.items()} if self.on_tensors else dict(self)
            self.nonfinite = NonFinite(entry, g if type(g) is tuple else (g,), list(before), kept)
        return thread.flags.count

    def get_outputs(self, out: tuple, source_ids: set[int], none: bool = False) -> tuple | None:
        """Returns the cotangents of all outputs of one call, or `None` if none was used.

        The cotangent of an output that was not used is zeros, or `None` if `none` is true.
        """
        cotangents = [self.get(i) if i in source_ids else self.pop(i, None) for i, _ in out]
        if all(g is None for g in cotangents):
            return None
        completed = []
        for g, (_, spec) in zip(cotangents, out, strict=True):
            if g is None and not none:
                zeros = np.zeros(spec.shape, spec.dtype)
                g = Tensor(zeros) if self.on_tensors else zeros
            completed.append(indexed_slices.dense(g) if type(g) is IndexedSlices else g)
        return tuple(completed)


def _references() -> int:
    """Returns the number of references that `_owns` finds if nothing else holds an array."""
    cotangents = {0: np.zeros(2)}
    before = cotangents.get(0)  # noqa: F841
    return count(cotangents[0])


_REFERENCES = unshared_count(_references)


def _raw(g: Any) -> Any:
    """Converts a cotangent to arrays."""
    if isinstance(g, IndexedSlices):
        return IndexedSlices(g.values._array, g.indices._array, g.dense_shape)
    return None if g is None else g._array


def is_finite(g: Any) -> bool:
    """Returns whether a cotangent is free of NaN and Inf. Foreign arrays are not checked."""
    if type(g) is IndexedSlices:
        g = g._values
    array = g._array if isinstance(g, Tensor) and g._device is None else g
    return not isinstance(array, (np.ndarray, np.generic)) or bool(np.isfinite(array).all())


def _are_finite(array: Any, g: Any) -> bool:
    """Returns whether a target and its cotangent are finite. Large arrays are not checked."""
    return array.size > MAX_SIZE_CHECKED_FOR_NAN or (is_finite(array) and is_finite(g))


def depending_on(source_ids: set[int], entries: list[tuple]) -> set[int]:
    """Returns the ids of all tensors that depend on the sources. Only these need cotangents."""
    needed = set(source_ids)
    for _, ids, out, _, _ in entries:
        if not needed.isdisjoint(ids):
            if type(out) is tuple:
                needed.update([i for i, _ in out])
            else:
                needed.add(out)
    return needed
