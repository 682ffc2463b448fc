"""Which names of TensorFlow a program uses, and which of them are not here. Nothing is run."""

from __future__ import annotations

import ast
import importlib
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from retrograde._api import missing
from retrograde.tensorflow_shim import notebooks

_SUFFIXES = (".py", ".ipynb")


class Use(NamedTuple):
    """A name of TensorFlow in a program. There may be several, of which a name stands for one."""

    line: int
    paths: tuple[str, ...]


class Finding(NamedTuple):
    """Something that is not here, and where it is used; no name if it could not be read."""

    place: str
    name: str
    words: str

    def __str__(self) -> str:
        return f"{self.place}: {self.words}" if self.name in self.words else self._in_full()

    def _in_full(self) -> str:
        return f"{self.place}: {self.name}: {self.words}"


class Result(NamedTuple):
    """What was found in all files."""

    files: int
    names: set[str]
    findings: list[Finding]


def check(paths: Iterable[str]) -> Result:
    """Reads files, and all files below folders."""
    files, names, findings = 0, set(), []
    for path in _files(paths):
        files += 1
        reader = _Reader()  # one for all cells of a notebook
        try:
            sources = _sources(path)
        except (OSError, notebooks.NotANotebook) as error:
            findings.append(Finding(str(path), "", str(error)))
            continue
        for place, source in sources:
            try:
                uses = reader.read(ast.parse(source))
            except notebooks.UNREADABLE as error:
                line = getattr(error, "lineno", 1) or 1
                findings.append(Finding(place(line), "", _reason(error)))
                continue
            for use in uses:
                names.add(use.paths[0])
                missing = _missing(use)
                if missing:
                    findings.append(Finding(place(use.line), *missing))
    return Result(files, names, list(dict.fromkeys(findings)))


def _reason(error: Exception) -> str:
    if isinstance(error, (RecursionError, MemoryError)):
        return "this is nested too deeply to be read"
    said = error.msg if isinstance(error, SyntaxError) else error
    return f"this is not Python: {said}"


def _files(paths: Iterable[str]) -> Iterator[pathlib.Path]:
    for given in map(pathlib.Path, paths):
        given.stat()  # raises an error for a path that does not exist
        if not given.is_dir():
            yield given
            continue
        programs = [path for path in sorted(given.rglob("*")) if _is_program(path, given)]
        if not programs:
            raise ValueError(f"{given} holds no Python file and no notebook")
        yield from programs


def _is_program(path: pathlib.Path, folder: pathlib.Path) -> bool:
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    return path.suffix in _SUFFIXES and not hidden


def _sources(path: pathlib.Path) -> list[tuple[Any, str | bytes]]:
    """The Python in a file, in pieces, each with a function that says where a line of it is."""
    if path.suffix != ".ipynb":
        return [(lambda line: f"{path}:{line}", path.read_bytes())]
    return [
        (lambda line, number=cell.number: f"{path}, cell {number}, line {line}", cell.source)
        for cell in notebooks.cells_of(path)
    ]


# What is here


def _missing(use: Use) -> tuple[str, str] | None:
    """The name that is not here, and what is to be said; nothing if it is here."""
    found = [_missing_of(path) for path in use.paths]
    return None if None in found else found[0]


def _missing_of(path: str) -> tuple[str, str] | None:
    top, _, below = path.partition(".")
    if top in missing.PACKAGES:
        return top, missing.package_message(top)
    value: Any = importlib.import_module("retrograde")
    whole = "tf"
    for part in below.split(".") if below else ():
        whole = f"{whole}.{part}"
        if whole in missing.PRIVATE:
            return whole, missing.message_for(whole)
        try:
            value = getattr(value, part)
        except AttributeError:
            return whole, missing.message_for(whole) or _unknown(whole)
        except ImportError as error:
            return whole, str(error)
    return None


def _unknown(path: str) -> str:
    """What is said of a name that is not in the list of TensorFlow's: one of a class, or none."""
    return f"{path} is not here."


# What a program uses


def uses_in(tree: ast.Module) -> list[Use]:
    """The names of TensorFlow in a program, each as far as its dots go."""
    return _Reader().read(tree)


def _canonical(module: str) -> str | None:
    """`tensorflow.x` as `tf.x`; nothing for a module that has nothing to do with TensorFlow."""
    top, dot, below = module.partition(".")
    if top == "tensorflow":
        return f"tf{dot}{below}"
    if top == "keras":
        return f"tf.keras{dot}{below}"
    return module if top in missing.PACKAGES else None


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class _Reader(ast.NodeVisitor):
    """Follows names of modules through imports, assignments and scopes.

    A scope maps a name to the paths that it may stand for: more than one if it is imported in two
    ways, none if it is something else there.
    """

    def __init__(self) -> None:
        self._uses: list[Use] = []
        self._scopes: list[dict[str, tuple[str, ...]]] = [{}]
        self._may_fail = False

    def read(self, tree: ast.Module) -> list[Use]:
        """The names in a program that goes on where the last one ended."""
        self._uses = []
        self.visit(tree)
        return self._uses

    def _bind(self, name: str, path: str) -> None:
        scope = self._scopes[-1]
        scope[name] = tuple(dict.fromkeys((*scope.get(name, ()), path)))

    def _use(self, node: ast.AST, paths: Iterable[str]) -> None:
        self._uses.append(Use(node.lineno, tuple(paths)))  # type: ignore[attr-defined]

    # Imports

    def visit_Try(self, node: ast.Try) -> None:
        """An import that may fail, because the program goes on without it, is no use by itself."""
        before = self._may_fail
        self._may_fail = before or any(map(_catches_imports, node.handlers))
        try:
            for part in node.body:
                self.visit(part)
        finally:
            self._may_fail = before
        for part in (*node.handlers, *node.orelse, *node.finalbody):
            self.visit(part)

    def _import(self, node: ast.AST, path: str) -> None:
        if not self._may_fail:
            self._use(node, [path])

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            path = _canonical(alias.name)
            if path is None:
                continue
            self._import(node, path)
            if alias.asname:
                self._bind(alias.asname, path)
            else:
                top = alias.name.partition(".")[0]
                self._bind(top, _canonical(top) or top)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = None if node.level else _canonical(node.module or "")
        for alias in node.names if module else ():
            if alias.name == "*":
                self._import(node, module)
                continue
            path = f"{module}.{alias.name}"
            self._import(node, path)
            self._bind(alias.asname or alias.name, path)

    # Names

    def _paths(self, node: ast.AST) -> tuple[str, ...]:
        """What a name with dots may stand for."""
        if isinstance(node, ast.Attribute):
            return tuple(f"{path}.{node.attr}" for path in self._paths(node.value))
        if isinstance(node, ast.Name):
            for scope in reversed(self._scopes):
                if node.id in scope:
                    return scope[node.id]
        return ()

    def visit_Attribute(self, node: ast.Attribute) -> None:
        paths = self._paths(node)
        if paths:
            self._use(node, paths)
        else:
            self.visit(node.value)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self._scopes[-1][node.id] = ()

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        paths = self._paths(node.value)
        for target in node.targets:
            self.visit(target)
            if isinstance(target, ast.Name):
                self._scopes[-1][target.id] = paths

    # Scopes

    def _in_scope(self, body: Iterable[ast.AST], bound: Iterable[str]) -> None:
        self._scopes.append({name: () for name in bound})
        try:
            for part in body:
                self.visit(part)
        finally:
            self._scopes.pop()

    def visit_FunctionDef(self, node: Any) -> None:
        outside = [*getattr(node, "decorator_list", ()), *_defaults(node.args)]
        outside += [arg.annotation for arg in _arguments(node.args) if arg.annotation]
        outside += [node.returns] if getattr(node, "returns", None) else []
        for part in outside:
            self.visit(part)
        body = node.body if isinstance(node.body, list) else [node.body]
        arguments = [arg.arg for arg in _arguments(node.args)]
        self._in_scope(body, [*arguments, *_assigned(body)])

    visit_AsyncFunctionDef = visit_FunctionDef
    visit_Lambda = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(part)
        self._in_scope(node.body, ())

    def _visit_comprehension(self, node: Any) -> None:
        bound = [n.id for g in node.generators for n in ast.walk(g.target) if _is_name(n)]
        self._in_scope(ast.iter_child_nodes(node), bound)

    visit_ListComp = _visit_comprehension
    visit_SetComp = _visit_comprehension
    visit_DictComp = _visit_comprehension
    visit_GeneratorExp = _visit_comprehension


def _catches_imports(handler: ast.ExceptHandler) -> bool:
    caught = ast.unparse(handler.type) if handler.type else "Exception"
    return any(name in caught for name in ("ImportError", "ModuleNotFoundError", "Exception"))


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    several = [arguments.vararg, arguments.kwarg]
    listed = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return listed + [arg for arg in several if arg is not None]


def _defaults(arguments: ast.arguments) -> list[ast.expr]:
    return [*arguments.defaults, *(d for d in arguments.kw_defaults if d is not None)]


def _is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _assigned(body: list[ast.stmt]) -> set[str]:
    """The names that a function assigns to, but for those that belong to a scope further out."""
    names, elsewhere = set(), set()
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if _is_name(node):
            names.add(node.id)  # type: ignore[attr-defined]
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            elsewhere.update(node.names)
        elif isinstance(node, (*_FUNCTIONS, *_COMPREHENSIONS, ast.ClassDef)):
            continue
        waiting.extend(ast.iter_child_nodes(node))
    return names - elsewhere
