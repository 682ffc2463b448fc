"""Datasets whose elements are rows of arrays, as index arithmetic.

While a pipeline only picks, orders, counts and pairs rows, what flows through it is not elements
but tables of row numbers: integer arrays with one line for each source and one column for each
element. A batch is then one `take` from each array, and no Python runs for single elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from retrograde.core.tensor import wrap
from retrograde.data._structure import row_at
from retrograde.values.errors import OutOfRangeError

CHUNK = 1 << 16  # columns of a table, at most, where a source begins


class Slices:
    """The rows of arrays that have first axes of one size."""

    lines = 1

    def __init__(self, arrays: Sequence[np.ndarray], pack: Callable) -> None:
        self.arrays, self.pack = arrays, pack

    def take(self, table: np.ndarray) -> Any:
        """Many elements as one."""
        rows = table[0]
        if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():
            return self.pack([wrap(array[rows[0] : rows[-1] + 1]) for array in self.arrays])
        return self.pack([wrap(array.take(rows, axis=0)) for array in self.arrays])

    def one(self, rows: Sequence[int]) -> Any:
        """One element."""
        return self.pack([wrap(row_at(array, rows[0])) for array in self.arrays])


class Numbers:
    """`start + step * i` for row i."""

    lines = 1

    def __init__(self, start: int, step: int, dtype: np.dtype) -> None:
        self.start, self.step, self.dtype = start, step, dtype

    def take(self, table: np.ndarray) -> Any:
        """Many elements as one."""
        return wrap((self.start + self.step * table[0]).astype(self.dtype))

    def one(self, rows: Sequence[int]) -> Any:
        """One element."""
        number = self.start + self.step * rows[0]
        if not -(2**63) <= number < 2**63:
            raise OutOfRangeError(None, None, f"The number {number} does not fit into 64 bits.")
        return wrap(np.int64(number).astype(self.dtype))


class Paired:
    """Rows of several sources side by side."""

    def __init__(self, sources: Sequence[Any], pack: Callable) -> None:
        self.sources, self.pack = sources, pack
        self.lines = sum(source.lines for source in sources)
        self.ends = np.cumsum([source.lines for source in sources]).tolist()

    def _parts(self, lines: Any) -> Iterator[tuple]:
        for source, end in zip(self.sources, self.ends, strict=True):
            yield source, lines[end - source.lines : end]

    def take(self, table: np.ndarray) -> Any:
        """Many elements as one."""
        return self.pack([source.take(lines) for source, lines in self._parts(table)])

    def one(self, rows: Sequence[int]) -> Any:
        """One element."""
        return self.pack([source.one(lines) for source, lines in self._parts(rows)])


Tables = Iterator[np.ndarray]


def counted(count: int | None) -> Tables:
    """All rows in order; without end if there is no `count`."""
    position = 0
    while count is None or position < count:
        end = position + CHUNK if count is None else min(position + CHUNK, count)
        yield np.arange(position, end, dtype=np.int64)[None]
        position = end


def taken(tables: Tables, count: int) -> Tables:
    """The first `count` columns."""
    while count > 0:
        table = next(tables, None)
        if table is None:
            return
        yield table[:, :count]
        count -= table.shape[1]


def skipped(tables: Tables, count: int) -> Tables:
    """What follows the first `count` columns."""
    for table in tables:
        if count < table.shape[1]:
            yield table[:, count:]
        count = max(count - table.shape[1], 0)


def sharded(tables: Tables, shards: int, index: int) -> Tables:
    """Every column at a place that is `index` modulo `shards`."""
    position = 0
    for table in tables:
        yield table[:, (index - position) % shards :: shards]
        position += table.shape[1]


def grouped(tables: Tables, size: int, drop_remainder: bool) -> Tables:
    """Tables of `size` columns each, but for the last."""
    waiting: list[np.ndarray] = []
    count = 0
    for table in tables:
        waiting.append(table)
        count += table.shape[1]
        if count >= size:
            whole = np.concatenate(waiting, axis=1) if len(waiting) > 1 else table
            end = count - count % size
            yield from (whole[:, i : i + size] for i in range(0, end, size))
            waiting, count = [whole[:, end:]], count - end
    if count and not drop_remainder:
        yield np.concatenate(waiting, axis=1)


def paired(streams: Sequence[Tables]) -> Tables:
    """Columns of several streams on top of each other, until one of them ends."""
    heads = [np.empty((0, 0))] * len(streams)
    while True:
        for place, stream in enumerate(streams):
            while not heads[place].shape[1]:
                table = next(stream, None)
                if table is None:
                    return
                heads[place] = table
        count = min(head.shape[1] for head in heads)
        yield np.concatenate([head[:, :count] for head in heads])
        heads = [head[:, count:] for head in heads]


def shuffled(tables: Tables, size: int | None, rng: np.random.Generator) -> Tables:
    """Columns drawn from a buffer of `size`, each replaced by the next that comes."""
    buffer = None
    for table in tables:
        buffer = table if buffer is None else np.concatenate([buffer, table], axis=1)
        if size is not None and buffer.shape[1] > size:
            out, buffer = _through(buffer[:, :size].copy(), buffer[:, size:], rng)
            yield out
    if buffer is not None:
        yield buffer[:, rng.permutation(buffer.shape[1])]


def _through(buffer: np.ndarray, coming: np.ndarray, rng: np.random.Generator) -> tuple:
    """Puts `coming` into random places of the buffer, one after the other; what these held."""
    places = rng.integers(buffer.shape[1], size=coming.shape[1])
    order = np.argsort(places, kind="stable")
    by_place = places[order]
    again = np.concatenate([[False], by_place[1:] == by_place[:-1]])  # one came to it before
    out = np.empty_like(coming)
    out[:, order[~again]] = buffer[:, by_place[~again]]
    out[:, order[1:][again[1:]]] = coming[:, order[:-1][again[1:]]]
    last = np.concatenate([~again[1:], [True]])
    buffer[:, by_place[last]] = coming[:, order[last]]
    return out, buffer
