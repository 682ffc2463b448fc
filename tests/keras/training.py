"""Trains small models for twenty steps, to compare the losses with Keras on other backends.

To record the reference losses again, with Keras and the other backends installed:

    KERAS_BACKEND=jax python -m tests.keras.training
    KERAS_BACKEND=tensorflow python -m tests.keras.training
"""

from __future__ import annotations

import json
import os
import pathlib

import numpy as np

RECORD_PATH = pathlib.Path(__file__).parents[1] / "data" / "keras_training.json"
STEPS, BATCH, CLASSES = 20, 16, 3


def _mlp(keras):
    layers = keras.layers
    return [layers.Input((6,)), layers.Dense(8, "relu"), layers.Dense(8, "tanh")]


def _cnn(keras):
    layers = keras.layers
    return [
        layers.Input((6, 6, 2)),
        layers.Conv2D(4, 3, padding="same"),
        layers.BatchNormalization(),
        layers.Activation("gelu"),
        layers.MaxPooling2D(),
        layers.SeparableConv2D(4, 2),
        layers.GlobalAveragePooling2D(),
    ]


def _lstm(keras):
    layers = keras.layers
    return [layers.Input((5, 3)), layers.LSTM(4, return_sequences=True), layers.GRU(4)]


def _transformer(keras):
    layers = keras.layers
    x = inputs = layers.Input((5, 8))
    attention = layers.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True)
    x = layers.LayerNormalization()(x + attention)
    x = layers.LayerNormalization()(x + layers.Dense(8)(layers.Dense(12, "silu")(x)))
    return keras.Model(inputs, layers.GlobalAveragePooling1D()(x))


MODELS = {"mlp": _mlp, "cnn": _cnn, "lstm": _lstm, "transformer": _transformer}
SHAPES = {"mlp": (6,), "cnn": (6, 6, 2), "lstm": (5, 3), "transformer": (5, 8)}
OPTIMIZERS = {
    "sgd": lambda optimizers: optimizers.SGD(0.05, momentum=0.9),
    "adam": lambda optimizers: optimizers.Adam(0.01),
    "adamw": lambda optimizers: optimizers.AdamW(0.01, weight_decay=0.05),
    "rmsprop": lambda optimizers: optimizers.RMSprop(0.005),
    "lion": lambda optimizers: optimizers.Lion(0.002),
    "adafactor": lambda optimizers: optimizers.Adafactor(0.01),
}


def make_model(keras, name):
    """Creates a model with weights that do not depend on the backend."""
    built = MODELS[name](keras)
    parts = built if isinstance(built, list) else [built]
    model = keras.Sequential([*parts, keras.layers.Dense(CLASSES)])
    rng = np.random.default_rng(1)
    model.set_weights(
        [
            w if w.ndim == 1 else rng.normal(size=w.shape).astype(w.dtype) * 0.4
            for w in model.get_weights()
        ]
    )
    return model


def train_losses(keras, name, optimizer, **options):
    """Trains with `train_on_batch`. Returns the loss before each step."""
    model = make_model(keras, name)
    model.compile(
        OPTIMIZERS[optimizer](keras.optimizers),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        **options,
    )
    rng = np.random.default_rng(2)
    losses = []
    for _ in range(STEPS):
        x = rng.normal(size=(BATCH, *SHAPES[name])).astype("float32")
        y = (x.reshape(BATCH, -1).sum(1) > 0) + (x.reshape(BATCH, -1)[:, 0] > 0)
        model.reset_metrics()
        losses.append(float(model.train_on_batch(x, y.astype("int32"))))
    return losses


def _record_losses(backend):
    import keras

    options = {"jit_compile": backend == "jax"}  # compiling is faster only on JAX
    record = json.loads(RECORD_PATH.read_text()) if RECORD_PATH.exists() else {}
    record[backend] = {
        name: {
            optimizer: [round(loss, 6) for loss in train_losses(keras, name, optimizer, **options)]
            for optimizer in OPTIMIZERS
        }
        for name in MODELS
    }
    RECORD_PATH.write_text(json.dumps(record, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    _record_losses(os.environ["KERAS_BACKEND"])
