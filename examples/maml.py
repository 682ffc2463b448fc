"""MAML: a network that learns a new sine wave from ten points, in one step.

Learning is inside the loss: the weights after a step of gradient descent depend on those before it,
and the outer tape differentiates through the inner one. What is taught: nested tapes, and gradients
for many tasks at once, each with weights of its own.
"""

import numpy as np
import tensorflow as tf
from networks import Mlp
from showing import BLUE, INK, ORANGE, curve, options_of, picture, progress, report

POINTS = 10
RATE = 0.05


def make_tasks(count, random):
    """Sine waves of random height and phase: ten points to learn from, and ten to be judged by."""
    height = random.uniform(0.5, 5.0, (count, 1, 1))
    phase = random.uniform(0.0, np.pi, (count, 1, 1))
    x = random.uniform(-5.0, 5.0, (count, 2 * POINTS, 1))
    y = height * np.sin(x + phase)
    x, y = x.astype(np.float32), y.astype(np.float32)
    halves = [(a[:, :POINTS], a[:, POINTS:]) for a in (x, y)]
    return [tf.constant(half) for pair in zip(*halves, strict=True) for half in pair]


def answer(weights, x):
    """The network with weights that have an axis for the tasks."""
    pairs = list(zip(weights[::2], weights[1::2], strict=True))
    for w, b in pairs[:-1]:
        x = tf.tanh(tf.matmul(x, w) + b[:, None])
    w, b = pairs[-1]
    return tf.matmul(x, w) + b[:, None]


def adapted(weights, x, y, steps=1):
    """The weights of each task after gradient descent on its own points."""
    for _ in range(steps):
        with tf.GradientTape() as tape:
            tape.watch(weights)
            errors = tf.reduce_mean((answer(weights, x) - y) ** 2, axis=(1, 2))
        gradients = tape.gradient(errors, weights)
        weights = [w - RATE * g for w, g in zip(weights, gradients, strict=True)]
    return weights


def for_tasks(network, count):
    """The network's weights, once for each task."""
    weights = [part for layer in network.layers for part in layer]
    return [tf.broadcast_to(w[None], [count, *w.shape]) for w in weights]


def train(network, steps, tasks, seed, inner):
    """Learns to learn, or, without an inner step, to answer for the mean of all tasks."""
    random = np.random.default_rng(seed)
    optimizer = tf.optimizers.Adam(2e-3)

    @tf.function
    def step(x, y, x_later, y_later):
        with tf.GradientTape() as tape:
            weights = adapted(for_tasks(network, tasks), x, y, inner)
            loss = tf.reduce_mean((answer(weights, x_later) - y_later) ** 2)
        gradients = tape.gradient(loss, network.trainable_variables)
        optimizer.apply_gradients(zip(gradients, network.trainable_variables))
        return loss

    losses = []
    for number in range(1, steps + 1):
        losses.append(float(step(*make_tasks(tasks, random))))
        progress(number, steps, loss=losses[-1])
    return losses


def error_of(network, steps, seed=5, tasks=100):
    """The mean square error on new tasks, after `steps` steps on their points."""
    x, y, x_later, y_later = make_tasks(tasks, np.random.default_rng(seed))
    weights = adapted(for_tasks(network, tasks), x, y, steps)
    return float(tf.reduce_mean((answer(weights, x_later) - y_later) ** 2))


def main(arguments=None):
    options = options_of(__doc__, arguments, steps=(1500, 5), tasks=(25, 4), width=(64, 16))
    widths = (1, options.width, options.width, 1)
    meta, plain = Mlp(widths, seed=options.seed), Mlp(widths, seed=options.seed)
    print("learning to learn")
    losses = train(meta, options.steps, options.tasks, options.seed, inner=1)
    print("learning the mean, for comparison")
    train(plain, options.steps // 3 + 1, options.tasks, options.seed, inner=0)
    if not options.small:
        draw(options, meta, plain, losses)
    return report(
        options,
        {
            f"error of {name}, steps taken: {steps}": error_of(network, steps)
            for name, network in (("MAML", meta), ("the mean", plain))
            for steps in (0, 1)
        },
    )


def draw(options, meta, plain, losses):
    """Draws one new task, before and after steps on its points."""
    random = np.random.default_rng(11)
    height, phase = 4.0, 1.0
    wave = np.linspace(-5, 5, 200, dtype=np.float32)[None, :, None]
    x = random.uniform(-5, 5, (1, POINTS, 1)).astype(np.float32)
    y = (height * np.sin(x + phase)).astype(np.float32)
    with picture(options, "maml", 1, 3) as (_, axes):
        for axis, network, title in (
            (axes[0, 0], meta, "Learned to learn"),
            (axes[0, 1], plain, "Learned the mean"),
        ):
            axis.plot(wave.ravel(), height * np.sin(wave.ravel() + phase), color=INK, alpha=0.3)
            axis.plot(x.ravel(), y.ravel(), "o", color=INK, markersize=5)
            for steps, colour, label in ((0, BLUE, "before"), (1, ORANGE, "after one step")):
                weights = adapted(for_tasks(network, 1), tf.constant(x), tf.constant(y), steps)
                found = answer(weights, tf.constant(wave)).numpy().ravel()
                axis.plot(wave.ravel(), found, color=colour, label=label)
            axis.set(title=title, ylim=(-6, 6))
        axes[0, 0].legend(frameon=False)
        curve(axes[0, 2], losses, "Error after one step, in training")
        axes[0, 2].set_yscale("log")


if __name__ == "__main__":
    main()
