"""Analyzes the source code of the user's program: the values of names and their bindings.

A tape does not keep the line of every call. The missing lines can often be found in the source
code, at no cost while the program runs.
"""

from __future__ import annotations

import ast
import linecache
import os
from types import FrameType
from typing import Any, NamedTuple

from retrograde.values.holder import Holder
from retrograde.values.source_location import SourceLocation


class Line(NamedTuple):
    """A line of a file."""

    filename: str
    line: int

    @property
    def text(self) -> str:
        """The text of the line without surrounding whitespace; empty if the file is unreadable."""
        return linecache.getline(self.filename, self.line).strip()

    def __str__(self) -> str:
        return f"{_short(self.filename)}:{self.line}"

    @classmethod
    def from_location(cls, location: SourceLocation | Line | None) -> Line | None:
        """Returns the line of a location."""
        return None if location is None else cls(location.filename, location.line)


def _short(filename: str) -> str:
    """Returns the path relative to the working directory, if the file is below it."""
    return filename.removeprefix(os.path.join(os.getcwd(), ""))


class Binding(NamedTuple):
    """A statement that binds a name."""

    line: Line
    name: str
    value: ast.expr | None
    operator: str  # "+=" and the like for an augmented assignment, else "="

    @property
    def creates_variable(self) -> bool:
        """True if the value is a new `tf.Variable`."""
        return isinstance(self.value, ast.Call) and _last_name(self.value.func) == "Variable"

    @property
    def takes_gradient(self) -> bool:
        """True if the value is a derivative that a tape computes."""
        methods = ("gradient", "jacobian", "batch_jacobian")
        return isinstance(self.value, ast.Call) and _last_name(self.value.func) in methods

    @property
    def reads(self) -> set[str]:
        """The names that the value reads, except local names of comprehensions and lambdas."""
        nodes = [] if self.value is None else list(ast.walk(self.value))
        names = [node for node in nodes if isinstance(node, ast.Name)]
        local = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        local |= {node.arg for node in nodes if isinstance(node, ast.arg)}
        read = {node.id for node in names} - local
        return read | {self.name} if self.operator != "=" else read


def _last_name(node: ast.expr | None) -> str:
    return getattr(node, "attr", getattr(node, "id", ""))


class Program:
    """The calling function and its module: their source code and current values."""

    def __init__(self, frame: FrameType | None) -> None:
        self._frame = frame
        self._bindings: dict[str, list[Binding]] = {}
        self._blocks: list[ast.With] = []
        if frame is not None:
            self._read(frame)

    def _read(self, frame: FrameType) -> None:
        filename = frame.f_code.co_filename
        text = "".join(linecache.getlines(filename, frame.f_globals))
        try:
            module = ast.parse(text)
        except (SyntaxError, ValueError):
            return
        scopes = [module]
        function = _function_at(module, frame)
        if function is not None:
            scopes.append(function)
        for scope in scopes:  # the function's bindings hide the module's bindings
            by_name: dict[str, list[Binding]] = {}
            for binding in _bindings_in(scope, filename):
                by_name.setdefault(binding.name, []).append(binding)
            self._bindings.update(by_name)
        self._blocks = [node for node in ast.walk(scopes[-1]) if isinstance(node, ast.With)]

    @property
    def line(self) -> Line | None:
        """The line of the call."""
        if self._frame is None:
            return None
        return Line(self._frame.f_code.co_filename, self._frame.f_lineno)

    def names_of(self, value: Any) -> list[str]:
        """Returns expressions for `value`: names first, then elements and attributes of names."""
        named = self._named_values()
        direct = [name for name, bound in named if bound is value]
        if direct or hasattr(value, "path"):  # Keras variables have better names of their own
            return direct
        return [path for name, bound in named for path in _paths_inside(name, bound, value)]

    def owners_of(self, *values: Any) -> list[str]:
        """Returns the names of models, layers and modules that own one of `values`."""
        return [
            name
            for name, bound in self._named_values()
            if any(variable is value for variable in _variables_of(bound) for value in values)
        ]

    def name_of_id(self, tensor_id: int) -> str | None:
        """Returns the name of the tensor or variable with this id, if it still has one."""
        named = self._named_values()
        return next((name for name, bound in named if _id_of(bound) == tensor_id), None)

    def _named_values(self) -> list[tuple[str, Any]]:
        """Returns names and values, with the function's locals first."""
        if self._frame is None:
            return []
        scopes = [self._frame.f_locals]
        if self._frame.f_globals is not self._frame.f_locals:
            scopes.append(self._frame.f_globals)
        return [(n, v) for scope in scopes for n, v in list(scope.items()) if _is_public(n)]

    def functions_in(self, binding: Binding) -> list[str]:
        """Returns the names of the `tf.function` objects that a statement calls."""
        nodes = () if binding.value is None else ast.walk(binding.value)
        called = {
            node.func.id
            for node in nodes
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        return [
            n
            for n, v in self._named_values()
            if n in called and hasattr(v, "get_concrete_function")
        ]

    def bindings_of(self, name: str) -> list[Binding]:
        """Returns all statements that bind `name`, in order."""
        return self._bindings.get(name, [])

    def last_binding(self, name: str) -> Binding | None:
        """Returns the statement that bound `name` last, judging by line numbers."""
        bindings = self.bindings_of(name)
        before = [b for b in bindings if b.line.line <= self.line.line]
        return (before or bindings or [None])[-1]

    def first_use(self, name: str, tape: str) -> Line | None:
        """Returns the first line in the `with` block of `tape` that reads `name`."""
        for block in self._blocks:
            if tape in [_last_name(item.optional_vars) for item in block.items]:
                nodes = [node for statement in block.body for node in ast.walk(statement)]
                names = [n for n in nodes if isinstance(n, ast.Name) and n.id == name]
                lines = [n.lineno for n in names if isinstance(n.ctx, ast.Load)]
                if lines:
                    return Line(self.line.filename, min(lines))
        return None

    def is_computed_from(self, name: str, source: str) -> bool:
        """Returns whether `name` was computed from `source`, possibly through other names."""
        seen, pending = set(), {name}
        while pending:
            seen |= pending
            bindings = [b for n in pending for b in self.bindings_of(n)]
            pending = {n for b in bindings for n in b.reads} - seen
        return source in seen - {name}


def _id_of(value: Any) -> int | None:
    return value._id if isinstance(value, Holder) else None


def _variables_of(value: Any) -> list:
    """Returns the variables of a model, layer or module; none for other values."""
    if isinstance(value, type) or not hasattr(type(value), "trainable_variables"):
        return []
    return list(value.trainable_variables)


def _is_public(name: str) -> bool:
    """Returns whether a name is the user's, not one that Python or a notebook assigns."""
    return not name.startswith("_") and name not in ("In", "Out")


def _paths_inside(name: str, container: Any, value: Any) -> list[str]:
    """Returns expressions for `value` as an element or attribute of the object `name`."""
    if type(container) in (list, tuple):
        return [f"{name}[{i}]" for i, element in enumerate(container) if element is value]
    if type(container) is dict:
        return [f"{name}[{key!r}]" for key, element in container.items() if element is value]
    attributes = getattr(container, "__dict__", None)
    if type(attributes) is not dict or isinstance(container, type(os)):
        return []
    return [f"{name}.{key}" for key, v in attributes.items() if v is value and _is_public(key)]


def _function_at(module: ast.Module, frame: FrameType) -> ast.AST | None:
    code = frame.f_code
    for node in ast.walk(module):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == code.co_name:
            first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
            if code.co_firstlineno in (first, node.lineno):
                return node
    return None


def _bindings_in(scope: ast.AST, filename: str) -> list[Binding]:
    """Returns the bindings of a function or module, except bindings in nested functions."""
    bindings = []
    pending = list(ast.iter_child_nodes(scope))
    while pending:
        node = pending.pop(0)
        bindings += _bindings_by(node, filename)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            pending[:0] = list(ast.iter_child_nodes(node))
    return bindings


def _bindings_by(node: ast.AST, filename: str) -> list[Binding]:
    match node:
        case ast.Assign(targets=targets, value=value):
            pairs = [pair for target in targets for pair in _pairs(target, value)]
        case ast.AnnAssign(target=target, value=value) if value is not None:
            pairs = _pairs(target, value)
        case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
            line = Line(filename, node.lineno)
            return [Binding(line, name, value, _AUGMENTED.get(type(op), "?="))]
        case ast.NamedExpr(target=target, value=value):
            pairs = _pairs(target, value)
        case ast.withitem(context_expr=value, optional_vars=ast.Name(id=name)):
            return [Binding(Line(filename, value.lineno), name, value, "=")]
        case _:
            return []
    return [Binding(Line(filename, node.lineno), name, value, "=") for name, value in pairs]


_AUGMENTED = {ast.Add: "+=", ast.Sub: "-=", ast.Mult: "*=", ast.Div: "/="}


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[str, ast.expr]]:
    """Returns names and their values; element by element if both sides are tuples or lists."""
    if isinstance(target, ast.Name):
        return [(target.id, value)]
    if not isinstance(target, (ast.Tuple, ast.List)):
        return []
    values = [value] * len(target.elts)
    if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
        values = value.elts
    return [pair for t, v in zip(target.elts, values, strict=True) for pair in _pairs(t, v)]
