"""Small networks whose training is compared between one replica and several.

Each function returns a function that creates the training step and its variables, and the arrays of
the training data, one row per example. `dtype` is the dtype of weights and data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import retrograde as tf

BATCH = 8  # examples of all replicas together
ROWS = 4 * BATCH


def _optimizer(rate: float = 0.05) -> Any:
    return tf.keras.optimizers.SGD(rate, momentum=0.9)


def _random(dtype: str, *shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=(ROWS, *shape)).astype(dtype)


def _supervised(network: Callable, x: np.ndarray, y: np.ndarray, rate: float = 0.05) -> tuple:
    def create() -> tuple:
        model, optimizer = network(tf.keras.layers), _optimizer(rate)
        model.build((None, *x.shape[1:]))
        optimizer.build(model.trainable_variables)

        def step(x: Any, y: Any) -> Any:
            with tf.GradientTape() as tape:
                errors = tf.reduce_sum((model(x, training=True) - y) ** 2, axis=1)
                loss = tf.nn.compute_average_loss(errors, global_batch_size=BATCH)
            variables = model.trainable_variables
            gradients = tape.gradient(loss, variables)
            optimizer.apply_gradients(zip(gradients, variables, strict=True))
            return loss

        return step, model.variables

    return create, (x, y)


def mlp(dtype: str) -> tuple:
    """Returns a multilayer perceptron."""
    return _supervised(
        lambda layers: tf.keras.Sequential([layers.Dense(8, "tanh"), layers.Dense(2)]),
        _random(dtype, 3),
        _random(dtype, 2),
    )


def cnn(dtype: str) -> tuple:
    """Returns a convolutional network with batch normalization over all replicas."""
    return _supervised(
        lambda layers: tf.keras.Sequential(
            [
                layers.Conv2D(3, 3, use_bias=False),
                layers.BatchNormalization(synchronized=True),
                layers.ReLU(),
                layers.GlobalAveragePooling2D(),
                layers.Dense(2),
            ]
        ),
        _random(dtype, 5, 5, 2),
        _random(dtype, 2),
    )


def lstm(dtype: str) -> tuple:
    """Returns a recurrent network."""
    return _supervised(
        lambda layers: tf.keras.Sequential([layers.LSTM(4), layers.Dense(2)]),
        _random(dtype, 6, 2),
        _random(dtype, 2),
    )


def transformer(dtype: str) -> tuple:
    """Returns an embedding and a transformer block over the tokens."""
    tokens, length, width = 12, 4, 8
    x = np.random.default_rng(3).integers(0, tokens, (ROWS, length)).astype("int32")

    def network(layers: Any) -> Any:
        given = tf.keras.Input((length,), dtype="int32")
        h = layers.Embedding(tokens, width)(given)
        h = layers.LayerNormalization()(h + layers.MultiHeadAttention(2, width // 2)(h, h))
        h += layers.Dense(width)(layers.Dense(16, "gelu")(h))
        h = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(h))
        return tf.keras.Model(given, layers.Dense(2)(h))

    # With a larger rate the loss diverges, and roundings grow with it.
    return _supervised(network, x, _random(dtype, 2), rate=0.01)


def gan(dtype: str) -> tuple:
    """Returns a generator and a discriminator with an optimizer each."""

    def create() -> tuple:
        layers = tf.keras.layers
        generator = tf.keras.Sequential([layers.Dense(6, "tanh"), layers.Dense(3)])
        discriminator = tf.keras.Sequential([layers.Dense(6, "tanh"), layers.Dense(1)])
        models, optimizers = (generator, discriminator), (_optimizer(), _optimizer())
        generator.build((None, 2))
        discriminator.build((None, 3))
        for model, optimizer in zip(models, optimizers, strict=True):
            optimizer.build(model.trainable_variables)

        def loss_of(logits: Any, label: float) -> Any:
            labels = tf.fill(tf.shape(logits), tf.cast(label, dtype))
            errors = tf.nn.sigmoid_cross_entropy_with_logits(labels, logits)
            return tf.nn.compute_average_loss(errors[:, 0], global_batch_size=BATCH)

        def step(real: Any, noise: Any) -> Any:
            with tf.GradientTape(persistent=True) as tape:
                scores = discriminator(generator(noise))
                losses = (
                    loss_of(scores, 1.0),
                    loss_of(scores, 0.0) + loss_of(discriminator(real), 1.0),
                )
            for model, optimizer, loss in zip(models, optimizers, losses, strict=True):
                variables = model.trainable_variables
                gradients = tape.gradient(loss, variables)
                optimizer.apply_gradients(zip(gradients, variables, strict=True))
            return losses[0] + losses[1]

        return step, [*generator.variables, *discriminator.variables]

    return create, (_random(dtype, 3), _random(dtype, 2))


NETWORKS = {"mlp": mlp, "cnn": cnn, "lstm": lstm, "transformer": transformer, "gan": gan}


def train(
    name: str, strategy: Any, mode: str, steps: int, dtype: str = "float32"
) -> tuple[list[float], list[np.ndarray], Any]:
    """Returns the losses and the final variables, and the function of a distributed step.

    `mode` is "eager", "replayed" or "xla". The batches are repeated after `ROWS` examples.
    """
    tf.keras.utils.set_random_seed(3)
    tf.keras.config.set_dtype_policy(dtype)
    create, arrays = NETWORKS[name](dtype)
    with strategy.scope():
        step, variables = create()

    def distributed(*batch: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(step, batch), axis=None)

    if mode != "eager":
        distributed = tf.function(distributed, jit_compile=mode == "xla")
    dataset = tf.data.Dataset.from_tensor_slices(arrays).batch(BATCH).repeat().take(steps)
    batches = strategy.experimental_distribute_dataset(dataset)
    losses = [float(distributed(*batch)) for batch in batches]
    strategy.check_in_sync()
    return losses, [v.numpy() for v in variables], distributed
