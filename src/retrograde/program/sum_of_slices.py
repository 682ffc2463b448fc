"""Sums of slices: the backward pass of many slices of one array, as one call.

The backward pass of a loop over `x[k]` creates an array of zeros with one row in each iteration,
and adds these arrays. The index of the row differs, so the calls differ and the loop cannot be
re-rolled. This pass replaces all of them with one call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrograde.core.program import Call
from retrograde.core.rules import Spec
from retrograde.values.thresholds import MIN_LOOP_ROWS


class _PlaceRows:
    """A primitive of XLA programs: zeros of `shape`, with rows added at `indices` of `axis`.

    Along the other axes, `where` says at which slice each row is added.
    """

    name = "place_rows"
    outputs = False
    pure = True

    def kernel(self, xp: Any, *rows: Any, **attrs: Any) -> Any:
        return place_rows(xp, xp.stack(rows), **attrs)


PLACE_ROWS = _PlaceRows()


def place_rows(
    xp: Any, rows: Any, *, shape: tuple, axis: int, indices: tuple[int, ...], where: tuple
) -> Any:
    """Computes `place_rows` for stacked rows."""
    rows = xp.moveaxis(xp.squeeze(rows, axis + 1), 0, axis)
    key = [slice(a, None if b < 0 else b, s) for a, b, s in where]
    first, last = indices[0], indices[-1]
    if list(indices) == list(range(last, first + 1))[::-1]:  # the order of a backward pass
        rows, first, last, indices = xp.flip(rows, axis), last, first, indices[::-1]
    y = xp.zeros(shape, rows.dtype)
    if list(indices) == list(range(first, last + 1)):
        if rows.shape == shape:
            return rows
        key[axis] = slice(first, last + 1)
        return y.at[tuple(key)].set(rows)
    key[axis] = xp.asarray(indices)
    return y.at[tuple(key)].add(rows)


def sum_slices(
    calls: Sequence[Call], specs: Sequence[Spec], read_later: set[int]
) -> tuple[list[Call], list[Spec]]:
    """Replaces each sum of slices by one call at its last addition. Returns calls and specs."""
    return _SliceSums(calls, specs, read_later).replace()


class _SliceSums:
    """Finds the sums in `calls`, each from its last addition to its first."""

    def __init__(self, calls: Sequence[Call], specs: Sequence[Spec], read_later: set[int]) -> None:
        self._calls = calls
        self._specs = list(specs)
        self._makers = {n: i for i, call in enumerate(calls) for n in call.outputs}
        self._uses: dict[int, int] = dict.fromkeys(read_later, 2)
        for call in calls:
            for n in call.inputs:
                self._uses[n] = self._uses.get(n, 0) + 1
        self._seen: set[int] = set()  # additions of sums that were visited
        self._dropped: set[int] = set()
        self._replacements: dict[int, list[Call]] = {}

    def replace(self) -> tuple[list[Call], list[Spec]]:
        for i in range(len(self._calls) - 1, -1, -1):
            if i not in self._seen and self._is_sum(i):
                self._replace_sum(i)
        result: list[Call] = []
        for i, call in enumerate(self._calls):
            if i in self._replacements:
                result += self._replacements[i]
            elif i not in self._dropped:
                result.append(call)
        return result, self._specs

    def _is_sum(self, i: int) -> bool:
        """Returns whether a call adds two arrays of the same shape."""
        call = self._calls[i]
        result_spec = self._specs[call.outputs[0]]
        return call.primitive.name == "add" and all(
            self._specs[n] == result_spec for n in call.inputs
        )

    def _maker_if_used_once(self, n: int) -> int | None:
        """Returns the call that computes a value, if only one other call reads it."""
        return self._makers.get(n) if self._uses.get(n) == 1 else None

    def _replace_sum(self, root: int) -> None:
        """Replaces the sum that ends at `root`, if enough of its terms are slices."""
        sums, rows, other_terms = [], [], []
        stack = [root]
        while stack:
            i = stack.pop()
            sums.append(i)
            for n in self._calls[i].inputs:
                maker = self._maker_if_used_once(n)
                if maker is not None and self._is_sum(maker):
                    stack.append(maker)
                elif maker is not None and self._calls[maker].primitive.name == "put_slice":
                    rows.append(maker)
                else:
                    other_terms.append(n)
        self._seen.update(sums)
        groups = self._group_rows(rows)
        if not groups:
            return
        grouped = {i for _, puts in groups for i in puts}
        other_terms += [self._calls[i].outputs[0] for i in rows if i not in grouped]
        self._dropped |= {*sums, *grouped}
        self._replacements[root] = self._create_calls(root, groups, other_terms)

    def _group_rows(self, rows: list[int]) -> list[tuple[int, list[int]]]:
        """Groups rows that differ in their index along one axis. Returns the axes and calls."""
        groups: dict[tuple, list[int]] = {}
        for i in rows:
            where = self._calls[i].attrs["where"]
            for axis, (start, stop, step) in enumerate(where):
                if stop - start == step == 1:
                    group_key = (axis, where[:axis], where[axis + 1 :])
                    groups.setdefault(group_key, []).append(i)
        chosen_groups: list[tuple[int, list[int]]] = []
        ungrouped = set(rows)
        for (axis, *_), puts in sorted(groups.items(), key=lambda group: -len(group[1])):
            group_calls = sorted(ungrouped.intersection(puts))
            if len(group_calls) >= MIN_LOOP_ROWS:
                chosen_groups.append((axis, group_calls))
                ungrouped.difference_update(group_calls)
        return chosen_groups

    def _create_calls(
        self, root: int, groups: list[tuple[int, list[int]]], other_terms: list[int]
    ) -> list[Call]:
        """Returns calls that add all rows, and the other terms of the sum."""
        spec = self._specs[self._calls[root].outputs[0]]
        calls: list[Call] = []
        terms: list[int] = []
        for axis, puts in groups:
            wheres = [self._calls[i].attrs["where"] for i in puts]
            indices = tuple([where[axis][0] for where in wheres])
            attrs = {"shape": spec.shape, "axis": axis, "indices": indices, "where": wheres[0]}
            terms.append(self._new_value(spec))
            inputs = tuple([self._calls[i].inputs[0] for i in puts])
            calls.append(Call(PLACE_ROWS, inputs, attrs, (terms[-1],)))
        total, *remaining_terms = [*terms, *reversed(other_terms)]
        for n in remaining_terms:
            calls.append(
                self._calls[root]._replace(inputs=(total, n), outputs=(self._new_value(spec),))
            )
            (total,) = calls[-1].outputs
        calls[-1] = calls[-1]._replace(outputs=self._calls[root].outputs)
        return calls

    def _new_value(self, spec: Spec) -> int:
        self._specs.append(spec)
        return len(self._specs) - 1
