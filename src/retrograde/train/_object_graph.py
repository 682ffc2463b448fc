"""The graph of objects that a checkpoint saves.

The children of an object are its attributes, list items or dict values. Variables have values, and
so do objects with a `_checkpoint_name`: their method `_checkpoint_bytes()` returns the value, and
`_restore_function(value)` checks a value and returns a function that restores it. Objects can
override their children with `_trackable_children()`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from retrograde.core.variable import Variable
from retrograde.toplevel.module import Module
from retrograde.values.arguments import shown
from retrograde.values.conversion import source_of

VARIABLE_VALUE = "VARIABLE_VALUE"


def as_variable(value: Any) -> Variable | None:
    """Returns the variable that `value` is or wraps, or `None`.

    It does not read the variable: with several workers, all of them may have to read it together.
    """
    source = source_of(value)
    return source if isinstance(source, Variable) else None


def value_name(value: Any) -> str | None:
    """Returns the name of an object's value, or `None` if it has no value."""
    if as_variable(value) is not None:
        return VARIABLE_VALUE
    return getattr(type(value), "_checkpoint_name", None)


def is_container(value: Any) -> bool:
    """Returns whether the children of `value` are its items."""
    return isinstance(value, (list, tuple, Mapping))


def has_attributes(value: Any) -> bool:
    """Returns whether the children of `value` are its attributes.

    This holds for modules and for objects of other libraries that have variables, such as Keras.
    """
    return isinstance(value, Module) or isinstance(
        getattr(type(value), "variables", None), property
    )


def is_trackable(value: Any) -> bool:
    """Returns whether `value` can be part of a checkpoint."""
    return (
        is_container(value)
        or value_name(value) is not None
        or has_attributes(value)
        or hasattr(type(value), "_trackable_children")
    )


def children_of(value: Any) -> dict[str, Any]:
    """Returns the children of `value` by name."""
    if as_variable(value) is not None:
        return {}
    if hasattr(type(value), "_trackable_children"):
        return value._trackable_children()
    if isinstance(value, Mapping):
        return _items_by_name(value)
    if is_container(value):
        parts = {str(index): item for index, item in enumerate(value)}
    elif has_attributes(value):
        parts = vars(value)
    else:
        parts = {}
    return {name: part for name, part in parts.items() if is_trackable(part)}


def owners_of(value: Any) -> list[tuple[Any, dict[str, Any]]]:
    """Returns the owners of the children of `value`. A `Checkpoint` may have two owners."""
    if hasattr(type(value), "_owners"):
        return value._owners()
    return [(value, children_of(value))]


def _items_by_name(value: Mapping) -> dict[str, Any]:
    """Returns the items of a dict by name. Keys must be strings or integers."""
    named: dict[str, Any] = {}
    for key, part in value.items():
        if not is_trackable(part):
            continue
        if isinstance(key, (str, int)) and str(key) not in named:
            named[str(key)] = part
        elif any(value_name(node.value) for node in object_graph(part)):
            raise ValueError(
                f"Unable to save the dict {shown(value)}: its key {shown(key)} is not a unique "
                "string or integer, and its item has values to be saved. Use strings for keys."
            )
    return named


@dataclasses.dataclass(eq=False)
class Node:
    """An object, the first path to it, and the indices of its children in the graph."""

    value: Any
    path: tuple[str, ...]
    children: dict[str, int] = dataclasses.field(default_factory=dict)

    def key(self, attribute: str) -> str:
        """Returns the name of one of its values in a file."""
        names = [name.replace(".", "..").replace("/", ".S") for name in self.path]
        return "/".join([*names, ".ATTRIBUTES", attribute])


def object_graph(root: Any) -> list[Node]:
    """Returns all objects reachable from `root`, in breadth-first order."""
    nodes = [Node(root, ())]
    indices = {id(root): 0}
    for node in nodes:  # the list grows during the loop
        for name, part in children_of(node.value).items():
            if id(part) not in indices:
                indices[id(part)] = len(nodes)
                nodes.append(Node(part, (*node.path, name)))
            node.children[name] = indices[id(part)]
    return nodes


def prune_without_values(nodes: list[Node]) -> list[Node]:
    """Returns the root and the nodes from which a value is reachable."""
    parents: dict[int, list[int]] = {}
    for index, node in enumerate(nodes):
        for child in node.children.values():
            parents.setdefault(child, []).append(index)
    kept = {0} | {index for index, node in enumerate(nodes) if value_name(node.value)}
    stack = list(kept)
    while stack:
        for parent in parents.get(stack.pop(), ()):
            if parent not in kept:
                kept.add(parent)
                stack.append(parent)
    new_indices = {index: new for new, index in enumerate(sorted(kept))}
    for index in new_indices:
        children = nodes[index].children
        nodes[index].children = {n: new_indices[c] for n, c in children.items() if c in new_indices}
    return [nodes[index] for index in new_indices]
