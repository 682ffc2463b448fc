"""Who imports whom, and what `import retrograde` brings in."""

import ast
import pathlib
import subprocess
import sys
import tomllib

import pytest

import retrograde

PACKAGE = pathlib.Path(retrograde.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
HEAVY = ("jax", "jaxlib", "keras", "optree", "safetensors", "scipy", "tensorflow")


def layer_of(path):
    """The part of the package that a file belongs to: `core`, `ops`, or a public namespace."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported(nodes):
    """The full names of the modules that the import statements among `nodes` name."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are written in full"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def parsed(path):
    return ast.parse(path.read_text())


def layers(path):
    """The parts of the package that a file imports from, anywhere in it."""
    names = imported(ast.walk(parsed(path)))
    return {n.split(".")[1] for n in names if n.startswith("retrograde.")}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_down_the_layers(path):
    allowed = {"core": {"core"}, "ops": {"core", "ops"}}.get(layer_of(path))

    assert allowed is None or layers(path) <= allowed


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_heavy_packages_are_imported_where_they_are_used(path):
    heavy = {*HEAVY} - ({"keras"} if layer_of(path) == "keras_backend" else set())
    names = {name.split(".")[0] for name in imported(parsed(path).body)}

    assert not names & heavy


def test_the_core_knows_nothing_of_jax():
    names = [n for p in FILES if layer_of(p) == "core" for n in imported(ast.walk(parsed(p)))]

    assert not [name for name in names if name.split(".")[0] in ("jax", "jaxlib")]


def test_import_brings_in_nothing_heavy():
    program = "import sys, retrograde; print(*sorted({n.split('.')[0] for n in sys.modules}))"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )

    assert not set(result.stdout.split()) & set(HEAVY)


def test_everything_public_is_there():
    assert sorted(retrograde.__all__) == sorted(set(retrograde.__all__))
    assert [name for name in retrograde.__all__ if not hasattr(retrograde, name)] == []


def test_version_is_that_of_the_project():
    project = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text())["project"]

    assert retrograde.__version__ == project["version"]
