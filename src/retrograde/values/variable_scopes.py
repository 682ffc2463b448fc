"""Thread-local name scopes, variable creators and replicas."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class _Scopes(threading.local):
    def __init__(self) -> None:
        self.name_scopes: list[str] = [""]  # all but the outermost end with a slash
        self.variable_creators: list[Callable] = []
        self.replica: Any = None  # identifies the replica, if a strategy has several


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
