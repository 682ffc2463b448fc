"""JAX devices: three CPU devices, in a separate process."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

PROGRAM = textwrap.dedent(
    """
    import json

    import numpy as np

    import retrograde as tf


    def train(device):
        with tf.device(device):
            rng = np.random.default_rng(0)
            w, b = tf.Variable(rng.normal(size=(3, 2))), tf.Variable(np.zeros(2))
            x, y = tf.constant(rng.normal(size=(8, 3))), tf.constant(rng.normal(size=(8, 2)))
            for _ in range(5):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean((tf.tanh(x @ w + b) - y) ** 2)
                for v, g in zip([w, b], tape.gradient(loss, [w, b])):
                    v.assign_sub(0.1 * g)
        return loss, w, tf.zeros([2]) if device == "/CPU:0" else w * 2.0


    def error(f):
        try:
            f()
        except tf.errors.InvalidArgumentError as error:
            return str(error)


    def missing():
        with tf.device("/GPU:0"):
            pass


    on_cpu0, on_cpu2 = train("/CPU:0"), train("/CPU:2")
    with tf.device("/CPU:1"):
        outer = tf.constant([1.0, 2.0])
        text = tf.constant(["a"]) + tf.constant(["b"])
        with tf.device("/CPU:0"):
            inner = tf.constant([1.0, 2.0])
    double = tf.function(lambda x: x * 2.0, jit_compile=True)
    double(outer)
    soft = tf.device("/GPU:7")
    with soft:
        fallback = tf.constant(1.0)
    tf.config.set_soft_device_placement(False)
    print(
        json.dumps(
            {
                "text": text.numpy()[0].decode(),
                "listed": [d.name for d in tf.config.list_physical_devices()],
                "cpu0": [x.device[-5:] for x in on_cpu0],
                "cpu2": [x.device[-5:] for x in on_cpu2],
                "losses": [float(on_cpu0[0]), float(on_cpu2[0])],
                "nested": [outer.device[-5:], inner.device[-5:], (outer + 1.0).device[-5:]],
                "dtypes": [on_cpu2[1].dtype.name, outer.dtype.name],
                "compiled": double(outer).numpy().tolist(),
                "soft": fallback.device[-5:],
                "missing": error(missing),
            }
        )
    )
    """
)


@pytest.fixture(scope="module")
def results():
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=3", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", PROGRAM]
    run = subprocess.run(
        command, env=os.environ | flags, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_all_devices_are_listed(results):
    assert results["listed"] == [f"/physical_device:CPU:{i}" for i in range(3)]


def test_tensors_are_placed_on_the_device_of_the_enclosing_scope(results):
    assert results["cpu0"] == ["CPU:0"] * 3
    assert results["cpu2"] == ["CPU:2", "CPU:2", "CPU:0"]  # the last one is computed outside
    assert results["nested"] == ["CPU:1", "CPU:0", "CPU:0"]


def test_results_are_the_same_on_both_devices(results):
    loss0, loss2 = results["losses"]
    assert loss2 == pytest.approx(loss0, rel=1e-12)
    assert results["dtypes"] == ["float64", "float32"]
    assert results["compiled"] == [2.0, 4.0]


def test_string_ops_fall_back_to_numpy(results):
    assert results["text"] == "ab"


def test_a_missing_device_is_an_error_without_soft_placement(results):
    assert results["soft"] == "CPU:0"
    assert results["missing"] == (
        "Could not satisfy device specification '/device:GPU:0'. Expected one of ['/device:CPU:0', "
        "'/device:CPU:1', '/device:CPU:2']. tf.config.set_soft_device_placement(True) uses the CPU "
        "for missing devices."
    )
