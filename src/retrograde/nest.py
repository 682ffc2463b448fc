"""tf.nest: nested structures of lists, tuples, named tuples, dicts and their subclasses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from retrograde._api.lazy import from_all
from retrograde.values import nest as _nest
from retrograde.values.arguments import as_text, shown
from retrograde.values.composites import CompositeTensor as _CompositeTensor
from retrograde.values.errors import to_list
from retrograde.values.nest import children as _children
from retrograde.values.nest import leaves as _leaves
from retrograde.values.nest import pack as _packed
from retrograde.values.specs import TypeSpec as _TypeSpec
from retrograde.values.specs import spec_of as _spec_of

__all__ = ["assert_same_structure", "flatten", "is_nested", "map_structure", "pack_sequence_as"]

__getattr__, __dir__ = from_all(__name__)


def is_nested(seq: Any) -> bool:
    """Returns whether `seq` is a list, a tuple, a dict or another container.

    >>> tf.nest.is_nested([1]), tf.nest.is_nested("ab"), tf.nest.is_nested(tf.constant([1]))
    (True, False, False)
    """
    return _nest.is_nested(seq)


def flatten(structure: Any, expand_composites: bool = False) -> list:
    """Returns the leaves of a structure in order; dicts are sorted by key.

    With `expand_composites`, sparse and ragged tensors are flattened to their component tensors.

    >>> tf.nest.flatten({"b": 1, "a": (2, [3])})
    [2, 3, 1]
    """
    return list(_leaves(structure, expand_composites))


def pack_sequence_as(
    structure: Any, flat_sequence: Sequence[Any], expand_composites: bool = False
) -> Any:
    """Replaces the leaves of `structure` by the elements of `flat_sequence`.

    >>> tf.nest.pack_sequence_as({"b": 1, "a": (2, [3])}, [10, 20, 30])
    {'b': 30, 'a': (10, [20])}
    """
    if not is_nested(flat_sequence):
        raise TypeError(
            f"Attempted to pack value: {shown(flat_sequence)} into a structure, but found "
            f"incompatible type `{type(flat_sequence)}`. Expected a list or a tuple."
        )
    if isinstance(flat_sequence, range):  # its length may exceed `sys.maxsize`
        flat_sequence = to_list("pack_sequence_as", flat_sequence)
    count = len(flatten(structure, expand_composites))
    if count != len(flat_sequence):
        raise ValueError(
            f"Could not pack sequence. Structure had {count} atoms, but flat_sequence had "
            f"{len(flat_sequence)} items. Structure: {as_text(structure)}, flat_sequence: "
            f"{as_text(flat_sequence)}."
        )
    return _packed(structure, iter(flat_sequence), expand_composites)


def map_structure(func: Callable, *structure: Any, **kwargs: Any) -> Any:
    """Applies `func` to the leaves of one structure, or of several with equal nesting.

    >>> tf.nest.map_structure(lambda x, y: x + y, {"a": (1, 2)}, {"a": (10, 20)})
    {'a': (11, 22)}
    """
    check_types = kwargs.pop("check_types", True)
    expand = kwargs.pop("expand_composites", False)
    if kwargs:
        raise ValueError(
            "Only valid keyword arguments are `check_types` and `expand_composites`. Received: "
            f"{', '.join(kwargs)}."
        )
    if not callable(func):
        raise TypeError(f"`func` must be callable. Received: {shown(func)}.")
    if not structure:
        raise ValueError("map_structure: expected at least one structure.")
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types, expand)
    rows = zip(*(_leaves(s, expand) for s in structure), strict=True)
    return _packed(structure[0], iter([func(*row) for row in rows]), expand)


def assert_same_structure(
    nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Raises if two structures differ: `TypeError` if only types differ, otherwise `ValueError`."""
    reason = _difference(nest1, nest2, check_types, expand_composites)
    if reason is not None:
        error, difference = reason
        raise error(
            f"The two structures don't have the same nested structure: {difference}.\n"
            f"First structure: {shown(nest1)}\nSecond structure: {shown(nest2)}"
        )


def _difference(
    a: Any, b: Any, check_types: bool, expand: bool
) -> tuple[type[Exception], str] | None:
    if is_nested(a) != is_nested(b):
        return ValueError, f"{shown(a)} and {shown(b)} are not both structures"
    if not is_nested(a):
        return _difference_of_leaves(a, b) if expand else None
    if check_types and not _same_container(a, b):
        return TypeError, f"the types {type(a).__name__} and {type(b).__name__} differ"
    parts = _children(a), _children(b)
    if len(parts[0]) != len(parts[1]):
        return ValueError, f"they have {len(parts[0])} and {len(parts[1])} elements"
    if isinstance(a, Mapping) and isinstance(b, Mapping) and set(a) != set(b):
        return ValueError, f"the keys {shown(list(a))} and {shown(list(b))} differ"
    pairs = zip(*parts, strict=True)
    return next(filter(None, (_difference(x, y, check_types, expand) for x, y in pairs)), None)


def _difference_of_leaves(a: Any, b: Any) -> tuple[type[Exception], str] | None:
    """Compares leaves when composite tensors are expanded, and so count as structures."""
    specs = [_composite_spec(x) for x in (a, b)]
    if specs[0] is specs[1] is None:
        return None
    names = f"{type(a).__name__} and {type(b).__name__}"
    if None in specs:
        return ValueError, f"{names} are not both composite tensors"
    if type(specs[0]) is not type(specs[1]) and not isinstance(b, _TypeSpec):
        return TypeError, f"the types {names} differ"
    if specs[0].most_specific_common_supertype(specs[1:]) is None:
        return ValueError, f"{specs[0]} and {specs[1]} have no common supertype"
    return None


def _composite_spec(value: Any) -> _TypeSpec | None:
    """Returns the spec of a composite tensor, or a spec of composite tensors itself."""
    if isinstance(value, _CompositeTensor):
        return _spec_of(value)
    is_spec = isinstance(value, _TypeSpec) and issubclass(value.value_type, _CompositeTensor)
    return value if is_spec else None


def _same_container(a: Any, b: Any) -> bool:
    if type(a) is type(b) or (isinstance(a, Mapping) and isinstance(b, Mapping)):
        return True
    fields = getattr(a, "_fields", None)  # of a named tuple
    same_name = type(a).__name__ == type(b).__name__
    return fields is not None and same_name and fields == getattr(b, "_fields", None)
