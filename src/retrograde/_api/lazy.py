"""Imports public names when they are first used.

The stub of a module (`__init__.pyi` for a package) is the only list of the names that the module
re-exports. Type checkers and editors read it directly. This module reads it when a name is first
used.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any


def names_in_stub(module: Any) -> dict[str, str]:
    """Returns the public names of a module, mapped to the modules that define them.

    A stub contains only statements `from home import name as name`. The formatter wraps long ones
    in parentheses.
    """
    path = module.__file__.rpartition(".")[0] + ".pyi"
    words = module.__spec__.loader.get_data(path).translate(None, b"(,)").decode().split()
    return dict(zip(words[3::6], words[1::6], strict=True))


def from_stub(module_name: str) -> tuple[Callable, Callable]:
    """Returns `__getattr__` and `__dir__` for a module whose public names are in its stub."""
    module = sys.modules[module_name]
    names = functools.cache(lambda: names_in_stub(module))

    def __getattr__(name: str) -> Any:
        if name == "__all__":
            value = sorted(names())
        elif name in names():
            value = _import(module_name, names()[name], name)
        else:
            raise _missing_attribute(module_name, name)
        setattr(module, name, value)
        return value

    return __getattr__, lambda: sorted(names())


def _import(module_name: str, home: str, name: str) -> Any:
    """Imports `name` from `home`; if `home` is the module itself, `name` is a submodule."""
    if home == module_name:
        return importlib.import_module(f"{home}.{name}")
    return getattr(importlib.import_module(home), name)


def from_all(module_name: str) -> tuple[Callable, Callable]:
    """Returns `__getattr__` and `__dir__` for a module that defines the names in its `__all__`."""
    module = sys.modules[module_name]

    def __getattr__(name: str) -> Any:
        raise _missing_attribute(module_name, name)

    return __getattr__, lambda: sorted(module.__all__)


def _missing_attribute(module_name: str, name: str) -> AttributeError:
    from retrograde._api.missing import missing_attribute  # loaded only when a name is missing

    return missing_attribute(module_name, name)
