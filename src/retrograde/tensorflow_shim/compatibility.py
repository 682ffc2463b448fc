"""Finds the TensorFlow names that a program uses and retrograde does not support.

The program is not run.
"""

from __future__ import annotations

import ast
import importlib
import os
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from retrograde._api import missing
from retrograde.tensorflow_shim import notebooks

_SUFFIXES = (".py", ".ipynb")


class Use(NamedTuple):
    """A use of a TensorFlow name. `paths` has several if a name is bound in several ways."""

    line: int
    paths: tuple[str, ...]


class Finding(NamedTuple):
    """An unsupported name and where it is used. `name` is empty if a file is unreadable."""

    location: str
    name: str
    message: str

    def __str__(self) -> str:
        if self.name in self.message:
            return f"{self.location}: {self.message}"
        return f"{self.location}: {self.name}: {self.message}"


class Result(NamedTuple):
    """The result for all files."""

    files: int
    names: set[str]
    findings: list[Finding]


def check(paths: Iterable[str]) -> Result:
    """Checks files, and all files in folders."""
    files, names, findings = 0, set(), []
    for path in _files(paths):
        files += 1
        collector = _UseCollector()  # one for all cells of a notebook
        try:
            sources = _sources(path)
        except (OSError, notebooks.NotANotebook) as error:
            findings.append(Finding(str(path), "", str(error)))
            continue
        for location, source in sources:
            try:
                uses = collector.collect(ast.parse(source))
            except notebooks.PARSE_ERRORS as error:
                line = getattr(error, "lineno", 1) or 1
                findings.append(Finding(location(line), "", _reason(error)))
                continue
            for use in uses:
                names.add(use.paths[0])
                unsupported = _find_unsupported(use)
                if unsupported:
                    findings.append(Finding(location(use.line), *unsupported))
    return Result(files, names, list(dict.fromkeys(findings)))


def _reason(error: Exception) -> str:
    if isinstance(error, (RecursionError, MemoryError)):
        return "cannot parse this: it is nested too deeply"
    message = error.msg if isinstance(error, SyntaxError) else error
    return f"cannot parse this as Python: {message}"


def _files(paths: Iterable[str]) -> Iterator[pathlib.Path]:
    for path in map(pathlib.Path, paths):
        path.stat()  # raises an error for a path that does not exist
        if not path.is_dir():
            yield path
            continue
        programs = _programs(path)
        if not programs:
            raise ValueError(f"{path} contains no Python files or notebooks")
        yield from programs


def _programs(folder: pathlib.Path) -> list[pathlib.Path]:
    """Returns the programs in a folder, except in hidden folders and virtual environments."""
    programs = []
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not _is_excluded(pathlib.Path(root, name))]
        paths = [pathlib.Path(root, name) for name in files if not name.startswith(".")]
        programs += [path for path in paths if path.suffix in _SUFFIXES]
    return sorted(programs)


def _is_excluded(folder: pathlib.Path) -> bool:
    return folder.name.startswith(".") or (folder / "pyvenv.cfg").exists()


def _sources(path: pathlib.Path) -> list[tuple[Any, str | bytes]]:
    """Returns the Python sources in a file, each with a function that formats a line number."""
    if path.suffix != ".ipynb":
        return [(lambda line: f"{path}:{line}", path.read_bytes())]
    return [
        (lambda line, number=cell.number: f"{path}, cell {number}, line {line}", cell.source)
        for cell in notebooks.cells_of(path)
    ]


# Supported names

_BACKEND_VARIABLE = "KERAS_BACKEND="
_NO_SPARSE_INPUTS = "Keras layers do not support sparse inputs on retrograde. Pass dense tensors."
_NO_RAGGED_INPUTS = "Keras layers do not support ragged inputs on retrograde. Pad them first."
_ANOTHER_BACKEND = "It requires another Keras backend."

# Names and options that exist in Keras but raise an error on this backend.
_REFUSED = {
    **{
        f"tf.keras.{name}({option}=True)": reason
        for name in ("Input", "layers.Input", "layers.InputLayer")
        for option, reason in (("sparse", _NO_SPARSE_INPUTS), ("ragged", _NO_RAGGED_INPUTS))
    },
    "tf.keras.layers.FlaxLayer": _ANOTHER_BACKEND,
    "tf.keras.layers.JaxLayer": _ANOTHER_BACKEND,
    "tf.keras.layers.TorchModuleWrapper": _ANOTHER_BACKEND,
}


def _find_unsupported(use: Use) -> tuple[str, str] | None:
    """Returns the unsupported name and a message; `None` if the name is supported."""
    reasons = [_unsupported_path(path) for path in use.paths]
    return None if None in reasons else reasons[0]


def _unsupported_path(path: str) -> tuple[str, str] | None:
    if path in _REFUSED:
        return path, _REFUSED[path]
    if path.startswith(_BACKEND_VARIABLE):
        return path, (
            f"{path} selects another backend, but in a program that runs on retrograde in place of "
            "TensorFlow it must be 'tensorflow' or unset."
        )
    top, _, below = path.partition(".")
    if top in missing.PACKAGES:
        return top, missing.package_message(top)
    value: Any = importlib.import_module("retrograde")
    name = "tf"
    for part in below.split(".") if below else ():
        name = f"{name}.{part}"
        if name in missing.PRIVATE:
            return name, missing.message_for(name)
        try:
            value = getattr(value, part)
        except AttributeError:
            return name, missing.message_for(name) or f"{name} is not in retrograde."
        except ImportError as error:
            return name, str(error)
    return None


# Uses in a program


def uses_in(tree: ast.Module) -> list[Use]:
    """Returns the uses of TensorFlow names in a program, as full dotted names."""
    return _UseCollector().collect(tree)


def _canonical(module: str) -> str | None:
    """Returns `tf.x` for `tensorflow.x`; `None` for modules not related to TensorFlow."""
    top, dot, below = module.partition(".")
    if top == "tensorflow":
        return f"tf{dot}{below}"
    if top == "keras":
        return f"tf.keras{dot}{below}"
    return module if top in missing.PACKAGES else None


def _selected_backend(node: ast.Assign) -> str | None:
    """Returns the value that an assignment to `os.environ["KERAS_BACKEND"]` sets."""
    match node:
        case ast.Assign(
            targets=[
                ast.Subscript(
                    value=ast.Attribute(attr="environ"), slice=ast.Constant(value="KERAS_BACKEND")
                )
            ],
            value=ast.Constant(value=str(backend)),
        ):
            return backend
    return None


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class _UseCollector(ast.NodeVisitor):
    """Resolves names through imports, assignments and scopes.

    A scope maps a name to the TensorFlow paths that it may be bound to: several if it is imported
    in several ways, none if it is bound to something else.
    """

    def __init__(self) -> None:
        self._uses: list[Use] = []
        self._scopes: list[dict[str, tuple[str, ...]]] = [{}]
        self._may_fail = False

    def collect(self, tree: ast.Module) -> list[Use]:
        """Returns the uses in a program; names of earlier programs stay bound."""
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
        """Ignores imports whose failure the program handles."""
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
        """Returns the paths that a dotted name may be bound to."""
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

    def visit_Call(self, node: ast.Call) -> None:
        """Collects options that are refused."""
        for option in node.keywords:
            if isinstance(option.value, ast.Constant) and option.value.value is True:
                calls = [f"{path}({option.arg}=True)" for path in self._paths(node.func)]
                refused = [call for call in calls if call in _REFUSED]
                if refused:
                    self._use(node, refused)
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self._scopes[-1][node.id] = ()

    def visit_Assign(self, node: ast.Assign) -> None:
        backend = _selected_backend(node)
        if backend not in (None, "", "tensorflow"):
            self._use(node, [f"{_BACKEND_VARIABLE}{backend}"])
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
        self._in_scope(body, [*arguments, *_assigned_names(body)])

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
    variadic = [arguments.vararg, arguments.kwarg]
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return named + [arg for arg in variadic if arg is not None]


def _defaults(arguments: ast.arguments) -> list[ast.expr]:
    return [*arguments.defaults, *(d for d in arguments.kw_defaults if d is not None)]


def _is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _assigned_names(body: list[ast.stmt]) -> set[str]:
    """Returns the names that a function binds, without global and nonlocal names."""
    names, nonlocals = set(), set()
    pending: list[ast.AST] = list(body)
    while pending:
        node = pending.pop()
        if _is_name(node):
            names.add(node.id)  # type: ignore[attr-defined]
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            nonlocals.update(node.names)
        elif isinstance(node, (*_FUNCTIONS, *_COMPREHENSIONS, ast.ClassDef)):
            continue
        pending.extend(ast.iter_child_nodes(node))
    return names - nonlocals
