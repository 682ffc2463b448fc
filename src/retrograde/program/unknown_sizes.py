"""Unknown sizes: traces of a function whose arguments have `None` dimensions.

A trace has concrete sizes. A function with unknown dimensions is traced with sizes that are chosen
here, several times if the results depend on them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from retrograde.program.signature import tensors_reached
from retrograde.values import nest
from retrograde.values.errors import InvalidArgumentError
from retrograde.values.specs import TensorSpec

_PRIMES = (7, 11, 13, 17, 19, 23, 29, 31)  # sizes that rarely occur by chance
_ATTEMPTS = 100
_CHECKS = (4, 5)
_INVALID_SIZES = (ValueError, InvalidArgumentError)  # raised by functions that reject some sizes


class NoCommonForm(Exception):
    """Raised if traces with different sizes differ in more than sizes."""


class SizedTrace(NamedTuple):
    """A trace, and the sizes of the unknown dimensions in it."""

    sizes: tuple[int, ...]
    trace: Any


def unknown_axes(arguments: Any) -> list[tuple[int, int]]:
    """Returns the unknown dimensions in `arguments`, as pairs of leaf index and axis."""
    return [
        (leaf_index, axis)
        for leaf_index, leaf in enumerate(nest.leaves(arguments))
        if isinstance(leaf, TensorSpec) and leaf.shape.rank is not None
        for axis, size in enumerate(leaf.shape.as_list())
        if size is None
    ]


def with_sizes(arguments: Any, sizes: Sequence[int]) -> Any:
    """Returns `arguments` with `sizes` in place of the unknown dimensions."""
    sizes_by_axis = dict(zip(unknown_axes(arguments), sizes, strict=True))
    leaves = []
    for leaf_index, leaf in enumerate(nest.leaves(arguments)):
        if isinstance(leaf, TensorSpec) and leaf.shape.rank is not None:
            shape = [
                sizes_by_axis.get((leaf_index, i), n) for i, n in enumerate(leaf.shape.as_list())
            ]
            leaf = TensorSpec(shape, leaf.dtype, leaf.name)
        leaves.append(leaf)
    return nest.pack(arguments, iter(leaves))


# Tracing with several sizes


def traces_with_sizes(
    python_function: Callable, count: int, trace_with: Callable[[tuple], SizedTrace]
) -> tuple[list[SizedTrace], list[list[int]]]:
    """Returns traces with `count` sizes, and the groups of sizes that have to be equal.

    After the first trace come traces that differ from it in one size, or in one group. In the last
    traces, one for each of `_CHECKS`, all sizes are much larger, which refutes wrong formulas.
    A size that cannot change is the same in all traces.
    """
    first = first_trace(python_function, count, trace_with)
    sizes, changed = first.sizes, list(first.sizes)
    varied_traces, equal_size_groups = [], []
    for i in range(count):
        if changed[i] != sizes[i]:  # part of a group that was varied
            continue
        for positions in ([i], [j for j in range(count) if sizes[j] == sizes[i]]):
            varied = varied_in(positions, sizes, trace_with)
            if varied is None:
                continue
            varied_traces.append(varied)
            equal_size_groups += [positions] if len(positions) > 1 else []
            for j in positions:
                changed[j] = varied.sizes[j]
            break
    checks: list[Any] = [_try(_enlarge(sizes, changed, times), trace_with) for times in _CHECKS]
    if not varied_traces or None in checks:
        raise NoCommonForm
    return [first, *varied_traces, *checks], equal_size_groups


def _enlarge(sizes: tuple[int, ...], changed: list[int], times: int) -> tuple[int, ...]:
    """Returns sizes that are about `times` as large, odd and even if both are valid."""
    enlarged = [
        times * n + (times // 2 if m == n + 1 else 0) for n, m in zip(sizes, changed, strict=True)
    ]
    return tuple(
        [n if m == n else large for n, m, large in zip(sizes, changed, enlarged, strict=True)]
    )


def first_trace(
    python_function: Callable, count: int, trace_with: Callable[[tuple], SizedTrace]
) -> SizedTrace:
    """Returns a trace with valid sizes: primes, or the sizes of tensors that the function reads."""
    read_sizes = {n for tensor in tensors_reached(python_function) for n in tensor._spec.shape} - {
        1
    }
    primes = [_PRIMES[i % len(_PRIMES)] for i in range(count)]
    choices = [
        dict.fromkeys([prime, *sorted(read_sizes, reverse=True), primes[0]]) for prime in primes
    ]
    combinations = sorted(itertools.islice(itertools.product(*choices), 10_000), key=_non_primes)
    problem: Exception | None = None
    for sizes in combinations[:_ATTEMPTS]:
        try:
            return trace_with(sizes)
        except _INVALID_SIZES as error:
            problem = problem or error
    raise problem or NoCommonForm


def _non_primes(sizes: tuple[int, ...]) -> int:
    """Counts the sizes that are not the preferred prime."""
    return sum(n != prime for n, prime in zip(sizes, itertools.cycle(_PRIMES), strict=False))


def varied_in(
    positions: list[int],
    sizes: tuple[int, ...],
    trace_with: Callable[[tuple], SizedTrace],
    by: int = 1,
) -> SizedTrace | None:
    """Returns a trace with other sizes at `positions`: increased by `by`, doubled or tripled.

    Returns `None` if the function rejects all of them.
    """
    size = sizes[positions[0]]
    for other in (size + by, 2 * size, 3 * size):
        changed = tuple([other if i in positions else n for i, n in enumerate(sizes)])
        trace = _try(changed, trace_with)
        if trace is not None:
            return trace
    return None


def _try(sizes: tuple[int, ...], trace_with: Callable[[tuple], SizedTrace]) -> SizedTrace | None:
    try:
        return trace_with(sizes)
    except _INVALID_SIZES:
        return None
