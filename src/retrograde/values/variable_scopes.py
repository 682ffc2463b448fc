"""Thread-local name scopes and variable creators."""

from __future__ import annotations

import threading
from collections.abc import Callable


class _Scopes(threading.local):
    def __init__(self) -> None:
        self.name_scopes: list[str] = [""]  # all but the outermost end with a slash
        self.variable_creators: list[Callable] = []


scopes = _Scopes()


def full_scope_name(name: str) -> str:
    """Returns the full name, with a slash, of a scope that is opened in the current one.

    A name that ends with a slash is already a full name. An empty name leaves all scopes.
    """
    if not name or name.endswith("/"):
        return name
    return f"{scopes.name_scopes[-1]}{name}/"


def variable_name(name: str | None) -> str:
    """Returns the full name of a variable that is created in the current scope."""
    return full_scope_name("Variable" if name is None else name).removesuffix("/")
