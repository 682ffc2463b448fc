"""A supervised training loop: a small convolutional network classifies noisy digits.

The loop has a batched dataset, a training step in `tf.function`, a metric, and an evaluation after
each epoch. Shows the basic training loop.
"""

import numpy as np
import tensorflow as tf
from example_utils import (
    BLUE,
    ORANGE,
    parse_options,
    plot_curve,
    report,
    saved_figure,
    set_initial_weights,
    show_image,
)
from glyphs import SIZE, make_digits


def make_model(width):
    return tf.keras.Sequential(
        [
            tf.keras.Input((SIZE, SIZE, 1)),
            tf.keras.layers.Conv2D(width, 3, padding="same", activation="relu"),
            tf.keras.layers.MaxPooling2D(2),
            tf.keras.layers.Conv2D(2 * width, 3, activation="relu"),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(10),
        ]
    )


def make_step(model, optimizer, loss_fn, accuracy):
    """Returns the training step as a `tf.function`."""

    @tf.function
    def step(x, labels):
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            loss = loss_fn(labels, logits)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        accuracy.update_state(labels, logits)
        return loss

    return step


def batches(images, labels, batch, random=None):
    """Returns a batched dataset, in random order if `random` is given."""
    order = np.arange(len(labels)) if random is None else random.permutation(len(labels))
    dataset = tf.data.Dataset.from_tensor_slices((images[order, ..., None], labels[order]))
    return dataset.batch(batch).prefetch(tf.data.AUTOTUNE)


def train(model, training, testing, epochs, batch, seed):
    """Returns the loss of each step, and the training and test accuracies of each epoch."""
    random = np.random.default_rng(seed)
    accuracy = tf.keras.metrics.SparseCategoricalAccuracy()
    step = make_step(
        model,
        tf.keras.optimizers.Adam(3e-3),
        tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        accuracy,
    )
    losses, accuracies = [], []
    for epoch in range(1, epochs + 1):
        accuracy.reset_state()
        losses += [float(step(x, labels)) for x, labels in batches(*training, batch, random)]
        training_accuracy = float(accuracy.result())
        accuracy.reset_state()
        for x, labels in batches(*testing, batch):
            accuracy.update_state(labels, model(x, training=False))
        accuracies.append((training_accuracy, float(accuracy.result())))
        print(f"epoch {epoch}/{epochs}  loss {losses[-1]:.4f}  test {accuracies[-1][1]:.3f}")
    return losses, np.array(accuracies)


def main(argv=None):
    options = parse_options(__doc__, argv, epochs=(6, 1), images=(3000, 96, 48), width=(16, 4))
    training = make_digits(options.images, options.seed)
    testing = make_digits(options.images // 3, options.seed + 1)
    model = make_model(options.width)
    set_initial_weights(model.trainable_variables, options.seed)
    losses, accuracies = train(model, training, testing, options.epochs, 32, options.seed)
    if not options.small:
        draw(options, model, *testing, losses, accuracies)
    return report(
        options,
        {
            "initial loss": losses[0],
            "final loss": losses[-1],
            "test accuracy": accuracies[-1, 1],
        },
    )


def draw(options, model, images, labels, losses, accuracies):
    """Plots the loss, the accuracies, and images with their predictions."""
    predictions = np.argmax(model(images[..., None]).numpy(), axis=1)
    wrong = np.flatnonzero(predictions != labels)[:4]
    shown = np.concatenate([np.arange(16 - len(wrong)), wrong])
    tiles = np.pad(images[shown], ((0, 0), (1, 1), (1, 1)), constant_values=0.5)
    side = SIZE + 2
    tiles = tiles.reshape(4, 4, side, side).swapaxes(1, 2).reshape(4 * side, 4 * side)
    with saved_figure(options, "digits", 1, 3) as (_, axes):
        plot_curve(axes[0, 0], losses, "Loss")
        axes[0, 0].set_yscale("log")
        plot_curve(axes[0, 1], accuracies[:, 0], "Accuracy", BLUE, label="training")
        plot_curve(axes[0, 1], accuracies[:, 1], "Accuracy", ORANGE, label="test")
        axes[0, 1].set(xlabel="epoch")
        axes[0, 1].legend(frameon=False)
        show_image(axes[0, 2], tiles, "Predictions (errors in red)")
        for tile, i in enumerate(shown):
            color = "#2a6f97" if predictions[i] == labels[i] else "red"
            position = side * (tile % 4) + 1, side * (tile // 4) + 3
            axes[0, 2].text(*position, str(predictions[i]), color=color, fontsize=11, weight="bold")


if __name__ == "__main__":
    main()
