"""Keras workloads on each backend: `fit` over a few batches, steps of models, custom loops.

`mode` is "eager", "replayed" (a function on NumPy), "xla", or "default" for Keras's default on the
backend. The library is the backend.
"""

import importlib
import os
import threading
import time

import numpy as np

from benchmarks.registry import Registry

workload = Registry()

BATCHES = 20
SETTLE_SECONDS, SETTLE_STEPS = 120.0, 12
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
    """Sets weights that are the same on every backend. Biases and scales keep their defaults."""
    rng = np.random.default_rng(0)
    for weight in model.trainable_weights:
        if len(weight.shape) > 1:
            fan_in = np.prod(weight.shape[:-1])
            weight.assign(rng.standard_normal(weight.shape) / np.sqrt(fan_in))


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


def _train_step(keras, mode, model, x, y):
    """Returns a step that trains on one batch and returns the loss."""
    _initialize(model)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(1e-4), loss, **MODES[mode])
    return lambda: [model.train_on_batch(x, y)]


def settle(library, mode, step):
    """Runs steps of retrograde's default mode until it has chosen between replay and XLA.

    XLA compiles in a thread that starts after some seconds. Then a few calls are timed.
    """
    if library.__name__ != "retrograde" or mode != "default":
        return
    deadline = time.monotonic() + SETTLE_SECONDS
    has_started = False
    while time.monotonic() < deadline:
        step()
        is_compiling = any(thread.name == "compilation" for thread in threading.enumerate())
        if has_started and not is_compiling:
            break
        has_started = has_started or is_compiling
    for _ in range(SETTLE_STEPS):
        step()


def _application(library, mode, name):
    keras = _keras(library)
    create = getattr(keras.applications, name)
    model = create(weights=None, input_shape=(64, 64, 3), classes=10, classifier_activation=None)
    return _train_step(keras, mode, model, *_images(8, 64, 64, 3))


@workload
def resnet50(library, mode):
    return _application(library, mode, "ResNet50")


@workload
def mobilenet_v2(library, mode):
    return _application(library, mode, "MobileNetV2")


def _transformer_block(keras, x, width, heads):
    layers = keras.layers
    y = layers.LayerNormalization()(x)
    attention = layers.MultiHeadAttention(heads, width // heads)
    x = layers.Add()([x, attention(y, y, use_causal_mask=True)])
    y = layers.LayerNormalization()(x)
    y = layers.Dense(4 * width, activation="gelu")(y)
    return layers.Add()([x, layers.Dense(width)(y)])


@workload
def gpt(library, mode):
    keras = _keras(library)
    batch, length, width, vocabulary = 8, 128, 256, 128
    tokens = keras.Input((length,), dtype="int32")
    x = keras.layers.Embedding(vocabulary, width)(tokens)
    for _ in range(4):
        x = _transformer_block(keras, x, width, heads=4)
    x = keras.layers.LayerNormalization()(x)
    model = keras.Model(tokens, keras.layers.Dense(vocabulary)(x))
    ids = np.random.default_rng(1).integers(0, vocabulary, (batch, length + 1)).astype(np.int32)
    return _train_step(keras, mode, model, ids[:, :-1], ids[:, 1:])


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
