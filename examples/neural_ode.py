"""A neural ordinary differential equation, learned from a noisy orbit.

A point moves on a spiral by an unknown law. A network models the law, dy/dt = network(y). A
Runge-Kutta solver written with tensors integrates it over short segments, and L-BFGS uses the
gradient through all steps of the solver. `tf.recompute_grad` around a step saves memory: the
intermediate results of a step are recomputed in the backward pass. Shows differentiation through a
solver.
"""

import numpy as np
import tensorflow as tf
from example_utils import BLUE, INK, RED, parse_options, print_progress, report, saved_figure
from lbfgs import minimize

TRUE = np.array([[-0.1, 2.0], [-2.0, -0.1]])
START = np.array([[2.0, 0.0]])


def true_law(y):
    return tf.linalg.matmul(y**3, tf.constant(TRUE, y.dtype))


class Law(tf.Module):
    """A small network of the cube of the position, as the true law is."""

    def __init__(self, width, seed):
        super().__init__()
        random = np.random.default_rng(seed)
        self.weights = [
            tf.Variable(random.normal(0.0, 0.1, (2, width)), name="w1"),
            tf.Variable(np.zeros(width), name="b1"),
            tf.Variable(random.normal(0.0, 0.1, (width, 2)), name="w2"),
            tf.Variable(np.zeros(2), name="b2"),
        ]

    def __call__(self, y):
        w1, b1, w2, b2 = self.weights
        return tf.tanh(y**3 @ w1 + b1) @ w2 + b2


def runge_kutta_step(law, y, h):
    """Computes one step of the classical fourth-order Runge-Kutta method."""
    k1 = law(y)
    k2 = law(y + 0.5 * h * k1)
    k3 = law(y + 0.5 * h * k2)
    k4 = law(y + h * k3)
    return y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)


def integrate(law, start, h, steps, recompute=False):
    """Returns the positions after 0, 1, ... `steps` steps, shape (steps + 1, batch, 2)."""
    step = runge_kutta_step
    if recompute:
        step = tf.recompute_grad(lambda y: runge_kutta_step(law, y, h))
    positions = [start]
    for _ in range(steps):
        last = positions[-1]
        positions.append(step(last) if recompute else step(law, last, h))
    return tf.stack(positions)


def observe(count, end, noise, seed):
    """Returns times, positions on the true orbit, and noisy observations of them."""
    times = np.linspace(0.0, end, count)
    orbit = integrate(true_law, tf.constant(START), times[1] - times[0], count - 1).numpy()[:, 0]
    return times, orbit, orbit + np.random.default_rng(seed).normal(0.0, noise, orbit.shape)


def segments(observed, length, every):
    """Returns overlapping segments of the observations, shape (length + 1, segments, 2)."""
    first = np.arange(0, len(observed) - length, every)
    return tf.constant(observed[first[None] + np.arange(length + 1)[:, None]])


def loss_fn(law, observed, h):
    """Returns the mean squared error of the integrated segments."""
    integrated = integrate(law, observed[0], h, len(observed) - 1, recompute=True)
    return tf.reduce_mean((integrated - observed) ** 2)


def train(law, observed, h, steps, report):
    """Fits `law` to all segments at once and returns the loss after each iteration."""
    return minimize(
        lambda: loss_fn(law, observed, h),
        law.weights,
        steps,
        callback=lambda step, loss: report(step, steps, loss=loss),
        memory=30,
    )


def draw(options, law, times, orbit, observed, losses):
    """Plots the orbit predicted from the start, the learned law, and the loss."""
    h = times[1] - times[0]
    predicted = integrate(law, tf.constant(START), h, len(times) - 1).numpy()[:, 0]
    line = np.linspace(-2.2, 2.2, 17)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    field = law(tf.constant(grid)).numpy()
    field /= np.linalg.norm(field, axis=1, keepdims=True) + 1e-9
    with saved_figure(options, "neural_ode", 1, 3) as (_, axes):
        left, middle, right = axes[0]
        left.plot(*observed.T, ".", color="#9aa5ab", markersize=2.5, label="observed")
        left.plot(*orbit.T, color=BLUE, linewidth=4, alpha=0.35, label="true")
        left.plot(*predicted.T, color=RED, linewidth=1.3, label="network")
        left.set(title="Orbit predicted from the start", aspect="equal")
        left.legend(frameon=False, loc="center", fontsize=9)
        middle.quiver(*grid.T, *field.T, color=INK, scale=28, width=0.004)
        middle.set(title="Direction of the learned law", aspect="equal")
        right.semilogy(losses, color=INK, linewidth=1.0)
        right.set(title="Loss", xlabel="iteration", ylabel="mean square")
        right.grid(axis="y", which="both", color="#000000", alpha=0.08)


def main(argv=None):
    options = parse_options(
        __doc__,
        argv,
        steps=(300, 4),
        width=(50, 8),
        noise=(0.01, 0.0),
        points=(500, 60, 2),
        segment=(20, 5),
    )
    end = 12.0 * options.points / 500
    times, orbit, observed = observe(options.points, end, options.noise, options.seed + 4)
    law = Law(options.width, options.seed + 4)
    training = segments(observed, length=min(options.segment, options.points - 1), every=5)
    losses = train(law, training, times[1] - times[0], options.steps, print_progress)

    predicted = integrate(law, tf.constant(START), times[1] - times[0], len(times) - 1).numpy()[
        :, 0
    ]
    distance = np.mean(np.linalg.norm(predicted - orbit, axis=1))
    if not options.small:
        draw(options, law, times, orbit, observed, losses)
    return report(
        options,
        {
            "loss after the first iteration": losses[0],
            "final loss": losses[-1],
            "mean distance of the predicted orbit": distance,
        },
    )


if __name__ == "__main__":
    main()
