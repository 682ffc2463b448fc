"""Batched Jacobians of every primitive, in reverse and forward mode."""

import numpy as np
import pytest

import retrograde as tf
from retrograde.derivatives import jacobian
from retrograde.derivatives.jacobian import (
    TapeSnapshot,
    jacobian_by_loop,
    pull_back_batched,
    push_forward_batched,
    unit_seeds,
)
from retrograde.values import dtypes
from tests.ops.cases import CASES
from tests.ops.harness import call, differentiable, quiet, run, tensors


def _is_target(array):
    return array.dtype in dtypes.INEXACT and array.size > 0


@quiet
def _has_rows(case):
    """Returns whether there is a Jacobian to compare; empty results have none."""
    return any(case.differentiable) and any(map(_is_target, run(case)))


DIFFERENTIABLE = [case for case in CASES if _has_rows(case)]
every_differentiable_case = pytest.mark.parametrize("case", DIFFERENTIABLE, ids=str)
ENOUGH = 1 << 30


def _is_real(case):
    """Returns whether to test forward mode; for complex numbers it differs by conjugates."""
    values = [*run(case), *differentiable(case, case.inputs)]
    return all(x.dtype == values[0].dtype and x.dtype.kind == "f" for x in values)


@pytest.fixture(autouse=True)
def _always_batched(monkeypatch):
    """Disables the separate treatment of a few rows."""
    monkeypatch.setattr(jacobian, "_UNBATCHED", 0)
    monkeypatch.setattr(jacobian, "_FEW", 1)


REAL = [case for case in DIFFERENTIABLE if _is_real(case)]


def record(case):
    """Records the call of a case. Returns the tape snapshot, the targets and the sources."""
    xs = tensors(case.inputs)
    sources = differentiable(case, xs)
    with tf.GradientTape() as tape:
        tape.watch(sources)
        ys = call(case, xs)
    targets = [y for y in ys if _is_target(y._array)]
    assert targets and sources
    return TapeSnapshot(tape._entries, tape._roots, False), targets, sources


def assert_rows(actual, expected, target, sources):
    for a, e, x in zip(actual, expected, sources, strict=True):
        if e is None:
            assert a is None
            continue
        a = np.asarray(getattr(a, "_array", a))
        assert a.dtype == x._array.dtype
        np.testing.assert_allclose(
            a, np.reshape(e, (target._array.size, *x._array.shape)), rtol=1e-9, atol=1e-11
        )


@every_differentiable_case
@quiet
def test_batched_rows_agree_with_a_loop(case):
    tape, targets, sources = record(case)
    for y in targets:
        expected = jacobian_by_loop(tape, y, sources)

        assert_rows(
            pull_back_batched(tape, y, unit_seeds(y), sources, ENOUGH), expected, y, sources
        )
        assert_rows(pull_back_batched(tape, y, unit_seeds(y), sources, 1), expected, y, sources)


@every_differentiable_case
@quiet
def test_batched_rows_agree_with_a_loop_under_an_outer_tape(case):
    tape, targets, sources = record(case)
    for y in targets:
        expected = jacobian_by_loop(tape, y, sources)
        with tf.GradientTape() as outer:
            outer.watch(sources)
            actual = pull_back_batched(
                tape._replace(on_tensors=True), y, unit_seeds(y), sources, ENOUGH
            )

        assert_rows(actual, expected, y, sources)


@pytest.mark.parametrize("case", REAL, ids=str)
@quiet
def test_forward_mode_agrees_with_a_loop(case):
    tape, targets, sources = record(case)
    for y in targets:
        expected = jacobian_by_loop(tape, y, sources)
        columns = push_forward_batched(
            tape, y, [unit_seeds(x) for x in sources], sources, ENOUGH, _empty_tape()
        )
        rows = [
            None if c is None else _columns_to_rows(c, x, y)
            for c, x in zip(columns, sources, strict=True)
        ]

        assert_rows(rows, expected, y, sources)


def _empty_tape():
    return tf.GradientTape(watch_accessed_variables=False)


def _columns_to_rows(columns, x, y):
    """Converts the columns of a Jacobian to its rows."""
    flat = np.reshape(columns, (x._array.size, y._array.size))
    return flat.T.reshape(y._array.size, *x._array.shape)
