"""Values of a file on their way to the objects that they belong to."""

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
from retrograde.train._objects import (
    graph_of,
    is_container,
    owners_of,
    parts_of,
    value_name,
    variable_in,
)
from retrograde.values import dtypes
from retrograde.values.errors import invalid


class Restoration:
    """Brings the values of a checkpoint to `root` and what it leads to, now and later.

    Parts are matched by their names. An object that lacks a part which the checkpoint has waits
    for it: once the part is there, its value is restored.
    """

    def __init__(self, reader: CheckpointReader, root: Any) -> None:
        self._reader = reader
        self.nodes = reader.objects
        self._root = weakref.ref(root)  # which may be what waits for this
        self._objects: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._places: dict[int, int] = {}
        self.restored: set[int] = set()
        self.settle(root, 0)
        self.warning = weakref.finalize(self, _warn_of_rest, self.nodes, self.restored)

    # Matching

    def settle(self, value: Any, place: int) -> None:
        """Restores whatever can be, of an object and its parts. Either all of it or nothing."""
        afterwards: list[Callable[[], None]] = []
        found = [
            (part, at)
            for part, at in self._matches(value, place, afterwards)
            if at not in self.restored and value_name(part) in self.nodes[at]["values"]
        ]
        puts = [self._put(part, at) for part, at in found]
        with isolate():  # a function that is being recorded must not do this each time
            for put in puts:
                put()
        self.restored.update(at for _, at in found)
        for act in afterwards:
            act()

    def _matches(self, value: Any, place: int, afterwards: list) -> Iterator[tuple[Any, int]]:
        """Objects and their places in the checkpoint, from one of them on.

        What has to be done so that they hear of missing parts comes into `afterwards`.
        """
        queue, seen = deque([(value, place, False)]), set()
        replaced: dict[int, Any] = {}
        while queue:
            value, place, ours = queue.popleft()
            if (id(value), place) in seen or not self._bind(value, place):
                continue
            seen.add((id(value), place))
            yield value, place
            children = self.nodes[place]["children"]
            for owner, parts in owners_of(value) if children else ():
                for name in [name for name in children if name in parts]:
                    part, at = parts[name], children[name]
                    if not is_container(part):
                        queue.append((part, at, False))
                        continue
                    may_replace = ours or _is_ours(owner)
                    queue.append((part, at, may_replace))
                    if may_replace:
                        afterwards.append(partial(self._watch, owner, name, part, at, replaced))
            if not is_container(value):
                afterwards.append(partial(self._await_parts, value, place))

    def _bind(self, value: Any, place: int) -> bool:
        """Whether `value` is the object that belongs at `place`. The first that comes there is."""
        if is_container(value):
            return True
        known = self._objects.get(place)
        if known is not None:
            return known is value
        earlier = self._places.get(id(value))
        if earlier is not None and self._objects.get(earlier) is value:
            return False  # one object here, where the checkpoint has two
        self._objects[place] = value
        self._places[id(value)] = place
        return True

    # Waiting

    def _await_parts(self, value: Any, place: int) -> None:
        """Lets an object wait, if it lacks parts or a list of it lacks items."""
        lacks = self._lacks(value, place)
        for owner, _ in owners_of(value):
            if lacks:
                attribute_hooks.wait(owner, lambda: self._look(self._objects.get(place), place))
            else:
                attribute_hooks.stop(owner)

    def _lacks(self, value: Any, place: int) -> bool:
        """Whether a part, or an item of a list or dict in it, is missing."""
        parts = parts_of(value)
        return any(
            name not in parts
            or (at != place and is_container(parts[name]) and self._lacks(parts[name], at))
            for name, at in self.nodes[place]["children"].items()
        )

    def _watch(self, owner: Any, name: str, part: Any, place: int, replaced: dict) -> None:
        """Puts a list or dict that tells when it gets more in the place of one that lacks items."""
        kind = {list: WaitingList, dict: WaitingDict}.get(type(part), type(part))
        if kind not in (WaitingList, WaitingDict):
            return
        if self.nodes[place]["children"].keys() <= parts_of(part).keys():
            _stop(part)
            return
        watched = part if kind is type(part) else kind(part)
        watched._look = lambda: self._look(watched, place)
        replaced[id(part)] = watched
        _put_back(replaced.get(id(owner), owner), name, watched)

    def _look(self, value: Any, place: int) -> None:
        """Called when something was added to an object or a list that waits."""
        if value is not None:
            try:
                self.settle(value, place)
            except BaseException:
                _stop(value)  # it hears of a mistake once
                raise

    # Values

    def _put(self, value: Any, place: int) -> Callable[[], None]:
        """Reads and checks the value for one object; what it returns hands it over."""
        key = self.nodes[place]["values"][value_name(value)]
        variable = variable_in(value)
        if variable is None:
            return value._restoring(self._reader.get_tensor(key))
        array = self._reader.array(key)
        if not variable.shape.is_compatible_with(array.shape):
            raise ValueError(
                f"Received incompatible tensor with shape {array.shape} when attempting to restore "
                f"variable with shape {variable.shape} and name {variable.name}."
            )
        if array.dtype != variable.dtype.numpy_dtype:
            raise invalid(
                f"tensor_name = {key}; expected dtype {variable.dtype.name} does not equal "
                f"original dtype {dtypes.of(array.dtype).name}."
            )
        return lambda: variable.assign(array)

    # What came of it

    def unused(self) -> list[int]:
        """The places whose values belong to no object yet."""
        self.settle(self._root(), 0)
        return _unused(self.nodes, self.restored)

    def unmatched(self) -> list[Any]:
        """The objects with values that got none."""
        root = self._root()
        self.settle(root, 0)
        matched = {id(self._objects.get(place)) for place in self.restored}
        return [
            node.value
            for node in graph_of(root)
            if value_name(node.value) and id(node.value) not in matched
        ]


def _unused(nodes: list[dict], restored: set[int]) -> list[int]:
    return [place for place, node in enumerate(nodes) if node["values"] and place not in restored]


def path_to(nodes: list[dict], place: int) -> str:
    """Where an object is in a checkpoint."""
    names = {0: "(root)"}
    for at, node in enumerate(nodes):
        for name, child in node["children"].items():
            names.setdefault(child, f"{names.get(at)}.{name}")
    return names[place]


def _warn_of_rest(nodes: list[dict], restored: set[int]) -> None:
    """Says which values of a checkpoint nobody can ask for any more."""
    unused = _unused(nodes, restored)
    if not unused:
        return
    import logging  # takes longer to import than this module

    logging.getLogger("retrograde").warning(
        "%d values of a checkpoint were not used: %s%s. Call expect_partial() on what restore() "
        "returned if that is intended.",
        len(unused),
        ", ".join(path_to(nodes, place) for place in unused[:10]),
        ", ..." if len(unused) > 10 else "",
    )


def _is_ours(value: Any) -> bool:
    """Whether lists in its attributes may be replaced. Other libraries may hold on to theirs."""
    return isinstance(value, Module) or hasattr(type(value), "_owners")


def _stop(value: Any) -> None:
    """Lets an object or a list wait no longer."""
    if isinstance(value, (WaitingList, WaitingDict)):
        vars(value).clear()
    elif not is_container(value):
        for owner, _ in owners_of(value):
            attribute_hooks.stop(owner)


def _put_back(owner: Any, name: str, part: Any) -> None:
    if isinstance(owner, list):
        list.__setitem__(owner, int(name), part)
    elif isinstance(owner, dict):
        dict.__setitem__(owner, name, part)
    elif not isinstance(owner, tuple):
        object.__setattr__(owner, name, part)


def _telling(method: Callable) -> Callable:
    """A method of a list or dict that tells when it is done."""

    def tell(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = method(self, *args, **kwargs)
        self._look()
        return result

    return tell


class WaitingList(list):
    """A list for some of whose items values are waiting."""

    _look = staticmethod(lambda: None)
    append = _telling(list.append)
    extend = _telling(list.extend)
    insert = _telling(list.insert)
    __setitem__ = _telling(list.__setitem__)
    __iadd__ = _telling(list.__iadd__)


class WaitingDict(dict):
    """A dict for some of whose items values are waiting."""

    _look = staticmethod(lambda: None)
    update = _telling(dict.update)
    setdefault = _telling(dict.setdefault)
    __setitem__ = _telling(dict.__setitem__)
    __ior__ = _telling(dict.__ior__)
