"""Tests `tools/mkdocs_api.py`: links of the API pages."""

import pathlib

import pytest

from tools import mkdocs_api

SRC = pathlib.Path(__file__).parents[2] / "src"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("math.reduce_sum", "def reduce_sum("),
        ("Variable.assign", "def assign("),
        ("autodiff.GradientTape", "class GradientTape"),
        ("experimental.numpy.sin", "def sin("),
        ("diagnose.memory.Memory", "class Memory("),
    ],
)
def test_the_source_of_a_name_is_its_definition(path, text):
    file, _, line = mkdocs_api.source_of(path).partition("#L")

    assert text in (SRC / file).read_text(encoding="utf-8").splitlines()[int(line) - 1]


@pytest.mark.parametrize("path", ["float32", "nonsense", "math.nonsense"])
def test_values_and_unknown_names_have_no_source(path):
    assert mkdocs_api.source_of(path) is None
