"""A tape that stays under a limit of memory: it drops values, and computes them again when needed.

Kernels are functions of their inputs alone, and what comes from outside, random numbers and values
of variables among it, is kept. So what was dropped comes back bit by bit as it was, and nothing
happens twice but arithmetic.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from retrograde.core import namespaces
from retrograde.core.apply import MANY, Primitive
from retrograde.core.lazy import LazyTensor, Materializer
from retrograde.core.recorders import quiet_context
from retrograde.core.rules import Outputs, Spec
from retrograde.core.tensor import Tensor
from retrograde.values.arguments import as_text, shown
from retrograde.values.errors import ResourceExhaustedError
from retrograde.values.source_location import Place, first_output

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}


def bytes_from(limit: Any) -> int:
    """A number of bytes, given as such or in words like "2GB"."""
    match = re.fullmatch(r"\s*(\d+\.?\d*)\s*([A-Za-z]*)\s*", as_text(limit))
    unit = _UNITS.get(match[2].upper()) if match else None
    if unit is None or isinstance(limit, bool) or float(match[1]) * unit >= 2**63:
        raise ValueError(
            "GradientTape: expected a number of bytes for `memory_limit`, or words like '2GB' or "
            f"'500MiB'. Received: {shown(limit)}."
        )
    return int(float(match[1]) * unit)


class Recipe(NamedTuple):
    """How to make the outputs of a call again.

    `inputs` are tensors that came from outside, or the ids of what the tape saw being made. `work`
    is a rough number of operations.
    """

    primitive: Primitive
    inputs: tuple[Tensor | int, ...]
    attrs: dict
    outputs: tuple[int, ...]
    number: int
    work: float


@dataclass
class Holding:
    """An array that is kept: its bytes, the values that live in it, and the calls that keep it."""

    nbytes: int
    values: dict[int, Tensor] = field(default_factory=dict)
    calls: set[int] = field(default_factory=set)
    fixed: bool = False  # given from outside, or among the outputs that a rule reads together


class Rematerialized(Materializer):
    """The origin of a value that a tape with a memory limit freed: it is computed again on use.

    The array is not kept here: the ledger keeps it while the limit allows.
    """

    __slots__ = ("_ledger", "dtype", "shape")

    def __init__(self, ledger: Ledger, spec: Spec) -> None:
        self._ledger = ledger
        self.shape, self.dtype = spec

    def materialize(self, tensor: LazyTensor) -> Any:
        """Computes the array again, unless the ledger has it."""
        return self._ledger.value(tensor._id)


def is_freed(x: Any) -> bool:
    """Whether `x` is a tensor whose array a tape with a memory limit freed."""
    return type(x) is LazyTensor and type(x._spec) is Rematerialized


def _made(recipe: Recipe) -> list[int]:
    """The inputs that the tape saw being made."""
    return [i for i in recipe.inputs if type(i) is int]


class Ledger:
    """What a tape holds, what it let go to stay under the `limit`, and what that costs.

    `held` are the bytes of all that it keeps but the values of `variables`; `dropped`, of what it
    let go; `recomputed` is how many calls were run again, and `seconds` how long that took.
    """

    def __init__(self, limit: int, variables: Mapping[int, Any]) -> None:
        self.limit = limit
        self._variables = variables
        self.held = self.dropped = self.recomputed = 0
        self.seconds = 0.0
        self.recipes: dict[int, Recipe] = {}
        self.places: dict[int, Place] = {}  # by the number of the call
        self._holdings: dict[int, Holding] = {}  # by the id of the array that owns the memory
        self._live: dict[int, Tensor] = {}
        self._sizes: dict[int, int] = {}  # bytes of values that were dropped
        self._again: dict[int, Any] = {}  # computed again, and kept while there is room

    # While the tape records

    def enter(self, number: int, plan: Any, values: tuple, attrs: dict) -> tuple:
        """What to save of a call; its recipe and what it keeps are written down."""
        y, *inputs = values
        outputs = y if isinstance(y, tuple) else (y,)
        sources = tuple([x._id if x._id in self.recipes else x for x in inputs])
        work = _work(plan.name, inputs, outputs)
        made = tuple([t._id for t in outputs])
        recipe = Recipe(plan.primitive, sources, attrs, made, number, work)
        self.recipes.update(dict.fromkeys(made, recipe))
        saved = plan.save(values)
        for value in (*saved, *sources):
            if type(value) is Outputs:
                for part in value:
                    self._keep(part, number, fixed=True)
            elif isinstance(value, Tensor) and value._id not in self._variables:
                self._keep(value, number, fixed=value._id not in self.recipes)
        return saved

    def _keep(self, tensor: Tensor, number: int, fixed: bool) -> None:
        owner = owner_of(tensor._array)
        holding = self._holdings.get(id(owner))
        if holding is None:
            holding = self._holdings[id(owner)] = Holding(owner.nbytes)
            self.held += owner.nbytes
        holding.values[tensor._id] = tensor
        holding.calls.add(number)
        holding.fixed |= fixed
        self._live[tensor._id] = tensor

    def shrink(self, entries: list[tuple]) -> None:
        """Lets go of what is cheapest to compute again, for its size, until the limit is met."""
        while self.held > self.limit:
            work = self._work_again()
            candidates = [
                (sum(work[key] for key in holding.values) / max(holding.nbytes, 1), owner)
                for owner, holding in self._holdings.items()
                if not holding.fixed and holding.nbytes
            ]
            if not candidates:
                raise ResourceExhaustedError(None, None, self._complaint())
            self._drop(self._holdings.pop(min(candidates)[1]), entries)

    def _work_again(self) -> dict[int, float]:
        """How much work each value would be, from what is still there."""
        work: dict[int, float] = {}
        for key, recipe in self.recipes.items():  # in the order in which they were made
            before = [i for i in _made(recipe) if i not in self._live]
            work[key] = recipe.work + sum(work[i] for i in before)
        return work

    def _drop(self, holding: Holding, entries: list[tuple]) -> None:
        stand_ins = {
            key: LazyTensor(Rematerialized(self, Spec.of(tensor)), tensor._id)
            for key, tensor in holding.values.items()
        }
        for number in holding.calls:
            plan, ids, out, saved, attrs = entries[number]
            saved = tuple([stand_ins.get(getattr(x, "_id", None), x) for x in saved])
            entries[number] = (plan, ids, out, saved, attrs)
        for key, tensor in holding.values.items():
            self._sizes[key] = tensor._array.nbytes
            del self._live[key]
        self.held -= holding.nbytes
        self.dropped += holding.nbytes

    def _complaint(self) -> str:
        lines = []
        for holding in sorted(self._holdings.values(), key=lambda h: -h.nbytes)[:5]:
            key, tensor = next(iter(holding.values.items()))
            recipe = self.recipes.get(key)
            who = "given from outside" if recipe is None else f"made by {recipe.primitive.name}"
            place = self.places.get(min(holding.calls))
            at = "" if place is None else f", at {place}"
            shape = list(tensor._array.shape)
            lines.append(f"  {holding.nbytes} bytes: {tensor.dtype.name}{shape}, {who}{at}")
        return (
            f"GradientTape: the memory_limit of {self.limit} bytes cannot be met. The tape holds "
            f"{self.held} bytes that cannot be computed again. The largest are:\n"
            + "\n".join(lines)
        )

    # While a walk goes back

    def value(self, key: int) -> Any:
        """The array of a value, computed again if it was let go."""
        known = self._found(key)
        if known is not None:
            return known
        start = time.perf_counter()
        order = self._needed(key)
        chosen = self._chosen(order)
        uses = Counter(i for recipe in order for i in set(_made(recipe)))
        fresh: dict[int, Any] = {}
        for recipe in order:
            fresh.update(zip(recipe.outputs, self._run(recipe, fresh), strict=True))
            for k in chosen.intersection(recipe.outputs):
                self._again[k] = fresh[k]
                self.held += owner_of(fresh[k]).nbytes
            for i in set(_made(recipe)):
                uses[i] -= 1
            for i in [i for i in fresh if not uses[i] and i != key]:
                del fresh[i]  # at the earliest moment: what is passed through is not kept
        self.recomputed += len(order)
        self.seconds += time.perf_counter() - start
        return fresh[key]

    def _needed(self, key: int) -> list[Recipe]:
        """What has to be done for a value, in order."""
        found: dict[int, Recipe] = {}
        pending = [key]
        while pending:
            recipe = self.recipes[pending.pop()]
            if recipe.number not in found:
                found[recipe.number] = recipe
                pending += [i for i in _made(recipe) if self._found(i) is None]
        return [found[number] for number in sorted(found)]

    def _chosen(self, order: list[Recipe]) -> set[int]:
        """Which of the values that are computed again to keep for calls yet to come.

        Those that were dropped will be asked for again, the last of them first. If there is no room
        for all, every second, third or further one is kept, to start from.
        """
        again = [k for recipe in order for k in recipe.outputs if k in self._sizes]
        room, total = self.limit - self.held, sum(self._sizes[k] for k in again)
        if room <= 0:
            return set()
        chosen = set()
        for k in again[:: -max(1, -(-total // room))]:
            if self._sizes[k] <= room:
                chosen.add(k)
                room -= self._sizes[k]
        return chosen

    def _found(self, key: int) -> Any:
        if key in self._live:
            return self._live[key]._array
        return self._again.get(key)

    def _run(self, recipe: Recipe, fresh: dict[int, Any]) -> list:
        """Does what `apply` did."""
        arrays = [
            x._array if type(x) is not int else fresh[x] if x in fresh else self._found(x)
            for x in recipe.inputs
        ]
        # The walk that asks may be in the quiet context of the thread already.
        primitive, quietly = recipe.primitive, quiet_context().run
        xp = namespaces.namespace_of(arrays)
        if xp is np:
            kernel = primitive.on_numpy if arrays[0].size < MANY else primitive.on_many
            y = quietly(kernel, *arrays, **recipe.attrs)
        else:
            y = quietly(primitive.kernel, xp, *arrays, **recipe.attrs)
        return list(y) if primitive.outputs else [y]

    def leave(self, number: int) -> None:
        """Lets go of what no call before the one of this number reads."""
        for key in [k for k in self._again if self.recipes[k].number >= number]:
            self.held -= owner_of(self._again.pop(key)).nbytes

    def leave_for_good(self, number: int, outputs: tuple[int, ...]) -> None:
        """As `leave`; and of what the tape itself kept for the call, which is gone now."""
        self.leave(number)
        for key in outputs:
            self.recipes.pop(key, None)
        for owner in [o for o, h in self._holdings.items() if min(h.calls) >= number]:
            holding = self._holdings.pop(owner)
            self.held -= holding.nbytes
            for key in holding.values:
                del self._live[key]


class LimitedEntries(list):
    """The entries of a tape with a limit. Taken from the end, they come with all their values."""

    __slots__ = ("_copied", "ledger")

    def __init__(self, ledger: Ledger, copied: bool = False) -> None:
        super().__init__()
        self.ledger = ledger
        self._copied = copied

    @property
    def places(self) -> dict[int, Place]:
        """The place of each call, by its first output."""
        return {first_output(self[i][2]): p for i, p in self.ledger.places.items() if i < len(self)}

    def copy(self) -> LimitedEntries:
        """The same entries, for a walk that leaves the tape as it is."""
        copied = LimitedEntries(self.ledger, copied=True)
        copied.extend(self)
        return copied

    def limit_last(self, values: tuple, place: Place | None) -> None:
        """Enters the last entry, whose inputs and outputs are `values`, into the ledger."""
        number = len(self) - 1
        plan, _, _, _, attrs = self[number]
        if plan.primitive is None:
            return
        if place is not None:
            self.ledger.places[number] = place
        self.ledger.enter(number, plan, values, attrs)
        if self.ledger.held > self.ledger.limit:
            self.ledger.shrink(self)

    def pop(self) -> tuple:
        """The last entry, with values that were dropped computed again."""
        plan, ids, out, saved, attrs = super().pop()
        saved = tuple([Tensor(x._array, x._id) if is_freed(x) else x for x in saved])
        if self._copied:
            self.ledger.leave(len(self))
        else:
            made = tuple([i for i, _ in out]) if type(out) is tuple else (out,)
            self.ledger.leave_for_good(len(self), made)
        return plan, ids, out, saved, attrs


def owner_of(array: Any) -> Any:
    """The array that owns the memory: what a view is a part of."""
    while isinstance(array, np.ndarray) and isinstance(array.base, np.ndarray):
        array = array.base
    return array


_PRODUCTS = frozenset(("matmul", "convolve", "convolve_transposed", "convolve_filter"))


def _work(name: str, inputs: list, outputs: tuple) -> float:
    """A rough number of operations: one for each element, and for products one for each term."""
    sizes = [x._array.size for x in (*inputs, *outputs)]
    if name in _PRODUCTS:
        return float(np.prod([max(size, 1) for size in sizes], dtype=float) ** 0.5)
    return float(sum(sizes))
