"""Runs calls and loops on JAX arrays, for `jax.jit` to trace."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from retrograde.core.program import Call
from retrograde.program.loop_rerolling import Carried, Loop
from retrograde.program.sum_of_slices import PLACE_ROWS, place_rows
from retrograde.values.thresholds import MIN_LOOP_ROWS


class Values:
    """The values of a program while JAX traces it, by number.

    A row of an array, such as one iteration of a loop, is sliced only if it is read.
    """

    def __init__(self, jnp: Any, values: Iterable[tuple[int, Any]]) -> None:
        self._jnp = jnp
        self._values: dict[int, Any] = dict(values)
        self._rows: dict[int, tuple[Any, int]] = {}

    def __getitem__(self, number: int) -> Any:
        if number not in self._values:
            array, row = self._rows[number]
            self._values[number] = array[row]
        return self._values[number]

    def put(self, numbers: Iterable[int], arrays: Iterable[Any]) -> None:
        """Adds values."""
        self._values.update(zip(numbers, arrays, strict=True))

    def put_rows(
        self, numbers: Iterable[int], array: Any, rows: Iterable[int] | None = None
    ) -> None:
        """Adds rows of an array as values: the first rows, or those in `rows`."""
        indices = itertools.count() if rows is None else rows
        self._rows.update((n, (array, i)) for n, i in zip(numbers, indices, strict=False))

    def rows_of(self, numbers: list[int]) -> tuple[Any, int, int]:
        """Returns an array with these values as rows, the first row, and the stride."""
        rows: list[Any] = [self._rows.get(n) for n in numbers]
        if all(row is not None and row[0] is rows[0][0] for row in rows):
            indices = [row[1] for row in rows]
            step = indices[1] - indices[0] if len(indices) > 1 else 1
            if step and indices == list(range(indices[0], indices[-1] + step, step)):
                return rows[0][0], indices[0], step
        return self._jnp.stack([self[n] for n in numbers]), 0, 1

    def stacked(self, numbers: list[int]) -> Any:
        """Returns an array with these values as its rows, without a copy if possible."""
        array, first, step = self.rows_of(numbers)
        if (first, step, len(numbers)) == (0, 1, len(array)):
            return array
        end = first + step * len(numbers)
        return array[first : end if end >= 0 else None : step]


def compute(jax: Any, entries: list[Call | Loop], values: Values, call_back: Callable) -> None:
    """Runs `entries` on `values`."""
    slices = _group_slices(entries)
    for entry in entries:
        if type(entry) is Call and entry.outputs in slices:
            axis, group = slices[entry.outputs]
            if group:
                _slice_rows(jax, axis, group, values)
        elif type(entry) is Loop:
            _run_loop(jax, entry, values, call_back)
        elif _is_rows(entry, "unstack"):
            (x,) = entry.inputs
            rows = jax.numpy.moveaxis(values[x], entry.attrs["axis"], 0)
            values.put_rows(entry.outputs, rows)
        elif entry.primitive is PLACE_ROWS:
            rows = values.stacked(list(entry.inputs))
            values.put(entry.outputs, [place_rows(jax.numpy, rows, **entry.attrs)])
        elif _is_rows(entry, "stack"):
            y = values.stacked(list(entry.inputs))
            values.put(entry.outputs, [jax.numpy.moveaxis(y, 0, entry.attrs["axis"])])
        else:
            arrays = [values[n] for n in entry.inputs]
            values.put(entry.outputs, _run(jax, entry, arrays, call_back))


def _group_slices(entries: list) -> dict[tuple, tuple[int, list[Call]]]:
    """Groups slices of one array that differ in one index only, by the outputs of the calls.

    The first call has the axis and the calls of its group. The others have no calls.
    """
    groups: dict[Any, list[Call]] = {}
    for entry in entries:
        if type(entry) is Call and entry.primitive.name == "take_slice":
            where = entry.attrs["where"]
            single = [i for i, (start, stop, step) in enumerate(where) if stop - start == step == 1]
            for axis in single:
                other_slices = where[:axis] + where[axis + 1 :]
                groups.setdefault((entry.inputs, axis, other_slices), []).append(entry)
    groups_by_output: dict[tuple, tuple[int, list[Call]]] = {}
    for (_, axis, _), calls in groups.items():
        if len(calls) >= MIN_LOOP_ROWS and all(
            call.outputs not in groups_by_output for call in calls
        ):
            groups_by_output |= {call.outputs: (axis, []) for call in calls}
            groups_by_output[calls[0].outputs] = axis, calls
    return groups_by_output


def _slice_rows(jax: Any, axis: int, calls: list[Call], values: Values) -> None:
    where = [slice(*part) for part in calls[0].attrs["where"]]
    where[axis] = slice(None)
    array = jax.numpy.moveaxis(values[calls[0].inputs[0]][tuple(where)], axis, 0)
    rows = jax.numpy.expand_dims(array, axis + 1)
    indices = [call.attrs["where"][axis][0] for call in calls]
    values.put_rows([call.outputs[0] for call in calls], rows, indices)


def _is_rows(call: Call, name: str) -> bool:
    return call.primitive.name == name and len(call.inputs) + len(call.outputs) > MIN_LOOP_ROWS


def _run(jax: Any, call: Call, arrays: list, call_back: Callable) -> tuple:
    if not hasattr(call.primitive, "kernel"):
        y = call_back(call, arrays)
    else:
        y = call.primitive.kernel(jax.numpy, *arrays, **call.attrs)
    return tuple(y) if call.primitive.outputs else (y,)


def _run_loop(jax: Any, loop: Loop, values: Values, call_back: Callable) -> None:
    """Runs a loop as one `lax.scan`.

    Values that differ between iterations are read from the arrays of earlier loops, often in
    reverse order. Reordering the arrays first would copy them.
    """

    def iteration(carry: tuple, i: Any) -> tuple[tuple, tuple]:
        row_values = [
            jax.lax.dynamic_index_in_dim(array, first + step * i, keepdims=False)
            for array, first, step in rows
        ]
        inputs: dict[str, Any] = {"carried": carry, "each": row_values, "same": values}
        outputs: list[tuple] = []
        for call, sources in zip(loop.body, loop.sources, strict=True):
            arrays = [
                outputs[where[0]][where[1]] if kind == "output" else inputs[kind][where[0]]
                for kind, *where in sources
            ]
            outputs.append(_run(jax, call, arrays, call_back))
        next_carry = tuple([outputs[c][o] for c, o, _ in loop.carried])
        return next_carry, tuple([outputs[c][o] for c, o in loop.kept])

    for sources in loop.sources:  # slice loop-invariant rows outside the loop
        for kind, *where in sources:
            if kind == "same":
                values[where[0]]
    rows = [values.rows_of(numbers) for numbers in loop.each]
    first = [_first_value(jax, loop, carried, values) for carried in loop.carried]
    last_values, kept_arrays = jax.lax.scan(
        iteration, tuple(first), jax.numpy.arange(loop.iterations)
    )
    for (c, o), array in zip(loop.kept, kept_arrays, strict=True):
        values.put_rows([numbers[c][o] for numbers in loop.numbers], array)
    for (c, o, _), array in zip(loop.carried, last_values, strict=True):
        values.put([loop.numbers[-1][c][o]], [array])


def _first_value(jax: Any, loop: Loop, carried: Carried, values: Values) -> Any:
    if carried.first is not None:
        return values[carried.first]
    shape, dtype = loop.specs[carried.call][carried.output]
    return jax.numpy.zeros(shape, dtype)
