"""The objects that a checkpoint is made of: who has parts, and who has values.

A part of an object is what one of its attributes holds, an item of a list, or what a dict holds
under a name. Variables have values, and so have objects with a `_checkpoint_name` for theirs: their
method `_checkpoint_bytes()` returns it; `_restoring(value)` checks one and returns a function that
takes it back. Objects whose parts are not their attributes say so by `_trackable_children()`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from retrograde.core.variable import Variable
from retrograde.toplevel.module import Module
from retrograde.values.arguments import shown
from retrograde.values.conversion import tensor_or_variable

VARIABLE_VALUE = "VARIABLE_VALUE"


def variable_in(value: Any) -> Variable | None:
    """The variable that `value` is or stands for."""
    held = tensor_or_variable(value)
    return held if isinstance(held, Variable) else None


def value_name(value: Any) -> str | None:
    """What the value of an object is called, if it has one itself."""
    if variable_in(value) is not None:
        return VARIABLE_VALUE
    return getattr(type(value), "_checkpoint_name", None)


def is_container(value: Any) -> bool:
    """Whether the parts of `value` are its items."""
    return isinstance(value, (list, tuple, Mapping))


def has_attributes(value: Any) -> bool:
    """Whether the parts of `value` are its attributes.

    Beside modules these are objects of other libraries that have variables, as those of Keras.
    """
    return isinstance(value, Module) or isinstance(
        getattr(type(value), "variables", None), property
    )


def is_trackable(value: Any) -> bool:
    """Whether `value` can be a part of a checkpoint."""
    return (
        is_container(value)
        or value_name(value) is not None
        or has_attributes(value)
        or hasattr(type(value), "_trackable_children")
    )


def parts_of(value: Any) -> dict[str, Any]:
    """The parts of `value`, by name."""
    if variable_in(value) is not None:
        return {}
    if hasattr(type(value), "_trackable_children"):
        return value._trackable_children()
    if isinstance(value, Mapping):
        return _items_by_name(value)
    if is_container(value):
        parts = {str(place): item for place, item in enumerate(value)}
    elif has_attributes(value):
        parts = vars(value)
    else:
        parts = {}
    return {name: part for name, part in parts.items() if is_trackable(part)}


def owners_of(value: Any) -> list[tuple[Any, dict[str, Any]]]:
    """Whose parts the parts of `value` are: those of a `Checkpoint` may have two owners."""
    if hasattr(type(value), "_owners"):
        return value._owners()
    return [(value, parts_of(value))]


def _items_by_name(value: Mapping) -> dict[str, Any]:
    """The items of a dict. Whole numbers are names, too; what other keys lead to has no name."""
    named: dict[str, Any] = {}
    for key, part in value.items():
        if not is_trackable(part):
            continue
        if isinstance(key, (str, int)) and str(key) not in named:
            named[str(key)] = part
        elif any(value_name(node.value) for node in graph_of(part)):
            raise ValueError(
                f"Unable to save the dict {shown(value)}: its key {shown(key)} makes no name of "
                "its own, and what it leads to has values to be saved. Use strings for keys."
            )
    return named


@dataclasses.dataclass(eq=False)
class Node:
    """An object, where it was found first, and the places of its parts in the graph."""

    value: Any
    path: tuple[str, ...]
    children: dict[str, int] = dataclasses.field(default_factory=dict)

    def key(self, attribute: str) -> str:
        """The name of one of its values in a file."""
        names = [name.replace(".", "..").replace("/", ".S") for name in self.path]
        return "/".join([*names, ".ATTRIBUTES", attribute])


def graph_of(root: Any) -> list[Node]:
    """All objects that `root` leads to, itself first, nearer ones before those further off."""
    nodes = [Node(root, ())]
    places = {id(root): 0}
    for node in nodes:  # which grows meanwhile
        for name, part in parts_of(node.value).items():
            if id(part) not in places:
                places[id(part)] = len(nodes)
                nodes.append(Node(part, (*node.path, name)))
            node.children[name] = places[id(part)]
    return nodes


def leading_to_values(nodes: list[Node]) -> list[Node]:
    """The root, and those of the nodes that have values or lead to some."""
    parents: dict[int, list[int]] = {}
    for place, node in enumerate(nodes):
        for child in node.children.values():
            parents.setdefault(child, []).append(place)
    found = {0} | {place for place, node in enumerate(nodes) if value_name(node.value)}
    waiting = list(found)
    while waiting:
        for parent in parents.get(waiting.pop(), ()):
            if parent not in found:
                found.add(parent)
                waiting.append(parent)
    order = {place: new for new, place in enumerate(sorted(found))}
    for place in order:
        children = nodes[place].children
        nodes[place].children = {n: order[c] for n, c in children.items() if c in order}
    return [nodes[place] for place in order]
