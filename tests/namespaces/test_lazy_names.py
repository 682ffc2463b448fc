"""Public names are imported when they are asked for."""

import importlib
import importlib.util
import pathlib
import subprocess
import sys

import pytest

import retrograde as tf
from retrograde._api.names import HOMES

ROOT = pathlib.Path(__file__).parents[2]


def load_tool():
    spec = importlib.util.spec_from_file_location("make_names", ROOT / "tools" / "make_names.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def names_of(package):
    entries = [entry for names in HOMES[package].values() for entry in names.split()]
    return [entry.partition("=")[0] for entry in entries]


def test_the_list_of_homes_is_that_of_the_imports():
    made = (ROOT / "src" / "retrograde" / "_api/names.py").read_text()

    assert made == load_tool().text(), "run tools/make_names.py"


@pytest.mark.parametrize("package", HOMES)
def test_every_public_name_is_found_and_listed(package):
    module = importlib.import_module(package)

    assert [name for name in module.__all__ if not hasattr(module, name)] == []
    assert set(names_of(package)) <= set(module.__all__)
    assert set(module.__all__) <= set(dir(module))


@pytest.mark.parametrize("package", HOMES)
def test_no_name_is_that_of_a_file_beside_it(package):
    """Else it would depend on what was imported before which of the two is meant."""
    folder = ROOT / "src" / package.replace(".", "/")
    files = {path.stem for path in folder.glob("*.py")}
    modules = {entry.partition("=")[0] for entry in HOMES[package].get("", "").split()}

    assert not (set(names_of(package)) - modules) & files


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
