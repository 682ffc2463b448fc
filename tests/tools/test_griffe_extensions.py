"""Tests tools/griffe_extensions.py.

It adds registered methods and exports from stubs to the API pages.
"""

import pathlib

import griffe
import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def package():
    extensions = griffe.load_extensions(str(ROOT / "tools" / "griffe_extensions.py"))
    return griffe.load("retrograde", search_paths=[ROOT / "src"], extensions=extensions)


def test_registered_methods_belong_to_the_class(package):
    tape = package["core.tape.GradientTape"]
    variable = package["core.variable.Variable"]

    assert [p.name for p in tape["explain"].parameters] == ["target", "sources"]
    assert next(p.name for p in variable["scatter_add"].parameters) == "sparse_delta"
    assert {"gradient", "jacobian", "autopsy", "memory", "profile"} <= {*tape.members}


def test_internal_methods_of_recorders_are_not_added(package):
    assert "escape" not in package["core.tape.GradientTape"].members


def test_registered_functions_keep_their_tape_parameter(package):
    explain = package["diagnose.missing_gradients.explain.explain"]

    assert [p.name for p in explain.parameters] == ["tape", "target", "sources"]


def test_names_in_stubs_are_exported(package):
    assert {"GradientTape", "constant"} <= {*package.exports}
