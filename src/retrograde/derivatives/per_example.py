"""Gradients of each example's loss, out of one walk.

While the rows of a batch do not meet, the cotangent of a row is that of its own loss, and an
ordinary walk has them all. Only where a rule reaches what all rows share, the parameters, would it
add them up; there it is run on each row alone, as a batch. From there on, cotangents are batches.

A tape does not say what its first axes mean, so this is a guess, and it is checked: with random
weights for the examples, the sum has to be the gradient of the weighted loss. If it is not, the
gradients are computed one by one, in a batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core import indexed_slices
from retrograde.core.backward import Cotangents, depending_on
from retrograde.core.batching import Batched, Level, batching, examples_of
from retrograde.core.indexed_slices import IndexedSlices
from retrograde.core.plans import Plan
from retrograde.core.recorders import thread
from retrograde.core.rules import Spec
from retrograde.core.tape import TapeSnapshot
from retrograde.core.tensor import Tensor, wrap
from retrograde.derivatives.jacobian import one_at_a_time, pull_and_note, pull_many
from retrograde.ops import arithmetic, complex_numbers, elementary, reduction, shaping


class _CannotTell(Exception):
    """The rows of the batch cannot be told apart."""


def gradients_by_row(recorded: TapeSnapshot, target: Any, held: list, limit: int) -> list:
    """For each of `held`, its gradients by the elements of `target`, along a first axis."""
    weights = _random_weights(target)
    g = Tensor(weights) if recorded.on_tensors else weights
    expected, specs = pull_and_note(recorded, target, g, held)
    try:
        found = _RowByRow(recorded, target, held, specs).run()
        if _adds_up(found, weights, expected):
            return found
    except _CannotTell:
        pass
    return pull_many(recorded, target, one_at_a_time(target), held, limit)


def norms(found: list) -> Any | None:
    """The length of each example's gradient, over all sources; `None` if there is none."""
    total = None
    for rows in found:
        if rows is not None:
            part = _squares_of_rows(rows)
            total = part if total is None else total + part
    return None if total is None else elementary.sqrt(total)


def _squares_of_rows(x: Any) -> Any:
    size = complex_numbers.complex_abs(x) if x.dtype.kind == "c" else x
    flat = shaping.reshape(size, shape=(size.shape[0], -1) if size.shape[0] else (0, 1))
    return reduction.sum(arithmetic.square(flat), axis=(1,), keepdims=False)


def _random_weights(target: Any) -> np.ndarray:
    rng = np.random.default_rng(target._spec.size)
    return rng.uniform(0.5, 1.5, target._spec.shape).astype(target._spec.dtype)


def _adds_up(found: list, weights: np.ndarray, expected: list) -> bool:
    """Whether the weighted sum of the gradients is what it should be."""
    for rows, whole in zip(found, expected, strict=True):
        if rows is None or whole is None:
            if rows is not whole:
                return False
            continue
        rows, whole = (np.asarray(getattr(x, "_array", x)) for x in (rows, whole))
        flat = rows.reshape(len(rows), -1)
        size = np.sqrt(np.vdot(flat, flat).real)
        tolerance = 100 * size * float(np.finfo(np.result_type(flat.dtype, np.float32)).eps)
        if not np.allclose(weights.ravel() @ flat, whole.ravel(), rtol=0, atol=tolerance):
            return False
    return True


class _RowByRow:
    """A walk that keeps the rows of a batch apart."""

    def __init__(self, recorded: TapeSnapshot, target: Any, held: list, specs: dict) -> None:
        self._entries, _, self._on_tensors = recorded
        self._target = target
        self._held = held
        self._size = target._spec.size
        self._needed = depending_on({x._id for x in held}, self._entries)
        self._shared = _shared(self._entries, held, self._size, specs)
        self._run = _run if self._on_tensors else thread.recorders.quietly

    def run(self) -> list:
        """The cotangents of the sources, with the examples in front."""
        wanted = {x._id for x in self._held}
        cotangents = Cotangents(self._on_tensors)
        ones = np.ones(self._target._spec.shape, self._target._spec.dtype)
        cotangents.deposit(self._target._id, Tensor(ones) if self._on_tensors else ones)
        with batching(self._size) as level:
            for plan, ids, out, saved, attrs in reversed(self._entries):
                if type(out) is tuple:
                    g = cotangents.of_outputs(out, wanted)
                else:
                    g = cotangents.get(out) if out in wanted else cotangents.pop(out, None)
                if g is None:
                    continue
                first = out[0][0] if type(out) is tuple else out
                if isinstance(g, IndexedSlices):
                    g = self._run(indexed_slices.dense, g)
                for i, x in self._pulled(level, first, plan, ids, g, saved, attrs):
                    cotangents.deposit(i, x)
            found = [cotangents.get(x._id) for x in self._held]
            return [
                self._of_all(x, source, level) for x, source in zip(found, self._held, strict=True)
            ]

    def _pulled(
        self, level: Level, out: int, plan: Plan, ids: tuple, g: Any, saved: tuple, attrs: dict
    ) -> list[tuple[int, Any]]:
        """The cotangents of the inputs of one call, by id."""
        values = saved if self._on_tensors else [x._array for x in saved]
        needed = [i in self._needed for i in ids]
        if out in self._shared:
            return self._by_rules(plan, ids, needed, g, values, attrs)
        shared = [n and i in self._shared for n, i in zip(needed, ids, strict=True)]
        own = [n and not s for n, s in zip(needed, shared, strict=True)]
        results = self._by_rules(plan, ids, own, g, values, attrs) if any(own) else []
        if any(shared):
            if plan.user_code:
                raise _CannotTell
            row = self._row(g, level)
            rows = [
                v if k and ids[k - 1] in self._shared else self._row(v, level)
                for k, v in enumerate(values)
            ]
            results += self._by_rules(plan, ids, shared, row, rows, attrs)
        return results

    def _by_rules(
        self, plan: Plan, ids: tuple, needed: list[bool], g: Any, values: Any, attrs: dict
    ) -> list[tuple[int, Any]]:
        if plan.joint is None:
            return [
                (ids[i], self._run(rule, g, *values, **attrs))
                for i, rule in plan.rules
                if needed[i]
            ]
        if plan.user_code and not self._on_tensors:
            raise _CannotTell
        flags = tuple([n and c for n, c in zip(needed, plan.connected, strict=True)])
        results = self._run(plan.joint, flags, g, *values, **attrs)
        return [(i, x) for i, x in zip(ids, results, strict=True) if x is not None]

    def _row(self, x: Any, level: Level) -> Any:
        """Of what has a row for each example, a batch of single rows."""
        if isinstance(x, tuple) and not isinstance(x, Spec):
            return tuple([self._row(part, level) for part in x])
        if not hasattr(x, "dtype") or tuple(x.shape[:1]) != (self._size,):
            return x
        if isinstance(x, Spec):
            return Spec((1, *x.shape[1:]), x.dtype)
        shape = (self._size, 1, *x.shape[1:])
        value = shaping.reshape(x, shape=shape)
        return wrap(Batched(value, level)) if self._on_tensors else Batched(value, level)

    def _of_all(self, x: Any, source: Any, level: Level) -> Any:
        if x is None:
            return None
        if isinstance(x, IndexedSlices):
            x = self._run(indexed_slices.dense, x)
        if tuple(x.shape) != source._spec.shape:
            raise _CannotTell
        return examples_of(x, level, shaping.broadcast_to)


def _run(rule: Any, *values: Any, **attrs: Any) -> Any:
    return rule(*values, **attrs)


def _shared(entries: list[tuple], held: list, size: int, specs: dict) -> set[int]:
    """The ids of what all examples have in common: the sources, and what is made of them alone.

    A result with a row for each example has left them, unless it was made of something shared that
    happens to have as many rows.
    """
    shared = {x._id for x in held}
    followed = set(shared)
    for plan, ids, out, saved, _ in entries:
        inputs = [i for i in ids if i in followed]
        if not inputs:
            continue
        outs = [i for i, _ in out] if type(out) is tuple else [out]
        followed.update(outs)
        if not shared.issuperset(inputs):
            continue
        rows = any(i in specs and specs[i].shape[:1] == (size,) for i in outs)
        as_many = any(i in specs and specs[i].shape[:1] == (size,) for i in inputs)
        if not rows or (as_many and not _reads_rows(plan, ids, saved, followed, size)):
            shared.update(outs)
    return shared


def _reads_rows(plan: Plan, ids: tuple, saved: tuple, followed: set, size: int) -> bool:
    """Whether a call reads a constant that has a row for each example."""
    if plan.user_code:
        return False
    return any(
        getattr(value._array, "shape", ())[:1] == (size,)
        for i, value in zip(ids, saved[1:], strict=True)
        if i not in followed
    )
