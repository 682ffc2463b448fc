"""Per-example gradients from a single backward pass.

As long as the rows of a batch are independent, the cotangent of a row is the gradient of its loss,
so an ordinary backward pass computes all of them. Only a rule for a value that all rows share, such
as a parameter, would sum over the rows. There the rule runs on each row separately, as a batch.
From there on, cotangents are batched.

A tape does not know which axes are batch axes, so this is a guess, which is checked. With random
weights for the examples, the sum of the results must be the gradient of the weighted loss. If it is
not, the gradients are computed by a batched backward pass.
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
from retrograde.derivatives.jacobian import pull_back_batched, pull_back_with_specs, unit_seeds
from retrograde.ops import arithmetic, complex_numbers, elementary, reduction, shaping


class _CannotSeparate(Exception):
    """Raised if the rows of the batch cannot be separated."""


def gradients_by_row(recorded: TapeSnapshot, target: Any, sources: list, limit: int) -> list:
    """Returns the gradients of each element of `target`, along a first axis, for each source."""
    weights = _random_weights(target)
    g = Tensor(weights) if recorded.on_tensors else weights
    expected, specs = pull_back_with_specs(recorded, target, g, sources)
    try:
        gradients = _RowwisePass(recorded, target, sources, specs).run()
        if _adds_up(gradients, weights, expected):
            return gradients
    except _CannotSeparate:
        pass
    return pull_back_batched(recorded, target, unit_seeds(target), sources, limit)


def norms(gradients: list) -> Any | None:
    """Returns the per-example gradient norms over all sources; `None` if all are unconnected."""
    total = None
    for rows in gradients:
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


def _adds_up(gradients: list, weights: np.ndarray, expected: list) -> bool:
    """Returns whether the weighted sum of the gradients equals the expected gradient."""
    for rows, total in zip(gradients, expected, strict=True):
        if rows is None or total is None:
            if rows is not total:
                return False
            continue
        rows, total = (np.asarray(getattr(x, "_array", x)) for x in (rows, total))
        flat = rows.reshape(len(rows), -1)
        size = np.sqrt(np.vdot(flat, flat).real)
        tolerance = 100 * size * float(np.finfo(np.result_type(flat.dtype, np.float32)).eps)
        if not np.allclose(weights.ravel() @ flat, total.ravel(), rtol=0, atol=tolerance):
            return False
    return True


class _RowwisePass:
    """A backward pass that keeps the rows of a batch separate."""

    def __init__(self, recorded: TapeSnapshot, target: Any, sources: list, specs: dict) -> None:
        self._entries, _, self._on_tensors = recorded
        self._target = target
        self._sources = sources
        self._size = target._spec.size
        self._needed = depending_on({x._id for x in sources}, self._entries)
        self._shared = _shared_ids(self._entries, sources, self._size, specs)
        self._run = _run if self._on_tensors else thread.recorders.quietly

    def run(self) -> list:
        """Returns the cotangents of the sources, with the examples along a first axis."""
        requested = {x._id for x in self._sources}
        cotangents = Cotangents(self._on_tensors)
        ones = np.ones(self._target._spec.shape, self._target._spec.dtype)
        cotangents.deposit(self._target._id, Tensor(ones) if self._on_tensors else ones)
        with batching(self._size) as level:
            for plan, ids, out, saved, attrs in reversed(self._entries):
                if type(out) is tuple:
                    g = cotangents.get_outputs(out, requested)
                else:
                    g = cotangents.get(out) if out in requested else cotangents.pop(out, None)
                if g is None:
                    continue
                first = out[0][0] if type(out) is tuple else out
                if isinstance(g, IndexedSlices):
                    g = self._run(indexed_slices.dense, g)
                for i, x in self._pull_back_call(level, first, plan, ids, g, saved, attrs):
                    cotangents.deposit(i, x)
            gradients = [cotangents.get(x._id) for x in self._sources]
            return [
                self._collect(x, source, level)
                for x, source in zip(gradients, self._sources, strict=True)
            ]

    def _pull_back_call(
        self, level: Level, out: int, plan: Plan, ids: tuple, g: Any, saved: tuple, attrs: dict
    ) -> list[tuple[int, Any]]:
        """Returns the cotangents of the inputs of one call, by id."""
        values = saved if self._on_tensors else [x._array for x in saved]
        needed = [i in self._needed for i in ids]
        if out in self._shared:
            return self._apply_rules(plan, ids, needed, g, values, attrs)
        shared = [n and i in self._shared for n, i in zip(needed, ids, strict=True)]
        separate = [n and not s for n, s in zip(needed, shared, strict=True)]
        results = self._apply_rules(plan, ids, separate, g, values, attrs) if any(separate) else []
        if any(shared):
            if plan.user_code:
                raise _CannotSeparate
            row = self._to_rows(g, level)
            rows = [
                v if k and ids[k - 1] in self._shared else self._to_rows(v, level)
                for k, v in enumerate(values)
            ]
            results += self._apply_rules(plan, ids, shared, row, rows, attrs)
        return results

    def _apply_rules(
        self, plan: Plan, ids: tuple, needed: list[bool], g: Any, values: Any, attrs: dict
    ) -> list[tuple[int, Any]]:
        if plan.joint is None:
            return [
                (ids[i], self._run(rule, g, *values, **attrs))
                for i, rule in plan.rules
                if needed[i]
            ]
        if plan.user_code and not self._on_tensors:
            raise _CannotSeparate
        flags = tuple([n and c for n, c in zip(needed, plan.connected, strict=True)])
        results = self._run(plan.joint, flags, g, *values, **attrs)
        return [(i, x) for i, x in zip(ids, results, strict=True) if x is not None]

    def _to_rows(self, x: Any, level: Level) -> Any:
        """Converts a value with a row for each example to a batch of single rows."""
        if isinstance(x, tuple) and not isinstance(x, Spec):
            return tuple([self._to_rows(part, level) for part in x])
        if not hasattr(x, "dtype") or tuple(x.shape[:1]) != (self._size,):
            return x
        if isinstance(x, Spec):
            return Spec((1, *x.shape[1:]), x.dtype)
        shape = (self._size, 1, *x.shape[1:])
        value = shaping.reshape(x, shape=shape)
        return wrap(Batched(value, level)) if self._on_tensors else Batched(value, level)

    def _collect(self, x: Any, source: Any, level: Level) -> Any:
        if x is None:
            return None
        if isinstance(x, IndexedSlices):
            x = self._run(indexed_slices.dense, x)
        if tuple(x.shape) != source._spec.shape:
            raise _CannotSeparate
        return examples_of(x, level, shaping.broadcast_to)


def _run(rule: Any, *values: Any, **attrs: Any) -> Any:
    return rule(*values, **attrs)


def _shared_ids(entries: list[tuple], sources: list, size: int, specs: dict) -> set[int]:
    """Returns the ids of values that all examples share: sources, and functions of them.

    A result with a row for each example is not shared, unless it was computed from a shared value
    that happens to have the same number of rows.
    """
    shared = {x._id for x in sources}
    followed_ids = set(shared)
    for plan, ids, out, saved, _ in entries:
        inputs = [i for i in ids if i in followed_ids]
        if not inputs:
            continue
        outs = [i for i, _ in out] if type(out) is tuple else [out]
        followed_ids.update(outs)
        if not shared.issuperset(inputs):
            continue
        rows = any(i in specs and specs[i].shape[:1] == (size,) for i in outs)
        same_rows = any(i in specs and specs[i].shape[:1] == (size,) for i in inputs)
        if not rows or (same_rows and not _reads_rows(plan, ids, saved, followed_ids, size)):
            shared.update(outs)
    return shared


def _reads_rows(plan: Plan, ids: tuple, saved: tuple, followed_ids: set, size: int) -> bool:
    """Returns whether a call reads a constant that has a row for each example."""
    if plan.user_code:
        return False
    return any(
        getattr(value._array, "shape", ())[:1] == (size,)
        for i, value in zip(ids, saved[1:], strict=True)
        if i not in followed_ids
    )
