"""Tests that the campaign of random programs finds differences and shrinks programs."""

import numpy as np
import pytest

from campaigns import programs
from campaigns._programs.comparison import difference
from campaigns._programs.generator import generate
from campaigns._programs.runner import Outcome, Result
from campaigns._programs.shrinker import shrink


def outcome_of(*arrays):
    return Outcome([Result("y", a.dtype.name, a) for a in map(np.asarray, arrays)], None)


def test_a_seed_determines_the_program():
    assert generate(3) == generate(3) != generate(4)


@pytest.mark.parametrize("seed", [1, 3])
def test_programs_agree_in_all_modes(seed):
    assert programs.trial(seed) is None


def test_a_difference_is_reported_with_a_short_program(monkeypatch):
    run = programs._run

    def drop_last_result(source, mode, change=None):
        outcome = run(source, mode, change)
        if mode != "fused" or "tf.sin" not in source or not outcome.results:
            return outcome
        return outcome._replace(results=outcome.results[:-1])

    monkeypatch.setattr(programs, "_run", drop_last_result)
    problem = next(filter(None, map(programs.trial, range(1, 100))))

    program = problem.split("\n\n")[-1]
    assert problem.startswith("eager and fused differ: ")
    assert "tf.sin" in program
    assert len(program.splitlines()) < 12


@pytest.mark.parametrize(
    ("a", "b"),
    [(0.0, -0.0), (1.0, np.nextafter(1.0, 2.0)), (np.nan, 1.0), (1, 2), (np.float32(1), 1.0)],
)
def test_bits_and_dtypes_are_compared(a, b):
    assert difference(outcome_of(a), outcome_of(b)) is not None
    assert difference(outcome_of(a), outcome_of(a)) is None


def test_a_tolerance_is_relative_to_the_largest_element():
    x = np.array([1e3, 1.0])

    assert difference(outcome_of(x), outcome_of(x + 1e-7), 1e-8) is None
    assert difference(outcome_of(x), outcome_of(x + 1e-4), 1e-8) is not None
    assert difference(outcome_of(x), outcome_of(x + 1e-4), 1e-8, noise=outcome_of(x + 1e-5)) is None


def test_missing_results_and_other_errors_are_differences():
    none = Outcome([Result("gradient", "None", None)], None)

    assert difference(outcome_of(1.0), outcome_of(1.0, 2.0)) == "1 results, but 2"
    assert difference(outcome_of(1.0), none) is not None
    failed = outcome_of(1.0)._replace(error=ValueError("no"))
    assert difference(outcome_of(1.0), failed) == "no error, but ValueError: no"


def test_a_program_is_shrunk_to_the_relevant_lines():
    source = "a1 = 1\nif a1:\n    a2 = 2\n    a3 = tf.sin(a2)\na4 = 4\n"

    assert shrink(source, lambda text: "sin" in text, 5.0) == "a3 = tf.sin(a2)\n"
