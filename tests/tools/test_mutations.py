"""Tests tools/mutations.py."""

import ast
import pathlib

import pytest

from tools import mutations

ROOT = pathlib.Path(__file__).parents[2]
MODULE = '''"""A module."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decimal import Decimal

__all__ = ["f"]
LIMIT = 3


def f(x: "Decimal", n: int = 2) -> "Decimal":
    """Returns a number that is 1 or larger."""
    if x < n:
        raise ValueError(f"Expected at least {n + 5}.")
    return max(x - 1, LIMIT)
'''


def changes(source):
    """Yields the changed lines of each mutant, with the kind of the change."""
    before = source.splitlines()
    for mutant in mutations.mutants_of("module.py", source):
        after = mutant.text(source).splitlines()
        yield mutant.kind, *[line.strip() for line in after if line not in before]


def test_the_mutants_of_a_module():
    assert sorted(changes(MODULE)) == [
        ("comparison", "if (x <= n):"),
        ("comparison", "if (x > n):"),
        ("constant", "LIMIT = (4)"),
        ("constant", 'def f(x: "Decimal", n: int = (3)) -> "Decimal":'),
        ("constant", "return max(x - (2), LIMIT)"),
        ("negated condition", "if (not x < n):"),
        ("operator", "return max((x + 1), LIMIT)"),
        ("removed statement", "pass"),
        ("return None", "return None"),
        ("swapped arguments", "return (max(LIMIT, x - 1))"),
    ]


SMALL = {
    "x = a @ b": [("operator", "x = (b @ a)")],
    "x = not a": [("operator", "x = (a)")],
    "x = a and b": [("operator", "x = (a or b)")],
    "x = a is not b": [("comparison", "x = (a is b)")],
    "x = True": [("constant", "x = (False)")],
    "x.y = z": [("removed statement", "pass")],
    "del x": [("removed statement", "pass")],
    "x += y": [("operator", "x -= y"), ("removed statement", "pass")],
    "x = a if b else c": [("negated condition", "x = a if (not b) else c")],
    "x = y": [],
    "x: int = y": [],
    "f(*a, b)": [("removed statement", "pass")],
}


@pytest.mark.parametrize("source", SMALL)
def test_the_mutants_of_a_line(source):
    assert list(changes(source)) == SMALL[source]


def test_a_diff_shows_the_lines_that_differ():
    (mutant,) = mutations.mutants_of("module.py", "a = 1\nb = a * c\n")[1:]

    assert mutant.diff("a = 1\nb = a * c\n") == (
        "--- module.py\n+++ operator\n@@ -2 +2 @@\n-b = a * c\n+b = (a / c)"
    )


def test_text_and_tree_agree():
    source = (ROOT / "src" / "retrograde" / "values" / "nest.py").read_text()

    mutants = mutations.mutants_of("nest.py", source)

    assert len(mutants) > 50
    for mutant in mutants:
        changed = ast.unparse(mutant.tree(source))
        assert changed == ast.unparse(ast.parse(mutant.text(source)))
        assert changed != ast.unparse(ast.parse(source))


def compile_mutant(source, kind):
    (mutant,) = [m for m in mutations.mutants_of("module.py", source) if m.kind == kind]
    return [compile(tree, "module.py", "exec") for tree in (source, mutant.tree(source))]


def test_changed_functions_include_the_enclosing_functions():
    source = "def f(x):\n    return lambda y: x + y\n\ndef g():\n    pass\n"

    changed = mutations.changed_functions(*compile_mutant(source, "operator"))

    assert sorted(code.co_qualname for code in changed) == ["f", "f.<locals>.<lambda>"]
    for old, new in changed.items():
        assert old != new
        assert old.co_qualname == new.co_qualname


@pytest.mark.parametrize("source", ["x = 1\n", "class C:\n    x = 1\n", "def f(x=1):\n    pass\n"])
def test_a_change_outside_of_functions_returns_none(source):
    assert mutations.changed_functions(*compile_mutant(source, "constant")) is None
