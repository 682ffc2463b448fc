"""The nodes of a pipeline. A node can be opened any number of times, each time from the start."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from retrograde.data import _row_indices
from retrograde.data._elements import (
    are_ragged,
    batched_spec,
    infer_spec,
    map_specs,
    stack_elements,
)
from retrograde.data._seeds import Seeds
from retrograde.data._workers import ParallelMap, Prefetcher, Run
from retrograde.values.arguments import as_text
from retrograde.values.errors import invalid
from retrograde.values.specs import TensorSpec

AUTOTUNE = -1
INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2


def threads(num_parallel_calls: int) -> int:
    """Returns the number of threads for `num_parallel_calls`."""
    return available_cores() if num_parallel_calls == AUTOTUNE else num_parallel_calls


def available_cores() -> int:
    """Returns the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Node:
    """One step. With a `source`, its elements are the columns of the index tables `tables(run)`."""

    name = ""
    source: Any = None
    inputs: Sequence[Node] = ()
    seeds: Seeds | None = None
    spec_needs_call = False  # whether computing the spec calls a user function
    reads_files = False  # whether it reads the files that its input names
    make_dataset: Callable | None = None  # the function of `flat_map` or `interleave`

    def elements(self, run: Run) -> Iterator:
        """Returns an iterator over the elements."""
        raise NotImplementedError

    def tables(self, run: Run) -> _row_indices.Tables:
        """Returns an iterator over tables of row indices into `source`."""
        raise NotImplementedError

    def open(self, run: Run) -> Iterator:
        """Returns an iterator over the elements, from the source if there is one."""
        if self.source is None:
            return self.elements(run)
        return self._from_rows(run)

    def open_after(self, run: Run, count: int) -> Iterator:
        """Returns an iterator after the first `count` elements. It avoids computing these."""
        if not count:
            return self.open(run)
        if self.source is not None:
            return self._elements_at(_row_indices.skip(self.tables(run), count))
        elements = self.open(run)
        discard(elements, count)
        return elements

    def _from_rows(self, run: Run) -> Iterator:
        return self._elements_at(self.tables(run))

    def _elements_at(self, tables: _row_indices.Tables) -> Iterator:
        for table in tables:
            yield from map(self.source.get, table.T.tolist())

    def all_seeds(self) -> list[Seeds]:
        """Returns the `Seeds` of this node and its inputs, always in the same order."""
        result = [] if self.seeds is None else [self.seeds]
        for node in self.inputs:
            result += [seeds for seeds in node.all_seeds() if seeds not in result]
        return result

    @functools.cached_property
    def spec(self) -> Any:
        """The spec of elements."""
        return self.compute_spec()

    def compute_spec(self) -> Any:
        """Computes the spec of elements."""
        raise NotImplementedError

    def cardinality(self) -> int:
        """Returns the number of elements, `INFINITE_CARDINALITY` or `UNKNOWN_CARDINALITY`."""
        return UNKNOWN_CARDINALITY

    def first(self) -> Any:
        """Returns the first element of a separate run."""
        run = Run()
        try:
            return next(self.open(run))
        finally:
            run.close()


class Slices(Node):
    """Rows of a source."""

    name = "TensorSlice"

    def __init__(self, source: Any, count: int | None, spec: Any, name: str = "TensorSlice"):
        self.source, self.count, self._known_spec, self.name = source, count, spec, name

    def tables(self, run: Run) -> _row_indices.Tables:
        return _row_indices.row_range(self.count)

    def compute_spec(self) -> Any:
        return self._known_spec

    def cardinality(self) -> int:
        return INFINITE_CARDINALITY if self.count is None else self.count


class FunctionSource(Node):
    """Elements of an iterable that a Python function returns for each run."""

    def __init__(
        self, make: Callable[[Run], Iterable], spec: Any, count: int, name: str, seeds: Any = None
    ) -> None:
        self.make, self._known_spec, self.count, self.name = make, spec, count, name
        self.seeds = seeds

    def elements(self, run: Run) -> Iterator:
        return iter(self.make(run))

    def compute_spec(self) -> Any:
        return self._known_spec

    def cardinality(self) -> int:
        return self.count


class Step(Node):
    """A step with one input and the same element spec."""

    def __init__(self, input: Node) -> None:
        self.input = input
        self.inputs = (input,)
        self.spec_needs_call = input.spec_needs_call

    def compute_spec(self) -> Any:
        return self.input.spec


class _RowStep(Step):
    """A step that only selects or reorders: it works on index tables and on elements."""

    def __init__(self, input: Node) -> None:
        super().__init__(input)
        self.source = input.source


class Take(_RowStep):
    """Takes the first `count` elements."""

    name = "Take"

    def __init__(self, input: Node, count: int) -> None:
        super().__init__(input)
        self.count = count

    def tables(self, run: Run) -> _row_indices.Tables:
        tables = self.input.tables(run)
        return tables if self.count < 0 else _row_indices.take(tables, self.count)

    def elements(self, run: Run) -> Iterator:
        return self._take(self.input.open(run), 0)

    def _take(self, elements: Iterator, skipped: int) -> Iterator:
        remaining = None if self.count < 0 else max(self.count - skipped, 0)
        return itertools.islice(elements, remaining)

    def open_after(self, run: Run, count: int) -> Iterator:
        count = count if self.count < 0 else min(count, self.count)
        return self._take(self.input.open_after(run, count), count)

    def cardinality(self) -> int:
        n = self.input.cardinality()
        if self.count < 0 or n == UNKNOWN_CARDINALITY:
            return n
        return self.count if n == INFINITE_CARDINALITY else min(n, self.count)


class Skip(_RowStep):
    """Skips the first `count` elements, or all if `count` is negative."""

    name = "Skip"

    def __init__(self, input: Node, count: int) -> None:
        super().__init__(input)
        self.count = count

    def tables(self, run: Run) -> _row_indices.Tables:
        return iter(()) if self.count < 0 else _row_indices.skip(self.input.tables(run), self.count)

    def elements(self, run: Run) -> Iterator:
        return (
            iter(()) if self.count < 0 else itertools.islice(self.input.open(run), self.count, None)
        )

    def open_after(self, run: Run, count: int) -> Iterator:
        return iter(()) if self.count < 0 else self.input.open_after(run, self.count + count)

    def cardinality(self) -> int:
        n = self.input.cardinality()
        if self.count < 0:
            return 0
        return n if n < 0 else max(n - self.count, 0)


class Shard(_RowStep):
    """Takes every `shards`-th element, starting at `index`."""

    name = "Shard"

    def __init__(self, input: Node, shards: int, index: int) -> None:
        super().__init__(input)
        self.shards, self.index = shards, index

    def tables(self, run: Run) -> _row_indices.Tables:
        return _row_indices.shard(self.input.tables(run), self.shards, self.index)

    def elements(self, run: Run) -> Iterator:
        return itertools.islice(self.input.open(run), self.index, None, self.shards)

    def open_after(self, run: Run, count: int) -> Iterator:
        elements = self.input.open_after(run, self.index + count * self.shards)
        return itertools.islice(elements, 0, None, self.shards)

    def cardinality(self) -> int:
        n = self.input.cardinality()
        return n if n < 0 else max(0, -(-(n - self.index) // self.shards))


class Repeat(_RowStep):
    """Repeats all elements `count` times, or forever if `count` is negative."""

    name = "Repeat"

    def __init__(self, input: Node, count: int) -> None:
        super().__init__(input)
        self.count = count

    def _repeat(self, open: Callable[[Run], Iterator], run: Run) -> Iterator:
        may_be_empty = self.count < 0 and self.input.cardinality() <= 0
        for _ in itertools.count() if self.count < 0 else range(self.count):
            empty = may_be_empty
            for item in open(run):
                empty = False
                yield item
            if empty:
                return
            if isinstance(self.input, Shuffle):  # as in TensorFlow, which fuses both steps
                may_be_empty = False

    def tables(self, run: Run) -> _row_indices.Tables:
        return self._repeat(self.input.tables, run)

    def elements(self, run: Run) -> Iterator:
        return self._repeat(self.input.open, run)

    def open_after(self, run: Run, count: int) -> Iterator:
        size = self.input.cardinality()
        if self.source is not None or size <= 0:
            return super().open_after(run, count)
        skip_counts = itertools.chain([size] * (count // size), [count % size], itertools.repeat(0))
        return self._repeat(lambda run: self.input.open_after(run, next(skip_counts)), run)

    def cardinality(self) -> int:
        n = self.input.cardinality()
        if self.count == 0 or n == 0:
            return 0
        if self.count < 0 or n == INFINITE_CARDINALITY:
            return INFINITE_CARDINALITY
        return n if n == UNKNOWN_CARDINALITY else n * self.count


class Shuffle(_RowStep):
    """Draws elements at random from a buffer."""

    name = "Shuffle"

    def __init__(self, input: Node, size: int | None, seeds: Seeds) -> None:
        super().__init__(input)
        self.size, self.seeds = size, seeds

    def tables(self, run: Run) -> _row_indices.Tables:
        return _row_indices.shuffle(self.input.tables(run), self.size, self.seeds.generator(run))

    def elements(self, run: Run) -> Iterator:
        rng, buffer = self.seeds.generator(run), []
        for element in self.input.open(run):
            if len(buffer) == self.size:
                index = rng.integers(self.size)
                yield buffer[index]
                buffer[index] = element
            else:
                buffer.append(element)
        yield from (buffer[index] for index in rng.permutation(len(buffer)))

    def cardinality(self) -> int:
        return self.input.cardinality()


class Cache(_RowStep):
    """Caches the elements of the first complete run for all later ones."""

    name = "Cache"

    def __init__(self, input: Node) -> None:
        super().__init__(input)
        self.cached: list | None = None

    def _fill_cache(self, items: Iterator) -> Iterator:
        """Yields the items. If their number is known, the cache is filled before the last one."""
        filled, count = [], self.input.cardinality()
        for item in items:
            filled.append(item)
            if len(filled) == count:
                self.cached = filled
            yield item
        self.cached = filled

    def _fill_cache_with_tables(self, tables: _row_indices.Tables) -> _row_indices.Tables:
        """Yields the tables. If the number of rows is known, the last row is a separate table."""
        filled, missing = [], self.input.cardinality()
        for table in tables:
            filled.append(table)
            missing -= table.shape[1]
            if missing == 0:
                yield table[:, :-1]
                self.cached = filled
                yield table[:, -1:]
            else:
                yield table
        self.cached = filled

    def tables(self, run: Run) -> _row_indices.Tables:
        if self.cached is not None:
            return iter(self.cached)
        return self._fill_cache_with_tables(self.input.tables(run))

    def elements(self, run: Run) -> Iterator:
        if self.cached is not None:
            return iter(self.cached)
        return self._fill_cache(self.input.open(run))

    def cardinality(self) -> int:
        return self.input.cardinality()


class Zip(Node):
    """Zips the elements of several datasets."""

    name = "Zip"

    def __init__(self, inputs: Sequence[Node], pack: Callable) -> None:
        self.inputs, self.pack = inputs, pack
        self.spec_needs_call = any(node.spec_needs_call for node in inputs)
        if all(node.source is not None for node in inputs):
            self.source = _row_indices.ZippedSource([node.source for node in inputs], pack)

    def tables(self, run: Run) -> _row_indices.Tables:
        return _row_indices.zip_tables([node.tables(run) for node in self.inputs])

    def elements(self, run: Run) -> Iterator:
        return self._zip([node.open(run) for node in self.inputs])

    def open_after(self, run: Run, count: int) -> Iterator:
        return self._zip([node.open_after(run, count) for node in self.inputs])

    def _zip(self, streams: list[Iterator]) -> Iterator:
        return (self.pack(list(row)) for row in zip(*streams, strict=False))

    def compute_spec(self) -> Any:
        return self.pack([node.spec for node in self.inputs])

    def cardinality(self) -> int:
        counts = [node.cardinality() for node in self.inputs]
        finite = [n for n in counts if n != INFINITE_CARDINALITY]
        if not finite:
            return INFINITE_CARDINALITY
        return UNKNOWN_CARDINALITY if UNKNOWN_CARDINALITY in finite else min(finite)


class Batch(Step):
    """Stacks `size` consecutive elements."""

    name = "Batch"

    def __init__(self, input: Node, size: int, drop: bool, stack: Callable | None = None) -> None:
        super().__init__(input)
        self.size, self.drop, self.stack = size, drop, stack

    def elements(self, run: Run) -> Iterator:
        return self.open_after(run, 0)

    def open_after(self, run: Run, count: int) -> Iterator:
        source = self.input.source
        if source is not None and self.stack is None:
            tables = _row_indices.skip(self.input.tables(run), count * self.size)
            return map(source.take, _row_indices.batch(tables, self.size, self.drop))
        stack = self.stack or plain_stack(self.input)
        elements = self.input.open_after(run, count * self.size)
        return map(stack, Groups(elements, self.size, self.drop))

    def compute_spec(self) -> Any:
        size = self.size if self.drop else None
        return map_specs(lambda leaf: batched_spec(leaf, size), self.input.spec)

    def cardinality(self) -> int:
        n = self.input.cardinality()
        return n if n < 0 else n // self.size if self.drop else -(-n // self.size)


def plain_stack(node: Node) -> Callable:
    """Returns a function that stacks elements of `node`."""
    ragged = not node.spec_needs_call and are_ragged(node.spec)
    return functools.partial(stack_elements, spec=lambda: node.spec, ragged=ragged)


class Groups:
    """Iterates over lists of `size` elements. An error drops only the list that it occurs in."""

    def __init__(self, elements: Iterator, size: int, drop: bool) -> None:
        self._elements, self._size, self._drop = elements, size, drop

    def __iter__(self) -> Groups:
        return self

    def __next__(self) -> list:
        group, error = [], None
        for _ in range(self._size):
            try:
                group.append(next(self._elements))
            except StopIteration:
                break
            except Exception as raised:  # drops the whole group
                error = error or raised
        if error is not None:
            raise error
        if not group or (self._drop and len(group) < self._size):
            raise StopIteration
        return group


class Map(Step):
    """Applies a function to each element."""

    name = "Map"
    spec_needs_call = True

    def __init__(
        self, input: Node, function: Callable, parallel: int | None, deterministic: bool | None
    ) -> None:
        self.input, self.inputs, self.function = input, (input,), function
        self.parallel, self.deterministic = parallel, deterministic
        self.seeds = None if parallel is None else Seeds(None, True)

    def elements(self, run: Run) -> Iterator:
        return self.open_after(run, 0)

    def open_after(self, run: Run, count: int) -> Iterator:
        source = self.input.open_after(run, count)
        if self.seeds is None:
            return map(self.function, source)
        deterministic = self.deterministic is not False
        streams = itertools.islice(self.seeds.streams(run), count, None)
        return ParallelMap(
            self.function, source, threads(self.parallel), deterministic, streams, run
        )

    def compute_spec(self) -> Any:
        return infer_spec(self.function, self.input.spec, self.input.first)

    def cardinality(self) -> int:
        return self.input.cardinality()


class Prefetch(Step):
    """Computes elements ahead of time in a thread."""

    name = "Prefetch"

    def __init__(self, input: Node, size: int) -> None:
        super().__init__(input)
        self.size = 2 if size == AUTOTUNE else size

    def elements(self, run: Run) -> Iterator:
        return self.open_after(run, 0)

    def open_after(self, run: Run, count: int) -> Iterator:
        elements = self.input.open_after(run, count)
        return Prefetcher(elements, self.size, run) if self.size else elements

    def cardinality(self) -> int:
        return self.input.cardinality()


class Transform(Step):
    """Applies `make(elements, run)`, a function of iterators, to the input."""

    def __init__(
        self,
        input: Node,
        make: Callable[[Iterator, Run], Iterator],
        name: str,
        *,
        spec: Callable[[], Any] | None = None,
        cardinality: Callable[[int], int] = lambda _n: UNKNOWN_CARDINALITY,
        spec_needs_call: bool = False,
        other_inputs: Sequence[Node] = (),
        seeds: Seeds | None = None,
    ) -> None:
        super().__init__(input)
        self.make, self.name, self._spec_function, self._cardinality_function = (
            make,
            name,
            spec,
            cardinality,
        )
        self.inputs, self.seeds = (input, *other_inputs), seeds
        self.spec_needs_call = (
            self.spec_needs_call
            or spec_needs_call
            or any(node.spec_needs_call for node in other_inputs)
        )

    def elements(self, run: Run) -> Iterator:
        return self.make(self.input.open(run), run)

    def compute_spec(self) -> Any:
        return self.input.spec if self._spec_function is None else self._spec_function()

    def cardinality(self) -> int:
        return self._cardinality_function(self.input.cardinality())


def zero_or_infinite(n: int) -> int:
    """Returns the cardinality `n` if it is 0 or infinite; otherwise it is unknown."""
    return n if n in (0, INFINITE_CARDINALITY) else UNKNOWN_CARDINALITY


def only_infinite(n: int) -> int:
    """Returns the cardinality `n` if it is infinite; otherwise it is unknown."""
    return n if n == INFINITE_CARDINALITY else UNKNOWN_CARDINALITY


def unknown_count(_n: int) -> int:
    """Returns that the cardinality is unknown."""
    return UNKNOWN_CARDINALITY


def preserve_count(n: int) -> int:
    """Returns `n`: the cardinality of a step that neither drops nor adds elements."""
    return n


class Concatenate(Node):
    """Concatenates two datasets."""

    name = "Concatenate"

    def __init__(self, first: Node, second: Node, spec: Callable[[], Any]) -> None:
        self.inputs, self.compute_spec = (first, second), spec
        self.spec_needs_call = first.spec_needs_call or second.spec_needs_call

    def elements(self, run: Run) -> Iterator:
        for node in self.inputs:
            yield from node.open(run)

    def open_after(self, run: Run, count: int) -> Iterator:
        first, second = self.inputs
        size = first.cardinality()
        if size == UNKNOWN_CARDINALITY:
            return super().open_after(run, count)
        skipped = count if size == INFINITE_CARDINALITY else min(count, size)
        # Always open the first dataset, so that it draws the random numbers of this run.
        return itertools.chain(
            first.open_after(run, skipped),
            _open_lazily(lambda: second.open_after(run, count - skipped)),
        )

    def cardinality(self) -> int:
        counts = [node.cardinality() for node in self.inputs]
        if INFINITE_CARDINALITY in counts:
            return INFINITE_CARDINALITY
        return UNKNOWN_CARDINALITY if UNKNOWN_CARDINALITY in counts else sum(counts)


def _open_lazily(open: Callable[[], Iterator]) -> Iterator:
    yield from open()


def discard(elements: Iterator, count: int) -> None:
    """Discards `count` elements and their errors."""
    for _ in range(count):
        try:
            next(elements)
        except StopIteration:
            return
        except Exception:
            continue


def check_positive(value: int, name: str) -> None:
    """Raises an error unless a size is at least 1."""
    if value < 1:
        raise invalid(f"{name} must be greater than zero. Received: {as_text(value)}.")


INT64 = TensorSpec([], np.int64)
