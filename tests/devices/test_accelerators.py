"""An accelerator as the default device: JAX's second CPU device takes its place, in a process."""

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
    from retrograde.devices.device_tensors import DeviceArray

    results, transfers = {}, []


    def count(name):
        original = getattr(DeviceArray, name)

        def counted(self, *args):
            transfers.append(name)
            return original(self, *args)

        setattr(DeviceArray, name, counted)


    for name in ("materialize", "numpy", "view"):
        count(name)


    def kind(x):
        return x.device.rpartition("device:")[2]


    def train(wrap, steps=6):
        rng = np.random.default_rng(0)
        w = tf.Variable(rng.normal(size=(3, 2)).astype(np.float32))
        b = tf.Variable(np.zeros(2, np.float32))
        x = tf.constant(rng.normal(size=(8, 3)).astype(np.float32))
        y = tf.constant(rng.normal(size=(8, 2)).astype(np.float32))

        @wrap
        def step(x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((tf.tanh(x @ w + b) - y) ** 2)
            for v, g in zip([w, b], tape.gradient(loss, [w, b])):
                v.assign_sub(0.1 * g)
            return loss

        transfers.clear()
        for _ in range(steps):
            loss = step(x, y)
        return loss, w, len(transfers)


    def error(f, *args):
        try:
            f(*args)
        except Exception as error:
            return f"{type(error).__name__}: {error}"


    GPU = tf.config.list_physical_devices("GPU")
    results["listed"] = [device.name for device in tf.config.list_physical_devices()]
    results["logical"] = [device.name for device in tf.config.list_logical_devices("GPU")]
    results["growth"] = [tf.config.experimental.get_memory_growth(GPU[0])]
    tf.config.experimental.set_memory_growth(GPU[0], True)
    results["growth"].append(tf.config.experimental.get_memory_growth(GPU[0]))

    wrappers = {
        "eager": lambda f: f,
        "function": tf.function,
        "compiled": lambda f: tf.function(f, jit_compile=True),
    }
    for name, wrap in wrappers.items():
        loss, w, copied = train(wrap)
        results[name] = [kind(loss), kind(w), copied, float(loss)]
        with tf.device("CPU:0"):
            loss, w, _ = train(wrap)
        results[f"{name} on the host"] = [kind(loss), kind(w), float(loss)]

    on_device = tf.constant([1.0, 2.0])
    with tf.device("CPU:0"):
        pinned, on_host = tf.Variable(1.0), tf.constant(1.0)
        moved = tf.Variable(on_device)
    results["moved"] = [kind(on_device), kind(moved), moved.numpy().tolist()]
    results["placed"] = {
        "constant": kind(tf.constant(1.0)),
        "int32": kind(tf.constant(1)),
        "int64": kind(tf.constant(1, tf.int64)),
        "text": kind(tf.constant("a")),
        "zeros": kind(tf.zeros([2])),
        "cast": kind(tf.cast(tf.constant(1), tf.float32)),
        "pinned": kind(pinned),
        "from pinned": kind(pinned * 2.0),
        "on host": kind(on_host),
        "from host": kind(on_host + 1.0),
        "strings": kind(tf.strings.join(["a", "b"])),
    }
    pinned.assign_add(tf.constant(1.0))
    placed = tf.Variable([1.0, 2.0])
    placed.assign(np.float32([3.0, 4.0]))
    placed[0].assign(5.0)
    placed.scatter_nd_add([[1]], [1.0])
    results["assigned"] = [kind(pinned), float(pinned), kind(placed), placed.numpy().tolist()]
    placed.assign(tf.constant([1.0, 2.0]))
    transfers.clear()
    doubled = placed * 2.0
    shape = (doubled.shape, doubled.dtype, tf.shape(doubled), len(doubled))
    results["reads"] = [len(transfers)]
    doubled.numpy()
    results["reads"].append(len(transfers))

    tf.random.set_seed(3)
    first = tf.random.normal([4]), tf.random.uniform([4]), tf.random.truncated_normal([4])
    tf.random.set_seed(3)
    second = tf.random.normal([4]), tf.random.uniform([4]), tf.random.truncated_normal([4])
    draw = tf.function(lambda: tf.random.normal([4]))
    transfers.clear()
    drawn = [draw() for _ in range(3)]
    results["random"] = {
        "devices": [kind(x) for x in (*first, *drawn)],
        "equal": all(np.array_equal(a, b) for a, b in zip(first, second)),
        "distinct": len({x.numpy().tobytes() for x in drawn}),
    }

    data = tf.data.Dataset.from_tensor_slices(np.float32([1, 2, 3])).map(lambda x: x * 2.0)
    results["data"] = [kind(x) for x in data.prefetch(1)]

    results["errors"] = [
        error(tf.config.experimental.get_memory_info, "GPU:0"),
        error(tf.config.experimental.get_memory_info, "GPU:3"),
        error(tf.config.experimental.set_memory_growth, GPU[0], False),
    ]
    tf.config.set_visible_devices([], "GPU")
    hidden = tf.function(lambda x: x * 2.0, jit_compile=True)(tf.constant(1.0))
    results["hidden"] = [kind(tf.constant(1.0) + 1.0), kind(tf.Variable(1.0)), kind(hidden)]
    results["hidden"].append(tf.config.list_logical_devices("GPU"))
    results["hidden"].append(tf.config.get_visible_devices("GPU"))
    tf.config.set_visible_devices(GPU, "GPU")
    results["visible again"] = kind(tf.constant(1.0) + 1.0)
    print(json.dumps(results))
    """
)


@pytest.fixture(scope="module")
def results():
    settings = {"RETROGRADE_DEVICE": "CPU:1", "JAX_PLATFORMS": "cpu"}
    environment = {k: v for k, v in os.environ.items() if not k.startswith("XLA_")}
    command = [sys.executable, "-c", PROGRAM]
    run = subprocess.run(
        command, env=environment | settings, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_the_accelerator_is_listed(results):
    assert results["listed"] == ["/physical_device:CPU:0", "/physical_device:GPU:0"]
    assert results["logical"] == ["/device:GPU:0"]


@pytest.mark.parametrize("how", ["eager", "function", "compiled"])
def test_a_training_step_runs_on_the_accelerator_without_transfers(results, how):
    loss_device, variable_device, transfers, loss = results[how]
    host_loss_device, host_variable_device, host_loss = results[f"{how} on the host"]

    assert (loss_device, variable_device, transfers) == ("GPU:0", "GPU:0", 0)
    assert (host_loss_device, host_variable_device) == ("CPU:0", "CPU:0")
    assert loss == pytest.approx(host_loss, rel=1e-5)


def test_values_are_placed_as_in_tensorflow(results):
    assert results["placed"] == {
        "constant": "GPU:0",
        "int32": "CPU:0",
        "int64": "GPU:0",
        "text": "CPU:0",
        "zeros": "GPU:0",
        "cast": "GPU:0",
        "pinned": "CPU:0",
        "from pinned": "GPU:0",
        "on host": "CPU:0",
        "from host": "GPU:0",
        "strings": "CPU:0",
    }


def test_assignments_keep_the_device_of_a_variable(results):
    assert results["assigned"] == ["CPU:0", 2.0, "GPU:0", [5.0, 5.0]]


def test_a_variable_on_the_host_copies_a_value_from_the_accelerator(results):
    assert results["moved"] == ["GPU:0", "CPU:0", [1.0, 2.0]]


def test_only_numpy_copies_values_to_the_host(results):
    assert results["reads"] == [0, 1]


def test_random_numbers_are_drawn_on_the_accelerator(results):
    assert results["random"] == {"devices": ["GPU:0"] * 6, "equal": True, "distinct": 3}


def test_datasets_run_on_the_host(results):
    assert results["data"] == ["CPU:0"] * 3


def test_memory_growth_is_set_before_values_are_on_the_accelerator(results):
    assert results["growth"] == [False, True]
    assert results["errors"] == [
        "ValueError: Allocator stats not available for device 'GPU:0'",
        "ValueError: No matching devices found for 'GPU:3'",
        "RuntimeError: Physical devices cannot be modified after being initialized",
    ]


def test_a_hidden_accelerator_is_not_used(results):
    assert results["hidden"] == ["CPU:0", "CPU:0", "CPU:0", [], []]
    assert results["visible again"] == "GPU:0"
