"""The steps of a pipeline. A step can be opened any number of times, each time from the start."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from retrograde.data import _rows
from retrograde.data._seeds import Seeds
from retrograde.data._structure import are_ragged, batched_spec, map_specs, spec_by_trial, stacked
from retrograde.data._workers import ParallelMap, Prefetched, Run
from retrograde.values.arguments import as_text
from retrograde.values.errors import invalid
from retrograde.values.specs import TensorSpec

AUTOTUNE = -1
INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2


def threads(num_parallel_calls: int) -> int:
    """How many threads a number of parallel calls asks for."""
    return (os.cpu_count() or 1) if num_parallel_calls == AUTOTUNE else num_parallel_calls


class Node:
    """One step. `source`, if there is one, gives the elements for the tables of `tables(run)`."""

    name = ""
    source: Any = None
    inputs: Sequence[Node] = ()
    seeds: Seeds | None = None
    tries = False  # whether its spec is found by trying a function of the user's

    def elements(self, run: Run) -> Iterator:
        """The elements, one after the other."""
        raise NotImplementedError

    def tables(self, run: Run) -> _rows.Tables:
        """Row numbers in the `source`, where there is one."""
        raise NotImplementedError

    def open(self, run: Run) -> Iterator:
        """The elements, from the source if there is one."""
        if self.source is None:
            return self.elements(run)
        return self._from_rows(run)

    def open_after(self, run: Run, count: int) -> Iterator:
        """The elements but for the first `count`, which are made only if there is no other way."""
        if not count:
            return self.open(run)
        if self.source is not None:
            return self._at(_rows.skipped(self.tables(run), count))
        elements = self.open(run)
        discard(elements, count)
        return elements

    def _from_rows(self, run: Run) -> Iterator:
        return self._at(self.tables(run))

    def _at(self, tables: _rows.Tables) -> Iterator:
        for table in tables:
            yield from map(self.source.one, table.T.tolist())

    def all_seeds(self) -> list[Seeds]:
        """What it and the steps before it draw random numbers by, always in the same order."""
        found = [] if self.seeds is None else [self.seeds]
        for node in self.inputs:
            found += [seeds for seeds in node.all_seeds() if seeds not in found]
        return found

    @functools.cached_property
    def spec(self) -> Any:
        """What elements look like."""
        return self.find_spec()

    def find_spec(self) -> Any:
        """What elements look like, each time anew."""
        raise NotImplementedError

    def cardinality(self) -> int:
        """How many elements there are, or `INFINITE_CARDINALITY` or `UNKNOWN_CARDINALITY`."""
        return UNKNOWN_CARDINALITY

    def first(self) -> Any:
        """The first element of a pass of its own."""
        run = Run()
        try:
            return next(self.open(run))
        finally:
            run.close()


class Slices(Node):
    """The rows of arrays."""

    name = "TensorSlice"

    def __init__(self, source: Any, count: int | None, spec: Any, name: str = "TensorSlice"):
        self.source, self.count, self._found, self.name = source, count, spec, name

    def tables(self, run: Run) -> _rows.Tables:
        return _rows.counted(self.count)

    def find_spec(self) -> Any:
        return self._found

    def cardinality(self) -> int:
        return INFINITE_CARDINALITY if self.count is None else self.count


class Made(Node):
    """Elements that a Python function makes anew for each pass."""

    def __init__(
        self, make: Callable[[Run], Iterable], spec: Any, count: int, name: str, seeds: Any = None
    ) -> None:
        self.make, self._found, self.count, self.name = make, spec, count, name
        self.seeds = seeds

    def elements(self, run: Run) -> Iterator:
        return iter(self.make(run))

    def find_spec(self) -> Any:
        return self._found

    def cardinality(self) -> int:
        return self.count


class Step(Node):
    """A step after one other, whose elements look the same."""

    def __init__(self, input: Node) -> None:
        self.input = input
        self.inputs = (input,)
        self.tries = input.tries

    def find_spec(self) -> Any:
        return self.input.spec


class _RowStep(Step):
    """A step that only picks or orders: it works on tables as on elements."""

    def __init__(self, input: Node) -> None:
        super().__init__(input)
        self.source = input.source


class Take(_RowStep):
    """The first elements."""

    name = "Take"

    def __init__(self, input: Node, count: int) -> None:
        super().__init__(input)
        self.count = count

    def tables(self, run: Run) -> _rows.Tables:
        tables = self.input.tables(run)
        return tables if self.count < 0 else _rows.taken(tables, self.count)

    def elements(self, run: Run) -> Iterator:
        return self._first(self.input.open(run), 0)

    def _first(self, elements: Iterator, gone: int) -> Iterator:
        left = None if self.count < 0 else max(self.count - gone, 0)
        return itertools.islice(elements, left)

    def open_after(self, run: Run, count: int) -> Iterator:
        count = count if self.count < 0 else min(count, self.count)
        return self._first(self.input.open_after(run, count), count)

    def cardinality(self) -> int:
        n = self.input.cardinality()
        if self.count < 0 or n == UNKNOWN_CARDINALITY:
            return n
        return self.count if n == INFINITE_CARDINALITY else min(n, self.count)


class Skip(_RowStep):
    """What follows the first elements; nothing if `count` is negative."""

    name = "Skip"

    def __init__(self, input: Node, count: int) -> None:
        super().__init__(input)
        self.count = count

    def tables(self, run: Run) -> _rows.Tables:
        return iter(()) if self.count < 0 else _rows.skipped(self.input.tables(run), self.count)

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
    """Every `shards`th element, from `index` on."""

    name = "Shard"

    def __init__(self, input: Node, shards: int, index: int) -> None:
        super().__init__(input)
        self.shards, self.index = shards, index

    def tables(self, run: Run) -> _rows.Tables:
        return _rows.sharded(self.input.tables(run), self.shards, self.index)

    def elements(self, run: Run) -> Iterator:
        return itertools.islice(self.input.open(run), self.index, None, self.shards)

    def open_after(self, run: Run, count: int) -> Iterator:
        elements = self.input.open_after(run, self.index + count * self.shards)
        return itertools.islice(elements, 0, None, self.shards)

    def cardinality(self) -> int:
        n = self.input.cardinality()
        return n if n < 0 else max(0, -(-(n - self.index) // self.shards))


class Repeat(_RowStep):
    """All elements `count` times; without end if it is negative."""

    name = "Repeat"

    def __init__(self, input: Node, count: int) -> None:
        super().__init__(input)
        self.count = count

    def _again(self, open: Callable[[Run], Iterator], run: Run) -> Iterator:
        may_be_empty = self.count < 0 and self.input.cardinality() <= 0
        for _ in itertools.count() if self.count < 0 else range(self.count):
            empty = may_be_empty
            for item in open(run):
                empty = False
                yield item
            if empty:
                return

    def tables(self, run: Run) -> _rows.Tables:
        return self._again(self.input.tables, run)

    def elements(self, run: Run) -> Iterator:
        return self._again(self.input.open, run)

    def open_after(self, run: Run, count: int) -> Iterator:
        size = self.input.cardinality()
        if self.source is not None or size <= 0:
            return super().open_after(run, count)
        coming = itertools.chain([size] * (count // size), [count % size], itertools.repeat(0))
        return self._again(lambda run: self.input.open_after(run, next(coming)), run)

    def cardinality(self) -> int:
        n = self.input.cardinality()
        if self.count == 0 or n == 0:
            return 0
        if self.count < 0 or n == INFINITE_CARDINALITY:
            return INFINITE_CARDINALITY
        return n if n == UNKNOWN_CARDINALITY else n * self.count


class Shuffle(_RowStep):
    """Elements drawn at random from a buffer."""

    name = "Shuffle"

    def __init__(self, input: Node, size: int | None, seeds: Seeds) -> None:
        super().__init__(input)
        self.size, self.seeds = size, seeds

    def tables(self, run: Run) -> _rows.Tables:
        return _rows.shuffled(self.input.tables(run), self.size, self.seeds.generator(run))

    def elements(self, run: Run) -> Iterator:
        rng, buffer = self.seeds.generator(run), []
        for element in self.input.open(run):
            if len(buffer) == self.size:
                place = rng.integers(self.size)
                yield buffer[place]
                buffer[place] = element
            else:
                buffer.append(element)
        yield from (buffer[place] for place in rng.permutation(len(buffer)))

    def cardinality(self) -> int:
        return self.input.cardinality()


class Cache(_RowStep):
    """What the first whole pass yields, kept for all later ones."""

    name = "Cache"

    def __init__(self, input: Node) -> None:
        super().__init__(input)
        self.kept: list | None = None

    def _keep(self, items: Iterator) -> Iterator:
        seen = []
        for item in items:
            seen.append(item)
            yield item
        self.kept = seen

    def tables(self, run: Run) -> _rows.Tables:
        return self._keep(self.input.tables(run)) if self.kept is None else iter(self.kept)

    def elements(self, run: Run) -> Iterator:
        return self._keep(self.input.open(run)) if self.kept is None else iter(self.kept)

    def cardinality(self) -> int:
        return self.input.cardinality()


class Zip(Node):
    """Elements of several datasets side by side."""

    name = "Zip"

    def __init__(self, inputs: Sequence[Node], pack: Callable) -> None:
        self.inputs, self.pack = inputs, pack
        self.tries = any(node.tries for node in inputs)
        if all(node.source is not None for node in inputs):
            self.source = _rows.Paired([node.source for node in inputs], pack)

    def tables(self, run: Run) -> _rows.Tables:
        return _rows.paired([node.tables(run) for node in self.inputs])

    def elements(self, run: Run) -> Iterator:
        return self._side_by_side([node.open(run) for node in self.inputs])

    def open_after(self, run: Run, count: int) -> Iterator:
        return self._side_by_side([node.open_after(run, count) for node in self.inputs])

    def _side_by_side(self, streams: list[Iterator]) -> Iterator:
        return (self.pack(list(row)) for row in zip(*streams, strict=False))

    def find_spec(self) -> Any:
        return self.pack([node.spec for node in self.inputs])

    def cardinality(self) -> int:
        counts = [node.cardinality() for node in self.inputs]
        finite = [n for n in counts if n != INFINITE_CARDINALITY]
        if not finite:
            return INFINITE_CARDINALITY
        return UNKNOWN_CARDINALITY if UNKNOWN_CARDINALITY in finite else min(finite)


class Batch(Step):
    """Elements stacked, `size` at a time."""

    name = "Batch"

    def __init__(self, input: Node, size: int, drop: bool, stack: Callable | None = None) -> None:
        super().__init__(input)
        self.size, self.drop, self.stack = size, drop, stack

    def elements(self, run: Run) -> Iterator:
        return self.open_after(run, 0)

    def open_after(self, run: Run, count: int) -> Iterator:
        source = self.input.source
        if source is not None and self.stack is None:
            tables = _rows.skipped(self.input.tables(run), count * self.size)
            return map(source.take, _rows.grouped(tables, self.size, self.drop))
        stack = self.stack or plain_stack(self.input)
        elements = self.input.open_after(run, count * self.size)
        return map(stack, Groups(elements, self.size, self.drop))

    def find_spec(self) -> Any:
        size = self.size if self.drop else None
        return map_specs(lambda leaf: batched_spec(leaf, size), self.input.spec)

    def cardinality(self) -> int:
        n = self.input.cardinality()
        return n if n < 0 else n // self.size if self.drop else -(-n // self.size)


def plain_stack(node: Node) -> Callable:
    """What stacks elements of `node`. A function that is tried makes no rows of ragged tensors."""
    ragged = not node.tries and are_ragged(node.spec)
    return functools.partial(stacked, spec=lambda: node.spec, ragged=ragged)


class Groups:
    """Lists of `size` elements. An error costs the list that it falls into, not those after it."""

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
            except Exception as problem:  # the others of the group go with it
                error = error or problem
        if error is not None:
            raise error
        if not group or (self._drop and len(group) < self._size):
            raise StopIteration
        return group


class Map(Step):
    """A function of each element."""

    name = "Map"
    tries = True

    def __init__(
        self, input: Node, function: Callable, parallel: int | None, in_order: bool | None
    ) -> None:
        self.input, self.inputs, self.function = input, (input,), function
        self.parallel, self.in_order = parallel, in_order
        self.seeds = None if parallel is None else Seeds(None, True)

    def elements(self, run: Run) -> Iterator:
        return self.open_after(run, 0)

    def open_after(self, run: Run, count: int) -> Iterator:
        source = self.input.open_after(run, count)
        if self.seeds is None:
            return map(self.function, source)
        in_order = self.in_order is not False
        streams = itertools.islice(self.seeds.streams(run), count, None)
        return ParallelMap(self.function, source, threads(self.parallel), in_order, streams, run)

    def find_spec(self) -> Any:
        return spec_by_trial(self.function, self.input.spec, self.input.first)

    def cardinality(self) -> int:
        return self.input.cardinality()


class Prefetch(Step):
    """The same elements, made ahead of time by a thread."""

    name = "Prefetch"

    def __init__(self, input: Node, size: int) -> None:
        super().__init__(input)
        self.size = 2 if size == AUTOTUNE else size

    def elements(self, run: Run) -> Iterator:
        return self.open_after(run, 0)

    def open_after(self, run: Run, count: int) -> Iterator:
        elements = self.input.open_after(run, count)
        return Prefetched(elements, self.size, run) if self.size else elements

    def cardinality(self) -> int:
        return self.input.cardinality()


class Stream(Step):
    """Whatever `make` makes of the elements, in a pass of its own each time."""

    def __init__(
        self,
        input: Node,
        make: Callable[[Iterator, Run], Iterator],
        name: str,
        *,
        spec: Callable[[], Any] | None = None,
        cardinality: Callable[[int], int] = lambda _n: UNKNOWN_CARDINALITY,
        tries: bool = False,
        others: Sequence[Node] = (),
        seeds: Seeds | None = None,
    ) -> None:
        super().__init__(input)
        self.make, self.name, self._find, self._count = make, name, spec, cardinality
        self.inputs, self.seeds = (input, *others), seeds
        self.tries = self.tries or tries or any(node.tries for node in others)

    def elements(self, run: Run) -> Iterator:
        return self.make(self.input.open(run), run)

    def find_spec(self) -> Any:
        return self.input.spec if self._find is None else self._find()

    def cardinality(self) -> int:
        return self._count(self.input.cardinality())


def same_count(n: int) -> int:
    """The cardinality of a step that neither drops nor adds elements."""
    return n


class Concatenate(Node):
    """One dataset after another."""

    name = "Concatenate"

    def __init__(self, first: Node, second: Node, spec: Callable[[], Any]) -> None:
        self.inputs, self.find_spec = (first, second), spec
        self.tries = first.tries or second.tries

    def elements(self, run: Run) -> Iterator:
        for node in self.inputs:
            yield from node.open(run)

    def open_after(self, run: Run, count: int) -> Iterator:
        first, second = self.inputs
        size = first.cardinality()
        if size == UNKNOWN_CARDINALITY:
            return super().open_after(run, count)
        gone = count if size == INFINITE_CARDINALITY else min(count, size)
        # The first is opened in any case, so that it draws the random numbers of this pass.
        return itertools.chain(
            first.open_after(run, gone), _later(lambda: second.open_after(run, count - gone))
        )

    def cardinality(self) -> int:
        counts = [node.cardinality() for node in self.inputs]
        if INFINITE_CARDINALITY in counts:
            return INFINITE_CARDINALITY
        return UNKNOWN_CARDINALITY if UNKNOWN_CARDINALITY in counts else sum(counts)


def _later(open: Callable[[], Iterator]) -> Iterator:
    yield from open()


def discard(elements: Iterator, count: int) -> None:
    """Takes `count` elements off, those among them that fail as well."""
    for _ in range(count):
        try:
            next(elements)
        except StopIteration:
            return
        except Exception:
            continue


def check_positive(value: int, what: str) -> None:
    """Raises unless a size is at least 1."""
    if value < 1:
        raise invalid(f"{what} must be greater than zero. Received: {as_text(value)}.")


INT64 = TensorSpec([], np.int64)
