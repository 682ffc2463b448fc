"""Jacobians and what is made of them: walks over a tape with many cotangents at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from retrograde.core import indexed_slices
from retrograde.core.backward import Cotangents, backward_pass, depending_on
from retrograde.core.batching import Batched, batching, examples_of
from retrograde.core.recorders import thread
from retrograde.core.rules import Outputs, Spec
from retrograde.core.tape import TapeSnapshot
from retrograde.core.tensor import Tensor, wrap
from retrograde.ops import arithmetic, reduction, shaping
from retrograde.values.errors import allocate

MEMORY_LIMIT = 1 << 30  # bytes that one batch of cotangents may take, unless the caller says more

_FEW = 16  # targets up to which nothing is to be gained by chunks, or by going forwards


_ALONE = 2  # so many cotangents are pulled one by one sooner than as a batch


def pull(
    recorded: TapeSnapshot,
    targets: list,
    seeds: list,
    held: list,
    cotangents: Cotangents | None = None,
) -> list:
    """The cotangents of `held` that `seeds`, the cotangents of `targets`, lead to."""
    cotangents = Cotangents(recorded.on_tensors) if cotangents is None else cotangents
    for target, g in zip(targets, seeds, strict=True):
        cotangents.deposit(target._id, g)
    wanted = {x._id for x in held}
    needed = None if recorded.roots <= wanted else depending_on(wanted, recorded.entries)
    run = thread.recorders.backward_pass or backward_pass
    run(recorded.entries.copy(), cotangents, wanted, needed)
    return [indexed_slices.as_dense(cotangents.get(x._id)) for x in held]


class _Noted(Cotangents):
    """Cotangents that remember what they looked like."""

    def __init__(self, on_tensors: bool) -> None:
        super().__init__(on_tensors)
        self.specs: dict[int, Spec] = {}

    def __setitem__(self, key: int, value: Any) -> None:
        if value is not None:
            self.specs[key] = Spec(tuple(value.shape), value.dtype)
        super().__setitem__(key, value)


def pull_and_note(recorded: TapeSnapshot, target: Any, g: Any, held: list) -> tuple[list, dict]:
    """As `pull`; and the shape and dtype of each value on the way, by id."""
    cotangents = _Noted(recorded.on_tensors)
    return pull(recorded, [target], [g], held, cotangents), cotangents.specs


class Seeds(NamedTuple):
    """A family of cotangents or tangents of one shape: `make(start, stop)` makes some of them."""

    count: int
    make: Callable[[int, int], np.ndarray]


def one_at_a_time(x: Any) -> Seeds:
    """For each element of `x`, 1 there and 0 elsewhere."""
    shape, size = x._spec.shape, x._spec.size

    def make(start: int, stop: int) -> np.ndarray:
        seeds = allocate("jacobian", np.zeros, (stop - start, size), x._spec.dtype)
        seeds[np.arange(stop - start), np.arange(start, stop)] = 1
        return seeds.reshape(stop - start, *shape)

    return Seeds(size, make)


def one_in_each_row(x: Any) -> Seeds:
    """For each element of a row of `x`, 1 there in all rows and 0 elsewhere."""
    rows, *row = x._spec.shape
    size = int(np.prod(row))

    def make(start: int, stop: int) -> np.ndarray:
        shape = (stop - start, rows, size)
        seeds = allocate("jacobian", np.zeros, shape, x._spec.dtype)
        seeds[np.arange(stop - start), :, np.arange(start, stop)] = 1
        return seeds.reshape(stop - start, rows, *row)

    return Seeds(size, make)


def pull_many(recorded: TapeSnapshot, target: Any, seeds: Seeds, held: list, limit: int) -> list:
    """The cotangents of `held` for each of `seeds`, along a first axis; `None` where none flows.

    As many go in one walk as fit into `limit` bytes; a few go in any case.
    """
    step = _FEW if seeds.count <= _FEW else _at_once(recorded, target, held, limit)
    parts = [
        _pull_batch(recorded, target, seeds.make(i, min(i + step, seeds.count)), held)
        for i in range(0, max(seeds.count, 1), step)
    ]
    return [_joined(column) for column in zip(*parts, strict=True)]


def _at_once(recorded: TapeSnapshot, target: Any, held: list, limit: int) -> int:
    """How many cotangents of the target may go in one walk.

    What a walk holds at a time is at most a cotangent for each value that the tape has kept.
    """
    kept = {
        id(value._array): value._array.nbytes
        for _, _, _, saved, _ in recorded.entries
        for part in saved
        for value in (part if type(part) is Outputs else (part,))
        if hasattr(value, "_id")
    }
    ends = sum(x._array.nbytes for x in (target, *held))
    return max(1, int(limit // max(1, ends + sum(kept.values()))))


def _pull_batch(recorded: TapeSnapshot, target: Any, seeds: np.ndarray, held: list) -> list:
    if 0 < len(seeds) <= _ALONE:
        rows = [_pull_one(recorded, target, seed, held) for seed in seeds]
        return [_stacked(column) for column in zip(*rows, strict=True)]
    with batching(len(seeds)) as level:
        g = Batched(seeds, level)
        found = pull(recorded, [target], [wrap(g) if recorded.on_tensors else g], held)
        return [None if x is None else examples_of(x, level, shaping.broadcast_to) for x in found]


def _pull_one(recorded: TapeSnapshot, target: Any, seed: np.ndarray, held: list) -> list:
    return pull(recorded, [target], [Tensor(seed) if recorded.on_tensors else seed], held)


def _stacked(rows: tuple) -> Any:
    return None if rows[0] is None else shaping.stack(*rows, axis=0)


def _joined(parts: tuple) -> Any:
    if parts[0] is None or len(parts) == 1:
        return parts[0]
    return shaping.concat(*parts, axis=0)


def push_many(
    recorded: TapeSnapshot, target: Any, seeds: list[Seeds], held: list, limit: int, tape: Any
) -> list:
    """The tangents of `target` for each of the `seeds` of each of `held`, along a first axis.

    The way back is linear in the cotangent it begins with. It is walked once, with zeros, while
    `tape` records; the way back over that is the way forward.
    """
    zeros = Tensor(np.zeros(target._spec.shape, target._spec.dtype))
    with tape:
        tape.watch(zeros)
        pulled = pull(recorded._replace(on_tensors=True), [target], [zeros], held)
    there = TapeSnapshot(tape._entries, tape._roots, recorded.on_tensors)
    results = []
    for x, family in zip(pulled, seeds, strict=True):
        pushed = None if x is None else pull_many(there, x, family, [zeros], limit)[0]
        if x is not None and pushed is None:  # a way is there, but all that goes along it is 0
            pushed = np.zeros((family.count, *zeros._spec.shape), zeros._spec.dtype)
        results.append(pushed)
    return results


def _forward_is_shorter(target: Any, count: int, held: list, sizes: list[int]) -> bool:
    """Whether to go forwards: real numbers of one dtype, and far more targets than sources."""
    dtype = target._spec.dtype
    alike = dtype.kind != "c" and all(x._spec.dtype == dtype for x in held)
    return alike and count > _FEW and 2 * sum(sizes) <= count


def jacobian(recorded: TapeSnapshot, target: Any, held: list, limit: int, tape: Any) -> list:
    """For each of `held`, the derivative of each element of `target`: target axes, then its own.

    `tape` is an empty one, for the way forward.
    """
    shape = target._spec.shape
    sizes = [x._spec.size for x in held]
    if target._spec.size == 1:
        one = np.ones(shape, target._spec.dtype)
        found = pull(recorded, [target], [Tensor(one) if recorded.on_tensors else one], held)
    elif _forward_is_shorter(target, target._spec.size, held, sizes):
        found = push_many(recorded, target, [*map(one_at_a_time, held)], held, limit, tape)
        found = [_last_axis_first(x) for x in found]
    else:
        found = pull_many(recorded, target, one_at_a_time(target), held, limit)
    return [
        None if y is None else shaping.reshape(y, shape=(*shape, *x._spec.shape))
        for x, y in zip(held, found, strict=True)
    ]


def _last_axis_first(x: Any) -> Any:
    """`x` with its first axis moved to the end."""
    return None if x is None else shaping.transpose(x, perm=(*range(1, x.ndim), 0))


def jacobian_by_loop(recorded: TapeSnapshot, target: Any, held: list) -> list:
    """The same as `jacobian`, one row after the other."""
    seeds = one_at_a_time(target)
    rows = [_pull_one(recorded, target, seeds.make(i, i + 1)[0], held) for i in range(seeds.count)]
    shape = target._spec.shape
    return [
        None if y is None else shaping.reshape(y, shape=(*shape, *x._spec.shape))
        for x, y in zip(held, map(_stacked, zip(*rows, strict=True)), strict=True)
    ]


def batch_jacobian(
    recorded: TapeSnapshot, target: Any, source: Any, limit: int, tape: Any
) -> Any | None:
    """The Jacobian of each row of `target` by the same row of `source`."""
    rows, *row = target._spec.shape
    wide, narrow = one_in_each_row(target), one_in_each_row(source)
    if _forward_is_shorter(target, wide.count, [source], [narrow.count]):
        (found,) = push_many(recorded, target, [narrow], [source], limit, tape)
        if found is None:
            return None
        perm = (*range(1, found.ndim), 0)
    else:
        (found,) = pull_many(recorded, target, wide, [source], limit)
        if found is None:
            return None
        perm = (1, 0, *range(2, found.ndim))
    shape = (rows, *row, *source._spec.shape[1:])
    return shaping.reshape(shaping.transpose(found, perm=perm), shape=shape)


# On a tape that goes on recording, so that what it gives can be differentiated again


def first(tape: Any, target: Any, held: list) -> list[Tensor | None]:
    """The gradients of the sum of `target`, which `tape` records."""
    ones = Tensor(np.ones(target._spec.shape, target._spec.dtype))
    with tape:
        return pull(TapeSnapshot(tape._entries, tape._roots, True), [target], [ones], held)


def laplacian(tape: Any, target: Any, source: Any, limit: int) -> Any | None:
    """The sum of the second derivatives of `target` by each element of a row of `source`."""
    shape = target._spec.shape
    (gradient,) = first(tape, target, [source])
    if gradient is None:
        return None
    seeds = one_in_each_row(source) if shape else one_at_a_time(source)
    recorded = TapeSnapshot(tape._entries, tape._roots, tape._is_observed())
    (rows,) = pull_many(recorded, gradient, seeds, [source], limit)
    if rows is None:
        return None
    diagonals = arithmetic.multiply(rows, seeds.make(0, seeds.count))
    axis = (0, *range(2 if shape else 1, rows.ndim))
    return shaping.reshape(reduction.sum(diagonals, axis=axis, keepdims=False), shape=shape)


def nested(tape: Any, target: Any, orders: list[tuple]) -> list[Tensor | None]:
    """The derivative of `target` along each of `orders`, tuples of tensors to derive by in turn.

    What several of them begin with is computed once, and all that starts from one derivative in
    one walk.
    """
    paths = [tuple(x._id for x in order) for order in orders]
    by_id = {x._id: x for order in orders for x in order}
    found: dict[tuple, Any] = {(): target}
    for depth in range(max(map(len, paths), default=0)):
        steps: dict[tuple, set[int]] = {}
        for path in paths:
            if len(path) > depth:
                steps.setdefault(path[:depth], set()).add(path[depth])
        for path, keys in steps.items():
            here, keys = found[path], sorted(keys)
            ahead = [by_id[key] for key in keys]
            gradients = [None] * len(keys) if here is None else first(tape, here, ahead)
            found.update(((*path, k), g) for k, g in zip(keys, gradients, strict=True))
    return [found[path] for path in paths]
