"""Weights of Keras models in checkpoints that TensorFlow wrote."""

import pathlib

import numpy as np
import pytest

import retrograde as tf
from retrograde import keras

FILES = pathlib.Path(__file__).parents[1] / "data" / "tensorflow_checkpoints"
X = np.linspace(-1, 1, 8).reshape(4, 2)
EXPECTED = np.load(FILES / "keras_model_predictions.npy")


def make_model():
    model = keras.Sequential([keras.layers.Dense(3, activation="relu"), keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.1), "mse")
    return model


@pytest.mark.parametrize("built", [False, True])
def test_a_model_is_restored_with_its_optimizer(built):
    model = make_model()
    if built:
        model.fit(X, X.sum(1), verbose=0)

    tf.train.Checkpoint(model=model).read(str(FILES / "keras_model")).expect_partial()

    np.testing.assert_allclose(model.predict(X, verbose=0), EXPECTED, rtol=1e-6)
    model.fit(X, X.sum(1), verbose=0)
    assert int(model.optimizer.iterations) == 2


def test_load_weights_reads_the_checkpoints_of_keras_2():
    model = make_model()
    model.build((None, 2))

    model.load_weights(str(FILES / "keras_2_weights"))

    np.testing.assert_allclose(model.predict(X, verbose=0), EXPECTED, rtol=1e-6)


def test_load_weights_refuses_other_models():
    wide = keras.Sequential([keras.layers.Dense(4), keras.layers.Dense(1)])
    with pytest.raises(ValueError, match="the model has no weights yet"):
        wide.load_weights(str(FILES / "keras_2_weights"))
    wide.build((None, 2))
    with pytest.raises(ValueError, match="3 of 4 weights have other shapes, the first of which"):
        wide.load_weights(str(FILES / "keras_2_weights"))
    deep = keras.Sequential([keras.layers.Dense(3), keras.layers.Dense(1), keras.layers.Dense(1)])
    deep.build((None, 2))
    with pytest.raises(ValueError, match="2 of 6 weights are missing, the first of which"):
        deep.load_weights(str(FILES / "keras_2_weights"))
    deep.load_weights(str(FILES / "keras_2_weights"), skip_mismatch=True)
    assert deep.layers[0].get_weights()[0].shape == (2, 3)
    assert np.array_equal(
        deep.layers[0].get_weights()[0],
        tf.train.load_variable(
            str(FILES / "keras_2_weights"),
            "layer-0/kernel/.ATTRIBUTES/VARIABLE_VALUE",
        ),
    )
