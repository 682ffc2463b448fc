"""The user's program as text: what names stand for, and where they were given their values.

A tape does not keep the line of every call. Where it has none, the program itself often tells,
at no cost while it runs.
"""

from __future__ import annotations

import ast
import linecache
import os
from types import FrameType
from typing import Any, NamedTuple

from retrograde.values.holder import Holder
from retrograde.values.source_location import Place


class Line(NamedTuple):
    """A line of a file."""

    filename: str
    line: int

    @property
    def text(self) -> str:
        """The line itself, without the blanks around it; empty if the file cannot be read."""
        return linecache.getline(self.filename, self.line).strip()

    def __str__(self) -> str:
        return f"{_short(self.filename)}:{self.line}"

    @classmethod
    def of(cls, place: Place | Line | None) -> Line | None:
        """The line of a place."""
        return None if place is None else cls(place.filename, place.line)


def _short(filename: str) -> str:
    """The name of a file from here, if it is below the working directory."""
    here = os.path.join(os.getcwd(), "")
    return filename.removeprefix(here)


class Binding(NamedTuple):
    """A statement that gives a name its value."""

    line: Line
    name: str
    value: ast.expr | None
    sign: str  # "+=" and the like for a statement that changes the value, else "="

    @property
    def makes_variable(self) -> bool:
        """Whether the value is a new `tf.Variable`."""
        return isinstance(self.value, ast.Call) and _last_name(self.value.func) == "Variable"

    @property
    def takes_gradient(self) -> bool:
        """Whether the value is what a tape was asked for."""
        methods = ("gradient", "jacobian", "batch_jacobian")
        return isinstance(self.value, ast.Call) and _last_name(self.value.func) in methods

    @property
    def reads(self) -> set[str]:
        """The names that the value is made of; not those of comprehensions and lambdas in it."""
        nodes = [] if self.value is None else list(ast.walk(self.value))
        names = [node for node in nodes if isinstance(node, ast.Name)]
        own = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        own |= {node.arg for node in nodes if isinstance(node, ast.arg)}
        read = {node.id for node in names} - own
        return read | {self.name} if self.sign != "=" else read


def _last_name(node: ast.expr | None) -> str:
    return getattr(node, "attr", getattr(node, "id", ""))


class Program:
    """The function that asked, or the whole module, as text and with the values it holds now."""

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
        for scope in scopes:  # what the function binds hides what the module does
            found: dict[str, list[Binding]] = {}
            for binding in _bindings_in(scope, filename):
                found.setdefault(binding.name, []).append(binding)
            self._bindings.update(found)
        self._blocks = [node for node in ast.walk(scopes[-1]) if isinstance(node, ast.With)]

    @property
    def line(self) -> Line | None:
        """Where it is now: the line that asked."""
        if self._frame is None:
            return None
        return Line(self._frame.f_code.co_filename, self._frame.f_lineno)

    def names_of(self, value: Any) -> list[str]:
        """Expressions that stand for `value` in the program: names first, then what they hold."""
        named = self._named()
        direct = [name for name, held in named if held is value]
        if direct or hasattr(value, "path"):  # Keras gives its variables better names
            return direct
        return [whole for name, held in named for whole in _inside(name, held, value)]

    def holders_of(self, *values: Any) -> list[str]:
        """The names of models, layers and modules that have one of `values` as a variable."""
        return [
            name
            for name, held in self._named()
            if any(own is value for own in _variables_of(held) for value in values)
        ]

    def name_of_id(self, tensor_id: int) -> str | None:
        """The name of the tensor or variable with an id, if the program still holds it."""
        named = self._named()
        return next((name for name, held in named if _id_of(held) == tensor_id), None)

    def _named(self) -> list[tuple[str, Any]]:
        """Names and what they stand for; those of the function come first."""
        if self._frame is None:
            return []
        spaces = [self._frame.f_locals]
        if self._frame.f_globals is not self._frame.f_locals:
            spaces.append(self._frame.f_globals)
        return [(n, v) for space in spaces for n, v in list(space.items()) if _is_plain(n)]

    def functions_in(self, binding: Binding) -> list[str]:
        """The names of all that a statement calls which was made by `tf.function`."""
        nodes = () if binding.value is None else ast.walk(binding.value)
        called = {
            node.func.id
            for node in nodes
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        return [n for n, v in self._named() if n in called and hasattr(v, "get_concrete_function")]

    def bindings_of(self, name: str) -> list[Binding]:
        """All statements that bind `name`, in their order."""
        return self._bindings.get(name, [])

    def last_binding(self, name: str) -> Binding | None:
        """The statement that gave `name` its value, as far as the order of lines tells."""
        bindings = self.bindings_of(name)
        before = [b for b in bindings if b.line.line <= self.line.line]
        return (before or bindings or [None])[-1]

    def first_use(self, name: str, tape: str) -> Line | None:
        """The first line in the `with` block of `tape` that uses the value of `name`."""
        for block in self._blocks:
            if tape in [_last_name(item.optional_vars) for item in block.items]:
                uses = [node for part in block.body for node in ast.walk(part)]
                names = [n for n in uses if isinstance(n, ast.Name) and n.id == name]
                lines = [n.lineno for n in names if isinstance(n.ctx, ast.Load)]
                if lines:
                    return Line(self.line.filename, min(lines))
        return None

    def is_made_from(self, name: str, source: str) -> bool:
        """Whether the value of `name` was computed from that of `source`, by way of other names."""
        seen, ahead = set(), {name}
        while ahead:
            seen |= ahead
            ahead = {n for one in ahead for b in self.bindings_of(one) for n in b.reads} - seen
        return source in seen - {name}


def _id_of(value: Any) -> int | None:
    return value._id if isinstance(value, Holder) else None


def _variables_of(value: Any) -> list:
    """The variables of a model, layer or module, if `value` is one."""
    if isinstance(value, type) or not hasattr(type(value), "trainable_variables"):
        return []
    return list(value.trainable_variables)


def _is_plain(name: str) -> bool:
    """Not a name that Python or a notebook gives to results."""
    return not name.startswith("_") and name not in ("In", "Out")


def _inside(name: str, held: Any, value: Any) -> list[str]:
    """Where `value` is among the elements or attributes of an object called `name`."""
    if type(held) in (list, tuple):
        return [f"{name}[{i}]" for i, element in enumerate(held) if element is value]
    if type(held) is dict:
        return [f"{name}[{key!r}]" for key, element in held.items() if element is value]
    attributes = getattr(held, "__dict__", None)
    if type(attributes) is not dict or isinstance(held, type(os)):
        return []
    public = [(key, held) for key, held in attributes.items() if _is_plain(key)]
    return [f"{name}.{key}" for key, element in public if element is value]


def _function_at(module: ast.Module, frame: FrameType) -> ast.AST | None:
    code = frame.f_code
    for node in ast.walk(module):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == code.co_name:
            first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
            if code.co_firstlineno in (first, node.lineno):
                return node
    return None


def _bindings_in(scope: ast.AST, filename: str) -> list[Binding]:
    """The bindings of a function or module, without those of the functions in it."""
    found = []
    ahead = list(ast.iter_child_nodes(scope))
    while ahead:
        node = ahead.pop(0)
        found += _bindings_by(node, filename)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            ahead[:0] = list(ast.iter_child_nodes(node))
    return found


def _bindings_by(node: ast.AST, filename: str) -> list[Binding]:
    match node:
        case ast.Assign(targets=targets, value=value):
            pairs = [pair for target in targets for pair in _pairs(target, value)]
        case ast.AnnAssign(target=target, value=value) if value is not None:
            pairs = _pairs(target, value)
        case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
            line = Line(filename, node.lineno)
            return [Binding(line, name, value, _SIGNS.get(type(op), "?="))]
        case ast.NamedExpr(target=target, value=value):
            pairs = _pairs(target, value)
        case ast.withitem(context_expr=value, optional_vars=ast.Name(id=name)):
            return [Binding(Line(filename, value.lineno), name, value, "=")]
        case _:
            return []
    return [Binding(Line(filename, node.lineno), name, value, "=") for name, value in pairs]


_SIGNS = {ast.Add: "+=", ast.Sub: "-=", ast.Mult: "*=", ast.Div: "/="}


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[str, ast.expr]]:
    """Names and what they are bound to; element by element if both sides are written out."""
    if isinstance(target, ast.Name):
        return [(target.id, value)]
    if not isinstance(target, (ast.Tuple, ast.List)):
        return []
    values = [value] * len(target.elts)
    if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
        values = value.elts
    return [pair for t, v in zip(target.elts, values, strict=True) for pair in _pairs(t, v)]
