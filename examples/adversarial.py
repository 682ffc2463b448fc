"""Training against an attack: `Model.train_step` under `fit`.

A small change of each pixel, along the sign of the gradient, makes a network misread a picture. A
model whose step of training attacks its own pictures first is not so easily fooled. What is taught:
a step of one's own, inside Keras's loop, with a gradient by the input in it.
"""

import numpy as np
import tensorflow as tf
from glyphs import make_digits
from showing import BLUE, ORANGE, RED, image, options_of, picture, report, start_alike

STRENGTH = 0.08


def attacked(model, x, labels, strength):
    """The pictures, each pixel changed by `strength` so that the loss grows."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        logits = model(x, training=False)
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.clip_by_value(x + strength * tf.sign(tape.gradient(loss, x)), 0.0, 1.0)


class Wary(tf.keras.Model):
    """A network that attacks its own pictures before it learns from them."""

    def __init__(self, width, strength):
        super().__init__()
        self.strength = strength
        self.flatten = tf.keras.layers.Flatten()
        self.hidden = tf.keras.layers.Dense(width, activation="relu")
        self.more = tf.keras.layers.Dense(width, activation="relu")
        self.answers = tf.keras.layers.Dense(10)

    def call(self, x):
        return self.answers(self.more(self.hidden(self.flatten(x))))

    def train_step(self, data):
        x, labels = data
        if self.strength:
            x = attacked(self, x, labels, self.strength)
        with tf.GradientTape() as tape:
            logits = self(x, training=True)
            loss = self.compute_loss(y=labels, y_pred=logits)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(labels, logits)
        return {metric.name: metric.result() for metric in self.metrics}


def trained(training, width, strength, epochs, seed):
    """A network, and the losses of its training."""
    model = Wary(width, strength)
    model(training[0][:1])
    start_alike(model.trainable_variables, seed)
    model.compile(
        optimizer=tf.keras.optimizers.Adam(2e-3),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    history = model.fit(*training, batch_size=32, epochs=epochs, shuffle=False, verbose=0)
    return model, history.history["loss"]


def accuracy_of(model, images, labels, strength):
    x = attacked(model, tf.constant(images), tf.constant(labels), strength)
    return float(np.mean(np.argmax(model(x).numpy(), axis=1) == labels))


def main(arguments=None):
    options = options_of(__doc__, arguments, epochs=(12, 1), pictures=(3000, 96, 3), width=(96, 16))
    training = make_digits(options.pictures, options.seed, noise=0.1)
    images, labels = make_digits(options.pictures // 3, options.seed + 1, noise=0.1)
    numbers, models = {}, {}
    for name, strength in (("plain", 0.0), ("wary", STRENGTH)):
        models[name], losses = trained(
            training, options.width, strength, options.epochs, options.seed
        )
        numbers[f"loss at the end, {name}"] = losses[-1]
        numbers[f"accuracy, {name}"] = accuracy_of(models[name], images, labels, 0.0)
        numbers[f"accuracy under attack, {name}"] = accuracy_of(
            models[name], images, labels, STRENGTH
        )
    if not options.small:
        draw(options, models, images, labels)
    return report(options, numbers)


def draw(options, models, images, labels):
    """Draws accuracies over the strength of the attack, and attacked pictures."""
    strengths = np.linspace(0.0, 0.16, 9)
    with picture(options, "adversarial", 2, 6, size=(14, 4.6)) as (figure, axes):
        for axis in axes[:, :2].ravel():
            axis.remove()
        axis = figure.add_subplot(axes[0, 0].get_gridspec()[:, :2])
        for (name, model), colour in zip(models.items(), (ORANGE, BLUE)):
            found = [accuracy_of(model, images, labels, s) for s in strengths]
            axis.plot(strengths, found, "o-", color=colour, label=name)
        axis.set(title="Accuracy", xlabel="change of each pixel", ylim=(0, 1.02))
        axis.legend(frameon=False)
        for row, (name, model) in zip(axes[:, 2:], models.items()):
            x = attacked(model, tf.constant(images[:4]), tf.constant(labels[:4]), STRENGTH)
            found = np.argmax(model(x).numpy(), axis=1)
            for axis, shown, read, label in zip(row, x.numpy(), found, labels):
                image(axis, shown, f"{name} reads {read}")
                axis.title.set_color("black" if read == label else RED)


if __name__ == "__main__":
    main()
