"""Jacobians, Hessians and Laplacians, by batched backward passes over a tape."""

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

MEMORY_LIMIT = 1 << 30  # bytes that one batch of cotangents may take, by default

_FEW = 16  # for at most this many target elements, neither chunks nor forward mode save time
_UNBATCHED = 2  # for at most this many cotangents, separate passes are faster than a batch


def pull_back(
    recorded: TapeSnapshot,
    targets: list,
    seeds: list,
    sources: list,
    cotangents: Cotangents | None = None,
) -> list:
    """Returns the cotangents of `sources`, given the cotangents `seeds` of `targets`."""
    cotangents = Cotangents(recorded.on_tensors) if cotangents is None else cotangents
    for target, g in zip(targets, seeds, strict=True):
        cotangents.deposit(target._id, g)
    source_ids = {x._id for x in sources}
    needed = None if recorded.roots <= source_ids else depending_on(source_ids, recorded.entries)
    run = thread.recorders.backward_pass or backward_pass
    run(recorded.entries.copy(), cotangents, source_ids, needed)
    return [indexed_slices.as_dense(cotangents.get(x._id)) for x in sources]


class _CotangentsWithSpecs(Cotangents):
    """Cotangents that also keep the spec of each value."""

    def __init__(self, on_tensors: bool) -> None:
        super().__init__(on_tensors)
        self.specs: dict[int, Spec] = {}

    def __setitem__(self, key: int, value: Any) -> None:
        if value is not None:
            self.specs[key] = Spec(tuple(value.shape), value.dtype)
        super().__setitem__(key, value)


def pull_back_with_specs(
    recorded: TapeSnapshot, target: Any, g: Any, sources: list
) -> tuple[list, dict]:
    """Returns the cotangents of `sources`, and the spec of each value in between, by id."""
    cotangents = _CotangentsWithSpecs(recorded.on_tensors)
    return pull_back(recorded, [target], [g], sources, cotangents), cotangents.specs


class Seeds(NamedTuple):
    """Cotangents or tangents of one shape, `count` in all. `make(start, stop)` creates a range."""

    count: int
    make: Callable[[int, int], np.ndarray]


def unit_seeds(x: Any) -> Seeds:
    """Returns the unit vectors in the shape of `x`, one for each element."""
    shape, size = x._spec.shape, x._spec.size

    def make(start: int, stop: int) -> np.ndarray:
        seeds = allocate("jacobian", np.zeros, (stop - start, size), x._spec.dtype)
        seeds[np.arange(stop - start), np.arange(start, stop)] = 1
        return seeds.reshape(stop - start, *shape)

    return Seeds(size, make)


def row_unit_seeds(x: Any) -> Seeds:
    """Returns, for each element of a row of `x`, an array with 1 there in every row, else 0."""
    rows, *row = x._spec.shape
    size = int(np.prod(row))

    def make(start: int, stop: int) -> np.ndarray:
        shape = (stop - start, rows, size)
        seeds = allocate("jacobian", np.zeros, shape, x._spec.dtype)
        seeds[np.arange(stop - start), :, np.arange(start, stop)] = 1
        return seeds.reshape(stop - start, rows, *row)

    return Seeds(size, make)


def pull_back_batched(
    recorded: TapeSnapshot, target: Any, seeds: Seeds, sources: list, limit: int
) -> list:
    """Returns the cotangents of `sources` for each seed, along a first axis; `None` if unconnected.

    A backward pass handles as many seeds as fit into `limit` bytes, but at least a few.
    """
    step = _FEW if seeds.count <= _FEW else _batch_size(recorded, target, sources, limit)
    parts = [
        _pull_back_batch(recorded, target, seeds.make(i, min(i + step, seeds.count)), sources)
        for i in range(0, max(seeds.count, 1), step)
    ]
    return [_concatenate(column) for column in zip(*parts, strict=True)]


def _batch_size(recorded: TapeSnapshot, target: Any, sources: list, limit: int) -> int:
    """Returns how many cotangents of the target to handle in one backward pass.

    A pass holds at most one cotangent for each value that the tape keeps.
    """
    kept = {
        id(value._array): value._array.nbytes
        for _, _, _, saved, _ in recorded.entries
        for part in saved
        for value in (part if type(part) is Outputs else (part,))
        if hasattr(value, "_id")
    }
    ends = sum(x._array.nbytes for x in (target, *sources))
    return max(1, int(limit // max(1, ends + sum(kept.values()))))


def _pull_back_batch(recorded: TapeSnapshot, target: Any, seeds: np.ndarray, sources: list) -> list:
    if 0 < len(seeds) <= _UNBATCHED:
        rows = [_pull_back_one(recorded, target, seed, sources) for seed in seeds]
        return [_stack(column) for column in zip(*rows, strict=True)]
    with batching(len(seeds)) as level:
        g = Batched(seeds, level)
        gradients = pull_back(recorded, [target], [wrap(g) if recorded.on_tensors else g], sources)
        return [
            None if x is None else examples_of(x, level, shaping.broadcast_to) for x in gradients
        ]


def _pull_back_one(recorded: TapeSnapshot, target: Any, seed: np.ndarray, sources: list) -> list:
    return pull_back(recorded, [target], [Tensor(seed) if recorded.on_tensors else seed], sources)


def _stack(rows: tuple) -> Any:
    return None if rows[0] is None else shaping.stack(*rows, axis=0)


def _concatenate(parts: tuple) -> Any:
    if parts[0] is None or len(parts) == 1:
        return parts[0]
    return shaping.concat(*parts, axis=0)


def push_forward_batched(
    recorded: TapeSnapshot, target: Any, seeds: list[Seeds], sources: list, limit: int, tape: Any
) -> list:
    """Returns the tangents of `target` for the `seeds` of each source, along a first axis.

    The backward pass is linear in its cotangent. It runs once, with zeros, while `tape` records it.
    The backward pass over that recording computes forward-mode derivatives.
    """
    zeros = Tensor(np.zeros(target._spec.shape, target._spec.dtype))
    with tape:
        tape.watch(zeros)
        pulled = pull_back(recorded._replace(on_tensors=True), [target], [zeros], sources)
    transposed = TapeSnapshot(tape._entries, tape._roots, recorded.on_tensors)
    results = []
    for x, family in zip(pulled, seeds, strict=True):
        pushed = None if x is None else pull_back_batched(transposed, x, family, [zeros], limit)[0]
        if x is not None and pushed is None:  # connected, but the derivative is 0
            pushed = np.zeros((family.count, *zeros._spec.shape), zeros._spec.dtype)
        results.append(pushed)
    return results


def _forward_is_cheaper(target: Any, count: int, sources: list, sizes: list[int]) -> bool:
    """Returns whether forward mode is cheaper: far more targets than sources, of one real dtype."""
    dtype = target._spec.dtype
    same_dtype = dtype.kind != "c" and all(x._spec.dtype == dtype for x in sources)
    return same_dtype and count > _FEW and 2 * sum(sizes) <= count


def jacobian(recorded: TapeSnapshot, target: Any, sources: list, limit: int, tape: Any) -> list:
    """Returns the Jacobian of `target` for each source: target axes, then source axes.

    `tape` is an empty tape, for forward mode.
    """
    shape = target._spec.shape
    sizes = [x._spec.size for x in sources]
    if target._spec.size == 1:
        one = np.ones(shape, target._spec.dtype)
        jacobians = pull_back(
            recorded, [target], [Tensor(one) if recorded.on_tensors else one], sources
        )
    elif _forward_is_cheaper(target, target._spec.size, sources, sizes):
        jacobians = push_forward_batched(
            recorded, target, [*map(unit_seeds, sources)], sources, limit, tape
        )
        jacobians = [_first_axis_last(x) for x in jacobians]
    else:
        jacobians = pull_back_batched(recorded, target, unit_seeds(target), sources, limit)
    return [
        None if y is None else shaping.reshape(y, shape=(*shape, *x._spec.shape))
        for x, y in zip(sources, jacobians, strict=True)
    ]


def _first_axis_last(x: Any) -> Any:
    """Moves the first axis of `x` to the end."""
    return None if x is None else shaping.transpose(x, perm=(*range(1, x.ndim), 0))


def jacobian_by_loop(recorded: TapeSnapshot, target: Any, sources: list) -> list:
    """Computes the same as `jacobian`, row by row."""
    seeds = unit_seeds(target)
    rows = [
        _pull_back_one(recorded, target, seeds.make(i, i + 1)[0], sources)
        for i in range(seeds.count)
    ]
    shape = target._spec.shape
    return [
        None if y is None else shaping.reshape(y, shape=(*shape, *x._spec.shape))
        for x, y in zip(sources, map(_stack, zip(*rows, strict=True)), strict=True)
    ]


def batch_jacobian(
    recorded: TapeSnapshot, target: Any, source: Any, limit: int, tape: Any
) -> Any | None:
    """Returns the Jacobian of each row of `target` with respect to the same row of `source`."""
    rows, *row = target._spec.shape
    wide, narrow = row_unit_seeds(target), row_unit_seeds(source)
    if _forward_is_cheaper(target, wide.count, [source], [narrow.count]):
        (jacobian,) = push_forward_batched(recorded, target, [narrow], [source], limit, tape)
        if jacobian is None:
            return None
        perm = (*range(1, jacobian.ndim), 0)
    else:
        (jacobian,) = pull_back_batched(recorded, target, wide, [source], limit)
        if jacobian is None:
            return None
        perm = (1, 0, *range(2, jacobian.ndim))
    shape = (rows, *row, *source._spec.shape[1:])
    return shaping.reshape(shaping.transpose(jacobian, perm=perm), shape=shape)


# With a tape that keeps recording, so that the results can be differentiated


def recorded_gradients(tape: Any, target: Any, sources: list) -> list[Tensor | None]:
    """Returns the gradients of the sum of `target`, recorded on `tape`."""
    ones = Tensor(np.ones(target._spec.shape, target._spec.dtype))
    with tape:
        return pull_back(TapeSnapshot(tape._entries, tape._roots, True), [target], [ones], sources)


def laplacian(tape: Any, target: Any, source: Any, limit: int) -> Any | None:
    """Returns the sum of second derivatives with respect to the elements of each row."""
    shape = target._spec.shape
    (gradient,) = recorded_gradients(tape, target, [source])
    if gradient is None:
        return None
    seeds = row_unit_seeds(source) if shape else unit_seeds(source)
    recorded = TapeSnapshot(tape._entries, tape._roots, tape._runs_on_tensors(thread.recorders))
    (rows,) = pull_back_batched(recorded, gradient, seeds, [source], limit)
    if rows is None:
        return None
    diagonals = arithmetic.multiply(rows, seeds.make(0, seeds.count))
    axis = (0, *range(2 if shape else 1, rows.ndim))
    return shaping.reshape(reduction.sum(diagonals, axis=axis, keepdims=False), shape=shape)


def nested_gradients(tape: Any, target: Any, orders: list[tuple]) -> list[Tensor | None]:
    """Returns the derivatives of `target` with respect to each tuple of tensors in `orders`.

    Common prefixes are computed once, and all derivatives of one intermediate in a single pass.
    """
    paths = [tuple(x._id for x in order) for order in orders]
    by_id = {x._id: x for order in orders for x in order}
    derivatives: dict[tuple, Any] = {(): target}
    for depth in range(max(map(len, paths), default=0)):
        steps: dict[tuple, set[int]] = {}
        for path in paths:
            if len(path) > depth:
                steps.setdefault(path[:depth], set()).add(path[depth])
        for path, keys in steps.items():
            derivative, keys = derivatives[path], sorted(keys)
            sources = [by_id[key] for key in keys]
            if derivative is None:
                gradients = [None] * len(keys)
            else:
                gradients = recorded_gradients(tape, derivative, sources)
            derivatives.update(((*path, k), g) for k, g in zip(keys, gradients, strict=True))
    return [derivatives[path] for path in paths]
