"""Names of a package, and methods, that are imported when they are asked for.

A package names them in imports under `if TYPE_CHECKING`, for people, editors and documentation;
`retrograde._api.names`, which is made from these, says where each is at home.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def speaking(module: str) -> Callable:
    """`__getattr__` for a module: what is said of a name that is not there."""

    def __getattr__(name: str) -> Any:
        from retrograde._api.missing import absent  # read only when a name is missing

        raise absent(module, name)

    return __getattr__


def lazily(package: str, homes: Mapping[str, str]) -> tuple[Callable, Callable]:
    """`__getattr__` and `__dir__` for a package.

    `homes` maps modules to the names that come from there, with spaces between them. `a=b` is `b`
    under the name `a`; names of the module "" are modules themselves.
    """
    module = sys.modules[package]
    missing = speaking(package)
    home = {}
    for where, names in homes.items():
        for entry in names.split():
            name, _, own = entry.partition("=")
            home[name] = (where, own or name)

    def __getattr__(name: str) -> Any:
        if name not in home:
            missing(name)
        where, own = home[name]
        if where:
            value = getattr(importlib.import_module(where), own)
        else:
            value = importlib.import_module(own)
        setattr(module, name, value)
        return value

    def __dir__() -> list[str]:
        return sorted({*vars(module), *home})

    return __getattr__, __dir__


class Later:
    """A method whose function lives in a module that is imported when it is first asked for.

    The function has the name of the method, and takes the object first.
    """

    def __init__(self, module: str) -> None:
        self._module = module

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner = owner
        self._name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        function = getattr(importlib.import_module(self._module), self._name)
        setattr(self._owner, self._name, function)
        return function.__get__(instance, owner)
