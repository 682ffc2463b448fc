"""Calls and loops on JAX's arrays: what XLA is given to compile."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from retrograde.core.program import Call
from retrograde.program.loop_rerolling import Carried, Loop
from retrograde.program.sum_of_slices import PLACE_ROWS, place
from retrograde.values.thresholds import LOOP_ROWS as _MANY_ROWS


class Values:
    """The values of a program while it is traced, by their numbers.

    Rows of an array, such as all turns of a loop, are cut out only if one of them is asked for.
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
        """Takes values in."""
        self._values.update(zip(numbers, arrays, strict=True))

    def put_rows(
        self, numbers: Iterable[int], array: Any, rows: Iterable[int] | None = None
    ) -> None:
        """Takes rows of an array in, one for each number: the first ones, or those in `rows`."""
        places = itertools.count() if rows is None else rows
        self._rows.update((n, (array, i)) for n, i in zip(numbers, places, strict=False))

    def rows_of(self, numbers: list[int]) -> tuple[Any, int, int]:
        """An array with these values in its rows: where the first is, and how far the next."""
        rows: list[Any] = [self._rows.get(n) for n in numbers]
        if all(row is not None and row[0] is rows[0][0] for row in rows):
            places = [row[1] for row in rows]
            step = places[1] - places[0] if len(places) > 1 else 1
            if step and places == list(range(places[0], places[-1] + step, step)):
                return rows[0][0], places[0], step
        return self._jnp.stack([self[n] for n in numbers]), 0, 1

    def stacked(self, numbers: list[int]) -> Any:
        """One array with these values as its rows; that of which they are rows, if they are."""
        array, first, step = self.rows_of(numbers)
        if (first, step, len(numbers)) == (0, 1, len(array)):
            return array
        end = first + step * len(numbers)
        return array[first : end if end >= 0 else None : step]


def compute(jax: Any, entries: list[Call | Loop], values: Values, called_back: Callable) -> None:
    """Does what `entries` say to `values`."""
    slices = _slices_of_one(entries)
    for entry in entries:
        if type(entry) is Call and entry.outputs in slices:
            for group in slices[entry.outputs]:
                _cut(jax, group, values)
        elif type(entry) is Loop:
            _loop(jax, entry, values, called_back)
        elif _is_rows(entry, "unstack"):
            (x,) = entry.inputs
            values.put_rows(list(entry.outputs), jax.numpy.moveaxis(values[x], _axis(entry), 0))
        elif entry.primitive is PLACE_ROWS:
            rows = values.stacked(list(entry.inputs))
            values.put(entry.outputs, [place(jax.numpy, rows, **entry.attrs)])
        elif _is_rows(entry, "stack"):
            y = values.stacked(list(entry.inputs))
            values.put(entry.outputs, [jax.numpy.moveaxis(y, 0, _axis(entry))])
        else:
            values.put(entry.outputs, _outputs(jax, entry, values, called_back))


def _slices_of_one(entries: list) -> dict[tuple, list]:
    """Slices of one array that differ in one index only, by the outputs of each of their calls.

    The first of them brings the whole group; the others bring nothing.
    """
    groups: dict[Any, list[Call]] = {}
    for entry in entries:
        if type(entry) is Call and entry.primitive.name == "take_slice":
            where = entry.attrs["where"]
            single = [i for i, (start, stop, step) in enumerate(where) if stop - start == step == 1]
            for axis in single:
                others = where[:axis] + where[axis + 1 :]
                groups.setdefault((entry.inputs, axis, others), []).append(entry)
    found: dict[tuple, list] = {}
    for (_, axis, _), calls in groups.items():
        if len(calls) >= _MANY_ROWS and all(call.outputs not in found for call in calls):
            found |= {call.outputs: [] for call in calls}
            found[calls[0].outputs] = [(axis, calls)]
    return found


def _cut(jax: Any, group: tuple[int, list[Call]], values: Values) -> None:
    axis, calls = group
    where = [slice(*part) for part in calls[0].attrs["where"]]
    where[axis] = slice(None)
    whole = jax.numpy.moveaxis(values[calls[0].inputs[0]][tuple(where)], axis, 0)
    rows = jax.numpy.expand_dims(whole, axis + 1)
    places = [call.attrs["where"][axis][0] for call in calls]
    values.put_rows([call.outputs[0] for call in calls], rows, places)


def _is_rows(call: Call, name: str) -> bool:
    return call.primitive.name == name and len(call.inputs) + len(call.outputs) > _MANY_ROWS


def _axis(call: Call) -> int:
    return call.attrs["axis"]


def _outputs(jax: Any, call: Call, values: Any, called_back: Callable) -> Any:
    arrays = [values[n] for n in call.inputs]
    return _applied(jax, call, arrays, called_back)


def _applied(jax: Any, call: Call, arrays: list, called_back: Callable) -> tuple:
    if not hasattr(call.primitive, "kernel"):
        y = called_back(call, arrays)
    else:
        y = call.primitive.kernel(jax.numpy, *arrays, **call.attrs)
    return tuple(y) if call.primitive.outputs else (y,)


def _loop(jax: Any, loop: Loop, values: Values, called_back: Callable) -> None:
    """A loop as one `lax.scan`.

    What is another value in each turn is read where it is, most of it being kept by a loop before:
    to put it in order first, backwards as a rule, would be to copy all of it.
    """

    def iteration(carry: tuple, i: Any) -> tuple[tuple, tuple]:
        each = [
            jax.lax.dynamic_index_in_dim(array, first + step * i, keepdims=False)
            for array, first, step in rows
        ]
        inputs: dict[str, Any] = {"carried": carry, "each": each, "same": values}
        made: list[tuple] = []
        for call, sources in zip(loop.body, loop.sources, strict=True):
            arrays = []
            for kind, *where in sources:
                if kind == "made":
                    arrays.append(made[where[0]][where[1]])
                else:
                    arrays.append(inputs[kind][where[0]])
            made.append(_applied(jax, call, arrays, called_back))
        following = tuple([made[c][o] for c, o, _ in loop.carried])
        return following, tuple([made[c][o] for c, o in loop.kept])

    for sources in loop.sources:  # what is cut out of rows must not be cut out inside the loop
        for kind, *where in sources:
            if kind == "same":
                values[where[0]]
    rows = [values.rows_of(numbers) for numbers in loop.each]
    first = [_first(jax, loop, carried, values) for carried in loop.carried]
    last, kept = jax.lax.scan(iteration, tuple(first), jax.numpy.arange(loop.iterations))
    for (c, o), array in zip(loop.kept, kept, strict=True):
        values.put_rows([numbers[c][o] for numbers in loop.numbers], array)
    for (c, o, _), array in zip(loop.carried, last, strict=True):
        values.put([loop.numbers[-1][c][o]], [array])


def _first(jax: Any, loop: Loop, carried: Carried, values: Values) -> Any:
    if carried.first is not None:
        return values[carried.first]
    shape, dtype = loop.specs[carried.call][carried.output]
    return jax.numpy.zeros(shape, dtype)
