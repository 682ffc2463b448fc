"""A supervised loop: a small convolutional network reads digits in noise.

The loop that a guide on training begins with, in full: a dataset in batches, a step inside
`tf.function`, a metric, and a test after each pass. What is taught: the plain training loop.
"""

import numpy as np
import tensorflow as tf
from glyphs import SIZE, make_digits
from showing import BLUE, ORANGE, curve, image, options_of, picture, report, start_alike


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


def make_step(model, optimizer, loss_of, accuracy):
    """The step of training, recorded once and played again."""

    @tf.function
    def step(x, labels):
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            loss = loss_of(labels, logits)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        accuracy.update_state(labels, logits)
        return loss

    return step


def batches(images, labels, batch, random=None):
    """A dataset, in another order each time."""
    order = np.arange(len(labels)) if random is None else random.permutation(len(labels))
    dataset = tf.data.Dataset.from_tensor_slices((images[order, ..., None], labels[order]))
    return dataset.batch(batch).prefetch(tf.data.AUTOTUNE)


def train(model, training, testing, epochs, batch, seed):
    """Returns the loss of each step, and both accuracies of each pass."""
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
        learned = float(accuracy.result())
        accuracy.reset_state()
        for x, labels in batches(*testing, batch):
            accuracy.update_state(labels, model(x, training=False))
        accuracies.append((learned, float(accuracy.result())))
        print(f"epoch {epoch}/{epochs}  loss {losses[-1]:.4f}  test {accuracies[-1][1]:.3f}")
    return losses, np.array(accuracies)


def main(arguments=None):
    options = options_of(__doc__, arguments, epochs=(6, 1), pictures=(3000, 96, 48), width=(16, 4))
    training = make_digits(options.pictures, options.seed)
    testing = make_digits(options.pictures // 3, options.seed + 1)
    model = make_model(options.width)
    start_alike(model.trainable_variables, options.seed)
    losses, accuracies = train(model, training, testing, options.epochs, 32, options.seed)
    if not options.small:
        draw(options, model, *testing, losses, accuracies)
    return report(
        options,
        {
            "loss at the start": losses[0],
            "loss at the end": losses[-1],
            "test accuracy": accuracies[-1, 1],
        },
    )


def draw(options, model, images, labels, losses, accuracies):
    """Draws the loss, the accuracies, and pictures with what was read in them."""
    found = np.argmax(model(images[..., None]).numpy(), axis=1)
    wrong = np.flatnonzero(found != labels)[:4]
    shown = np.concatenate([np.arange(16 - len(wrong)), wrong])
    tiles = np.pad(images[shown], ((0, 0), (1, 1), (1, 1)), constant_values=0.5)
    side = SIZE + 2
    tiles = tiles.reshape(4, 4, side, side).swapaxes(1, 2).reshape(4 * side, 4 * side)
    with picture(options, "digits", 1, 3) as (_, axes):
        curve(axes[0, 0], losses, "Loss")
        axes[0, 0].set_yscale("log")
        curve(axes[0, 1], accuracies[:, 0], "Accuracy", BLUE, label="training")
        curve(axes[0, 1], accuracies[:, 1], "Accuracy", ORANGE, label="test")
        axes[0, 1].set(xlabel="pass")
        axes[0, 1].legend(frameon=False)
        image(axes[0, 2], tiles, "Read as (wrong ones in red)")
        for place, at in enumerate(shown):
            colour = "#2a6f97" if found[at] == labels[at] else "red"
            where = side * (place % 4) + 1, side * (place // 4) + 3
            axes[0, 2].text(*where, str(found[at]), color=colour, fontsize=11, weight="bold")


if __name__ == "__main__":
    main()
