"""Names of a package that are imported when they are first used.

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
