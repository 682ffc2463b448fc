"""Size formulas: one saved trace for tensors of any size along some axes.

A trace has concrete sizes. To save a function with unknown dimensions, it is traced several times
with different sizes, and each number that differs between the traces becomes a formula of them:
`2 * n`, `n * m / 36`, `n + m + 1`. A loaded function evaluates the formulas for the sizes of its
arguments. A function whose steps depend on the sizes, such as one with a loop over rows, has no
common form.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from retrograde.program.unknown_sizes import NoCommonForm, unknown_axes
from retrograde.saved_functions.encoding import dtype_of, shape_of
from retrograde.values import dtypes, nest
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.specs import TensorSpec

_FORMULA = "of sizes"
_MAX_ELEMENTS = 64  # of a constant whose elements are sizes
_MAX_FILLED = 1 << 28  # elements of a constant that is described by its shape


class Sample(NamedTuple):
    """A trace as data, its constants, and the sizes of the unknown dimensions in it."""

    sizes: tuple[int, ...]
    data: dict
    constants: dict[str, np.ndarray]


# Common form of traces


def common_form(samples: list[Sample], tied: list[list[int]]) -> dict:
    """Merges samples, with formulas for numbers that differ. `tied` has groups of equal sizes."""
    datas = [sample.data for sample in samples]
    sizes = [sample.sizes for sample in samples]
    constants = {
        name: _common_constant([sample.constants[name] for sample in samples], sizes)
        for name in _require_equal([list(sample.constants) for sample in samples])
    }
    steps = _common_steps(datas, sizes)
    rules = [
        {**_common_parts(rules, ("steps",)), "steps": _common_steps(rules, sizes)}
        for rules in _zip_parts(datas, "rules")
    ]
    specs = [
        [
            _require_equal([n for n, _, _ in specs]),
            merge_data([s for _, s, _ in specs], sizes),
            specs[0][2],
        ]
        for specs in _zip_parts(datas, "specs")
    ]
    others = _common_parts(datas, ("steps", "rules", "specs"))
    return {
        "trace": {**others, "steps": steps, "rules": rules, "specs": specs},
        "constants": constants,
        "sizes": list(sizes[0]),
        "tied": tied,
        "fixed": [
            [i, column[0]]
            for i, column in enumerate(zip(*sizes, strict=True))
            if len(set(column)) == 1
        ],
    }


def _zip_parts(datas: Sequence[dict], key: str) -> Iterator[tuple]:
    if len({len(data[key]) for data in datas}) != 1:
        raise NoCommonForm
    return zip(*[data[key] for data in datas], strict=True)


def _require_equal(values: list) -> Any:
    if any(value != values[0] for value in values):
        raise NoCommonForm
    return values[0]


def _common_parts(datas: Sequence[dict], but: tuple[str, ...]) -> dict:
    """Returns the parts that must be equal in all samples: all except `but`."""
    return _require_equal([{k: v for k, v in data.items() if k not in but} for data in datas])


def _common_steps(datas: Sequence[dict], sizes: list[tuple]) -> list[dict]:
    """Merges the steps. Their attributes may depend on sizes."""
    merged = []
    for steps in _zip_parts(datas, "steps"):
        common = _common_parts(steps, _SIZE_DEPENDENT)
        for part in _SIZE_DEPENDENT:
            if part in steps[0]:
                common[part] = merge_data([step[part] for step in steps], sizes)
        merged.append(common)
    return merged


_SIZE_DEPENDENT = ("attrs", "arguments")


def merge_data(values: list, sizes: list[tuple]) -> Any:
    """Merges data of equal structure, with formulas for integers that differ."""
    first = values[0]
    if all(type(value) is type(first) and value == first for value in values):
        return first
    if all(type(value) is int for value in values):
        return formula(values, sizes)
    if all(type(value) is list and len(value) == len(first) for value in values):
        return [merge_data(list(parts), sizes) for parts in zip(*values, strict=True)]
    if all(type(value) is dict and value.keys() == first.keys() for value in values):
        return {key: merge_data([value[key] for value in values], sizes) for key in first}
    raise NoCommonForm


def formula(values: list, sizes: list[tuple]) -> dict:
    """Expresses numbers in terms of sizes: a multiple of their product or sum, plus a constant."""
    varying = [
        next(i for i, (a, b) in enumerate(zip(sizes[0], other, strict=True)) if a != b)
        for other, value in zip(sizes[1:-2], values[1:-2], strict=True)
        if value != values[0]
    ]
    for groups in ([varying], [[i] for i in varying]):
        terms = [_find_term(group, values, sizes) for group in groups if group]
        start = Fraction(values[0]) - sum(_evaluate_term(term, sizes[0]) for term in terms)
        if all(
            start + sum(_evaluate_term(term, size) for term in terms) == value
            for size, value in zip(sizes, values, strict=True)
        ):
            return {_FORMULA: [terms, [start.numerator, start.denominator]]}
    raise NoCommonForm


def _find_term(group: list[int], values: list, sizes: list[tuple]) -> list:
    """Returns the coefficient of the product of the sizes in `group`, and the group."""
    other = next(k for k, size in enumerate(sizes) if k and size[group[0]] != sizes[0][group[0]])
    growth = math.prod(sizes[other][i] for i in group) - math.prod(sizes[0][i] for i in group)
    factor = (Fraction(values[other]) - Fraction(values[0])) / growth
    return [factor.numerator, factor.denominator, group]


def _evaluate_term(term: list, sizes: Sequence[int]) -> Fraction:
    numerator, denominator, group = term
    return Fraction(numerator, denominator) * math.prod(sizes[i] for i in group)


def _common_constant(arrays: list[np.ndarray], sizes: list[tuple]) -> dict | None:
    """Describes a constant that depends on sizes. Returns `None` for other constants."""
    first = arrays[0]
    same_shape = all(array.shape == first.shape for array in arrays)
    if same_shape and all(array.tolist() == first.tolist() for array in arrays):
        return None
    if first.dtype.kind in "OcV" or not all(np.all(np.isfinite(array)) for array in arrays):
        raise NoCommonForm
    dtype = dtypes.of(first.dtype).name
    if same_shape and first.size <= _MAX_ELEMENTS:
        numbers = [array.ravel().tolist() for array in arrays]
        elements = [_number(list(column), sizes) for column in zip(*numbers, strict=True)]
        return {"elements": elements, "shape": list(first.shape), "dtype": dtype}
    shape = merge_data([list(array.shape) for array in arrays], sizes)
    if first.size and all(np.all(array == first.flat[0]) for array in arrays):
        return {"filled": first.flat[0].item(), "shape": shape, "dtype": dtype}
    if first.ndim == 2 and all(np.array_equal(array, _triangle(array)) for array in arrays):
        return {"triangle": True, "shape": shape, "dtype": dtype}
    if first.dtype.kind == "b":
        raise NoCommonForm
    counts = [np.arange(array.size, dtype=array.dtype).reshape(array.shape) for array in arrays]
    if all(np.array_equal(array, count) for array, count in zip(arrays, counts, strict=True)):
        return {"counted": True, "shape": shape, "dtype": dtype}
    raise NoCommonForm


def _triangle(like: np.ndarray) -> np.ndarray:
    """Returns a matrix with ones on and below the diagonal, as in causal masks."""
    return np.tri(*like.shape, dtype=like.dtype)


def _number(values: list, sizes: list[tuple]) -> Any:
    return values[0] if len(set(values)) == 1 else formula(values, sizes)


# Evaluation for given sizes


def evaluate_formulas(data: Any, sizes: Sequence[int]) -> Any:
    """Replaces the formulas in `data` by numbers."""
    if isinstance(data, list):
        return [evaluate_formulas(part, sizes) for part in data]
    if not isinstance(data, dict):
        return data
    if _FORMULA not in data:
        return {key: evaluate_formulas(part, sizes) for key, part in data.items()}
    terms, (numerator, denominator) = data[_FORMULA]
    value = sum([_evaluate_term(term, sizes) for term in terms], Fraction(numerator, denominator))
    if value.denominator != 1:
        raise NoCommonForm
    return value.numerator


def constant_for(data: Mapping, sizes: Sequence[int]) -> np.ndarray:
    """Creates the constant that `_common_constant` described."""
    data = evaluate_formulas(data, sizes)
    dtype, shape = dtype_of(data["dtype"]), shape_of(data["shape"])
    if math.prod(shape) > _MAX_FILLED:
        raise ValueError(f"a constant of shape {shape} is too large")
    if "elements" in data:
        return np.array(data["elements"]).astype(dtype).reshape(shape)
    if "filled" in data:
        return np.full(shape, data["filled"], dtype)
    if "triangle" in data:
        return np.tri(*shape, dtype=dtype)
    return np.arange(math.prod(shape)).astype(dtype).reshape(shape)


def sizes_in(pattern: Any, arguments: Any, form: Mapping) -> tuple[int, ...] | None:
    """Returns the sizes of `arguments` at the unknown dimensions of `pattern`.

    Returns `None` if the arguments do not match: if a Python value differs from the pattern, or if
    the form is not valid for a size.
    """
    specs, leaves = list(nest.leaves(pattern)), list(nest.leaves(arguments))
    if len(specs) != len(leaves):
        return None
    for spec, leaf in zip(specs, leaves, strict=True):
        tensor = tensor_or_variable(leaf)
        if not isinstance(spec, TensorSpec):
            if tensor is not None or type(leaf) is not type(spec) or leaf != spec:
                return None
        elif tensor is None or not spec.is_compatible_with(tensor):
            return None
    sizes = tuple(
        [
            tensor_or_variable(leaves[leaf_index])._spec.shape[axis]
            for leaf_index, axis in unknown_axes(pattern)
        ]
    )
    matches = all(sizes[i] == size for i, size in form["fixed"])
    return sizes if matches and all(len({sizes[i] for i in t}) == 1 for t in form["tied"]) else None
