"""tf.saved_model: saving traces and loading them without the Python code."""

import json
import os
import pathlib
import subprocess
import sys
import textwrap
from typing import NamedTuple

import numpy as np
import pytest

import retrograde as tf
from retrograde.files.checked_json import dump_with_checksum
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
def saved_network(tmp_path):
    network = Network()
    network(X)
    network(X, training=True)
    network.train(X)
    network.sign(X)
    network.sign(-X)
    directory = str(tmp_path / "model")
    tf.saved_model.save(network, directory)
    return network, directory


def test_functions_and_variables_are_restored(saved_network):
    network, path = saved_network
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


def test_training_continues_after_loading(saved_network):
    network, path = saved_network
    loaded = tf.saved_model.load(path)

    for _ in range(3):
        assert loaded.train(X).numpy() == network.train(X).numpy()
    assert loaded.steps.numpy() == 4
    for a, b in zip(network.layers, loaded.layers, strict=True):
        np.testing.assert_array_equal(a, b)


def test_guards_and_tapes_work_on_loaded_functions(saved_network):
    network, path = saved_network
    loaded = tf.saved_model.load(path)
    for x in (X, -X):
        np.testing.assert_array_equal(loaded.sign(x), network.sign(x))

    def gradient(model):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(model(X)["y"])
        return tape.gradient(y, model.layers)

    for a, b in zip(gradient(network), gradient(loaded), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-6)


def test_loading_does_not_need_the_code(saved_network):
    network, path = saved_network
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


def test_functions_called_with_arrays_can_be_saved(tmp_path):
    module = tf.Module()
    module.f = tf.function(lambda x, *, y: x + y)
    module.f(np.ones(2, np.float32), y=np.ones(2, np.float32))
    tf.saved_model.save(module, str(tmp_path))

    loaded = tf.saved_model.load(str(tmp_path))

    assert loaded.f(tf.ones([2]), y=tf.ones([2])).numpy().tolist() == [2.0, 2.0]


def test_call_with_another_shape_raises(saved_network):
    loaded = tf.saved_model.load(saved_network[1])

    with pytest.raises(ValueError, match="Could not find matching concrete function") as caught:
        loaded(tf.ones([5, 3]))
    assert "TensorSpec(shape=(2, 3), dtype=tf.float32" in str(caught.value)


def test_signatures(tmp_path):
    module = tf.Module()
    double = tf.function(lambda x: 2.0 * x, input_signature=[tf.TensorSpec([2])])
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=double)

    loaded = tf.saved_model.load(str(tmp_path / "m"))

    assert list(loaded.signatures) == ["serving_default"]
    signature = loaded.signatures["serving_default"]
    assert signature(tf.constant([1.0, 2.0]))["output_0"].numpy().tolist() == [2.0, 4.0]
    assert signature(x=tf.constant([1.0, 2.0]))["output_0"].numpy().tolist() == [2.0, 4.0]
    assert signature.structured_outputs == {"output_0": tf.TensorSpec([2])}


def test_signatures_with_several_outputs_and_named_outputs(tmp_path):
    class Several(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None])])
        def pair(self, x):
            return x, x + 1.0

        @tf.function
        def named(self, x, sign=1.0):
            return {"signed": sign * x}

    model = Several()
    signatures = {
        "pair": model.pair,
        "named": model.named.get_concrete_function(tf.TensorSpec([None, 2]), sign=-1.0),
    }
    tf.saved_model.save(model, str(tmp_path / "m"), signatures=signatures)

    loaded = tf.saved_model.load(str(tmp_path / "m"))

    pair = loaded.signatures["pair"](x=tf.constant([1.0, 2.0]))
    assert {k: v.numpy().tolist() for k, v in pair.items()} == {
        "output_0": [1.0, 2.0],
        "output_1": [2.0, 3.0],
    }
    signed = loaded.signatures["named"](x=tf.ones([3, 2]))
    assert {k: v.numpy().tolist() for k, v in signed.items()} == {"signed": [[-1.0, -1.0]] * 3}
    assert loaded.signatures["named"].output_shapes == {"signed": tf.TensorShape([None, 2])}
    assert loaded.named(tf.ones([5, 2]), sign=-1.0)["signed"].shape == (5, 2)


def test_only_function_with_a_signature_is_the_default(tmp_path):
    class One(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None])])
        def __call__(self, x):
            return -x

    class Two(One):
        @tf.function(input_signature=[tf.TensorSpec([None])])
        def other(self, x):
            return x

    for kind, names in ((One, ["serving_default"]), (Two, [])):
        tf.saved_model.save(kind(), str(tmp_path / kind.__name__))
        loaded = tf.saved_model.load(str(tmp_path / kind.__name__))
        assert list(loaded.signatures) == names
        assert loaded(tf.ones([2])).numpy().tolist() == [-1.0, -1.0]


# Unknown dimensions


def with_signature_and_loaded(tmp_path, f, *specs, **attributes):
    """Returns a function with a signature, and the same after saving and loading."""
    module = tf.Module()
    for name, value in attributes.items():
        setattr(module, name, value)
    module.f = tf.function(f, input_signature=specs)
    tf.saved_model.save(module, str(tmp_path / "unknown"))
    return module.f, tf.saved_model.load(str(tmp_path / "unknown")).f


W = tf.Variable(np.linspace(-1.0, 1.0, 12).reshape(6, 2).astype(np.float32))

UNKNOWN_DIMENSIONS = {
    "rows": (lambda x: x @ W, [[None, 6]], [[(1, 6)], [(5, 6)]]),
    "mean": (lambda x: x - tf.reduce_mean(x, axis=0), [[None, 3]], [[(1, 3)], [(8, 3)]]),
    "division by the size": (
        lambda x: tf.reduce_sum(x) / tf.cast(tf.size(x), tf.float32),
        [[None, 3]],
        [[(4, 3)]],
    ),
    "shape": (lambda x: tf.shape(x), [[None, None]], [[(4, 3)], [(1, 9)]]),
    "reshape to the original shape": (
        lambda x: tf.reshape(tf.reshape(x, [-1]) * 2.0, tf.shape(x)),
        [[None, None]],
        [[(4, 3)], [(2, 2)]],
    ),
    "zeros": (lambda x: tf.concat([x, tf.zeros_like(x)], 0), [[None, 2]], [[(3, 2)]]),
    "range of a size": (
        lambda x: x * tf.cast(tf.range(tf.shape(x)[0]), tf.float32),
        [[None]],
        [[(4,)]],
    ),
    "empty": (
        lambda x: tf.concat([x, tf.zeros([tf.shape(x)[0], 0])], 1),
        [[None, 2]],
        [[(4, 2)]],
    ),
    "non-finite constants": (
        lambda x: tf.maximum(x, tf.constant([-np.inf, np.inf])),
        [[None, 2]],
        [[(4, 2)]],
    ),
    "sum of sizes": (lambda x, y: tf.concat([x, y, y], 0), [[None], [None]], [[(2,), (3,)]]),
    "equal dimensions": (lambda x, y: x + y, [[None], [None]], [[(4,), (4,)]]),
    "product of sizes": (
        lambda x: tf.reshape(x, [-1, 6]) @ W,
        [[None, None]],
        [[(4, 3)], [(2, 9)]],
    ),
    "strided pooling": (
        lambda x: tf.nn.max_pool2d(x, 2, 2, "SAME"),
        [[None, 5, 4, 1]],
        [[(3, 5, 4, 1)]],
    ),
    "dimension fixed by matmul": (lambda x: x @ W, [[None, None]], [[(3, 6)]]),
    "Python loop": (
        lambda x: x + sum(x[:, i : i + 1] for i in range(3)),
        [[None, 3]],
        [[(4, 3)]],
    ),
    "images": (
        lambda x: tf.nn.max_pool2d(
            tf.nn.conv2d(x, tf.ones([3, 3, 1, 2]), 1, "VALID"), 2, 1, "SAME"
        ),
        [[None, None, None, 1]],
        [[(2, 4, 6, 1)]],
    ),
}


@pytest.mark.parametrize("name", UNKNOWN_DIMENSIONS)
def test_unknown_dimensions(tmp_path, name):
    f, shapes, calls = UNKNOWN_DIMENSIONS[name]
    original, loaded = with_signature_and_loaded(tmp_path, f, *map(tf.TensorSpec, shapes), w=W)
    rng = np.random.default_rng(1)

    for call in calls:
        args = [tf.constant(rng.normal(size=shape).astype(np.float32)) for shape in call]
        a, e = loaded(*args), original(*args)
        assert (a.dtype, a.shape) == (e.dtype, e.shape)
        np.testing.assert_array_equal(a, e)


def test_loaded_functions_with_unknown_dimensions_accept_lists_and_have_gradients(tmp_path):
    original, loaded = with_signature_and_loaded(
        tmp_path, lambda x: tf.tanh(x @ W), tf.TensorSpec([None, 6]), w=W
    )
    x = tf.constant(np.random.default_rng(2).normal(size=(4, 6)).astype(np.float32))
    results = []
    for f in (original, loaded):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        results.append(tape.gradient(y, x))

    np.testing.assert_allclose(*results, rtol=1e-6)
    np.testing.assert_array_equal(loaded([[1.0] * 6]), original([[1.0] * 6]))


def test_strings_of_unknown_dimensions(tmp_path):
    original, loaded = with_signature_and_loaded(
        tmp_path, lambda x: x + tf.constant("!"), tf.TensorSpec([None], tf.string)
    )

    args = tf.constant(["a", "b", "c"])
    assert loaded(args).numpy().tolist() == original(args).numpy().tolist() == [b"a!", b"b!", b"c!"]


def test_incompatible_argument_with_unknown_dimensions_raises(tmp_path):
    _, loaded = with_signature_and_loaded(
        tmp_path, lambda x: x @ W, tf.TensorSpec([None, None]), w=W
    )

    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        loaded(tf.ones([3, 5]))
    with pytest.raises(TypeError, match="is not compatible with the input_signature"):
        loaded(tf.ones([3, 6], tf.float64))


def test_size_dependent_function_with_unknown_dimensions_raises(tmp_path):
    def f(x):
        return tf.add_n([row * float(i) for i, row in enumerate(tf.unstack(x))])

    assert_raises(
        lambda: with_signature_and_loaded(tmp_path, f, tf.TensorSpec([None, 2])),
        ValueError,
        "The function f cannot be saved: its operations depend on the unknown sizes of its "
        "input_signature. Call it, or get_concrete_function, with the shapes to save, or pass an "
        "input_signature with known sizes.",
    )


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x[: tf.shape(x)[0] // 2],
        lambda x: tf.reduce_sum(x) * tf.cast(tf.shape(x)[0] % 2, tf.float32),
        lambda x: tf.reduce_sum(x) / float(len(x)) ** 2,
        lambda x: x * np.hanning(len(x)).astype(np.float32),
        lambda x: x if len(x) < 20 else -x,
    ],
    ids=["half", "parity", "square", "window", "branch"],
)
def test_size_dependence_that_is_not_a_formula_raises(tmp_path, f):
    with pytest.raises(
        ValueError, match="its operations depend on the unknown sizes of its input_signature"
    ):
        with_signature_and_loaded(tmp_path, f, tf.TensorSpec([None]))


def test_size_dependent_function_is_saved_for_the_sizes_of_its_calls(tmp_path):
    class Unrolled(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, 2])])
        def f(self, x):
            return tf.add_n([row * float(i) for i, row in enumerate(tf.unstack(x))])

    module = Unrolled()
    expected = module.f(tf.ones([3, 2]))
    tf.saved_model.save(module, str(tmp_path / "m"))
    loaded = tf.saved_model.load(str(tmp_path / "m"))

    np.testing.assert_array_equal(loaded.f(tf.ones([3, 2])), expected)
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        loaded.f(tf.ones([4, 2]))


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


UNSUPPORTED = {
    "Python code": (
        lambda x: tf.numpy_function(lambda v: v, [x], tf.float32),
        "it calls Python code",
    ),
    "host functions": (
        lambda x: tf.strings.join([tf.strings.lower(tf.as_string(x))]),
        "The function <lambda> cannot be saved: it contains",
    ),
    "sparse results": (lambda x: tf.sparse.from_dense(x), "it returns sparse or ragged tensors"),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unsupported_functions_raise_without_writing_files(name, tmp_path):
    body, message = UNSUPPORTED[name]
    module = tf.Module()
    module.f = tf.function(body)
    module.f(tf.constant([1.0, 2.0]))

    with pytest.raises(ValueError, match=message):
        tf.saved_model.save(module, str(tmp_path / "m"))
    assert not os.path.exists(tmp_path / "m")


def save_and_load(tmp_path, *calls, **functions):
    """Creates a module with `functions`, runs `calls`, and returns it and the loaded module."""
    module = tf.Module()
    module.w = tf.Variable([1.0, 2.0, 3.0])
    for name, body in functions.items():
        setattr(module, name, tf.function(body))
    for call in calls:
        call(module)
    tf.saved_model.save(module, str(tmp_path / "m"))
    return module, tf.saved_model.load(str(tmp_path / "m"))


V = tf.constant([1.0, 2.0, 3.0])

SAMPLERS = {
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


@pytest.mark.parametrize("name", SAMPLERS)
def test_loaded_functions_draw_new_random_numbers(name, tmp_path):
    module, loaded = save_and_load(tmp_path, lambda m: m.f(V), f=SAMPLERS[name])

    tf.random.set_seed(7)
    expected = [module.f(V).numpy() for _ in range(3)]
    tf.random.set_seed(7)
    for y in expected:
        np.testing.assert_array_equal(loaded.f(V), y)


def test_generator_state_is_restored(tmp_path):
    generator = tf.random.Generator.from_seed(5)
    module, loaded = save_and_load(
        tmp_path, lambda m: m.f(V), f=lambda x: x + generator.normal([3])
    )

    for _ in range(2):
        np.testing.assert_array_equal(loaded.f(V), module.f(V))


def test_functions_with_guards_load_in_a_new_process(tmp_path):
    _, loaded = save_and_load(
        tmp_path, lambda m: m.f(V), f=lambda x: tf.unique(tf.cast(x[x > 1.0], tf.int32))[0]
    )
    program = f"""
        import retrograde as tf
        print(tf.saved_model.load({str(tmp_path / "m")!r}).f(tf.constant([7.0, 0.0, 8.0])).numpy())
    """
    run = [sys.executable, "-c", textwrap.dedent(program)]

    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "[7 8]\n"
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        loaded.f(tf.constant([7.0, 7.0, 8.0]))  # another shape than the trace


def test_files_refer_only_to_functions_of_retrograde(tmp_path):
    save_and_load(tmp_path, lambda m: m.f(V), f=lambda x: tf.searchsorted(x, [1.5]))
    file = tmp_path / "m" / "saved_model.json"
    text = file.read_text()
    name = "retrograde.toplevel.indexing.searchsorted"
    assert name in text
    for other in (
        "os.system",
        "retrograde.toplevel.indexing.np.save",
        "retrograde.toplevel.none.at_all",
    ):
        file.write_bytes(dump_with_checksum(json.loads(text.replace(name, other))))
        assert_raises(
            lambda: tf.saved_model.load(str(tmp_path / "m")),
            tf.errors.DataLossError,
            f"This saved model uses a function {other!r} that this version of retrograde does not "
            "have. Load it with the version that saved it.",
        )


@tf.custom_gradient
def product(x, w):
    y = x * w
    return y, lambda g: (100.0 * g * w, 7.0 * g * x + y)


def gradients(model, x=V):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(model.f(x))
        first = tape.gradient(y, [x, model.w])
    return [*first, *outer.gradient(first, [x, model.w])]


def test_custom_gradients_are_saved(tmp_path):
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


def test_gradient_that_cannot_be_traced_raises_when_used(tmp_path):
    def fail(_):
        raise RuntimeError("never")

    f = tf.custom_gradient(lambda x: (2.0 * x, fail))
    _, loaded = save_and_load(tmp_path, lambda m: m.f(V), f=lambda x: f(x))

    np.testing.assert_array_equal(loaded.f(V), [2.0, 4.0, 6.0])
    with tf.GradientTape() as tape:
        tape.watch(V)
        with pytest.raises(ValueError, match=r"The gradient function of <lambda> is missing in "):
            tape.gradient(loaded.f(V), V)


def test_variables_among_the_arguments(tmp_path):
    def f(variable, others):
        variable.assign_add(others[0] * 2.0)
        return variable + others[1]

    def record(module):
        variable = tf.Variable([0.0, 0.0])
        module.f(variable, (variable, tf.Variable([0.0, 0.0])))

    _, loaded = save_and_load(tmp_path, record, f=f)
    v, other = tf.Variable([1.0, 2.0]), tf.Variable([10.0, 20.0])

    assert loaded.f(v, (v, other)).numpy().tolist() == [13.0, 26.0]
    assert v.numpy().tolist() == [3.0, 6.0]
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        loaded.f(v, (other, v))  # the trace is for the same variable twice


def test_load_from_a_path_without_a_model(tmp_path):
    assert not tf.saved_model.contains_saved_model(str(tmp_path))
    assert_raises(
        lambda: tf.saved_model.load(str(tmp_path)),
        OSError,
        f"SavedModel file does not exist at: {tmp_path}/saved_model.json. Expected a directory "
        "that tf.saved_model.save wrote.",
    )


def test_corrupt_files_raise(saved_network):
    _, path = saved_network
    file = pathlib.Path(path, "saved_model.json")
    text = file.read_text()
    for corrupt in (text[:-100], "[]", text.replace('"objects"', '"object"')):
        file.write_text(corrupt)
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
def test_names_in_files_are_not_executed(saved_network, old, new, capsys):
    _, path = saved_network
    file = pathlib.Path(path, "saved_model.json")
    text = file.read_text()
    assert old in text
    file.write_bytes(dump_with_checksum(json.loads(text.replace(old, new))))

    with pytest.raises(tf.errors.DataLossError, match="it is corrupt"):
        tf.saved_model.load(path)
    assert capsys.readouterr().out == ""


# Custom gradients


@tf.custom_gradient
def clip_gradient(x):
    return x, lambda g: tf.clip_by_norm(g, 0.5)


@tf.custom_gradient
def scaled(x, y):
    z = x * y

    def rule(g):
        return g * z, None

    return z, rule


@pytest.mark.parametrize("sizes", [[], [3], [None]], ids=str)
def test_gradient_function_of_custom_gradient_is_saved(tmp_path, sizes):
    shape = [n or 4 for n in sizes]
    x = tf.constant(np.linspace(1.0, 2.0, int(np.prod(shape))).reshape(shape).astype(np.float32))
    spec = tf.TensorSpec(sizes)
    original, loaded = with_signature_and_loaded(
        tmp_path, lambda x: tf.sin(clip_gradient(x * x)) + scaled(x, tf.ones_like(x)), spec
    )
    results = []
    for f in (original, loaded):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = f(x) * 3.0
            g = tape.gradient(y, x)
        results.append([y, g, outer.gradient(g, x)])

    for a, e in zip(*results, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-6)


def test_without_the_gradient_function_the_operations_are_differentiated(tmp_path):
    module = tf.Module()
    module.f = tf.function(clip_gradient, input_signature=[tf.TensorSpec([])])
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    tf.saved_model.save(module, str(tmp_path / "m"), options=options)
    loaded = tf.saved_model.load(str(tmp_path / "m"), options=tf.saved_model.LoadOptions())

    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = loaded.f(x) * 3.0
    assert tape.gradient(y, x).numpy() == 3.0


class Pair(NamedTuple):
    a: tf.Tensor
    b: tf.Tensor


@pytest.mark.parametrize("sizes", [[], [None]], ids=str)
def test_named_tuples_are_arguments_and_results(tmp_path, sizes):
    spec = tf.TensorSpec(sizes)
    module = tf.Module()
    module.f = tf.function(lambda p: Pair(p.a + p.b, p.a * p.b), input_signature=[Pair(spec, spec)])
    tf.saved_model.save(module, tmp_path / "model")
    loaded = tf.saved_model.load(tmp_path / "model")

    x, y = tf.fill([3] * len(sizes), 2.0), tf.fill([3] * len(sizes), 3.0)
    result = loaded.f(Pair(x, y))
    assert (type(result).__name__, result._fields) == ("Pair", ("a", "b"))
    np.testing.assert_array_equal(result.a, x + y)
    np.testing.assert_array_equal(result.b, x * y)


def test_named_tuples_of_corrupt_files_are_rejected():
    from retrograde.saved_functions.encoding import decode

    with pytest.raises(ValueError, match="a saved model contains a named tuple with fields"):
        decode({"fields": [1], "type": "Pair", "names": ["a=print()"]})
