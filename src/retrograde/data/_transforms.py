"""Functions from iterators to iterators that implement the steps of a pipeline."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.data._elements import (
    call,
    call_with,
    common_spec,
    normalize_result,
    row_counts,
    rows_of,
    spec_of_element,
)
from retrograde.data._nodes import INFINITE_CARDINALITY
from retrograde.data._workers import Prefetcher, Run
from retrograde.ops.conversion import as_tensor
from retrograde.values import nest
from retrograde.values.arguments import as_text, shown
from retrograde.values.errors import FailedPreconditionError, invalid


def as_element_function(function: Callable) -> Callable:
    """Returns `function` as a function of elements; tuples are passed as several arguments."""
    return lambda element: normalize_result(call(function, element))


def evaluate_predicate(predicate: Callable, element: Any) -> bool:
    """Returns whether `predicate` is true for an element."""
    result = normalize_result(call(predicate, element))
    if type(result) is not Tensor or result._spec.dtype != bool or result._spec.ndim:
        raise ValueError(
            "Invalid `predicate`. `predicate` must return a `tf.bool` scalar tensor, but its "
            f"return type is {spec_of_element(result)}."
        )
    return bool(result._array)


def take_while_true(keep: Callable, elements: Iterator) -> Iterator:
    """Yields elements up to the first for which `keep` is false."""
    for element in elements:
        if not keep(element):
            return
        yield element


def scan_step(scan_func: Callable, state: Any, element: Any) -> tuple:
    """Returns the next state and the output."""
    result = call_with(scan_func, state, element)
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise TypeError(
            "Invalid `scan_func`. `scan_func` should return a pair consisting of new state and the "
            f"output value but it returned {shown(result)}."
        )
    next_state, output = result
    if isinstance(next_state, list) and isinstance(state, Tensor):
        next_state = as_tensor(next_state)
    next_state, output = normalize_result(next_state), normalize_result(output)
    check_state("scan_func", state, next_state)
    return next_state, output


def scan(scan_func: Callable, state: Any, elements: Iterator) -> Iterator:
    """Yields the output for each element."""
    for element in elements:
        state, output = scan_step(scan_func, state, element)
        yield output


def check_state(name: str, state: Any, next_state: Any) -> None:
    """Raises an error if the spec of the state changes."""
    before, after = spec_of_element(state), spec_of_element(next_state)
    if common_spec(before, after) is None:
        raise TypeError(
            f"Invalid `{name}`. The element types for the new state must match the initial state. "
            f"Expected {before}, got {after}."
        )


def unique(elements: Iterator) -> Iterator:
    """Yields each distinct element once."""
    seen = set()
    for element in elements:
        leaves = nest.flatten(element)
        if len(leaves) != 1 or not isinstance(leaves[0], Tensor):
            raise invalid("unique: elements must be single tensors.")
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


def zip_rows(flat: Sequence[Any], pack: Callable) -> Iterator:
    """Yields the packed rows of the leaves."""
    return (pack(list(row)) for row in zip(*map(rows_of, flat), strict=False))


def cyclic_groups(elements: Iterator, sizes: Sequence[int], drop: bool) -> Iterator:
    """Yields lists of elements with the given sizes in turn. The last may be shorter."""
    for size in itertools.cycle(sizes):
        group = list(itertools.islice(elements, size))
        if size and (not group or (drop and len(group) < size)):
            return
        yield group


def unbatch_elements(elements: Iterator) -> Iterator:
    """Yields the rows of elements."""
    for element in elements:
        flat, pack = nest.flatten_with_pack(element)
        counts = row_counts(flat)
        check_has_rows(counts, element)
        check_row_counts(counts)
        yield from zip_rows(flat, pack)


def check_row_counts(counts: set[int | None]) -> None:
    """Raises an error if components have different numbers of rows. `None` is unknown."""
    known = counts - {None}
    if len(known) > 1:
        raise ValueError(
            "`unbatch()` is only supported for datasets of elements whose components have a "
            f"matching leading dimension. Encountered {sorted(known)}."
        )


def check_has_rows(tensors: Collection, element: Any) -> None:
    """Raises an error if an element has no tensors: then the number of rows is unknown."""
    if not tensors:
        raise ValueError(
            "`unbatch()` is only supported for elements with at least one tensor. Received: "
            f"elements {as_text(element)}."
        )


def windows(elements: Iterator, span: int, shift: int, stride: int, drop: bool) -> Iterator[list]:
    """Yields lists of elements; each starts `shift` elements after the previous one."""
    buffer: list = []
    to_skip = 0  # elements to skip before the next window
    for element in _with_errors(elements):
        if to_skip:
            to_skip -= 1
            continue
        buffer.append(element)
        if len(buffer) == span:
            yield _without_errors(buffer[::stride])
            to_skip = max(shift - span, 0)
            del buffer[:shift]
    while buffer and not drop:
        yield _without_errors(buffer[::stride])
        del buffer[:shift]


def _with_errors(elements: Iterator) -> Iterator:
    """Yields the elements, and exceptions in place of those that raise one."""
    while True:
        try:
            element = next(elements)
        except StopIteration:
            return
        except Exception as error:
            element = error
        yield element


def _without_errors(elements: list) -> list:
    """Returns the elements. Raises the first exception among them."""
    for element in elements:
        if isinstance(element, Exception):
            raise element
    return elements


def window_count(n: int, span: int, shift: int, drop: bool) -> int:
    """Returns the number of windows over `n` elements."""
    if n < 0:
        return n
    return max(0, (n - span) // shift + 1) if drop else -(-n // shift)


class InterleavedElements:
    """Yields `block` elements of each of `cycle` datasets in turn.

    It is not a generator, because a generator ends with the first error: the next element can be
    read after an error.
    """

    def __init__(
        self, datasets: Iterator, cycle: int, block: int, prefetch: bool, run: Run
    ) -> None:
        self._datasets, self._cycle, self._block = datasets, cycle, block
        self._prefetch, self._run = prefetch, run
        self._slots: list[Iterator | None] = [None] * cycle
        self._exhausted = False
        self._current = self._count = 0  # the slot, and the elements that were read from it in turn

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        while True:
            slot = self._slots[self._current] or self._open_next()
            if slot is not None and self._count < self._block:
                try:
                    element = next(slot)
                except StopIteration:
                    self._slots[self._current] = None
                else:
                    self._count += 1
                    return element
            elif self._exhausted and not any(self._slots):
                raise StopIteration
            self._current, self._count = (self._current + 1) % self._cycle, 0

    def _open_next(self) -> Iterator | None:
        dataset = None if self._exhausted else next(self._datasets, None)
        if dataset is None:
            self._exhausted = True
            return None
        opened = dataset._node.open(self._run)
        slot = Prefetcher(opened, 2 * self._block, self._run) if self._prefetch else opened
        self._slots[self._current] = slot
        return slot


def skip_errors(elements: Iterator) -> Iterator:
    """Yields the elements that do not raise an error."""
    while True:
        try:
            yield next(elements)
        except StopIteration:
            return
        except Exception:
            continue


def assert_count(elements: Iterator, count: int) -> Iterator:
    """Yields the elements and raises an error unless there are `count`. -1 means infinite."""
    expected = "an infinite number of" if count == INFINITE_CARDINALITY else count
    message = f"Input dataset was expected to contain {expected} elements but contained"
    seen = 0
    for element in elements:
        seen += 1
        if seen > count >= 0:
            raise FailedPreconditionError(None, None, f"{message} at least {seen} elements.")
        yield element
    if seen != count:
        raise FailedPreconditionError(None, None, f"{message} only {seen} elements.")
