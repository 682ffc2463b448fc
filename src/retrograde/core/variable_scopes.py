"""What a block says about the variables made in it: their names, and who makes them."""

from __future__ import annotations

import threading
from collections.abc import Callable


class _Thread(threading.local):
    def __init__(self) -> None:
        self.name_scopes: list[str] = [""]  # each ends with a slash, but for the outermost
        self.variable_creators: list[Callable] = []


thread = _Thread()


def scope_named(name: str) -> str:
    """The whole name of the scope that `name` opens here, with its slash.

    A name that ends with a slash is whole already; an empty one leads out of all scopes.
    """
    if not name or name.endswith("/"):
        return name
    return f"{thread.name_scopes[-1]}{name}/"


def variable_name(name: str | None) -> str:
    """The whole name of a variable made here."""
    return scope_named("Variable" if name is None else name).removesuffix("/")
