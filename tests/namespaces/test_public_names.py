"""Public names are listed once, in stubs, and imported when they are first used."""

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
    """The names that the statements of a module bind."""
    bound = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound.add(node.name)
        else:
            stored = (n for n in ast.walk(node) if isinstance(n, ast.Name))
            bound |= {n.id for n in stored if isinstance(n.ctx, ast.Store)}
    return bound


each_stub = pytest.mark.parametrize("stub", STUBS, ids=lambda p: str(p.relative_to(PACKAGE)))


def test_every_module_that_reads_a_stub_has_one():
    readers = {
        path.with_suffix(".pyi") for path in PACKAGE.rglob("*.py") if calls(path, "from_stub")
    }

    assert readers == {*STUBS}


@each_stub
def test_a_stub_holds_one_import_of_each_name(stub):
    """The alias makes it a re-export for type checkers, which know no other form."""
    statements = ast.parse(stub.read_text()).body
    names = [alias.name for statement in statements for alias in statement.names]
    homes = [statement.module for statement in statements]

    assert all(isinstance(statement, ast.ImportFrom) for statement in statements)
    assert all(len(statement.names) == 1 for statement in statements)
    assert [statement.names[0].asname for statement in statements] == names
    assert len(names) == len(set(names))
    assert names_in_stub(module_of(stub)) == dict(zip(names, homes, strict=True))


@each_stub
def test_every_public_name_is_found_and_listed(stub):
    module = module_of(stub)
    names = sorted(names_in_stub(module))

    assert [name for name in names if not hasattr(module, name)] == []
    assert module.__all__ == dir(module) == names


@each_stub
def test_no_public_name_is_defined_in_two_ways(stub):
    names = {*names_in_stub(module_of(stub))}

    assert not bound_in(stub.with_suffix(".py")) & (names | {"__all__"})


@each_stub
def test_no_name_is_that_of_a_file_beside_it(stub):
    """Else it would depend on what was imported before which of the two is meant."""
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
def test_modules_that_define_names_list_them(path):
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
        assert not {"Any", "Callable", "annotations"} & {*dir(module)}, module
        assert {m.__name__.partition(".")[0] for m in modules} <= {"retrograde", "keras"}, module


def test_a_star_imports_the_public_names():
    scope = {}
    exec("from retrograde.signal import *", scope)

    assert {*scope} - {"__builtins__"} == {*tf.signal.__all__}


def test_a_name_that_is_not_there_says_so():
    with pytest.raises(AttributeError, match="module 'retrograde' has no attribute 'sess'"):
        tf.sess  # noqa: B018
    with pytest.raises(AttributeError, match=r"module 'retrograde.math' has no attribute 'sinus'"):
        tf.math.sinus  # noqa: B018


def loaded_by(program):
    program += "; import sys; print(*sorted(n for n in sys.modules if n.startswith('retrograde')))"
    run = [sys.executable, "-c", program]
    result = subprocess.run(run, capture_output=True, text=True, check=True, timeout=60)
    return result.stdout.split()


def test_little_is_loaded_before_it_is_used():
    at_first = loaded_by("import retrograde as tf")
    later = loaded_by("import retrograde as tf; tf.image.flip_up_down")

    packages = {name.split(".")[1] for name in at_first if "." in name}
    assert packages == {"_api", "core", "fusion", "ops", "values"}
    assert "retrograde.image" in later
    assert "retrograde.signal" not in later


def test_operators_are_there_from_the_start():
    program = (
        "import retrograde as tf; from retrograde.core.tensor import Tensor; import numpy; "
        "assert float((Tensor(numpy.ones(2)) + 1.0)[0]) == 2.0"
    )

    assert "retrograde.math" not in loaded_by(program)
