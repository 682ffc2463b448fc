"""Tests `explain` for Keras models, and the messages of optimizers about missing gradients."""

import numpy as np
import pytest

import retrograde as tf
from retrograde import keras
from retrograde.diagnose.missing_gradients import causes

X = tf.constant(np.linspace(-1.0, 1.0, 8, dtype=np.float32).reshape(4, 2))


def small_model():
    """Returns a model with two dense layers."""
    inputs = keras.Input((2,))
    hidden = keras.layers.Dense(3, name="hidden")(inputs)
    return keras.Model(inputs, keras.layers.Dense(1, name="head")(hidden))


def test_a_symbolic_tensor_is_not_a_source():
    model = small_model()
    with tf.GradientTape() as tape:
        y = model(X)
    hidden = model.get_layer("hidden").output

    assert [f.cause for f in tape.explain(y, [hidden, *model.inputs])] == [causes.SYMBOLIC] * 2
    with pytest.raises(TypeError, match=r"It is a symbolic Keras tensor, which has no value: "):
        tape.gradient(y, hidden)


def test_a_model_or_layer_is_not_a_source():
    model = small_model()
    with tf.GradientTape() as tape:
        y = model(X)
    finding, _ = tape.explain(y, [model, model.get_layer("hidden")])

    assert finding.cause == causes.MODEL
    assert finding.fix == "pass its variables: `model.trainable_variables`"
    with pytest.raises(TypeError, match=r"Pass its variables: the attribute `trainable_vari"):
        tape.gradient(y, model)


def test_variables_of_a_model_are_connected_and_named_by_their_path():
    model = small_model()
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(X) ** 2)
    explanation = tape.explain(loss, model.trainable_variables)

    assert explanation.connected
    assert [f.source for f in explanation][:2] == ["hidden/kernel", "hidden/bias"]


def test_a_frozen_layer_is_not_trainable():
    model = small_model()
    model.get_layer("hidden").trainable = False
    kernel = model.get_layer("hidden").kernel
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(X) ** 2)

    assert tape.gradient(loss, kernel) is None
    assert tape.explain(loss, kernel)[0].cause == causes.NOT_TRAINABLE


def test_a_layer_of_a_nested_model_that_is_called_separately():
    base = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3, name="conv")], name="base")
    model = keras.Sequential([base, keras.layers.Dense(1)])
    features = keras.Model(base.inputs, base.get_layer("conv").output)
    with tf.GradientTape() as tape:
        conv = features(X)  # here
        score = tf.reduce_sum(model(X))

    assert tape.gradient(score, conv) is None
    (finding,) = tape.explain(score, conv)
    assert finding.cause == causes.COMPUTED_SEPARATELY
    assert "from the same inputs (kernel, bias)" in finding.message
    assert finding.line.text.endswith("# here")


def test_a_layer_created_in_every_call():
    def model(x):
        return keras.layers.Dense(3)(x)  # here

    kernel = keras.layers.Dense(3)
    kernel(X)
    with tf.GradientTape() as tape:
        y = model(X)

    (finding,) = tape.explain(y, kernel.kernel)
    assert finding.cause == causes.RECREATED
    assert finding.line.text.endswith("# here")


def test_a_layer_built_in_its_first_call_is_not_recreated():
    used, unused = keras.layers.Dense(3), keras.layers.Dense(3)
    unused(X)
    with tf.GradientTape() as tape:
        y = used(X)

    assert tape.explain(y, unused.kernel)[0].cause == causes.INDEPENDENT


def test_optimizer_warning_contains_the_cause():
    used, unused = keras.layers.Dense(1, name="used"), keras.layers.Dense(1, name="unused")
    used(X), unused(X)
    variables = used.trainable_variables + unused.trainable_variables
    optimizer = keras.optimizers.SGD()
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(used(X))
    gradients = tape.gradient(loss, variables)

    with pytest.warns(UserWarning) as record:
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
    (warning,) = record
    message = str(warning.message)
    assert message.startswith(
        "Gradients do not exist for variables ['unused/kernel', 'unused/bias'"
    )
    assert "d loss / d unused/kernel is None: independent" in message
    assert "The block did not use `unused/kernel`." in message
    assert "The same applies to unused/bias." in message
    assert "d loss / d used/kernel" not in message


def test_optimizer_error_contains_the_cause():
    layer = keras.layers.Dense(1, name="layer")
    optimizer = keras.optimizers.SGD()
    with tf.GradientTape() as tape:
        predictions = layer(X).numpy()  # here
        loss = tf.reduce_mean(predictions)
    gradients = tape.gradient(loss, layer.trainable_variables)

    with pytest.raises(ValueError) as error:
        optimizer.apply_gradients(zip(gradients, layer.trainable_variables, strict=True))
    message = str(error.value)
    assert message.startswith("No gradients provided for any variable.\n\nd loss / d layer/kernel")
    assert "predictions = layer(X).numpy()  # here" in message


def test_a_message_names_three_variables_and_counts_the_rest():
    layers = [keras.layers.Dense(1) for _ in range(4)]
    for layer in layers:
        layer(X)
    variables = [v for layer in layers for v in layer.trainable_variables]
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(layers[0](X))
    gradients = tape.gradient(loss, variables)

    with pytest.warns(UserWarning) as record:
        keras.optimizers.SGD().apply(gradients, variables)
    first, second, third = (
        f"{layers[1 + i // 2].name}/{('kernel', 'bias')[i % 2]}" for i in range(3)
    )
    assert f"d loss / d {first} is None" in str(record[0].message)
    assert f"The same applies to {second}, {third}." in str(record[0].message)
    assert str(record[0].message).endswith("… and 3 more.")


def test_without_a_tape_the_message_is_from_keras():
    layer = keras.layers.Dense(1)
    layer(X)

    with pytest.raises(ValueError) as error:
        keras.optimizers.SGD().apply([None, None], layer.trainable_variables)
    assert str(error.value) == "No gradients provided for any variable."


@pytest.mark.parametrize("run_eagerly", [True, False])
def test_fit_error_contains_the_cause(run_eagerly):
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1, name="dense")

        def call(self, x):
            return tf.round(self.dense(x))  # here

    model = Model()
    model.compile("sgd", "mse", run_eagerly=run_eagerly, jit_compile=False)

    with pytest.raises(ValueError, match=r"No gradients provided for any variable") as error:
        model.fit(np.ones((4, 2), np.float32), np.ones((4, 1), np.float32), verbose=0)
    assert "non-differentiable operation" in str(error.value)
    assert "return tf.round(self.dense(x))  # here" in str(error.value)
