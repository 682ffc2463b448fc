"""Open sizes: one saved recording for tensors of any length along some axes.

A recording holds sizes as numbers. To save a function for tensors whose sizes are left open, it is
recorded several times with other sizes, and what differs between the recordings is put down as a
formula: `2 * n`, `n * m / 36`, `n + m + 1`. What loads it fills in the sizes of its arguments. A
function that does not the same for all sizes, such as one with a loop over rows, has no such form.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from retrograde.program.saving_values import dtype_of, shape_of
from retrograde.program.signature import tensors_reached
from retrograde.values import dtypes, nest
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import InvalidArgumentError
from retrograde.values.specs import TensorSpec

_FORMULA = "of sizes"
_PRIMES = (7, 11, 13, 17, 19, 23, 29, 31)  # sizes that are hardly met by chance
_ATTEMPTS = 100
_CHECKS = (4, 5)
_MISFITS = (ValueError, InvalidArgumentError)  # what is raised where sizes do not fit
_MOST_ELEMENTS = 64  # of a constant whose elements are sizes
_MOST_MADE = 1 << 28  # elements of a constant that a file says how to make


class Unlike(Exception):
    """Recordings that have no common form."""


class SizedTrace(NamedTuple):
    """A recording, and the sizes it was made with."""

    sizes: tuple[int, ...]
    trace: Any


class Sample(NamedTuple):
    """A recording as data, the constants in it, and the sizes it was made with."""

    sizes: tuple[int, ...]
    data: dict
    constants: dict[str, np.ndarray]


def unknown_axes(arguments: Any) -> list[tuple[int, int]]:
    """Which axes of the specs among some arguments are open: the places of specs, and axes."""
    return [
        (place, axis)
        for place, leaf in enumerate(nest.leaves(arguments))
        if isinstance(leaf, TensorSpec) and leaf.shape.rank is not None
        for axis, size in enumerate(leaf.shape.as_list())
        if size is None
    ]


def with_sizes(arguments: Any, sizes: Sequence[int]) -> Any:
    """`arguments` with sizes in the place of open ones."""
    filled = dict(zip(unknown_axes(arguments), sizes, strict=True))
    leaves = []
    for place, leaf in enumerate(nest.leaves(arguments)):
        if isinstance(leaf, TensorSpec) and leaf.shape.rank is not None:
            shape = [filled.get((place, i), n) for i, n in enumerate(leaf.shape.as_list())]
            leaf = TensorSpec(shape, leaf.dtype, leaf.name)
        leaves.append(leaf)
    return nest.pack(arguments, iter(leaves))


# Recording with several sizes


def traces_with_sizes(
    python_function: Callable, count: int, record: Callable[[tuple], SizedTrace]
) -> tuple[list[SizedTrace], list[list[int]]]:
    """Recordings with `count` sizes: the first, others that differ in one, and `_CHECKS` that
    differ in all, far enough for a formula that is none to be found out.

    A size that nothing else will do for is the same in all of them; sizes that have to be equal
    change together, and their places are returned.
    """
    first = first_trace(python_function, count, record)
    sizes, changed = first.sizes, list(first.sizes)
    others, tied = [], []
    for i in range(count):
        if changed[i] != sizes[i]:  # along with another
            continue
        for places in ([i], [j for j in range(count) if sizes[j] == sizes[i]]):
            varied = varied_in(places, sizes, record)
            if varied is None:
                continue
            others.append(varied)
            tied += [places] if len(places) > 1 else []
            for j in places:
                changed[j] = varied.sizes[j]
            break
    checks: list[Any] = [_tried(_far(sizes, changed, times), record) for times in _CHECKS]
    if not others or None in checks:
        raise Unlike
    return [first, *others, *checks], tied


def _far(sizes: tuple[int, ...], changed: list[int], times: int) -> tuple[int, ...]:
    """Sizes many times as large; and odd ones and even ones, where neighbours will do."""
    grown = [
        times * n + (times // 2 if m == n + 1 else 0) for n, m in zip(sizes, changed, strict=True)
    ]
    return tuple([n if m == n else far for n, m, far in zip(sizes, changed, grown, strict=True)])


def first_trace(
    python_function: Callable, count: int, record: Callable[[tuple], SizedTrace]
) -> SizedTrace:
    """A recording with any sizes that will do, such as those of weights."""
    known = {n for tensor in tensors_reached(python_function) for n in tensor._spec.shape} - {1}
    primes = [_PRIMES[i % len(_PRIMES)] for i in range(count)]
    choices = [dict.fromkeys([prime, *sorted(known, reverse=True), primes[0]]) for prime in primes]
    combinations = sorted(itertools.islice(itertools.product(*choices), 10_000), key=_strangeness)
    problem: Exception | None = None
    for sizes in combinations[:_ATTEMPTS]:
        try:
            return record(sizes)
        except _MISFITS as error:
            problem = problem or error
    raise problem or Unlike


def _strangeness(sizes: tuple[int, ...]) -> int:
    """How many sizes are not what would tell most."""
    return sum(n != prime for n, prime in zip(sizes, itertools.cycle(_PRIMES), strict=False))


def varied_in(
    places: list[int], sizes: tuple[int, ...], record: Callable[[tuple], SizedTrace], by: int = 1
) -> SizedTrace | None:
    """A recording with another size in some places, larger `by` so much or, where that does not
    fit, a multiple; `None` if there is none."""
    size = sizes[places[0]]
    for other in (size + by, 2 * size, 3 * size):
        changed = tuple([other if i in places else n for i, n in enumerate(sizes)])
        found = _tried(changed, record)
        if found is not None:
            return found
    return None


def _tried(sizes: tuple[int, ...], record: Callable[[tuple], SizedTrace]) -> SizedTrace | None:
    try:
        return record(sizes)
    except _MISFITS:
        return None


# What recordings have in common


def common_form(samples: list[Sample], tied: list[list[int]]) -> dict:
    """All samples in one, with formulas where they differ. Sizes that are `tied` are equal."""
    datas = [sample.data for sample in samples]
    sizes = [sample.sizes for sample in samples]
    constants = {
        name: _common_constant([sample.constants[name] for sample in samples], sizes)
        for name in _same([list(sample.constants) for sample in samples])
    }
    entries = _common_entries(datas, sizes)
    rules = [
        {**_common_parts(rules, ("entries",)), "entries": _common_entries(rules, sizes)}
        for rules in _side_by_side(datas, "rules")
    ]
    specs = [
        [_same([n for n, _, _ in specs]), merged([s for _, s, _ in specs], sizes), specs[0][2]]
        for specs in _side_by_side(datas, "specs")
    ]
    others = _common_parts(datas, ("entries", "rules", "specs"))
    return {
        "path": {**others, "entries": entries, "rules": rules, "specs": specs},
        "constants": constants,
        "sizes": list(sizes[0]),
        "tied": tied,
        "fixed": [
            [i, column[0]]
            for i, column in enumerate(zip(*sizes, strict=True))
            if len(set(column)) == 1
        ],
    }


def _side_by_side(datas: Sequence[dict], key: str) -> Iterator[tuple]:
    if len({len(data[key]) for data in datas}) != 1:
        raise Unlike
    return zip(*[data[key] for data in datas], strict=True)


def _same(values: list) -> Any:
    if any(value != values[0] for value in values):
        raise Unlike
    return values[0]


def _common_parts(datas: Sequence[dict], but: tuple[str, ...]) -> dict:
    """What must be the same in all: everything but what has formulas in it."""
    return _same([{k: v for k, v in data.items() if k not in but} for data in datas])


def _common_entries(datas: Sequence[dict], sizes: list[tuple]) -> list[dict]:
    """Calls in order; their attributes may depend on sizes."""
    found = []
    for entries in _side_by_side(datas, "entries"):
        common = _common_parts(entries, _MAY_DEPEND)
        for part in _MAY_DEPEND:
            if part in entries[0]:
                common[part] = merged([entry[part] for entry in entries], sizes)
        found.append(common)
    return found


_MAY_DEPEND = ("attrs", "given")


def merged(values: list, sizes: list[tuple]) -> Any:
    """Data of the same structure as one, with formulas where integers differ."""
    first = values[0]
    if all(type(value) is type(first) and value == first for value in values):
        return first
    if all(type(value) is int for value in values):
        return formula(values, sizes)
    if all(type(value) is list and len(value) == len(first) for value in values):
        return [merged(list(parts), sizes) for parts in zip(*values, strict=True)]
    if all(type(value) is dict and value.keys() == first.keys() for value in values):
        return {key: merged([value[key] for value in values], sizes) for key in first}
    raise Unlike


def formula(values: list, sizes: list[tuple]) -> dict:
    """What the numbers are of the sizes: a multiple of a product, or a sum; and something added."""
    concerned = [
        next(i for i, (a, b) in enumerate(zip(sizes[0], other, strict=True)) if a != b)
        for other, value in zip(sizes[1:-2], values[1:-2], strict=True)
        if value != values[0]
    ]
    for groups in ([concerned], [[i] for i in concerned]):
        terms = [_term(group, values, sizes) for group in groups if group]
        start = Fraction(values[0]) - sum(_worth(term, sizes[0]) for term in terms)
        if all(
            start + sum(_worth(term, size) for term in terms) == value
            for size, value in zip(sizes, values, strict=True)
        ):
            return {_FORMULA: [terms, [start.numerator, start.denominator]]}
    raise Unlike


def _term(group: list[int], values: list, sizes: list[tuple]) -> list:
    """The factor by which the product of some sizes counts, and which sizes these are."""
    at = next(k for k, size in enumerate(sizes) if k and size[group[0]] != sizes[0][group[0]])
    grown = math.prod(sizes[at][i] for i in group) - math.prod(sizes[0][i] for i in group)
    factor = (Fraction(values[at]) - Fraction(values[0])) / grown
    return [factor.numerator, factor.denominator, group]


def _worth(term: list, sizes: Sequence[int]) -> Fraction:
    numerator, denominator, group = term
    return Fraction(numerator, denominator) * math.prod(sizes[i] for i in group)


def _common_constant(arrays: list[np.ndarray], sizes: list[tuple]) -> dict | None:
    """How to make a constant from sizes; `None` if it does not depend on them."""
    first = arrays[0]
    same_shape = all(array.shape == first.shape for array in arrays)
    if same_shape and all(array.tolist() == first.tolist() for array in arrays):
        return None
    if first.dtype.kind in "OcV" or not all(np.all(np.isfinite(array)) for array in arrays):
        raise Unlike
    dtype = dtypes.of(first.dtype).name
    if same_shape and first.size <= _MOST_ELEMENTS:
        numbers = [array.ravel().tolist() for array in arrays]
        elements = [_number(list(column), sizes) for column in zip(*numbers, strict=True)]
        return {"elements": elements, "shape": list(first.shape), "dtype": dtype}
    shape = merged([list(array.shape) for array in arrays], sizes)
    if first.size and all(np.all(array == first.flat[0]) for array in arrays):
        return {"filled": first.flat[0].item(), "shape": shape, "dtype": dtype}
    counts = [np.arange(array.size, dtype=array.dtype).reshape(array.shape) for array in arrays]
    if all(np.array_equal(array, count) for array, count in zip(arrays, counts, strict=True)):
        return {"counted": True, "shape": shape, "dtype": dtype}
    raise Unlike


def _number(values: list, sizes: list[tuple]) -> Any:
    return values[0] if len(set(values)) == 1 else formula(values, sizes)


# Filling in sizes


def filled_in(data: Any, sizes: Sequence[int]) -> Any:
    """Data with numbers in the place of formulas."""
    if isinstance(data, list):
        return [filled_in(part, sizes) for part in data]
    if not isinstance(data, dict):
        return data
    if _FORMULA not in data:
        return {key: filled_in(part, sizes) for key, part in data.items()}
    terms, (numerator, denominator) = data[_FORMULA]
    value = sum([_worth(term, sizes) for term in terms], Fraction(numerator, denominator))
    if value.denominator != 1:
        raise Unlike
    return value.numerator


def made_constant(data: Mapping, sizes: Sequence[int]) -> np.ndarray:
    """The constant that `_common_constant` told how to make."""
    data = filled_in(data, sizes)
    dtype, shape = dtype_of(data["dtype"]), shape_of(data["shape"])
    if math.prod(shape) > _MOST_MADE:
        raise ValueError(f"a constant of shape {shape} is too large to be made of sizes")
    if "elements" in data:
        return np.array(data["elements"]).astype(dtype).reshape(shape)
    if "filled" in data:
        return np.full(shape, data["filled"], dtype)
    return np.arange(math.prod(shape)).astype(dtype).reshape(shape)


def sizes_in(pattern: Any, arguments: Any, form: Mapping) -> tuple[int, ...] | None:
    """The sizes that `arguments` have where `pattern` leaves them open; `None` if they do not fit.

    Python values must be those of the pattern, and sizes those that the form is for.
    """
    specs, leaves = list(nest.leaves(pattern)), list(nest.leaves(arguments))
    if len(specs) != len(leaves):
        return None
    for spec, leaf in zip(specs, leaves, strict=True):
        held = tensor_or_variable(leaf)
        if not isinstance(spec, TensorSpec):
            if held is not None or type(leaf) is not type(spec) or leaf != spec:
                return None
        elif held is None or not spec.is_compatible_with(held):
            return None
    sizes = tuple(
        [
            tensor_or_variable(leaves[place])._spec.shape[axis]
            for place, axis in unknown_axes(pattern)
        ]
    )
    fit = all(sizes[i] == size for i, size in form["fixed"])
    return sizes if fit and all(len({sizes[i] for i in t}) == 1 for t in form["tied"]) else None
