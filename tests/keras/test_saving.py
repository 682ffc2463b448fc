"""Saving and loading models, also with Keras on JAX."""

import os
import subprocess
import sys

import numpy as np

import retrograde as tf
from retrograde import keras

X = np.linspace(-1.0, 1.0, 3 * 8 * 8 * 2, dtype=np.float32).reshape(3, 8, 8, 2)

MODEL = """
def make_model():
    keras.utils.set_random_seed(7)
    model = keras.Sequential(
        [
            keras.Input((8, 8, 2)),
            keras.layers.Conv2D(4, 3, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Reshape((18, 8)),
            keras.layers.LSTM(5),
            keras.layers.Dense(2, name="head"),
        ]
    )
    model.compile("adam", keras.losses.MeanSquaredError())
    return model
"""
exec(MODEL)


def train_model():
    model = make_model()  # noqa: F821
    model.fit(X, np.ones((3, 2)), epochs=2, verbose=0)
    return model


def run_on_jax(program, directory):
    """Runs `program` in a subprocess with Keras on JAX."""
    start = f"import keras, numpy as np\nx = np.load('x.npy')\n{MODEL}\n"
    np.save(directory / "x.npy", X)
    result = subprocess.run(
        [sys.executable, "-c", start + program],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=directory,
        env=os.environ | {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"},
    )
    assert result.returncode == 0, result.stderr


def test_saved_model_resumes_training(tmp_path):
    model = train_model()
    model.save(tmp_path / "model.keras")
    restored = keras.models.load_model(tmp_path / "model.keras")

    np.testing.assert_array_equal(restored.predict(X, verbose=0), model.predict(X, verbose=0))
    assert int(restored.optimizer.iterations) == 2
    losses = [m.fit(X, np.ones((3, 2)), verbose=0).history["loss"] for m in (model, restored)]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-6)


def test_hdf5_models(tmp_path):
    model = train_model()
    model.save(tmp_path / "model.h5")
    restored = keras.models.load_model(tmp_path / "model.h5", compile=False)

    np.testing.assert_array_equal(restored.predict(X, verbose=0), model.predict(X, verbose=0))


def test_weights_only(tmp_path):
    model = train_model()
    model.save_weights(tmp_path / "w.weights.h5")
    restored = make_model()  # noqa: F821
    restored.optimizer.build(restored.trainable_variables)
    restored.load_weights(tmp_path / "w.weights.h5")

    np.testing.assert_array_equal(restored.predict(X, verbose=0), model.predict(X, verbose=0))


def test_keras_on_jax_loads_saved_models(tmp_path):
    model = train_model()
    model.save(tmp_path / "retrograde.keras")
    run_on_jax(
        "model = keras.models.load_model('retrograde.keras')\n"
        "np.save('y.npy', model.predict(x, verbose=0))\n"
        "assert int(model.optimizer.iterations) == 2",
        tmp_path,
    )

    np.testing.assert_allclose(
        np.load(tmp_path / "y.npy"), model.predict(X, verbose=0), rtol=1e-4, atol=1e-5
    )


def test_models_saved_by_keras_on_jax_load(tmp_path):
    run_on_jax(
        "model = make_model()\n"
        "model.fit(x, np.ones((3, 2)), epochs=2, verbose=0)\n"
        "model.save('jax.keras')\n"
        "model.save_weights('jax.weights.h5')\n"
        "np.save('y.npy', model.predict(x, verbose=0))",
        tmp_path,
    )
    expected = np.load(tmp_path / "y.npy")
    model = keras.models.load_model(tmp_path / "jax.keras")
    np.testing.assert_allclose(model.predict(X, verbose=0), expected, rtol=1e-4, atol=1e-5)

    model = make_model()  # noqa: F821
    model.optimizer.build(model.trainable_variables)
    model.load_weights(tmp_path / "jax.weights.h5")
    np.testing.assert_allclose(model.predict(X, verbose=0), expected, rtol=1e-4, atol=1e-5)


def test_retrograde_shapes_and_dtypes_serialize():
    config = {"shape": tf.TensorShape([2, None]), "dtype": tf.float16}
    restored = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(config))

    assert restored == {"shape": [2, None], "dtype": "float16"}


def test_tensorboard_callback(tmp_path):
    model = make_model()  # noqa: F821
    board = keras.callbacks.TensorBoard(tmp_path, histogram_freq=1)
    model.fit(
        X, np.ones((3, 2)), epochs=2, verbose=0, callbacks=[board], validation_data=(X, X[:, 0, 0])
    )
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*tfevents*"))

    for tag in (b"epoch_loss", b"epoch_learning_rate", b"head/kernel", b"graph_keras_model"):
        assert tag in written
