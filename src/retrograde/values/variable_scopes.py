"""Scopes of names and of functions that create variables, for each thread."""

from __future__ import annotations

import threading
from collections.abc import Callable


class _Scopes(threading.local):
    def __init__(self) -> None:
        self.name_scopes: list[str] = [""]  # each ends with a slash, but for the outermost
        self.variable_creators: list[Callable] = []


scopes = _Scopes()


def full_scope_name(name: str) -> str:
    """Returns the full name of the scope that `name` opens here, with its slash.

    A name that ends with a slash is full already; an empty one leaves all scopes.
    """
    if not name or name.endswith("/"):
        return name
    return f"{scopes.name_scopes[-1]}{name}/"


def variable_name(name: str | None) -> str:
    """Returns the full name of a variable that is created here."""
    return full_scope_name("Variable" if name is None else name).removesuffix("/")
