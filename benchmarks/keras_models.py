"""Keras workloads on each backend: `fit` over a few batches, and custom loops with tapes.

`mode` is "eager", "replayed" (a function on NumPy), "xla", or "default" for Keras's default on the
backend. The library is the backend.
"""

import importlib
import os

import numpy as np

from benchmarks.registry import Registry

workload = Registry()

BATCHES = 20
MODES = {
    "eager": {"run_eagerly": True},
    "replayed": {"jit_compile": False},
    "xla": {"jit_compile": True},
    "default": {},
}


def to_numpy(value):
    return np.asarray(value)


def _keras(library):
    """Returns Keras on this backend."""
    if library.__name__ == "retrograde":
        return library.keras
    os.environ["KERAS_BACKEND"] = library.__name__
    return importlib.import_module("keras")


def _initialize(model):
    """Sets weights that are the same on every backend."""
    rng = np.random.default_rng(0)
    for weight in model.weights:
        if weight.trainable:
            scale = 1 / np.sqrt(weight.shape[0]) if len(weight.shape) > 1 else 0.0
            weight.assign(scale * rng.standard_normal(weight.shape))


def _images(size, *shape):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((size, *shape)).astype(np.float32)
    return x, rng.integers(0, 10, size)


def _classifier(keras, shape, *layers):
    return keras.Sequential([keras.Input(shape), *layers])


def _fit_step(keras, mode, model, batch, x, y):
    """Returns a step that fits the model to a few batches and returns the loss."""
    _initialize(model)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(1e-3), loss, **MODES[mode])

    def step():
        return model.fit(x, y, batch_size=batch, shuffle=False, verbose=0).history["loss"]

    return step


def _mlp(keras, width):
    dense = keras.layers.Dense
    hidden = [dense(width, activation="relu") for _ in range(2)]
    return _classifier(keras, (784,), *hidden, dense(10))


@workload
def fit_mlp_32(library, mode):
    keras = _keras(library)
    return _fit_step(keras, mode, _mlp(keras, 32), 32, *_images(32 * BATCHES, 784))


@workload
def fit_mlp_512(library, mode):
    keras = _keras(library)
    return _fit_step(keras, mode, _mlp(keras, 512), 32, *_images(32 * BATCHES, 784))


@workload
def fit_cnn(library, mode):
    keras = _keras(library)
    layers = keras.layers
    model = _classifier(
        keras,
        (28, 28, 1),
        layers.Conv2D(16, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(32, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(10),
    )
    return _fit_step(keras, mode, model, 64, *_images(64 * BATCHES, 28, 28, 1))


@workload
def fit_lstm(library, mode):
    keras = _keras(library)
    model = _classifier(keras, (50, 16), keras.layers.LSTM(64), keras.layers.Dense(10))
    return _fit_step(keras, mode, model, 32, *_images(32 * BATCHES, 50, 16))


@workload
def keras_loop(library, mode):
    """Runs a custom loop, on backends with tapes."""
    keras = _keras(library)
    tf = library
    model = _mlp(keras, 32)
    _initialize(model)
    optimizer = keras.optimizers.Adam(1e-3)
    optimizer.build(model.trainable_variables)
    loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    x, y = map(tf.constant, _images(32, 784))

    def train(x, y):
        with tf.GradientTape() as tape:
            loss = loss_fn(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    if mode != "eager":
        train = tf.function(train, jit_compile=mode == "xla")
    return lambda: [train(x, y)]
