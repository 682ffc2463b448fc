"""Hooks: what packages above `core` add to it. `retrograde._api.hooks` fills them in."""

from __future__ import annotations

import functools
import importlib
from typing import Any

# The names of hooks, and the modules that define them. A module is imported when it is needed.
TAPE_METHODS: dict[str, str] = {}
VARIABLE_METHODS: dict[str, str] = {}
FUNCTIONS: dict[str, str] = {}


@functools.cache
def hook(name: str) -> Any:
    """Returns the object that a package above `core` has registered under `name`."""
    return getattr(importlib.import_module(FUNCTIONS[name]), name)


class LazyMethod:
    """A method that is imported from another module when it is first used.

    The module has a function of the same name, which takes the object first.
    """

    def __init__(self, owner: type, name: str, module: str) -> None:
        self._owner = owner
        self._name = name
        self._module = module

    def __get__(self, instance: Any, owner: type) -> Any:
        function = getattr(importlib.import_module(self._module), self._name)
        setattr(self._owner, self._name, function)
        return function.__get__(instance, owner)
