"""Tests programs: liveness, evaluation and the printed form."""

import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import retrograde as tf
from retrograde.core import program as programs
from retrograde.core.program import (
    Call,
    CustomGradient,
    Guard,
    Program,
    ReadVariable,
    Write,
    depending_on,
    evaluate,
    last_uses,
    needed,
)
from retrograde.core.rules import Spec
from retrograde.ops import arithmetic, elementary, shaping
from retrograde.ops.host_callbacks import HostCallback
from retrograde.program.simplification import rename_inputs


def add(a, b, y):
    return Call(arithmetic.add, (a, b), {}, (y,))


def sin(x, y):
    return Call(elementary.sin, (x,), {}, (y,))


@st.composite
def straight_line(draw):
    """Draws calls over the arguments 0 and 1."""
    count = draw(st.integers(1, 12))
    calls = []
    for y in range(2, 2 + count):
        inputs = draw(st.lists(st.integers(0, y - 1), min_size=1, max_size=2))
        calls.append(sin(*inputs, y) if len(inputs) == 1 else add(*inputs, y))
    return calls


class TestNeeded:
    @given(straight_line(), st.data())
    def test_keeps_exactly_the_calls_whose_values_are_read(self, calls, data):
        targets = data.draw(st.sets(st.integers(0, len(calls) + 1)))
        kept = needed(calls, targets)

        computed = {n for call in kept for n in call.outputs}
        read = {n for call in kept for n in call.inputs} | targets
        assert computed == {n for n in read if n >= 2}
        assert kept == [call for call in calls if call in kept]  # in the original order

    def test_keeps_side_effects_and_their_inputs(self):
        host = Call(HostCallback("print", print, pure=False), (3,), {}, ())
        steps = [
            sin(0, 2),
            sin(0, 3),
            sin(0, 4),
            sin(0, 5),
            host,
            Guard((4,), True, True, "bool", None),
        ]

        assert needed(steps, {0}) == [steps[1], steps[2], *steps[4:]]
        assert needed([sin(0, 2), Write(0, (2,))], ()) == [sin(0, 2), Write(0, (2,))]

    def test_keeps_reads_of_variables_whose_values_are_needed(self):
        read = ReadVariable(0, (2,))
        assert needed([read], {2}) == [read]
        assert needed([read], {1}) == []

    def test_a_custom_gradient_keeps_its_sources(self):
        step = CustomGradient("f", len, (0, 3), (4,))
        assert needed([sin(0, 3), step, sin(3, 5)], {4}) == [sin(0, 3), step]

    def test_drops_calls_whose_values_are_known(self):
        steps = [sin(0, 2), sin(2, 3), Write(0, (3,)), sin(3, 4)]
        assert needed(steps, {4}, known={2}) == [steps[1], steps[3]]
        assert needed(steps, (), known={2}) == []


@given(straight_line())
def test_last_uses(calls):
    last = last_uses(calls)
    for index, call in enumerate(calls):
        for n in (*call.inputs, *call.outputs):
            assert last[n] >= index
    for n, index in last.items():
        assert n in (*calls[index].inputs, *calls[index].outputs)


def test_depending_on():
    steps = [sin(0, 2), sin(1, 3), add(2, 3, 4), sin(3, 5)]
    assert depending_on(steps, {0}) == {0, 2, 4}
    assert depending_on(steps, {1}) == {1, 3, 4, 5}


class TestEvaluate:
    def test_values(self):
        calls = [sin(0, 2), add(2, 1, 3), add(3, 3, 4)]
        values = evaluate(calls, {0: np.float64(0.5), 1: np.float64(2.0)}, (4, 2))
        assert values == {4: 2 * (np.sin(0.5) + 2.0), 2: np.sin(0.5)}

    def test_arrays_are_freed_after_their_last_use(self):
        outputs, alive_counts = [], []

        def add_one(x):
            alive_counts.append(sum(ref() is not None for ref in outputs))
            y = x + 1.0
            outputs.append(weakref.ref(y))
            return y

        step = HostCallback("add_one", add_one, pure=True)
        calls = [Call(step, (n,), {}, (n + 1,)) for n in range(6)]
        assert evaluate(calls, {0: np.zeros(3)}, (6,))[6].tolist() == [6.0] * 3
        assert max(alive_counts) == 1

    def test_multiple_outputs(self):
        call = Call(shaping.unstack, (0,), {"axis": 0}, (1, 2))
        assert evaluate([call], {0: np.array([1.0, 2.0])}, (2,)) == {2: 2.0}


@pytest.mark.parametrize("kind", [Guard, Write, ReadVariable, CustomGradient, Call])
def test_values_of_every_kind_of_step_can_be_renamed(kind):
    step = {
        Guard: Guard((1,), False, b"", "numpy", None),
        Write: Write(0, (1,)),
        ReadVariable: ReadVariable(0, (1,)),
        CustomGradient: CustomGradient("f", len, (1, 1, 2), (3, 4)),
        Call: add(1, 2, 3),
    }[kind]
    actual = rename_inputs(step, {1: 7})
    assert type(actual) is kind and actual.outputs == step.outputs
    assert actual.inputs == tuple([7 if n == 1 else n for n in step.inputs])


def test_the_inputs_of_a_custom_gradient_are_its_sources_and_values():
    step = CustomGradient("f", len, (1, 5, 6), (3, 4))
    assert step.sources == (1,)
    assert step.values == (5, 6)
    assert CustomGradient("f", len, (1,), ()).sources == (1,)


def test_a_program_prints_its_steps():
    v = tf.Variable([1.0, 2.0])

    @tf.function
    def f(x):
        if tf.reduce_sum(x) > 0.0:
            v.assign(v * x)
        return tf.transpose(tf.reshape(v, [1, 2]))

    f(tf.ones([2]))
    assert str(f.program()) == (
        "program(%0: float32[2], %4: float32[2]):\n"
        "    %2 = constant float32[]\n"
        "    %1: float32[] = sum(%0, axis=(0,), keepdims=False)\n"
        "    %3: bool[] = greater(%1, %2)\n"
        "    guard bool(%3) is True\n"
        "    %5: float32[2] = multiply(%4, %0)\n"
        "    %7: float32[1, 2] = reshape(%5, shape=(1, 2))\n"
        "    %8: float32[2, 1] = transpose(%7, perm=(1, 0))\n"
        "    variable 0 = %5\n"
        "    return %8"
    )


def test_a_program_prints_every_kind_of_step():
    spec = Spec((), np.dtype("float32"))
    host = Call(HostCallback("now", float, pure=False), (), {}, (3,))
    step = CustomGradient("clip", len, (0, 1), (2,))
    guard = Guard((2,), False, b"ab", "numpy", None)
    steps = [host, ReadVariable(0, (1,)), step, Write(1, (2,)), guard]
    text = str(Program(steps, [spec] * 4, {}, [0], [2, 3], {}))

    assert text.splitlines()[1:] == [
        "    %3: float32[] = now()",
        "    %1: float32[] = variable 0",
        "    %2: float32[] = %1, with the gradient of clip",
        "    variable 1 = %2",
        "    guard %2 is b'ab'",
        "    return %2, %3",
    ]


def test_all_kinds_of_steps_have_inputs_and_outputs():
    kinds = [k for k in vars(programs).values() if hasattr(k, "has_side_effects")]
    assert {Call, Guard, Write, ReadVariable, CustomGradient} == set(kinds)
    for kind in kinds:
        assert all(hasattr(kind, name) for name in ("inputs", "outputs"))
