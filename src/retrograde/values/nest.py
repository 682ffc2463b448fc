"""Nested structures: lists, tuples, named tuples, dicts and their subclasses.

An object with TensorFlow's methods `__tf_flatten__` and `__tf_unflatten__` is a structure, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, MappingView, Sequence
from functools import partial
from typing import Any

from retrograde.values.arguments import shown
from retrograde.values.composites import CompositeTensor
from retrograde.values.errors import ResourceExhaustedError
from retrograde.values.holder import Holder

MAX_DEPTH = 200  # of nested structures
_MAX_RANGE = 1 << 24  # in a range

_CONTAINERS = (Sequence, Mapping, MappingView)
_TEXT = (str, bytes, bytearray, memoryview)


def is_nested(value: Any) -> bool:
    """Returns whether `value` is a structure rather than a leaf."""
    if isinstance(value, _CONTAINERS):
        return not isinstance(value, _TEXT)
    return hasattr(type(value), "__tf_flatten__")


def flatten(structure: Any) -> list:
    """Returns the leaves of `structure`; dicts are sorted by key. `None` is a leaf."""
    return flatten_with_pack(structure)[0]


def flatten_with_pack(structure: Any) -> tuple[list, Callable[[list], Any]]:
    """Returns the leaves, and a function that packs other leaves into the same structure."""
    kind = type(structure)
    if kind is list or kind is tuple:
        for element in structure:
            if not isinstance(element, Holder) and is_nested(element):
                break
        else:
            return list(structure), kind
    elif isinstance(structure, Holder) or not is_nested(structure):
        return [structure], _single
    flat = list(leaves(structure))
    return flat, partial(_pack, structure, len(flat))


def _single(values: list) -> Any:
    (value,) = values
    return value


def _pack(structure: Any, count: int, values: list) -> Any:
    if len(values) != count:
        raise ValueError(f"Cannot pack {len(values)} values into a structure of {count} leaves.")
    return pack(structure, iter(values))


def leaves(structure: Any, expand_composites: bool = False, depth: int = 0) -> Iterator[Any]:
    """Yields the leaves of `structure`; optionally, the components of composite tensors."""
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
    """Returns the direct children of a structure; dicts are sorted by key."""
    if isinstance(structure, Mapping):
        return [structure[key] for key in sorted(structure)]
    if hasattr(type(structure), "__tf_flatten__"):
        return list(structure.__tf_flatten__()[1])
    return list(structure) if type(structure) is not range else _range_to_list(structure)


def _range_to_list(numbers: range) -> list:
    """Returns the numbers of a range, unless there are too many."""
    try:
        count = len(numbers)
    except OverflowError:
        raise ValueError(f"A structure has too many elements: {shown(numbers)}.") from None
    if count > _MAX_RANGE:
        raise ResourceExhaustedError(
            f"A structure has {count} elements: {numbers}. Expected at most {_MAX_RANGE}."
        )
    return list(numbers)


def pack(structure: Any, values: Iterator[Any], expand_composites: bool = False) -> Any:
    """Returns the same structure with leaves from `values`."""
    if not is_nested(structure):
        if expand_composites and isinstance(structure, CompositeTensor):
            return structure._with_components(values)
        return next(values)
    inner = [pack(child, values, expand_composites) for child in children(structure)]
    return rebuild(structure, inner)


def map_leaves(f: Callable, structure: Any) -> Any:
    """Returns `structure` with `f(leaf)` in place of each leaf."""
    return pack(structure, iter([f(leaf) for leaf in leaves(structure)]))


def rebuild(structure: Any, inner: list) -> Any:
    """Returns a structure of the same type with `inner` as its `children`."""
    kind = type(structure)
    if isinstance(structure, Mapping):
        by_key = dict(zip(sorted(structure), inner, strict=True))
        ordered = {key: by_key[key] for key in structure}
        default = [structure.default_factory] if isinstance(structure, defaultdict) else []
        return kind(*default, ordered)
    if hasattr(structure, "_fields"):
        return kind(*inner)
    if hasattr(kind, "__tf_flatten__"):
        return structure.__tf_unflatten__(structure.__tf_flatten__()[0], tuple(inner))
    return inner if kind is range or isinstance(structure, MappingView) else kind(inner)
