"""Finds and runs the tests of one public function.

    python tools/tests_of.py tf.nn.conv2d [arguments for pytest]

A test is selected in one of three cases: its source names the function; its parameters do; or it
is a case of a primitive that the function applies. `make test OF=tf.nn.conv2d` calls this script.
"""

from __future__ import annotations

import ast
import functools
import inspect
import pathlib
import re
import sys
import textwrap
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
PUBLIC = re.compile(r"tf(\.\w+)+")


def public(name: str) -> Any:
    """Returns the object with this public name."""
    import retrograde

    value: Any = retrograde
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    return value


def names_of(name: str) -> list[str]:
    """Returns all public names of the same object: `tf.reduce_sum` and `tf.math.reduce_sum`."""
    import retrograde

    value, last = public(name), name.rpartition(".")[2]
    aliases = [name]
    for space in dir(retrograde):
        module = getattr(retrograde, space) if space != "keras" else None
        if isinstance(module, ModuleType) and getattr(module, last, None) is value:
            aliases.append(f"tf.{space}.{last}")
    if getattr(retrograde, last, None) is value:
        aliases.append(f"tf.{last}")
    return list(dict.fromkeys(aliases))


def pattern(names: list[str]) -> re.Pattern:
    """Returns what finds `tf.nn.conv2d` and `nn.conv2d`; or only `tf.cast` at the top level."""
    parts = []
    for name in names:
        short = re.escape(name.removeprefix("tf."))
        parts.append(rf"(?:tf\.)?{short}" if "." in short else rf"tf\.{short}")
    return re.compile(rf"(?<![\w.])(?:{'|'.join(parts)})(?!\w)")


# Files


def files_for(names: list[str], primitives: set[str]) -> list[pathlib.Path]:
    """Returns the test files that name the function, or read a table that does."""
    regex = pattern(names)
    paths = sorted((ROOT / "tests").rglob("test_*.py"))
    tables = [ROOT / "tests" / "ops" / "test_rules.py"] if primitives else []
    return [p for p in paths if p in tables or any(map(regex.search, _texts(p)))]


def _texts(path: pathlib.Path) -> Iterator[str]:
    """Yields the source of a test file, of the tables that it imports, and of its data."""
    seen: set[pathlib.Path] = set()
    queue = [path]
    while queue:
        path = queue.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        text = path.read_text()
        yield text
        if path.suffix == ".py":
            queue += [file for name in _imported_names(text) for file in _files_of(name)]
            names = re.findall(r"[\w.]+\.json", text)
            queue += [ROOT / "tests" / "data" / name for name in names]


def _imported_names(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def _files_of(module: str) -> list[pathlib.Path]:
    if module.split(".")[0] not in ("tests", "parity"):
        return []
    path = ROOT.joinpath(*module.split("."))
    return [path.with_suffix(".py"), path / "__init__.py"]


# Primitives


def primitives_of(function: Any) -> set[str]:
    """Returns the names of the primitives that a function applies, with the help of its module."""
    from retrograde.core.apply import Primitive

    names: set[str] = set()
    seen: set[int] = set()
    queue = [inspect.unwrap(function)]
    while queue:
        value = queue.pop()
        if id(value) in seen or not isinstance(value, FunctionType):
            continue
        seen.add(id(value))
        for used in _referenced_globals(value):
            if isinstance(used, Primitive):
                names.add(used.name)
            elif getattr(used, "__module__", None) == value.__module__:
                queue.append(used)
    return names


def _referenced_globals(function: FunctionType) -> Iterator[Any]:
    """Yields the objects that the names in a function refer to, such as `f` or `module.f`."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    scope = function.__globals__
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in scope:
            yield scope[node.id]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield getattr(scope.get(node.value.id), node.attr, None)


# Tests


class Selection:
    """A pytest plugin that keeps the tests of one function and prints how many it kept."""

    def __init__(self, names: list[str], primitives: set[str]) -> None:
        self._pattern = pattern(names)
        self._names = names
        self._primitives = primitives

    def pytest_collection_modifyitems(self, config: Any, items: list) -> None:
        """Deselects the other tests."""
        kept, others = [], []
        for item in items:
            (kept if self.selects(item) else others).append(item)
        config.hook.pytest_deselected(items=others)
        items[:] = kept

    def selects(self, item: Any) -> bool:
        """Returns whether a collected test is a test of the function."""
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        case = parameters.get("case")
        if getattr(getattr(case, "primitive", None), "name", None) in self._primitives:
            return True
        _, _, label = item.nodeid.partition("[")
        return bool(self._pattern.search(label) or self._pattern.search(_source(item.function)))

    def pytest_report_collectionfinish(self, items: list) -> list[str]:
        """Says what was selected."""
        tests = dict.fromkeys(item.nodeid.split("[")[0] for item in items)
        cases = f", and the cases of {', '.join(sorted(self._primitives))}"
        return [
            f"{' or '.join(self._names)}: {len(items)} tests in {len(tests)} functions"
            f"{cases if self._primitives else ''}:",
            *[f"  {test}" for test in tests],
        ]


@functools.cache
def _source(function: Any) -> str:
    return inspect.getsource(function)


def main(arguments: list[str]) -> int:
    """Runs the tests of the function that the first argument names."""
    import pytest

    name, *others = arguments or [""]
    if not PUBLIC.fullmatch(name):
        print(f"Expected a public name, such as tf.nn.conv2d. Received: {name!r}.", file=sys.stderr)
        return 2
    try:
        names = names_of(name)
    except AttributeError as error:
        print(error, file=sys.stderr)
        return 2
    primitives = primitives_of(public(name))
    files = [str(path.relative_to(ROOT)) for path in files_for(names, primitives)]
    if not files:
        print(f"No test names {name}.", file=sys.stderr)
        return 5
    return pytest.main([*files, *others], plugins=[Selection(names, primitives)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
