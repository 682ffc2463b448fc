"""Module: a base class that finds the variables and modules in its attributes."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from retrograde.core.variable import Variable
from retrograde.toplevel.scopes import name_scope
from retrograde.train import _attribute_hooks as attribute_hooks
from retrograde.values import nest
from retrograde.values.arguments import shown
from retrograde.values.conversion import tensor_or_variable


class Module:
    """A base class for objects with variables and, possibly, submodules.

    Both are found in attributes, and in lists, tuples and dicts in attributes. Attributes are
    visited by sorted name. A module's own variables come before the variables of its submodules,
    and each is listed once.

    >>> class Dense(tf.Module):
    ...     def __init__(self, inputs, outputs, name=None):
    ...         super().__init__(name=name)
    ...         self.w = tf.Variable(tf.ones([inputs, outputs]), name="w")
    ...         self.b = tf.Variable(tf.zeros([outputs]), name="b")
    ...
    ...     def __call__(self, x):
    ...         return tf.matmul(x, self.w) + self.b
    >>> model = tf.Module()
    >>> model.layers = [Dense(2, 3), Dense(3, 1)]
    >>> [v.shape.as_list() for v in model.trainable_variables]
    [[3], [2, 3], [1], [3, 1]]
    """

    _TF_MODULE_IGNORED_PROPERTIES: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, name: str | None = None) -> None:
        if name is None:
            name = _snake_case(type(self).__name__)
        elif not name.isidentifier():
            raise ValueError(
                f"{name!r} is not a valid module name. Module names must be valid Python "
                "identifiers (e.g. a valid class name)."
            )
        self._name = name
        with name_scope(name) as scope:
            self._name_scope = name_scope(scope)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        attribute_hooks.notify(self)

    @property
    def name(self) -> str:
        """The name: as given, or the class name in snake case."""
        return self._name

    @property
    def name_scope(self) -> name_scope:
        """The name scope for variables of this module."""
        return self._name_scope

    @property
    def variables(self) -> tuple:
        """The variables of this module and its submodules."""
        return tuple(self._flatten(predicate=_is_variable))

    @property
    def trainable_variables(self) -> tuple:
        """The trainable variables."""
        return tuple(self._flatten(predicate=lambda x: _is_variable(x) and x.trainable))

    @property
    def non_trainable_variables(self) -> tuple:
        """The non-trainable variables."""
        return tuple(self._flatten(predicate=lambda x: _is_variable(x) and not x.trainable))

    @property
    def submodules(self) -> tuple[Module, ...]:
        """All submodules, at any depth."""
        return tuple(self._flatten(predicate=lambda x: isinstance(x, Module)))

    @classmethod
    def with_name_scope(cls, method: Callable) -> Callable:
        """Decorates a method to run in the name scope of its module."""

        @functools.wraps(method)
        def scoped(self: Module, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return scoped

    def _flatten(
        self,
        recursive: bool = True,
        predicate: Callable[[Any], Any] | None = None,
        attribute_traversal_key: Callable[[str], Any] | None = None,
        with_path: bool = False,
        expand_composites: bool = False,
    ) -> Iterator[Any]:
        """Yields the leaves of all attributes that satisfy `predicate`, or (path, leaf) pairs."""
        traversal = _Traversal(
            recursive, predicate or (lambda _: True), attribute_traversal_key, with_path
        )
        return traversal.visit(self, (), ())


class _Traversal:
    """Traverses modules, their own attributes first."""

    def __init__(
        self, recursive: bool, predicate: Callable, sort_key: Callable | None, with_path: bool
    ) -> None:
        self._recursive = recursive
        self._predicate = predicate
        self._sort_key = sort_key
        self._with_path = with_path
        self._seen: set[int] = set()

    def visit(self, module: Module, path: tuple, ancestors: tuple[int, ...]) -> Iterator[Any]:
        """Yields the leaves of `module` at `path`; `ancestors` are the ids of enclosing modules."""
        self._seen.add(id(module))
        submodules = []
        for key in sorted(vars(module), key=self._sort_key):
            if key in module._TF_MODULE_IGNORED_PROPERTIES:
                continue
            for leaf_path, leaf in _leaves(vars(module)[key], (*path, key)):
                # With paths, the same leaf may be yielded several times.
                if not self._with_path and id(leaf) in self._seen:
                    continue
                self._seen.add(id(leaf))
                if self._predicate(leaf):
                    yield (leaf_path, leaf) if self._with_path else leaf
                if isinstance(leaf, Module) and id(leaf) not in (id(module), *ancestors):
                    submodules.append((leaf_path, leaf))
        if self._recursive:
            for leaf_path, submodule in submodules:
                yield from self.visit(submodule, leaf_path, (*ancestors, id(module)))


def _leaves(value: Any, path: tuple) -> Iterator[tuple[tuple, Any]]:
    """Yields the leaves of a structure with their paths."""
    if not nest.is_nested(value):
        yield path, value
        return
    if isinstance(value, Mapping):
        try:
            keys = sorted(value)
        except TypeError:
            raise ValueError(
                f"Module: the keys of {shown(value)} in attribute {shown(path[0])} cannot be "
                "sorted. Expected keys of one type."
            ) from None
    else:
        keys = getattr(value, "_fields", range(len(value)))
    for key, child in zip(keys, nest.children(value), strict=True):
        yield from _leaves(child, (*path, key))


def _is_variable(leaf: Any) -> bool:
    """Returns whether `leaf` is or represents a variable."""
    return isinstance(tensor_or_variable(leaf), Variable)


def _snake_case(name: str) -> str:
    """Converts `MyRNNCell` to `my_rnn_cell`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=.)(?=[A-Z][a-z])", "_", name).lower()
