"""Runs docs/inside.md as one program and checks that the files it names exist."""

import pathlib
import re

import numpy as np
import pytest

import retrograde as tf

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs" / "inside.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PATH = re.compile(r"`((?:core|ops)/\w*(?:\.py)?)`")


def run(text):
    """Runs the blocks of `text` in one namespace and returns it.

    Each block is compiled at its line in the page, so that tracebacks point into the page.
    """
    names = {"__name__": "inside"}
    for block in BLOCK.finditer(text):
        above = "\n" * text.count("\n", 0, block.start(1))
        exec(compile(above + block[1], str(PAGE), "exec"), names)
    return names


@pytest.fixture(scope="module")
def text():
    return PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def inside(text):
    return run(text)


def test_the_program_trains_a_network(inside):
    assert inside["runs"] == 1
    assert len(inside["losses"]) == 500
    assert inside["losses"][-1] < 1e-3 < inside["losses"][0]
    assert inside["recorders"] == []


def test_gradients_match_the_library(inside):
    rng = np.random.default_rng(5)
    arrays = [rng.normal(size=shape) for shape in [(4, 3), (3, 2), (2,)]]

    def gradients(tensor, tape):
        x, w, b = map(tensor, arrays)
        with tape:
            tape.watch(w)
            tape.watch(b)
            y = x @ w * b - b
        return [g.numpy() for g in tape.gradient(y, [w, b])]

    actual = gradients(inside["Tensor"], inside["GradientTape"]())
    expected = gradients(tf.Tensor, tf.GradientTape())

    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-14)


def test_check_rejects_a_wrong_rule(inside):
    wrong = inside["elementwise"]("tanh", None, lambda g, y, _x: g * (1.0 + y * y))

    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        inside["check"](wrong, np.array([0.5, -1.0]))


def test_a_function_is_retraced_for_another_shape(inside):
    shapes = []

    @inside["function"]
    def doubled(x):
        shapes.append(x.shape)
        return [x + x]

    results = [doubled(np.full(n, 2.0))[0].numpy().tolist() for n in (1, 1, 2, 1)]

    assert results == [[4.0], [4.0], [4.0, 4.0], [4.0]]
    assert shapes == [(1,), (2,)]


def test_files_named_on_the_page_exist(text):
    paths = set(PATH.findall(text))

    assert {"core/tape.py", "ops/_families.py"} <= paths
    assert [path for path in paths if not (ROOT / "src" / "retrograde" / path).exists()] == []
