"""Meta-learning (MAML): a network that fits a new sine wave from ten points in one step.

The loss contains a step of gradient descent, and the outer tape differentiates through it. Shows
nested tapes, and gradients of many tasks at once, each with its own weights.
"""

import numpy as np
import tensorflow as tf
from example_utils import (
    BLUE,
    INK,
    ORANGE,
    parse_options,
    plot_curve,
    print_progress,
    report,
    saved_figure,
)
from networks import Mlp

POINTS = 10
RATE = 0.05


def make_tasks(count, random):
    """Returns sine waves of random amplitude and phase, with ten training and ten test points."""
    amplitude = random.uniform(0.5, 5.0, (count, 1, 1))
    phase = random.uniform(0.0, np.pi, (count, 1, 1))
    x = random.uniform(-5.0, 5.0, (count, 2 * POINTS, 1))
    y = amplitude * np.sin(x + phase)
    x, y = x.astype(np.float32), y.astype(np.float32)
    halves = [(a[:, :POINTS], a[:, POINTS:]) for a in (x, y)]
    return [tf.constant(half) for pair in zip(*halves, strict=True) for half in pair]


def predict(weights, x):
    """Applies the network, with weights that have an axis for the tasks."""
    pairs = list(zip(weights[::2], weights[1::2], strict=True))
    for w, b in pairs[:-1]:
        x = tf.tanh(tf.matmul(x, w) + b[:, None])
    w, b = pairs[-1]
    return tf.matmul(x, w) + b[:, None]


def adapt(weights, x, y, steps=1):
    """Returns the weights of each task after gradient descent on its points."""
    for _ in range(steps):
        with tf.GradientTape() as tape:
            tape.watch(weights)
            errors = tf.reduce_mean((predict(weights, x) - y) ** 2, axis=(1, 2))
        gradients = tape.gradient(errors, weights)
        weights = [w - RATE * g for w, g in zip(weights, gradients, strict=True)]
    return weights


def broadcast_weights(network, count):
    """Returns the weights of the network, repeated for each task."""
    weights = [part for layer in network.layers for part in layer]
    return [tf.broadcast_to(w[None], [count, *w.shape]) for w in weights]


def train(network, steps, tasks, seed, inner):
    """Trains with `inner` steps of adaptation; with 0, the network learns the mean of all tasks."""
    random = np.random.default_rng(seed)
    optimizer = tf.optimizers.Adam(2e-3)

    @tf.function
    def step(x, y, x_test, y_test):
        with tf.GradientTape() as tape:
            weights = adapt(broadcast_weights(network, tasks), x, y, inner)
            loss = tf.reduce_mean((predict(weights, x_test) - y_test) ** 2)
        gradients = tape.gradient(loss, network.trainable_variables)
        optimizer.apply_gradients(zip(gradients, network.trainable_variables))
        return loss

    losses = []
    for number in range(1, steps + 1):
        losses.append(float(step(*make_tasks(tasks, random))))
        print_progress(number, steps, loss=losses[-1])
    return losses


def error_of(network, steps, seed=5, tasks=100):
    """Returns the mean squared error on new tasks after `steps` steps on their points."""
    x, y, x_test, y_test = make_tasks(tasks, np.random.default_rng(seed))
    weights = adapt(broadcast_weights(network, tasks), x, y, steps)
    return float(tf.reduce_mean((predict(weights, x_test) - y_test) ** 2))


def main(argv=None):
    options = parse_options(__doc__, argv, steps=(1500, 5), tasks=(25, 4), width=(64, 16))
    widths = (1, options.width, options.width, 1)
    meta, plain = Mlp(widths, seed=options.seed), Mlp(widths, seed=options.seed)
    print("meta-learning")
    losses = train(meta, options.steps, options.tasks, options.seed, inner=1)
    print("training without adaptation, for comparison")
    train(plain, options.steps // 3 + 1, options.tasks, options.seed, inner=0)
    if not options.small:
        draw(options, meta, plain, losses)
    return report(
        options,
        {
            f"error of {name} after {steps} steps": error_of(network, steps)
            for name, network in (("MAML", meta), ("the baseline", plain))
            for steps in (0, 1)
        },
    )


def draw(options, meta, plain, losses):
    """Plots one new task before and after a step on its points, and the loss."""
    random = np.random.default_rng(11)
    amplitude, phase = 4.0, 1.0
    wave = np.linspace(-5, 5, 200, dtype=np.float32)[None, :, None]
    x = random.uniform(-5, 5, (1, POINTS, 1)).astype(np.float32)
    y = (amplitude * np.sin(x + phase)).astype(np.float32)
    with saved_figure(options, "maml", 1, 3) as (_, axes):
        for axis, network, title in (
            (axes[0, 0], meta, "Meta-learned"),
            (axes[0, 1], plain, "Trained without adaptation"),
        ):
            axis.plot(wave.ravel(), amplitude * np.sin(wave.ravel() + phase), color=INK, alpha=0.3)
            axis.plot(x.ravel(), y.ravel(), "o", color=INK, markersize=5)
            for steps, color, label in ((0, BLUE, "before"), (1, ORANGE, "after one step")):
                weights = adapt(
                    broadcast_weights(network, 1), tf.constant(x), tf.constant(y), steps
                )
                predictions = predict(weights, tf.constant(wave)).numpy().ravel()
                axis.plot(wave.ravel(), predictions, color=color, label=label)
            axis.set(title=title, ylim=(-6, 6))
        axes[0, 0].legend(frameon=False)
        plot_curve(axes[0, 2], losses, "Training error after one step")
        axes[0, 2].set_yscale("log")


if __name__ == "__main__":
    main()
