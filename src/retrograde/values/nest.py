"""Nested structures: lists, tuples, named tuples, dicts, and classes made from these."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from retrograde.values.arguments import shown
from retrograde.values.composites import CompositeTensor
from retrograde.values.errors import ResourceExhaustedError
from retrograde.values.holder import Holder

MAX_DEPTH = 200  # of nested structures
_MOST_NUMBERS = 1 << 24  # in a range

_TEXT = (str, bytes, bytearray, memoryview)


def is_nested(value: Any) -> bool:
    """Whether `value` is a structure rather than a leaf."""
    return isinstance(value, (Sequence, Mapping)) and not isinstance(value, _TEXT)


def flatten(structure: Any) -> list:
    """The leaves of `structure`, in order; dicts by sorted keys. `None` is a leaf."""
    return flatten_with_pack(structure)[0]


def flatten_with_pack(structure: Any) -> tuple[list, Callable[[list], Any]]:
    """The leaves, and a function that builds the same structure around other leaves."""
    kind = type(structure)
    if kind is list or kind is tuple:
        for element in structure:
            if not isinstance(element, Holder) and is_nested(element):
                break
        else:
            return list(structure), kind
    elif isinstance(structure, Holder) or not is_nested(structure):
        return [structure], _only
    flat = list(leaves(structure))
    return flat, partial(_pack, structure, len(flat))


def _only(values: list) -> Any:
    (value,) = values
    return value


def _pack(structure: Any, count: int, values: list) -> Any:
    if len(values) != count:
        raise ValueError(f"A structure of {count} leaves cannot be built of {len(values)}.")
    return pack(structure, iter(values))


def leaves(structure: Any, expand_composites: bool = False, depth: int = 0) -> Iterator[Any]:
    """The leaves of `structure`, one after the other; or, of composite tensors, what is in them."""
    if is_nested(structure):
        if depth > MAX_DEPTH:
            raise ValueError(
                f"A structure is nested more than {MAX_DEPTH} levels deep, or contains itself."
            )
        for child in children(structure):
            yield from leaves(child, expand_composites, depth + 1)
    elif expand_composites and isinstance(structure, CompositeTensor):
        yield from structure._components()
    else:
        yield structure


def children(structure: Any) -> list:
    """What a structure holds directly; dicts by sorted keys."""
    if isinstance(structure, Mapping):
        return [structure[key] for key in sorted(structure)]
    return list(structure) if type(structure) is not range else _listed(structure)


def _listed(numbers: range) -> list:
    """The numbers of a range, which may be too many."""
    try:
        count = len(numbers)
    except OverflowError:
        raise ValueError(f"A structure has too many elements: {shown(numbers)}.") from None
    if count > _MOST_NUMBERS:
        raise ResourceExhaustedError(
            f"A structure has {count} elements: {numbers}. Expected at most {_MOST_NUMBERS}."
        )
    return list(numbers)


def pack(structure: Any, values: Iterator[Any], expand_composites: bool = False) -> Any:
    """The same structure around what `values` yields."""
    if not is_nested(structure):
        if expand_composites and isinstance(structure, CompositeTensor):
            return structure._with_components(values)
        return next(values)
    inner = [pack(child, values, expand_composites) for child in children(structure)]
    return rebuild(structure, inner)


def rebuild(structure: Any, inner: list) -> Any:
    """A structure of the same kind, directly around `inner` in the order of `children`."""
    kind = type(structure)
    if isinstance(structure, Mapping):
        found = dict(zip(sorted(structure), inner, strict=True))
        ordered = {key: found[key] for key in structure}
        default = [structure.default_factory] if isinstance(structure, defaultdict) else []
        return kind(*default, ordered)
    if hasattr(structure, "_fields"):
        return kind(*inner)
    return inner if kind is range else kind(inner)
