"""Adversarial training: a custom `Model.train_step` with `fit`.

A small perturbation of each pixel, along the sign of the gradient, makes a network misclassify an
image. Training on perturbed images makes it more robust. Shows a custom training step in Keras's
loop, with a gradient with respect to the input.
"""

import numpy as np
import tensorflow as tf
from example_utils import (
    BLUE,
    ORANGE,
    RED,
    parse_options,
    report,
    saved_figure,
    set_initial_weights,
    show_image,
)
from glyphs import make_digits

STRENGTH = 0.08


def perturb(model, x, labels, strength):
    """Changes each pixel by `strength` so that the loss increases (FGSM)."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        logits = model(x, training=False)
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.clip_by_value(x + strength * tf.sign(tape.gradient(loss, x)), 0.0, 1.0)


class Classifier(tf.keras.Model):
    """A classifier that perturbs its training images if `strength` is positive."""

    def __init__(self, width, strength):
        super().__init__()
        self.strength = strength
        self.flatten = tf.keras.layers.Flatten()
        self.hidden = tf.keras.layers.Dense(width, activation="relu")
        self.hidden2 = tf.keras.layers.Dense(width, activation="relu")
        self.logits = tf.keras.layers.Dense(10)

    def call(self, x):
        return self.logits(self.hidden2(self.hidden(self.flatten(x))))

    def train_step(self, data):
        x, labels = data
        if self.strength:
            x = perturb(self, x, labels, self.strength)
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


def train(training, width, strength, epochs, seed):
    """Trains a network and returns it with the loss of each epoch."""
    model = Classifier(width, strength)
    model(training[0][:1])
    set_initial_weights(model.trainable_variables, seed)
    model.compile(
        optimizer=tf.keras.optimizers.Adam(2e-3),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    history = model.fit(*training, batch_size=32, epochs=epochs, shuffle=False, verbose=0)
    return model, history.history["loss"]


def accuracy_of(model, images, labels, strength):
    x = perturb(model, tf.constant(images), tf.constant(labels), strength)
    return float(np.mean(np.argmax(model(x).numpy(), axis=1) == labels))


def main(argv=None):
    options = parse_options(__doc__, argv, epochs=(12, 1), images=(3000, 96, 3), width=(96, 16))
    training = make_digits(options.images, options.seed, noise=0.1)
    images, labels = make_digits(options.images // 3, options.seed + 1, noise=0.1)
    numbers, models = {}, {}
    for name, strength in (("standard", 0.0), ("robust", STRENGTH)):
        models[name], losses = train(
            training, options.width, strength, options.epochs, options.seed
        )
        numbers[f"final loss, {name}"] = losses[-1]
        numbers[f"accuracy, {name}"] = accuracy_of(models[name], images, labels, 0.0)
        numbers[f"accuracy under attack, {name}"] = accuracy_of(
            models[name], images, labels, STRENGTH
        )
    if not options.small:
        draw(options, models, images, labels)
    return report(options, numbers)


def draw(options, models, images, labels):
    """Plots the accuracy against the perturbation strength, and perturbed images."""
    strengths = np.linspace(0.0, 0.16, 9)
    with saved_figure(options, "adversarial", 2, 6, size=(14, 4.6)) as (figure, axes):
        for axis in axes[:, :2].ravel():
            axis.remove()
        axis = figure.add_subplot(axes[0, 0].get_gridspec()[:, :2])
        for (name, model), color in zip(models.items(), (ORANGE, BLUE)):
            accuracies = [accuracy_of(model, images, labels, s) for s in strengths]
            axis.plot(strengths, accuracies, "o-", color=color, label=name)
        axis.set(title="Accuracy", xlabel="perturbation strength", ylim=(0, 1.02))
        axis.legend(frameon=False)
        for row, (name, model) in zip(axes[:, 2:], models.items()):
            x = perturb(model, tf.constant(images[:4]), tf.constant(labels[:4]), STRENGTH)
            predictions = np.argmax(model(x).numpy(), axis=1)
            for axis, pixels, prediction, label in zip(row, x.numpy(), predictions, labels):
                show_image(axis, pixels, f"{name} predicts {prediction}")
                axis.title.set_color("black" if prediction == label else RED)


if __name__ == "__main__":
    main()
