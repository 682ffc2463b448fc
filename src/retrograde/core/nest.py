"""Nested structures of lists, tuples, named tuples and dicts, by optree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_LEAF = object()


def flatten(structure: Any) -> list:
    """The leaves of `structure`, in order; dicts by sorted keys. `None` is a leaf."""
    return flatten_with_pack(structure)[0]


def flatten_with_pack(structure: Any) -> tuple[list, Callable[[list], Any]]:
    """The leaves, and a function that builds the same structure around other leaves."""
    kind = type(structure)
    if kind is list or kind is tuple:
        for element in structure:
            if isinstance(element, (list, tuple, dict)):
                break
        else:
            return list(structure), list if kind is list else tuple
    elif not isinstance(structure, (list, tuple, dict)):
        return [structure], _only
    import optree

    leaves, spec = optree.tree_flatten(structure, none_is_leaf=True)
    return leaves, spec.unflatten


def _only(leaves: list) -> Any:
    (leaf,) = leaves
    return leaf
