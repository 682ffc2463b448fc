"""Index arithmetic for datasets whose elements are rows of arrays.

While a pipeline only selects, reorders, repeats and zips rows, it passes tables of row indices
instead of elements. A table is an integer array with one line for each source and one column for
each element. A batch is then one `take` per array, without a Python call for each element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from retrograde.core.tensor import wrap
from retrograde.data._elements import row_at
from retrograde.values.errors import OutOfRangeError

CHUNK = 1 << 16  # maximum number of columns in a table of a source


class ArraySource:
    """The rows of arrays with equal first dimensions."""

    num_sources = 1

    def __init__(self, arrays: Sequence[np.ndarray], pack: Callable) -> None:
        self.arrays, self.pack = arrays, pack

    def take(self, table: np.ndarray) -> Any:
        """Returns the elements of all columns, stacked."""
        rows = table[0]
        if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():
            return self.pack([wrap(array[rows[0] : rows[-1] + 1]) for array in self.arrays])
        return self.pack([wrap(array.take(rows, axis=0)) for array in self.arrays])

    def get(self, rows: Sequence[int]) -> Any:
        """Returns one element."""
        return self.pack([wrap(row_at(array, rows[0])) for array in self.arrays])


class RangeSource:
    """A range: row i is `start + step * i`."""

    num_sources = 1

    def __init__(self, start: int, step: int, dtype: np.dtype) -> None:
        self.start, self.step, self.dtype = start, step, dtype

    def take(self, table: np.ndarray) -> Any:
        """Returns the elements of all columns, stacked."""
        return wrap((self.start + self.step * table[0]).astype(self.dtype))

    def get(self, rows: Sequence[int]) -> Any:
        """Returns one element."""
        number = self.start + self.step * rows[0]
        if not -(2**63) <= number < 2**63:
            raise OutOfRangeError(None, None, f"The number {number} does not fit in 64 bits.")
        return wrap(np.int64(number).astype(self.dtype))


class ZippedSource:
    """The zipped rows of several sources."""

    def __init__(self, sources: Sequence[Any], pack: Callable) -> None:
        self.sources, self.pack = sources, pack
        self.num_sources = sum(source.num_sources for source in sources)
        self.ends = np.cumsum([source.num_sources for source in sources]).tolist()

    def _parts(self, lines: Any) -> Iterator[tuple]:
        for source, end in zip(self.sources, self.ends, strict=True):
            yield source, lines[end - source.num_sources : end]

    def take(self, table: np.ndarray) -> Any:
        """Returns the elements of all columns, stacked."""
        return self.pack([source.take(lines) for source, lines in self._parts(table)])

    def get(self, rows: Sequence[int]) -> Any:
        """Returns one element."""
        return self.pack([source.get(lines) for source, lines in self._parts(rows)])


Tables = Iterator[np.ndarray]


def row_range(count: int | None) -> Tables:
    """Yields all rows in order, forever if `count` is `None`."""
    position = 0
    while count is None or position < count:
        end = position + CHUNK if count is None else min(position + CHUNK, count)
        yield np.arange(position, end, dtype=np.int64)[None]
        position = end


def take(tables: Tables, count: int) -> Tables:
    """Yields the first `count` columns."""
    while count > 0:
        table = next(tables, None)
        if table is None:
            return
        yield table[:, :count]
        count -= table.shape[1]


def skip(tables: Tables, count: int) -> Tables:
    """Skips the first `count` columns."""
    for table in tables:
        if count < table.shape[1]:
            yield table[:, count:]
        count = max(count - table.shape[1], 0)


def shard(tables: Tables, shards: int, index: int) -> Tables:
    """Yields the columns whose position modulo `shards` is `index`."""
    position = 0
    for table in tables:
        yield table[:, (index - position) % shards :: shards]
        position += table.shape[1]


def batch(tables: Tables, size: int, drop_remainder: bool) -> Tables:
    """Yields tables of `size` columns. The last may be smaller."""
    pending: list[np.ndarray] = []
    count = 0
    for table in tables:
        pending.append(table)
        count += table.shape[1]
        if count >= size:
            joined = np.concatenate(pending, axis=1) if len(pending) > 1 else table
            end = count - count % size
            yield from (joined[:, i : i + size] for i in range(0, end, size))
            pending, count = [joined[:, end:]], count - end
    if count and not drop_remainder:
        yield np.concatenate(pending, axis=1)


def zip_tables(streams: Sequence[Tables]) -> Tables:
    """Stacks the tables of several streams until one of them ends."""
    buffers = [np.empty((0, 0))] * len(streams)
    while True:
        for i, stream in enumerate(streams):
            while not buffers[i].shape[1]:
                table = next(stream, None)
                if table is None:
                    return
                buffers[i] = table
        count = min(buffer.shape[1] for buffer in buffers)
        yield np.concatenate([buffer[:, :count] for buffer in buffers])
        buffers = [buffer[:, count:] for buffer in buffers]


def shuffle(tables: Tables, size: int | None, rng: np.random.Generator) -> Tables:
    """Draws columns from a buffer of `size`; each is replaced by the next incoming column."""
    buffer = None
    for table in tables:
        buffer = table if buffer is None else np.concatenate([buffer, table], axis=1)
        if size is not None and buffer.shape[1] > size:
            out, buffer = _replace_random(buffer[:, :size].copy(), buffer[:, size:], rng)
            yield out
    if buffer is not None:
        yield buffer[:, rng.permutation(buffer.shape[1])]


def _replace_random(buffer: np.ndarray, incoming: np.ndarray, rng: np.random.Generator) -> tuple:
    """Puts incoming columns into random slots, one by one. Returns the replaced columns."""
    slots = rng.integers(buffer.shape[1], size=incoming.shape[1])
    order = np.argsort(slots, kind="stable")
    sorted_slots = slots[order]
    is_repeat = np.concatenate(
        [[False], sorted_slots[1:] == sorted_slots[:-1]]
    )  # the slot was drawn before
    out = np.empty_like(incoming)
    out[:, order[~is_repeat]] = buffer[:, sorted_slots[~is_repeat]]
    out[:, order[1:][is_repeat[1:]]] = incoming[:, order[:-1][is_repeat[1:]]]
    last = np.concatenate([~is_repeat[1:], [True]])
    buffer[:, sorted_slots[last]] = incoming[:, order[last]]
    return out, buffer
