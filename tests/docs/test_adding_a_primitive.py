"""Runs the code of docs/adding_a_primitive.md and the table-driven tests on its primitive."""

import inspect
import itertools
import pathlib
import re

import jax
import numpy as np
import pytest

import retrograde as tf
import retrograde.math.elementary as operations
from retrograde.core import namespaces
from retrograde.core.apply import PRIMITIVES
from retrograde.ops import elementary
from tests.ops import test_rules
from tests.ops.cases import _table, elementwise

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "adding_a_primitive.md"
BLOCK = re.compile(r"^```python\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILES = {
    "src/retrograde/ops/elementary.py": elementary,
    "tests/ops/cases/elementwise.py": elementwise,
    "src/retrograde/math/elementary.py": operations,
}
PROPERTIES = [  # without the tests of joint rules, which this primitive does not have
    f
    for name, f in vars(test_rules).items()
    if name.startswith("test_") and [*inspect.signature(f).parameters] == ["case"]
    if not name.startswith("test_joint")
]


@pytest.fixture
def blocks():
    """Maps file names to the blocks of the page, each at its line in the page."""
    text = PAGE.read_text(encoding="utf-8")
    return {
        block[1]: "\n" * text.count("\n", 0, block.start(2)) + block[2]
        for block in BLOCK.finditer(text)
    }


@pytest.fixture
def cbrt(blocks, monkeypatch):
    """Registers the primitive and the cases of the page for one test, and returns the operation."""
    monkeypatch.setattr(_table, "CASES", [])
    monkeypatch.setitem(PRIMITIVES, "cbrt", None)
    del PRIMITIVES["cbrt"]
    for path, module in FILES.items():
        names = dict(vars(module))
        exec(compile(blocks[path], str(PAGE), "exec"), names)
        monkeypatch.setattr(module, "cbrt", names.get("cbrt"), raising=False)
    return operations.cbrt


def test_each_block_names_its_file(blocks):
    assert blocks.keys() == FILES.keys()


def test_the_primitive_passes_the_table_driven_tests(cbrt, monkeypatch):
    monkeypatch.setattr(namespaces, "foreign", True)
    assert cbrt is not None
    assert [str(case) for case in _table.CASES] == [
        "cbrt-matrix",
        "cbrt-scalar",
        "cbrt-empty",
        "cbrt-either_sign",
    ]

    assert len(PROPERTIES) >= 10
    large_enough = [case for case in _table.CASES if case.inputs[0].size > 1]
    with jax.enable_x64(True):
        for case, check in itertools.product(large_enough, PROPERTIES):
            check(case)


def test_a_zero_cotangent_gives_a_zero_gradient_at_zero(cbrt):
    x = tf.Variable([0.0, -27.0])
    with tf.GradientTape() as tape:
        y = cbrt(x)
    gradient = tape.gradient(y, x, np.array([0.0, 1.0], "float32"))

    np.testing.assert_allclose(y.numpy(), [0.0, -3.0], rtol=1e-6)
    np.testing.assert_allclose(gradient.numpy(), [0.0, 1 / 27], rtol=1e-6)
