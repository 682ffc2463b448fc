"""Public names are listed once, in stubs, and imported on first use."""

import ast
import importlib
import inspect
import pathlib
import subprocess
import sys

import pytest

import retrograde as tf
from retrograde._api.lazy import names_in_stub

PACKAGE = pathlib.Path(tf.__file__).parent
STUBS = sorted(PACKAGE.rglob("*.pyi"))


def module_of(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return importlib.import_module(".".join(parts).removesuffix(".__init__"))


def calls(path, function):
    tree = ast.parse(path.read_text())
    names = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return any(isinstance(name, ast.Name) and name.id == function for name in names)


def bound_in(path):
    """Returns the names that the top-level statements of a module bind."""
    bound = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound.add(node.name)
        else:
            names = (n for n in ast.walk(node) if isinstance(n, ast.Name))
            bound |= {n.id for n in names if isinstance(n.ctx, ast.Store)}
    return bound


each_stub = pytest.mark.parametrize("stub", STUBS, ids=lambda p: str(p.relative_to(PACKAGE)))


def test_every_module_that_reads_a_stub_has_one():
    readers = {
        path.with_suffix(".pyi") for path in PACKAGE.rglob("*.py") if calls(path, "from_stub")
    }

    assert readers == {*STUBS}


@each_stub
def test_a_stub_imports_each_name_once(stub):
    """Type checkers recognize a re-export by the alias `name as name`."""
    statements = ast.parse(stub.read_text()).body
    names = [alias.name for statement in statements for alias in statement.names]
    homes = [statement.module for statement in statements]

    assert all(isinstance(statement, ast.ImportFrom) for statement in statements)
    assert all(len(statement.names) == 1 for statement in statements)
    assert [statement.names[0].asname for statement in statements] == names
    assert len(names) == len(set(names))
    assert names_in_stub(module_of(stub)) == dict(zip(names, homes, strict=True))


@each_stub
def test_every_public_name_exists_and_is_in_dir_and_all(stub):
    module = module_of(stub)
    names = sorted(names_in_stub(module))

    assert [name for name in names if not hasattr(module, name)] == []
    assert module.__all__ == dir(module) == names


@each_stub
def test_no_name_in_a_stub_is_also_defined_in_the_module(stub):
    names = {*names_in_stub(module_of(stub))}

    assert not bound_in(stub.with_suffix(".py")) & (names | {"__all__"})


@each_stub
def test_no_public_name_is_also_the_name_of_a_submodule(stub):
    """Otherwise the attribute would depend on the order of imports."""
    if stub.stem != "__init__":
        return
    module = module_of(stub)
    files = {path.stem for path in [*stub.parent.glob("*.py"), *stub.parent.glob("*/")]}
    names = {name for name, home in names_in_stub(module).items() if home != module.__name__}

    assert not names & files


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(PACKAGE.rglob("*.py")) if calls(path, "from_all")],
    ids=lambda p: str(p.relative_to(PACKAGE)),
)
def test_modules_with_an_all_list_define_its_names(path):
    module = module_of(path)

    assert dir(module) == sorted(module.__all__)
    assert {*module.__all__} <= bound_in(path)


def test_dir_shows_public_names_only():
    assert {"GradientTape", "Variable", "__version__", "constant", "keras", "nn"} <= {*dir(tf)}
    assert not {"HOMES", "TYPE_CHECKING", "from_stub", "core", "ops", "toplevel"} & {*dir(tf)}
    assert [name for name in dir(tf) if name.startswith("_")] == ["__version__"]


def namespaces(module):
    """Yields `module` and the public namespaces in it, at any depth."""
    yield module
    for name in dir(module):
        value = getattr(module, name)
        if inspect.ismodule(value) and value.__name__.startswith("retrograde."):
            yield from namespaces(value)


def test_every_namespace_shows_public_names_only():
    for module in namespaces(tf):
        modules = [v for v in (getattr(module, n) for n in dir(module)) if inspect.ismodule(v)]

        assert [n for n in dir(module) if n.startswith("_")] in ([], ["__version__"]), module
        private = {"Any", "Callable", "annotations"}
        if module is tf.types.experimental:
            private.remove("Callable")  # a public name of TensorFlow
        assert not private & {*dir(module)}, module
        assert {m.__name__.partition(".")[0] for m in modules} <= {"retrograde", "keras"}, module


def test_star_import_binds_the_public_names():
    scope = {}
    exec("from retrograde.signal import *", scope)

    assert {*scope} - {"__builtins__"} == {*tf.signal.__all__}


def test_missing_names_raise_attribute_error():
    with pytest.raises(AttributeError, match="module 'retrograde' has no attribute 'sess'"):
        tf.sess  # noqa: B018
    with pytest.raises(AttributeError, match=r"module 'retrograde.math' has no attribute 'sinus'"):
        tf.math.sinus  # noqa: B018


def loaded_by(program):
    program += "; import sys; print(*sorted(n for n in sys.modules if n.startswith('retrograde')))"
    run = [sys.executable, "-c", program]
    result = subprocess.run(run, capture_output=True, text=True, check=True, timeout=60)
    return result.stdout.split()


def test_namespaces_are_loaded_on_first_use():
    at_first = loaded_by("import retrograde as tf")
    later = loaded_by("import retrograde as tf; tf.image.flip_up_down")

    packages = {name.split(".")[1] for name in at_first if "." in name}
    assert packages == {"_api", "core", "fusion", "ops", "shape_inference", "values"}
    assert "retrograde.image" in later
    assert "retrograde.signal" not in later


def test_operators_work_without_loading_math():
    program = (
        "import retrograde as tf; from retrograde.core.tensor import Tensor; import numpy; "
        "assert float((Tensor(numpy.ones(2)) + 1.0)[0]) == 2.0"
    )

    assert "retrograde.math" not in loaded_by(program)
