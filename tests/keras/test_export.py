"""`model.export`, `ExportArchive`, `tf.saved_model.save` of models, and `TFSMLayer`."""

import numpy as np
import pytest

import retrograde as tf
from retrograde import keras

layers = keras.layers


def dense_model():
    return keras.Sequential(
        [layers.Dense(4, activation="relu"), layers.BatchNormalization(), layers.Dropout(0.5)]
    )


def image_model():
    x = inputs = keras.Input((12, 12, 1))
    for layer in (layers.Conv2D(3, 3), layers.MaxPooling2D(), layers.Flatten(), layers.Dense(2)):
        x = layer(x)
    return keras.Model(inputs, x)


def attention_model():
    inputs = keras.Input((None, 6))
    x = layers.MultiHeadAttention(2, 3)(inputs, inputs, use_causal_mask=True)
    return keras.Model(inputs, layers.LayerNormalization()(x + inputs))


def model_with_two_inputs():
    a, b = keras.Input((4,), name="a"), keras.Input((5,), name="b")
    return keras.Model({"a": a, "b": b}, layers.Dense(2)(layers.Concatenate()([a, b])))


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(3)

    def call(self, x):
        return {"y": self.dense(x), "size": tf.shape(x)[0]}


def lstm_model():
    return keras.Sequential([keras.Input((7, 3)), layers.LSTM(4), layers.Dense(1)])


def rows(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


MODELS = {
    "dense": (dense_model, [rows(3, 5), rows(6, 5)]),
    "images": (image_model, [rows(3, 12, 12, 1), rows(5, 12, 12, 1)]),
    "attention": (attention_model, [rows(3, 4, 6), rows(2, 9, 6)]),
    "two inputs": (
        model_with_two_inputs,
        [{"a": rows(n, 4), "b": rows(n, 5)} for n in (3, 6)],
    ),
    "subclassed": (Subclassed, [rows(3, 5), rows(6, 5)]),
    "LSTM": (lstm_model, [rows(3, 7, 3), rows(6, 7, 3)]),
}


@pytest.mark.parametrize("name", MODELS)
def test_exported_models_compute_the_same_for_all_sizes(name, tmp_path):
    create, inputs = MODELS[name]
    model = create()
    expected = [model(x) for x in inputs]
    model.export(tmp_path, verbose=False)

    loaded = tf.saved_model.load(tmp_path)

    for x, y in zip(inputs, expected, strict=True):
        tf.nest.map_structure(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), loaded.serve(x), y
        )
    assert len(loaded.variables) == len(model.variables)
    assert len(loaded.trainable_variables) == len(model.trainable_variables)
    assert set(loaded.signatures) == {"serve", "serving_default"}


def test_export_prints_the_endpoints(tmp_path, capsys):
    model = keras.Sequential([keras.Input((3,), name="x"), layers.Dense(2)])

    model.export(tmp_path)

    text = capsys.readouterr().out
    assert f"Saved artifact at '{tmp_path}'. The following endpoints are available:" in text
    assert "* Endpoint 'serve'" in text
    assert "TensorSpec(shape=(None, 3), dtype=tf.float32, name='x')" in text
    assert "TensorSpec(shape=(None, 2), dtype=tf.float32, name=None)" in text


def test_export_prints_unknown_sizes_that_must_be_equal_as_none(tmp_path, capsys):
    model_with_two_inputs().export(tmp_path)

    text = capsys.readouterr().out
    assert "Output Type:\n  TensorSpec(shape=(None, 2), dtype=tf.float32, name=None)" in text


def test_loops_over_an_unknown_length_raise(tmp_path):
    model = keras.Sequential([keras.Input((None, 3)), layers.LSTM(4)])

    with pytest.raises(ValueError, match="depend on the unknown sizes of its input_signature"):
        model.export(tmp_path, verbose=False)
    model.export(
        tmp_path, verbose=False, input_signature=[keras.InputSpec("float32", (None, 5, 3))]
    )
    x = rows(2, 5, 3)
    np.testing.assert_allclose(tf.saved_model.load(tmp_path).serve(x), model(x), rtol=1e-5)


def test_saved_models_have_a_default_signature(tmp_path):
    model = keras.Sequential([keras.Input((3,)), layers.Dense(2)])
    tf.saved_model.save(model, tmp_path)

    signature = tf.saved_model.load(tmp_path).signatures["serving_default"]

    for size in (1, 4):
        (y,) = signature(tf.constant(rows(size, 3))).values()
        np.testing.assert_allclose(y, model(rows(size, 3)), rtol=1e-5)


def test_tfsm_layers_are_trained(tmp_path):
    model = keras.Sequential([keras.Input((3,)), layers.Dense(2)])
    model.export(tmp_path, verbose=False)
    layer = layers.TFSMLayer(tmp_path)
    assert layer(keras.Input((3,))).shape == (None, 2)
    np.testing.assert_allclose(layer(rows(4, 3)), model(rows(4, 3)), rtol=1e-5)

    for trained in (model, outer := keras.Sequential([keras.Input((3,)), layer])):
        trained.compile(keras.optimizers.SGD(0.1), "mse")
        trained.fit(rows(4, 3), rows(4, 2), verbose=0)

    np.testing.assert_allclose(outer(rows(4, 3)), model(rows(4, 3)), rtol=1e-5)


def test_loaded_functions_run_in_functions(tmp_path):
    class Counter(tf.Module):
        def __init__(self):
            super().__init__()
            self.count = tf.Variable(0.0)

        @tf.function(input_signature=[tf.TensorSpec([None])])
        def add(self, x):
            self.count.assign_add(1.0)
            return x * self.count

    tf.saved_model.save(Counter(), tmp_path)
    loaded = tf.saved_model.load(tmp_path)

    @tf.function
    def twice(x):
        return loaded.add(loaded.add(x))

    for expected in (2.0, 12.0):
        assert twice(tf.ones([3])).numpy().tolist() == [expected] * 3
    assert loaded.count.numpy() == 4.0


def test_archives_with_several_endpoints_and_variables(tmp_path):
    first, second = layers.Dense(2), layers.Dense(3)
    first.build((None, 4)), second.build((None, 5))
    archive = keras.export.ExportArchive()
    spec = tf.TensorSpec([None, 4])
    archive.track(first)
    archive.add_endpoint("first", first.__call__, [spec])
    archive.track_and_add_endpoint("second", second, [keras.InputSpec("float32", (None, 5))])
    archive.add_endpoint("untracked", lambda x: x * scale, [spec])
    scale = tf.Variable(3.0)
    archive.add_variable_collection("kernels", [first.kernel, second.kernel])
    archive.write_out(tmp_path, verbose=False)

    loaded = tf.saved_model.load(tmp_path)

    assert (len(archive.variables), len(loaded.variables)) == (4, 5)
    assert len(archive.trainable_variables) == 4 and archive.non_trainable_variables == []
    assert [v.shape.as_list() for v in loaded.kernels] == [[4, 2], [5, 3]]
    np.testing.assert_allclose(loaded.first(rows(2, 4)), first(rows(2, 4)), rtol=1e-5)
    np.testing.assert_allclose(loaded.second(rows(2, 5)), second(rows(2, 5)), rtol=1e-5)
    np.testing.assert_allclose(loaded.untracked(rows(2, 4)), 3 * rows(2, 4), rtol=1e-5)
    assert set(loaded.signatures) == {"first", "second", "untracked", "serving_default"}


def test_functions_that_were_called_are_endpoints(tmp_path):
    archive = keras.export.ExportArchive()
    function = tf.function(lambda x: x + 1.0)
    function(tf.ones([2]))
    archive.add_endpoint("f", function)
    archive.write_out(tmp_path, verbose=False)

    assert tf.saved_model.load(tmp_path).f(tf.ones([2])).numpy().tolist() == [2.0, 2.0]


SPEC = tf.TensorSpec([None, 3])


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (
            lambda archive: archive.track(layers.Dense(2, name="d")),
            "The layer 'd' has no variables yet. It must be built before export: call it, or its "
            "build method.",
        ),
        (
            lambda archive: archive.track("model"),
            "Invalid resource type. Expected a Keras layer or model, a tf.Module, a variable or a "
            "lookup table. Received: model of type str.",
        ),
        (
            lambda archive: [archive.add_endpoint("f", tf.identity, [SPEC]) for _ in range(2)],
            "The endpoint name 'f' is already taken.",
        ),
        (
            lambda archive: archive.add_endpoint("f", tf.identity, [SPEC], is_static=True),
            "is_static: these options are only supported with the jax backend.",
        ),
        (
            lambda archive: archive.add_endpoint("f", tf.identity),
            "The endpoint 'f' is not a tf.function, so you must provide an `input_signature` "
            "argument: a list with a keras.InputSpec or a tf.TensorSpec for each argument.",
        ),
        (
            lambda archive: archive.add_endpoint("f", tf.function(tf.identity)),
            "The tf.function of the endpoint 'f' has never been called: you must either provide a "
            "function that has been called, or an `input_signature` argument.",
        ),
        (
            lambda archive: archive.add_variable_collection("v", 3),
            "Expected `variables` to be a list/tuple/set. Received: int.",
        ),
        (
            lambda archive: archive.add_variable_collection("v", [3, "a"]),
            "Expected all elements in `variables` to be `tf.Variable` instances. Received: int, "
            "str.",
        ),
        (
            lambda archive: archive.write_out("unused"),
            "No endpoints have been set yet. Call add_endpoint().",
        ),
    ],
)
def test_errors_of_archives(use, message):
    with pytest.raises(ValueError) as raised:
        use(keras.export.ExportArchive())

    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("extension", "error", "message"),
    [
        ("onnx", NotImplementedError, "only compatible with TensorFlow, JAX and Torch backends"),
        ("litert", ValueError, "LiteRT export requires TensorFlow or PyTorch backend"),
    ],
)
def test_formats_of_other_backends_raise(extension, error, message, tmp_path):
    model = dense_model()
    model(rows(3, 5))

    with pytest.raises(error, match=message):
        model.export(tmp_path / "model", format=extension)
