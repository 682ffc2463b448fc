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
    "functions of Python": (
        lambda x: tf.strings.join([tf.strings.lower(tf.as_string(x))]),
        "The function <lambda> cannot be saved: it contains",
    ),
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


def saved_and_loaded(tmp_path, *calls, **functions):
    """A module with `functions`, called by `calls`; and what is loaded after it was saved."""
    module = tf.Module()
    module.w = tf.Variable([1.0, 2.0, 3.0])
    for name, body in functions.items():
        setattr(module, name, tf.function(body))
    for call in calls:
        call(module)
    tf.saved_model.save(module, str(tmp_path / "m"))
    return module, tf.saved_model.load(str(tmp_path / "m"))


V = tf.constant([1.0, 2.0, 3.0])

DRAWS = {
    "normal": lambda x: x + tf.random.normal([3]),
    "truncated_normal": lambda x: x + tf.random.truncated_normal([3], seed=4),
    "dropout": lambda x: tf.nn.dropout(x, 0.5),
    "integers": lambda x: tf.random.uniform([3], 0, 9, tf.int32) + tf.cast(x, tf.int32),
    "gamma": lambda x: tf.random.gamma([2], x),
    "poisson": lambda x: tf.random.poisson([2], x),
    "categorical": lambda x: tf.random.categorical([x], 4),
    "shuffle": tf.random.shuffle,
    "random_crop": lambda x: tf.image.random_crop(x, [2]),
    "stateless": lambda x: tf.random.stateless_normal([2], tf.cast(x[:2], tf.int32)),
    "fold_in": lambda x: tf.random.fold_in(tf.cast(x[:2], tf.int32), 3),
    "stateless integers": lambda x: tf.random.stateless_uniform(
        [3], tf.cast(x[:2], tf.int32), None, None, tf.int32
    ),
    "parameters": lambda x: tf.random.stateless_parameterized_truncated_normal(
        [3], [1, 2], x, x, x - 1.0, x + 1.0
    ),
    "binomial": lambda x: tf.random.stateless_binomial([3], [1, 2], x, 0.5),
}


@pytest.mark.parametrize("name", DRAWS)
def test_random_numbers_are_drawn_anew_by_what_was_loaded(name, tmp_path):
    module, loaded = saved_and_loaded(tmp_path, lambda m: m.f(V), f=DRAWS[name])

    tf.random.set_seed(7)
    expected = [module.f(V).numpy() for _ in range(3)]
    tf.random.set_seed(7)
    for y in expected:
        np.testing.assert_array_equal(loaded.f(V), y)


def test_a_generator_goes_on_where_it_was(tmp_path):
    generator = tf.random.Generator.from_seed(5)
    module, loaded = saved_and_loaded(
        tmp_path, lambda m: m.f(V), f=lambda x: x + generator.normal([3])
    )

    for _ in range(2):
        np.testing.assert_array_equal(loaded.f(V), module.f(V))


def test_functions_that_look_at_values_are_loaded_where_nothing_is_imported_yet(tmp_path):
    _, loaded = saved_and_loaded(
        tmp_path, lambda m: m.f(V), f=lambda x: tf.unique(tf.cast(x[x > 1.0], tf.int32))[0]
    )
    program = f"""
        import retrograde as tf
        print(tf.saved_model.load({str(tmp_path / "m")!r}).f(tf.constant([7.0, 0.0, 8.0])).numpy())
    """
    run = [sys.executable, "-c", textwrap.dedent(program)]

    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "[7 8]\n"
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        loaded.f(tf.constant([7.0, 7.0, 8.0]))  # of another shape than was recorded


def test_files_name_functions_of_this_library_alone(tmp_path):
    saved_and_loaded(tmp_path, lambda m: m.f(V), f=lambda x: tf.searchsorted(x, [1.5]))
    file = tmp_path / "m" / "saved_model.json"
    text = file.read_text()
    name = "retrograde.arrays.picking.searchsorted"
    assert name in text
    for other in (
        "os.system",
        "retrograde.arrays.picking.np.save",
        "retrograde.arrays.none.at_all",
    ):
        file.write_text(text.replace(name, other))
        assert_raises(
            lambda: tf.saved_model.load(str(tmp_path / "m")),
            ValueError,
            f"This saved model uses a function {other!r} that this version of retrograde does not "
            "have. Load it with the version that saved it.",
        )


@tf.custom_gradient
def product(x, w):
    kept = x * w
    return kept, lambda g: (100.0 * g * w, 7.0 * g * x + kept)


def gradients(model, x=V):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(model.f(x))
        first = tape.gradient(y, [x, model.w])
    return [*first, *outer.gradient(first, [x, model.w])]


def test_gradients_of_the_users_own_are_saved(tmp_path):
    module = tf.Module()
    module.w = tf.Variable([1.0, 2.0, 3.0])
    module.f = tf.function(lambda x: product(2.0 * x, module.w) + product(x, tf.ones([3])))
    expected = gradients(module)
    np.testing.assert_allclose(expected[0], 200.0 * np.array([1.0, 2.0, 3.0]) + 100.0)
    tf.saved_model.save(module, str(tmp_path / "m"))

    loaded = tf.saved_model.load(str(tmp_path / "m"))

    for x in (V, V * 3.0):
        np.testing.assert_allclose(loaded.f(x), module.f(x))
        for a, b in zip(gradients(module, x), gradients(loaded, x), strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-6)


def test_a_gradient_that_cannot_be_recorded_is_missing_when_it_is_asked_for(tmp_path):
    def refuse(_):
        raise RuntimeError("never")

    f = tf.custom_gradient(lambda x: (2.0 * x, refuse))
    _, loaded = saved_and_loaded(tmp_path, lambda m: m.f(V), f=lambda x: f(x))

    np.testing.assert_array_equal(loaded.f(V), [2.0, 4.0, 6.0])
    with tf.GradientTape() as tape:
        tape.watch(V)
        with pytest.raises(ValueError, match=r"The gradient function of <lambda> is not in this "):
            tape.gradient(loaded.f(V), V)


def test_variables_among_the_arguments(tmp_path):
    def f(variable, others):
        variable.assign_add(others[0] * 2.0)
        return variable + others[1]

    def record(module):
        variable = tf.Variable([0.0, 0.0])
        module.f(variable, (variable, tf.Variable([0.0, 0.0])))

    _, loaded = saved_and_loaded(tmp_path, record, f=f)
    v, other = tf.Variable([1.0, 2.0]), tf.Variable([10.0, 20.0])

    assert loaded.f(v, (v, other)).numpy().tolist() == [13.0, 26.0]
    assert v.numpy().tolist() == [3.0, 6.0]
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        loaded.f(v, (other, v))  # is recorded for the same variable twice


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
