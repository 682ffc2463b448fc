"""Scopes and questions that mean something to graphs and devices, and here little or nothing."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any


class _Thread(threading.local):
    def __init__(self) -> None:
        self.names: list[str] = []


_thread = _Thread()


class name_scope:
    """A block whose name shows up in `tf.get_current_name_scope` and nowhere else.

    >>> with tf.name_scope("outer"), tf.name_scope("inner") as scope:
    ...     print(scope, tf.get_current_name_scope())
    outer/inner/ outer/inner
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise ValueError(f"The name of a name_scope must be a string. Received: {name!r}.")
        self._name = name

    @property
    def name(self) -> str:
        """The name."""
        return self._name

    def __enter__(self) -> str:
        _thread.names.append(self._name)
        return f"{get_current_name_scope()}/"

    def __exit__(self, *_: Any) -> None:
        _thread.names.pop()


def get_current_name_scope() -> str:
    """The names of all name scopes that are open, outermost first."""
    return "/".join(_thread.names)


@contextlib.contextmanager
def device(device_name: Any) -> Iterator[None]:
    """A block in which operations run where they run otherwise: where their inputs are."""
    yield


@contextlib.contextmanager
def init_scope() -> Iterator[None]:
    """A block like any other: there is no graph to be lifted out of."""
    yield


@contextlib.contextmanager
def control_dependencies(control_inputs: Any) -> Iterator[None]:
    """A block like any other: operations run in the order in which they are written."""
    yield


def executing_eagerly() -> bool:
    """True: operations run when they are called."""
    return True


def inside_function() -> bool:
    """False: operations run when they are called."""
    return False


def no_op(name: Any = None) -> None:
    """Does nothing."""


def group(*inputs: Any, **kwargs: Any) -> None:
    """Does nothing: what is to be grouped has run already."""
