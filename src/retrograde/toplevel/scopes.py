"""Scopes that name and create variables, and no-op scopes for graphs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from retrograde.core import recorders
from retrograde.core.recorders import isolate
from retrograde.values.arguments import shown
from retrograde.values.errors import to_list
from retrograde.values.variable_scopes import full_scope_name, scopes


class name_scope:
    """A context that prefixes the names of variables.

    Nested scopes are joined by slashes. A name that ends with a slash is absolute, so that `with
    tf.name_scope("a") as scope` can be re-entered as `tf.name_scope(scope)`.

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
    """Returns the current name scope, outermost name first."""
    return scopes.name_scopes[-1].removesuffix("/")


@contextlib.contextmanager
def variable_creator_scope(variable_creator: Callable) -> Iterator[None]:
    """Creates a context in which `variable_creator(next_creator, **kwargs)` creates variables.

    `kwargs` are all arguments of `tf.Variable`. `next_creator(**kwargs)` calls the creator of the
    enclosing scope, or creates the variable.

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
    """Creates a context that is not part of the traced function: it runs once, while tracing."""
    with isolate() if recorders.thread.recorders.tracer is not None else contextlib.nullcontext():
        yield


@contextlib.contextmanager
def control_dependencies(control_inputs: Any) -> Iterator[None]:
    """Calls the functions in `control_inputs`; operations run in program order anyway."""
    for control in to_list("control_dependencies", control_inputs or ()):
        if isinstance(control, FunctionType):
            control()
    yield


def executing_eagerly() -> bool:
    """Returns whether the code runs eagerly, not while tracing a `function`."""
    return not inside_function()


def inside_function() -> bool:
    """Returns whether a `function` is being traced."""
    return recorders.thread.recorders.tracer is not None


def no_op(name: Any = None) -> None:
    """Does nothing."""


def group(*inputs: Any, **kwargs: Any) -> None:
    """Does nothing: the inputs have already run."""
