"""Runs docs/teaching.md as one program and compares its tape with the library's."""

import pathlib
import re

import numpy as np
import pytest

import retrograde as tf

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "teaching.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def blocks():
    return BLOCK.findall(PAGE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def lesson(blocks):
    """Returns the names that the page defines."""
    names = {"__name__": "lesson"}
    for number, block in enumerate(blocks):
        exec(compile(block, f"{PAGE.name}, block {number}", "exec"), names)
    return names


def test_the_tape_has_fewer_than_sixty_lines(blocks):
    lines = "".join(blocks[:3]).splitlines()

    assert sum(bool(line.strip()) for line in lines) < 60


def test_gradients_match_the_library(lesson):
    rng = np.random.default_rng(4)
    arrays = [rng.normal(size=shape) for shape in [(4, 3), (3, 2), (4, 2)]]

    def gradients(tensors, tape, tanh, reduce_sum):
        x, w, b = tensors
        with tape:
            y = reduce_sum(tanh(x @ w) * b + b)
        return tape.gradient(y, [x, w, b])

    mine = [lesson["Tensor"](array) for array in arrays]
    actual = gradients(mine, lesson["GradientTape"](), lesson["tanh"], lesson["reduce_sum"])
    expected = gradients([*map(tf.Variable, arrays)], tf.GradientTape(), tf.tanh, tf.reduce_sum)

    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, e.numpy(), rtol=1e-12)


def test_check_rejects_the_wrong_rule_of_exercise_2(lesson):
    def wrong(x):
        return lesson["apply"](np.tanh, lambda g, y, _x: (g * (1.0 + y * y),), x)

    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        lesson["check"](lambda x: lesson["reduce_sum"](wrong(x)), np.array([0.5, -1.0]))


def test_sum_to_completes_the_gradients_of_a_broadcast(lesson):
    x, b = lesson["Tensor"](np.ones((4, 3))), lesson["Tensor"](np.ones(3))
    with lesson["GradientTape"]() as tape:
        y = lesson["reduce_sum"](x + b)
    (gradient,) = tape.gradient(y, [b])

    assert gradient.shape == (4, 3)
    np.testing.assert_array_equal(lesson["sum_to"](gradient, (3,)), np.full(3, 4.0))
