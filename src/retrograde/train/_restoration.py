"""Restores the values of a checkpoint to objects, now or when the objects are created."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from retrograde.core.recorders import isolate
from retrograde.toplevel.module import Module
from retrograde.train import _attribute_hooks as attribute_hooks
from retrograde.train._files import CheckpointReader
from retrograde.train._object_graph import (
    as_variable,
    children_of,
    is_container,
    object_graph,
    owners_of,
    value_name,
)
from retrograde.values import dtypes
from retrograde.values.errors import invalid


class Restoration:
    """Restores the values of a checkpoint to `root` and the objects reachable from it.

    Children are matched by name. If an object lacks a child that the checkpoint has, it is
    observed: when the child is added, its value is restored.
    """

    def __init__(self, reader: CheckpointReader, root: Any) -> None:
        self._reader = reader
        self.nodes = reader.objects
        self._root = weakref.ref(root)  # weak, because the root's hooks refer to this object
        self._objects: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._node_ids: dict[int, int] = {}
        self.restored: set[int] = set()
        self.restore_available(root, 0)
        self.warning = weakref.finalize(self, _warn_of_unused, self.nodes, self.restored)

    # Matching

    def restore_available(self, value: Any, node_id: int) -> None:
        """Restores all available values of an object and its children, or none on an error."""
        observers: list[Callable[[], None]] = []
        matches = [
            (part, part_id)
            for part, part_id in self._matches(value, node_id, observers)
            if part_id not in self.restored and value_name(part) in self.nodes[part_id]["values"]
        ]
        assignments = [self._prepare_assignment(part, part_id) for part, part_id in matches]
        with isolate():  # a trace must not repeat the assignments
            for assign in assignments:
                assign()
        self.restored.update(part_id for _, part_id in matches)
        for observe in observers:
            observe()

    def _matches(self, value: Any, node_id: int, observers: list) -> Iterator[tuple[Any, int]]:
        """Yields pairs of an object and its node in the checkpoint, starting at `value`.

        Appends functions to `observers` that start to observe incomplete objects.
        """
        queue, seen = deque([(value, node_id, False)]), set()
        replaced: dict[int, Any] = {}
        while queue:
            value, node_id, may_replace_items = queue.popleft()
            if (id(value), node_id) in seen or not self._bind(value, node_id):
                continue
            seen.add((id(value), node_id))
            yield value, node_id
            children = self.nodes[node_id]["children"]
            for owner, parts in owners_of(value) if children else ():
                for name in [name for name in children if name in parts]:
                    part, part_id = parts[name], children[name]
                    if not is_container(part):
                        queue.append((part, part_id, False))
                        continue
                    may_replace = may_replace_items or _may_replace_containers(owner)
                    queue.append((part, part_id, may_replace))
                    if may_replace:
                        observers.append(
                            partial(self._observe_container, owner, name, part, part_id, replaced)
                        )
            if not is_container(value):
                observers.append(partial(self._observe_object, value, node_id))

    def _bind(self, value: Any, node_id: int) -> bool:
        """Returns whether `value` is the object of a node. The first object is bound to it."""
        if is_container(value):
            return True
        bound = self._objects.get(node_id)
        if bound is not None:
            return bound is value
        other_id = self._node_ids.get(id(value))
        if other_id is not None and self._objects.get(other_id) is value:
            return False  # the checkpoint has two objects where the program has one
        self._objects[node_id] = value
        self._node_ids[id(value)] = node_id
        return True

    # Deferred restoration

    def _observe_object(self, value: Any, node_id: int) -> None:
        """Observes an object if it, or a list or dict of it, lacks children."""
        is_incomplete = self._has_missing_parts(value, node_id)
        for owner, _ in owners_of(value):
            if is_incomplete:
                attribute_hooks.register(
                    owner, lambda: self._on_change(self._objects.get(node_id), node_id)
                )
            else:
                attribute_hooks.unregister(owner)

    def _has_missing_parts(self, value: Any, node_id: int) -> bool:
        """Returns whether a child, or an item of a list or dict in it, is missing."""
        parts = children_of(value)
        return any(
            name not in parts
            or (
                part_id != node_id
                and is_container(parts[name])
                and self._has_missing_parts(parts[name], part_id)
            )
            for name, part_id in self.nodes[node_id]["children"].items()
        )

    def _observe_container(
        self, owner: Any, name: str, part: Any, node_id: int, replaced: dict
    ) -> None:
        """Replaces a list or dict that lacks items with one that reports added items."""
        kind = {list: ObservedList, dict: ObservedDict}.get(type(part), type(part))
        if kind not in (ObservedList, ObservedDict):
            return
        if self.nodes[node_id]["children"].keys() <= children_of(part).keys():
            _stop_observing(part)
            return
        observed = part if kind is type(part) else kind(part)
        observed._on_change = lambda: self._on_change(observed, node_id)
        replaced[id(part)] = observed
        _replace_part(replaced.get(id(owner), owner), name, observed)

    def _on_change(self, value: Any, node_id: int) -> None:
        """Restores values after something was added to an observed object or container."""
        if value is not None:
            try:
                self.restore_available(value, node_id)
            except BaseException:
                _stop_observing(value)  # raise an error only once
                raise

    # Values

    def _prepare_assignment(self, value: Any, node_id: int) -> Callable[[], None]:
        """Reads and checks the value of an object. Returns a function that assigns it."""
        key = self.nodes[node_id]["values"][value_name(value)]
        variable = as_variable(value)
        if variable is None:
            return value._restore_function(self._reader.get_tensor(key))
        array = self._reader.array(key)
        if not variable.shape.is_compatible_with(array.shape):
            raise ValueError(
                f"Received incompatible tensor with shape {array.shape} when attempting to restore "
                f"variable with shape {variable.shape} and name {variable.name}."
            )
        dtype = variable.dtype.numpy_dtype
        if self._reader.converts_integers and dtype.kind in "iu" and array.dtype.kind in "iu":
            array = array if (array.astype(dtype) != array).any() else array.astype(dtype)
        if array.dtype != dtype:
            raise invalid(
                f"tensor_name = {key}; expected dtype {variable.dtype.name} does not equal "
                f"original dtype {dtypes.of(array.dtype).name}."
            )
        return lambda: variable.assign(array)

    # Status

    def unused(self) -> list[int]:
        """Returns the nodes whose values have not been restored."""
        self.restore_available(self._root(), 0)
        return _unused_nodes(self.nodes, self.restored)

    def unmatched(self) -> list[Any]:
        """Returns the objects with values that have not been restored."""
        root = self._root()
        self.restore_available(root, 0)
        matched = {id(self._objects.get(node_id)) for node_id in self.restored}
        return [
            node.value
            for node in object_graph(root)
            if value_name(node.value) and id(node.value) not in matched
        ]


def _unused_nodes(nodes: list[dict], restored: set[int]) -> list[int]:
    return [
        node_id for node_id, node in enumerate(nodes) if node["values"] and node_id not in restored
    ]


def path_to(nodes: list[dict], node_id: int) -> str:
    """Returns the path of a node in a checkpoint."""
    names = {0: "(root)"}
    for parent, node in enumerate(nodes):
        for name, child in node["children"].items():
            names.setdefault(child, f"{names.get(parent)}.{name}")
    return names[node_id]


def _warn_of_unused(nodes: list[dict], restored: set[int]) -> None:
    """Warns of values that were not restored when the restoration ends."""
    unused = _unused_nodes(nodes, restored)
    if not unused:
        return
    import logging  # slow to import

    logging.getLogger("retrograde").warning(
        "%d values of a checkpoint were not used: %s%s. If this is intended, call "
        "expect_partial() on the status that restore() returned.",
        len(unused),
        ", ".join(path_to(nodes, node_id) for node_id in unused[:10]),
        ", ..." if len(unused) > 10 else "",
    )


def _may_replace_containers(value: Any) -> bool:
    """Returns whether lists in attributes may be replaced. Other libraries may keep references."""
    return isinstance(value, Module) or hasattr(type(value), "_owners")


def _stop_observing(value: Any) -> None:
    """Stops observing an object or a container."""
    if isinstance(value, (ObservedList, ObservedDict)):
        vars(value).clear()
    elif not is_container(value):
        for owner, _ in owners_of(value):
            attribute_hooks.unregister(owner)


def _replace_part(owner: Any, name: str, part: Any) -> None:
    if isinstance(owner, list):
        list.__setitem__(owner, int(name), part)
    elif isinstance(owner, dict):
        dict.__setitem__(owner, name, part)
    elif not isinstance(owner, tuple):
        object.__setattr__(owner, name, part)


def _with_notification(method: Callable) -> Callable:
    """Wraps a method of a list or dict to call `_on_change` afterwards."""

    def notify(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = method(self, *args, **kwargs)
        self._on_change()
        return result

    return notify


class ObservedList(list):
    """A list that lacks items of a checkpoint."""

    _on_change = staticmethod(lambda: None)
    append = _with_notification(list.append)
    extend = _with_notification(list.extend)
    insert = _with_notification(list.insert)
    __setitem__ = _with_notification(list.__setitem__)
    __iadd__ = _with_notification(list.__iadd__)


class ObservedDict(dict):
    """A dict that lacks items of a checkpoint."""

    _on_change = staticmethod(lambda: None)
    update = _with_notification(dict.update)
    setdefault = _with_notification(dict.setdefault)
    __setitem__ = _with_notification(dict.__setitem__)
    __ior__ = _with_notification(dict.__ior__)
