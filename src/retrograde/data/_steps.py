"""What the steps of a pipeline do with elements, one after the other."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.data._nodes import INFINITE_CARDINALITY
from retrograde.data._structure import (
    call,
    common_spec,
    from_function,
    row_counts,
    rows_of,
    spec_of_element,
)
from retrograde.data._workers import Prefetched, Run
from retrograde.values import nest
from retrograde.values.arguments import as_text, shown
from retrograde.values.errors import FailedPreconditionError, invalid


def on_element(function: Callable) -> Callable:
    """`function` of elements, tuples among them as several arguments."""
    return lambda element: from_function(call(function, element))


def truth(predicate: Callable, element: Any) -> bool:
    """Whether `predicate` holds for an element."""
    result = from_function(call(predicate, element))
    if type(result) is not Tensor or result._spec.dtype != bool or result._spec.ndim:
        raise ValueError(
            "Invalid `predicate`. `predicate` must return a `tf.bool` scalar tensor, but its "
            f"return type is {spec_of_element(result)}."
        )
    return bool(result._array)


def while_true(keep: Callable, elements: Iterator) -> Iterator:
    """The elements before the first that is not to be kept."""
    for element in elements:
        if not keep(element):
            return
        yield element


def scanned(scan_func: Callable, state: Any, element: Any) -> tuple:
    """The next state and what comes out."""
    result = scan_func(state, element)
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise TypeError(
            "Invalid `scan_func`. `scan_func` should return a pair consisting of new state and the "
            f"output value but it returned {shown(result)}."
        )
    following, output = map(from_function, result)
    check_state("scan_func", state, following)
    return following, output


def scan(scan_func: Callable, state: Any, elements: Iterator) -> Iterator:
    """What comes out, element by element."""
    for element in elements:
        state, output = scanned(scan_func, state, element)
        yield output


def check_state(what: str, state: Any, following: Any) -> None:
    """Raises unless the state stays of its kind."""
    before, after = spec_of_element(state), spec_of_element(following)
    if common_spec(before, after) is None:
        raise TypeError(
            f"Invalid `{what}`. The element types for the new state must match the initial state. "
            f"Expected {before}, got {after}."
        )


def unique(elements: Iterator) -> Iterator:
    """Each element once."""
    seen = set()
    for element in elements:
        leaves = nest.flatten(element)
        if len(leaves) != 1 or not isinstance(leaves[0], Tensor):
            raise invalid("unique: only elements that are one tensor are supported.")
        array = np.asarray(leaves[0]._array)
        if array.dtype not in (np.int32, np.int64, np.dtype(object)):
            raise TypeError(
                f"`tf.data.Dataset.unique` does not support type {leaves[0].dtype!r} -- only "
                "`tf.int32`, `tf.int64`, and `tf.string` are supported."
            )
        key = (array.shape, tuple(array.reshape(-1).tolist()))
        if key not in seen:
            seen.add(key)
            yield element


def rows_together(flat: Sequence[Any], pack: Callable) -> Iterator:
    """The rows of leaves, packed one by one."""
    return (pack(list(row)) for row in zip(*map(rows_of, flat), strict=False))


def groups_in_turn(elements: Iterator, sizes: Sequence[int], drop: bool) -> Iterator:
    """Lists of elements that have these sizes in turn; the last may be shorter, or is dropped."""
    for size in itertools.cycle(sizes):
        group = list(itertools.islice(elements, size))
        if not group or (drop and len(group) < size):
            return
        yield group


def unbatched(elements: Iterator) -> Iterator:
    """The rows of elements."""
    for element in elements:
        flat, pack = nest.flatten_with_pack(element)
        counts = row_counts(flat)
        check_has_rows(counts, element)
        if len(counts) > 1:
            raise ValueError(
                "`unbatch()` is only supported for datasets of elements whose components have a "
                f"matching leading dimension. Encountered {sorted(counts)}."
            )
        yield from rows_together(flat, pack)


def check_has_rows(tensors: Collection, element: Any) -> None:
    """Raises if no part of an element has rows: then their number is not known."""
    if not tensors:
        raise ValueError(
            "`unbatch()` is only supported for elements with at least one tensor. Received: "
            f"elements {as_text(element)}."
        )


def windows(elements: Iterator, reach: int, shift: int, stride: int, drop: bool) -> Iterator[list]:
    """Lists of elements, each beginning `shift` after the one before."""
    buffer: list = []
    ahead = 0  # elements before the next window that are still to come
    for element in elements:
        if ahead:
            ahead -= 1
            continue
        buffer.append(element)
        if len(buffer) == reach:
            yield buffer[::stride]
            ahead = max(shift - reach, 0)
            del buffer[:shift]
    while buffer and not drop:
        yield buffer[::stride]
        del buffer[:shift]


def window_count(n: int, reach: int, shift: int, drop: bool) -> int:
    """How many windows `n` elements give."""
    if n < 0:
        return n
    return max(0, (n - reach) // shift + 1) if drop else -(-n // shift)


def interleaved(datasets: Iterator, cycle: int, block: int, ahead: bool, run: Run) -> Iterator:
    """`block` elements at a time of each of `cycle` datasets in turn."""
    slots: list[Iterator | None] = [None] * cycle
    exhausted = False
    place = 0
    while not exhausted or any(slot is not None for slot in slots):
        if slots[place] is None and not exhausted:
            dataset = next(datasets, None)
            exhausted = dataset is None
            if dataset is not None:
                opened = dataset._node.open(run)
                slots[place] = Prefetched(opened, 2 * block, run) if ahead else opened
        if slots[place] is not None:
            for _ in range(block):
                try:
                    element = next(slots[place])
                except StopIteration:
                    slots[place] = None
                    break
                yield element
        place = (place + 1) % cycle


def surviving(elements: Iterator) -> Iterator:
    """The elements that could be made."""
    while True:
        try:
            yield next(elements)
        except StopIteration:
            return
        except Exception:
            continue


def counted_exactly(elements: Iterator, count: int) -> Iterator:
    """The elements, if there are exactly `count` of them; -1 stands for infinitely many."""
    expected = "an infinite number of" if count == INFINITE_CARDINALITY else count
    words = f"Input dataset was expected to contain {expected} elements but contained"
    seen = 0
    for element in elements:
        seen += 1
        if seen > count >= 0:
            raise FailedPreconditionError(None, None, f"{words} at least {seen} elements.")
        yield element
    if seen != count:
        raise FailedPreconditionError(None, None, f"{words} only {seen} elements.")
