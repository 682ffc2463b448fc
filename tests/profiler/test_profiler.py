"""tf.profiler.experimental. JAX reads the files that it writes."""

import threading

import numpy as np
import pytest

import retrograde as tf
from tests.namespaces.helpers import assert_raises

P = tf.profiler.experimental


@pytest.fixture
def read(tmp_path):
    """Returns a function that reads the events of the only profile, by line."""
    jax = pytest.importorskip("jax")

    def events():
        (path,) = tmp_path.glob("plugins/profile/*/*.xplane.pb")
        (plane,) = jax.profiler.ProfileData.from_file(str(path)).planes
        assert plane.name == "/host:CPU"
        return {line.name: list(line.events) for line in plane.lines}

    return events


def test_operations_functions_and_gradients_are_events(tmp_path, read):
    double = tf.function(lambda x: x * 2.0)
    x = tf.Variable(np.ones([50, 50], np.float32))
    double(x)
    with P.Profile(tmp_path):
        with tf.GradientTape() as tape:
            y = tf.linalg.matmul(x, x)
        tape.gradient(y, x)
        double(x)
    (events,) = read().values()
    names = [event.name for event in events]
    assert "matmul" in names
    assert "GradientTape.gradient" in names
    assert double._name in names
    for event in events:
        assert event.duration_ns >= 0
    product = events[names.index("matmul")]
    gradient = events[names.index("GradientTape.gradient")]
    assert product.start_ns < gradient.start_ns


def test_blocks_have_metadata(tmp_path, read):
    P.start(tmp_path, P.ProfilerOptions(host_tracer_level=1))
    for step in range(2):
        with P.Trace("train", step_num=step, _r=1) as trace:
            tf.sin(1.0)
            trace.set_metadata(loss=0.5, name="a")
    P.stop()
    (events,) = read().values()
    assert [event.name for event in events] == ["train", "train"]
    expected = {"step_num": 1, "_r": 1, "loss": 0.5, "name": "a"}
    assert dict(events[1].stats) == expected
    assert events[0].end_ns <= events[1].start_ns


def test_python_functions_and_other_threads(tmp_path, read):
    def work():
        tf.sin(1.0)

    with P.Profile(tmp_path, P.ProfilerOptions(python_tracer_level=1)):
        thread = threading.Thread(target=work, name="worker")
        thread.start()
        thread.join()
    names = [event.name for event in read()["worker"]]
    assert any(name.endswith("work") for name in names)
    assert "sin" in names


def test_nothing_is_recorded_or_written_without_a_profile(tmp_path):
    with P.Trace("alone"):
        tf.sin(1.0)
    P.start(tmp_path)
    P.stop(save=False)
    assert list(tmp_path.iterdir()) == []


def test_only_one_profile_at_a_time(tmp_path):
    message = "Cannot export profiling results. No profiler is running."
    assert_raises(P.stop, tf.errors.UnavailableError, message)
    P.start(tmp_path)
    message = "Another profiler is running."
    assert_raises(lambda: P.start(tmp_path), tf.errors.AlreadyExistsError, message)
    P.stop(save=False)


def test_default_options():
    assert P.ProfilerOptions() == (2, 0, 1, None)
