"""The import layers of the package, and the modules that `import retrograde` loads."""

import ast
import importlib
import os
import pathlib
import re
import subprocess
import sys
import textwrap
import tomllib

import pytest

import retrograde
from retrograde.core import hooks
from retrograde.core.hooks import FUNCTIONS

PACKAGE = pathlib.Path(retrograde.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
HEAVY = ("jax", "jaxlib", "keras", "optree", "safetensors", "scipy", "tensorflow")


def layer_of(path):
    """Returns the subpackage of a file: `core`, `ops`, or a public namespace."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_modules(nodes):
    """Yields the full names of the modules that the import statements among `nodes` import."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def parse(path):
    return ast.parse(path.read_text())


def is_for_type_checkers(node):
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def layers(path):
    """Returns the subpackages that a file imports from, also inside functions."""
    tree = parse(path)
    typing = {n for node in ast.walk(tree) if is_for_type_checkers(node) for n in ast.walk(node)}
    names = imported_modules(node for node in ast.walk(tree) if node not in typing)
    return {n.split(".")[1] for n in names if n.startswith("retrograde.")}


# The subpackages that each subpackage may import. Subpackages not listed may import all.
BELOW = {
    "values": set(),
    "core": {"values"},
    "files": {"values"},
    "fusion": {"core", "values"},
    "devices": {"core", "values"},
    "shape_inference": {"core", "values"},
    "ops": {"core", "fusion", "shape_inference", "values"},
    "derivatives": {"core", "fusion", "ops", "values"},
    "program": {"core", "devices", "fusion", "ops", "values"},
    "saved_functions": {"core", "ops", "program", "shape_inference", "values"},
    "numpy_functions": {"core", "linalg", "math", "ops", "values"},
}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_files_import_only_lower_layers(path):
    layer = layer_of(path)

    assert layer not in BELOW or layers(path) <= {layer, *BELOW[layer]}


def named_in_strings(path):
    """Returns the subpackages in strings that are module names, as for `import_module`."""
    strings = [n.value for n in ast.walk(parse(path)) if isinstance(n, ast.Constant)]
    names = [s for s in strings if isinstance(s, str) and re.fullmatch(r"retrograde(\.\w+)+", s)]
    return {name.split(".")[1] for name in names}


@pytest.mark.parametrize(
    "path", [p for p in FILES if layer_of(p) in BELOW], ids=lambda p: str(p.relative_to(PACKAGE))
)
def test_strings_name_only_modules_of_lower_layers(path):
    layer = layer_of(path)

    assert named_in_strings(path) <= {layer, *BELOW[layer]}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_diagnose_and_program_do_not_import_each_other(path):
    other = {"diagnose": "program", "program": "diagnose"}.get(layer_of(path))

    assert other not in layers(path) | named_in_strings(path)


def registered_modules():
    """Returns the modules that are registered as hooks, which `core` imports by name."""
    return {*hooks.TAPE_METHODS.values(), *hooks.VARIABLE_METHODS.values(), *FUNCTIONS.values()}


def test_only_packages_above_core_register_hooks():
    layers_above = {name.split(".")[1] for name in registered_modules()}

    assert layers_above <= {"derivatives", "devices", "diagnose", "fusion", "ops"}


@pytest.mark.parametrize(
    ("name", "module"),
    [*hooks.TAPE_METHODS.items(), *hooks.VARIABLE_METHODS.items(), *FUNCTIONS.items()],
)
def test_registered_hooks_exist(name, module):
    assert callable(getattr(importlib.import_module(module), name))


@pytest.mark.parametrize(
    "path",
    [p for p in FILES if layer_of(p) in ("core", "values")],
    ids=lambda p: str(p.relative_to(PACKAGE)),
)
def test_core_and_values_look_up_no_primitive_by_name(path):
    lookups = [
        ast.unparse(node)
        for node in ast.walk(parse(path))
        if (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute))
    ]

    assert not [text for text in lookups if text.startswith("PRIMITIVES")]


@pytest.mark.parametrize(
    "path",
    [p for p in FILES if layer_of(p) in ("core", "fusion")],
    ids=lambda p: str(p.relative_to(PACKAGE)),
)
def test_core_and_fusion_do_not_mention_keras(path):
    assert not re.search(r"keras|Layer\.__call__", path.read_text(), re.IGNORECASE)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_heavy_packages_are_imported_inside_functions(path):
    heavy = {*HEAVY} - ({"keras"} if layer_of(path) == "keras_backend" else set())
    names = {name.split(".")[0] for name in imported_modules(parse(path).body)}

    assert not names & heavy


def test_core_does_not_import_jax():
    names = [
        n for p in FILES if layer_of(p) == "core" for n in imported_modules(ast.walk(parse(p)))
    ]

    assert not [name for name in names if name.split(".")[0] in ("jax", "jaxlib")]


def test_import_loads_no_heavy_packages():
    program = "import sys, retrograde; print(*sorted({n.split('.')[0] for n in sys.modules}))"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )

    assert not set(result.stdout.split()) & set(HEAVY)


def test_eager_code_without_accelerators_does_not_load_devices():
    program = """
    import sys

    import retrograde as tf

    v = tf.Variable(tf.zeros([2]))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum((v - tf.constant([1.0, 2.0])) ** 2)
    v.assign_sub(tape.gradient(y, v))
    v.assign(v + 1.0)
    print(*[name for name in sys.modules if name.startswith("retrograde.devices")])
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "RETROGRADE_DEVICE": ""},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert not result.stdout.split()


def test_version_agrees_with_pyproject():
    project = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text())["project"]

    assert retrograde.__version__ == project["version"]
