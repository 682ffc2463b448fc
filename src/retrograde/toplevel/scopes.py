"""Scopes that name and create variables, and scopes that only graphs need."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from retrograde.core import recorders
from retrograde.core.recorders import alone
from retrograde.values.arguments import shown
from retrograde.values.variable_scopes import full_scope_name, scopes


class name_scope:
    """A block in which the names of variables start with that of the scope.

    Scopes in scopes are joined by slashes. A name that ends with a slash is whole already, so that
    `with tf.name_scope("a") as scope` can be entered again as `tf.name_scope(scope)`.

    >>> with tf.name_scope("outer"), tf.name_scope("inner") as scope:
    ...     print(scope, tf.Variable(1.0, name="v").name)
    outer/inner/ outer/inner/v:0
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise ValueError(f"The name of a name_scope must be a string. Received: {shown(name)}.")
        self._name = name

    @property
    def name(self) -> str:
        """The name."""
        return self._name

    def __enter__(self) -> str:
        scope = full_scope_name(self._name)
        scopes.name_scopes.append(scope)
        return scope

    def __exit__(self, *_: Any) -> None:
        scopes.name_scopes.pop()


def get_current_name_scope() -> str:
    """The names of all name scopes that are open, outermost first."""
    return scopes.name_scopes[-1].removesuffix("/")


@contextlib.contextmanager
def variable_creator_scope(variable_creator: Callable) -> Iterator[None]:
    """A block in which `variable_creator(next_creator, **kwargs)` makes the variables.

    `kwargs` are all the arguments of `tf.Variable`, and `next_creator(**kwargs)` goes on to the
    creator of the scope around, or makes the variable.

    >>> def frozen(next_creator, **kwargs):
    ...     return next_creator(**kwargs | {"trainable": False})
    >>> with tf.variable_creator_scope(frozen):
    ...     print(tf.Variable(1.0).trainable)
    False
    """
    scopes.variable_creators.append(variable_creator)
    try:
        yield
    finally:
        scopes.variable_creators.pop()


@contextlib.contextmanager
def init_scope() -> Iterator[None]:
    """A block that is not part of the function around it: it runs once, when that is recorded."""
    with alone() if recorders.thread.recorders.recording is not None else contextlib.nullcontext():
        yield


@contextlib.contextmanager
def control_dependencies(control_inputs: Any) -> Iterator[None]:
    """A block like any other: operations run in the order in which they are written."""
    yield


def executing_eagerly() -> bool:
    """Whether the code runs by itself, and not as the first call of a `function`."""
    return not inside_function()


def inside_function() -> bool:
    """Whether the code runs in the first call of a `function`, which is recorded."""
    return recorders.thread.recorders.recording is not None


def no_op(name: Any = None) -> None:
    """Does nothing."""


def group(*inputs: Any, **kwargs: Any) -> None:
    """Does nothing: what is to be grouped has run already."""
