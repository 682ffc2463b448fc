"""Devices of JAX: three of the CPU's, in a process of their own."""

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


    def trained(device):
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


    here, there = trained("/CPU:0"), trained("/CPU:2")
    with tf.device("/CPU:1"):
        one = tf.constant([1.0, 2.0])
        text = tf.constant(["a"]) + tf.constant(["b"])
        with tf.device("/CPU:0"):
            none = tf.constant([1.0, 2.0])
    double = tf.function(lambda x: x * 2.0, jit_compile=True)
    double(one)
    soft = tf.device("/GPU:7")
    with soft:
        fallback = tf.constant(1.0)
    tf.config.set_soft_device_placement(False)
    print(
        json.dumps(
            {
                "text": text.numpy()[0].decode(),
                "listed": [d.name for d in tf.config.list_physical_devices()],
                "here": [x.device[-5:] for x in here],
                "there": [x.device[-5:] for x in there],
                "losses": [float(here[0]), float(there[0])],
                "nested": [one.device[-5:], none.device[-5:], (one + 1.0).device[-5:]],
                "dtypes": [there[1].dtype.name, one.dtype.name],
                "compiled": double(one).numpy().tolist(),
                "soft": fallback.device[-5:],
                "missing": error(missing),
            }
        )
    )
    """
)


@pytest.fixture(scope="module")
def found():
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=3", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", PROGRAM]
    run = subprocess.run(
        command, env=os.environ | flags, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_all_are_listed(found):
    assert found["listed"] == [f"/physical_device:CPU:{i}" for i in range(3)]


def test_what_is_made_and_computed_in_a_block_lives_there(found):
    assert found["here"] == ["CPU:0"] * 3
    assert found["there"] == ["CPU:2"] * 3
    assert found["nested"] == ["CPU:1", "CPU:0", "CPU:1"]


def test_it_is_the_same_there(found):
    here, there = found["losses"]
    assert there == pytest.approx(here, rel=1e-12)
    assert found["dtypes"] == ["float64", "float32"]
    assert found["compiled"] == [2.0, 4.0]


def test_strings_stay_with_numpy(found):
    assert found["text"] == "ab"


def test_a_missing_device_is_an_error_if_it_must_be_there(found):
    assert found["soft"] == "CPU:0"
    assert found["missing"] == (
        "Could not satisfy device specification '/device:GPU:0'. Expected one of ['/device:CPU:0', "
        "'/device:CPU:1', '/device:CPU:2']. tf.config.set_soft_device_placement(True) uses the CPU "
        "for missing devices."
    )
