"""tf.saved_model: what was recorded, in files, and loaded without the code that made it."""

import json
import os
import pathlib
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import retrograde as tf
from tests.namespaces.helpers import assert_raises


class Network(tf.Module):
    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(0)
        self.layers = [tf.Variable(rng.normal(size=(3, 3)).astype(np.float32)) for _ in range(2)]
        self.steps = tf.Variable(0, trainable=False, name="steps")
        self.scale = tf.constant([1.0, 2.0, 3.0])
        self.inner = {"bias": tf.Variable([0.5, 0.5, 0.5])}

    @tf.function
    def __call__(self, x, training=False):
        for w in self.layers:
            x = tf.tanh(x @ w + self.inner["bias"])
        return {"y": x * self.scale, "parts": [x, None, 7 if training else 8]}

    @tf.function
    def train(self, x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(self(x)["y"] ** 2)
        for w, g in zip(self.layers, tape.gradient(loss, self.layers), strict=True):
            w.assign_sub(0.1 * g)
        self.steps.assign_add(1)
        return loss

    @tf.function
    def sign(self, x):
        return x if tf.reduce_sum(x) > 0.0 else -x


X = tf.constant([[1.0, -1.0, 0.5], [0.2, 0.3, -0.4]])


@pytest.fixture
def folder(tmp_path):
    network = Network()
    network(X)
    network(X, training=True)
    network.train(X)
    network.sign(X)
    network.sign(-X)
    folder = str(tmp_path / "model")
    tf.saved_model.save(network, folder)
    return network, folder


def test_functions_and_variables_come_back(folder):
    network, path = folder
    loaded = tf.saved_model.load(path)

    assert tf.saved_model.contains_saved_model(path)
    for training in (False, True):
        a, b = network(X, training=training), loaded(X, training=training)
        np.testing.assert_array_equal(a["y"], b["y"])
        assert b["parts"][1] is None
        assert int(b["parts"][2]) == int(a["parts"][2])
    assert loaded.steps.numpy() == 1
    assert not loaded.steps.trainable
    np.testing.assert_array_equal(loaded.scale, network.scale)
    np.testing.assert_array_equal(loaded.inner["bias"], network.inner["bias"])


def test_training_goes_on_where_it_was(folder):
    network, path = folder
    loaded = tf.saved_model.load(path)

    for _ in range(3):
        assert loaded.train(X).numpy() == network.train(X).numpy()
    assert loaded.steps.numpy() == 4
    for a, b in zip(network.layers, loaded.layers, strict=True):
        np.testing.assert_array_equal(a, b)


def test_guards_and_tapes_work_on_what_was_loaded(folder):
    network, path = folder
    loaded = tf.saved_model.load(path)
    for x in (X, -X):
        np.testing.assert_array_equal(loaded.sign(x), network.sign(x))

    def gradient(model):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(model(X)["y"])
        return tape.gradient(y, model.layers)

    for a, b in zip(gradient(network), gradient(loaded), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-6)


def test_it_loads_where_the_code_is_not(folder):
    network, path = folder
    program = textwrap.dedent(
        f"""
        import retrograde as tf
        model = tf.saved_model.load({path!r})
        print(model(tf.constant({X.numpy().tolist()}))["y"].numpy().tolist())
        """
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    np.testing.assert_array_equal(np.float32(json.loads(run.stdout)), network(X)["y"])


def test_another_shape_is_refused(folder):
    loaded = tf.saved_model.load(folder[1])

    with pytest.raises(ValueError, match="Could not find matching concrete function") as caught:
        loaded(tf.ones([5, 3]))
    assert "TensorSpec(shape=(2, 3), dtype=tf.float32" in str(caught.value)


def test_signatures(tmp_path):
    module = tf.Module()
    double = tf.function(lambda x: 2.0 * x, input_signature=[tf.TensorSpec([2])])
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=double)

    loaded = tf.saved_model.load(str(tmp_path / "m"))

    assert list(loaded.signatures) == ["serving_default"]
    found = loaded.signatures["serving_default"](tf.constant([1.0, 2.0]))
    assert found.numpy().tolist() == [2.0, 4.0]


def test_all_dtypes(tmp_path):
    module = tf.Module()
    values = {d: tf.cast([1, 0, 3], d) for d in (tf.bfloat16, tf.float64, tf.complex64, tf.bool)}
    module.values = [tf.Variable(v) for v in values.values()]
    module.text = tf.constant(["a", "bc"])
    tf.saved_model.save(module, str(tmp_path / "m"))

    loaded = tf.saved_model.load(str(tmp_path / "m"))

    for variable, value in zip(loaded.values, values.values(), strict=True):
        assert variable.dtype is value.dtype
        assert np.array_equal(variable, value)
    assert loaded.text.numpy().tolist() == [b"a", b"bc"]


REFUSED = {
    "python code": (
        lambda x: tf.numpy_function(lambda v: v, [x], tf.float32),
        "it runs Python code on its way",
    ),
    "random numbers": (lambda x: x + tf.random.normal([2]), "it runs Python code on its way"),
    "sparse results": (lambda x: tf.sparse.from_dense(x), "it returns sparse or ragged tensors"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_saved_is_refused_and_nothing_written(name, tmp_path):
    body, message = REFUSED[name]
    module = tf.Module()
    module.f = tf.function(body)
    module.f(tf.constant([1.0, 2.0]))

    with pytest.raises(ValueError, match=message):
        tf.saved_model.save(module, str(tmp_path / "m"))
    assert not os.path.exists(tmp_path / "m")


def test_a_path_without_a_model(tmp_path):
    assert not tf.saved_model.contains_saved_model(str(tmp_path))
    assert_raises(
        lambda: tf.saved_model.load(str(tmp_path)),
        OSError,
        f"SavedModel file does not exist at: {tmp_path}/saved_model.json. Expected a directory "
        "that save made.",
    )


def test_damaged_files_are_refused(folder):
    _, path = folder
    file = pathlib.Path(path, "saved_model.json")
    text = file.read_text()
    for damaged in (text[:-100], "[]", text.replace('"objects"', '"object"')):
        file.write_text(damaged)
        with pytest.raises((tf.errors.DataLossError, ValueError)):
            tf.saved_model.load(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"inputs": [', '"inputs": ["0); print(1", '),
        ('"guard": ', '"guard": "0) or print(1", "x": '),
        ('"transpose_a"', '"transpose_a=print(1), transpose_a"'),
    ],
    ids=["inputs", "guards", "attributes"],
)
def test_no_code_comes_in_by_names(folder, old, new, capsys):
    _, path = folder
    file = pathlib.Path(path, "saved_model.json")
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))

    with pytest.raises(tf.errors.DataLossError, match="it is damaged"):
        tf.saved_model.load(path)
    assert capsys.readouterr().out == ""
