"""Tests jit_compile="auto", which measures replay and XLA and keeps the faster one."""

import copy
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import retrograde as tf
from retrograde.program import auto_compilation
from retrograde.values.settings import settings

TIMEOUT_SECONDS = 60.0


@pytest.fixture(autouse=True)
def compile_at_once(monkeypatch):
    monkeypatch.setattr(auto_compilation, "SECONDS_BEFORE_COMPILATION", 0.0)
    monkeypatch.setattr(auto_compilation, "SECONDS_PER_COMPILED_CALL", 0.0)
    monkeypatch.setitem(settings, "op_determinism", False)  # other tests enable it for good


def call_until_settled(f, *args):
    """Calls `f` until its trace has chosen an executable, and returns the number of calls."""
    end = time.monotonic() + TIMEOUT_SECONDS
    calls = 0
    while time.monotonic() < end:
        f(*args)
        calls += 1
        if f._history[-1].trace.is_settled:
            return calls
        time.sleep(0.001)
    raise TimeoutError


def prefer(monkeypatch, winner):
    """Replaces the measured times, so that `winner` is faster."""
    times = (1.0, 0.5) if winner == "XLA" else (0.5, 1.0)

    def measured(trace):
        done = len(trace._compiled_times) > auto_compilation.COMPARED_CALLS
        return times if done else None

    monkeypatch.setattr(auto_compilation.AutoTrace, "times", property(measured))


def counter_step():
    v = tf.Variable([1.0, 2.0])

    @tf.function(jit_compile="auto")
    def step(x):
        v.assign_add(x)
        return tf.reduce_sum(v * v)

    return v, step


@pytest.mark.parametrize("winner", ["XLA", "NumPy"])
def test_every_call_updates_variables_once(monkeypatch, winner):
    prefer(monkeypatch, winner)
    v, step = counter_step()
    x = tf.constant([1.0, 0.5])

    calls = call_until_settled(step, x)
    for _ in range(5):
        result = step(x)
    calls += 5

    np.testing.assert_array_equal(v.numpy(), [1.0 + calls, 2.0 + calls / 2])
    np.testing.assert_allclose(result, np.sum(v.numpy() ** 2), rtol=1e-6)
    (recording,) = step.recordings()
    assert recording.compiled == (winner == "XLA")
    assert "measured per call: " in str(recording)


def test_the_faster_executable_is_kept():
    _, step = counter_step()
    call_until_settled(step, tf.constant([1.0, 0.5]))

    (recording,) = step.recordings()
    replayed, compiled = recording.times
    assert recording.compiled == (compiled < replayed)


@pytest.mark.parametrize("winner", ["XLA", "NumPy"])
def test_a_settled_trace_uses_the_fast_path(monkeypatch, winner):
    prefer(monkeypatch, winner)
    v, step = counter_step()
    x = tf.constant([1.0, 0.5])
    call_until_settled(step, x)

    assert len(step._fast_calls) == 1
    before = v.numpy()
    step(x)
    np.testing.assert_array_equal(v.numpy(), before + x.numpy())


def test_short_runs_are_not_compiled(monkeypatch):
    monkeypatch.setattr(auto_compilation, "SECONDS_BEFORE_COMPILATION", TIMEOUT_SECONDS)
    _, step = counter_step()
    for _ in range(20):
        step(tf.constant([1.0, 0.5]))

    assert step._history[-1].trace._compilation is None
    assert not step.recordings()[0].compiled


def test_op_determinism_disables_compilation(monkeypatch):
    monkeypatch.setitem(settings, "op_determinism", True)
    _, step = counter_step()
    step(tf.constant([1.0, 0.5]))

    assert step._history[-1].trace.is_settled
    assert not step.recordings()[0].compiled


def test_functions_of_replicas_are_replayed():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:0"])
    f = tf.function(lambda x: 2.0 * x, jit_compile="auto")
    strategy.run(f, [tf.constant(1.0)])

    assert f._history and all(entry.trace.is_settled for entry in f._history)


def test_programs_that_xla_cannot_compile_are_replayed():
    @tf.function(jit_compile="auto")
    def f(x):
        return 2.0 * tf.strings.to_number(tf.strings.as_string(x + 1))

    call_until_settled(f, tf.constant([1, 2]))

    (recording,) = f.recordings()
    assert not recording.compiled
    assert recording.uncompiled is not None
    assert recording.times is None


def test_a_failure_of_xla_falls_back_to_replay(monkeypatch):
    from retrograde.program.xla import CompiledProgram

    def fail(*_):
        raise MemoryError("no memory")

    v, step = counter_step()
    x = tf.constant([1.0, 0.5])
    monkeypatch.setattr(CompiledProgram, "run", fail)
    calls = call_until_settled(step, x)

    assert not step.recordings()[0].compiled
    np.testing.assert_array_equal(v.numpy(), [1.0 + calls, 2.0 + calls / 2])


def test_a_failed_compilation_is_reported(monkeypatch):
    from retrograde.program.xla import CompiledProgram

    def fail(_):
        raise RuntimeError("internal error")

    monkeypatch.setattr(CompiledProgram, "compile", fail)
    _, step = counter_step()
    call_until_settled(step, tf.constant([1.0, 0.5]))

    assert step.recordings()[0].uncompiled == "the program (RuntimeError)"


@pytest.mark.parametrize("winner", ["XLA", "NumPy"])
def test_random_numbers_continue_the_same_stream(monkeypatch, winner):
    prefer(monkeypatch, winner)
    tf.random.set_seed(0)
    expected = [tf.random.uniform([3]).numpy() for _ in range(200)]
    tf.random.set_seed(0)
    f = tf.function(lambda x: x + tf.random.uniform([3]), jit_compile="auto")
    results = []

    def call(x):
        results.append(f(x).numpy())

    call._history = f._history
    call_until_settled(call, tf.zeros([3]))

    count = min(len(results), len(expected))
    np.testing.assert_allclose(results[:count], expected[:count], rtol=1e-6)


def test_no_update_is_lost_between_threads():
    v, step = counter_step()
    x = tf.constant([1.0, 0.5])
    calls = [0] * 4

    def work(i):
        while not (step._history and step._history[-1].trace.is_settled) and calls[i] < 10_000:
            step(x)
            calls[i] += 1

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()

    np.testing.assert_array_equal(v.numpy(), [1.0 + sum(calls), 2.0 + sum(calls) / 2])


def test_deepcopy_preserves_jit_compile():
    assert copy.deepcopy(tf.function(lambda x: x, jit_compile="auto"))._is_auto
    assert not copy.deepcopy(tf.function(lambda x: x, jit_compile=True))._is_auto


PROGRAM = """
import retrograde as tf
from retrograde.program import auto_compilation
auto_compilation.SECONDS_BEFORE_COMPILATION = auto_compilation.SECONDS_PER_COMPILED_CALL = 0.0
v = tf.Variable(tf.ones([64, 64]))

@tf.function(jit_compile="auto")
def step(x):
    for _ in range(30):
        x = tf.tanh(x @ v) + tf.reduce_sum(x, 0)
    v.assign_add(x)

x = tf.ones([64, 64])
while not (step._history and step._history[-1].trace._compilation):
    step(x)
print("done")
"""


def test_the_interpreter_exits_normally_while_xla_compiles():
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=False
    )
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr
