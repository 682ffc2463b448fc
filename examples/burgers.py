"""Burgers' equation solved by a physics-informed network, without data.

    u_t + u u_x = (0.01 / pi) u_xx,   u(0, x) = -sin(pi x),   u(t, -1) = u(t, 1) = 0

The network u(t, x) is trained to satisfy the equation at random points, and the initial and
boundary values; it never sees a solution. The derivatives in the equation come from nested tapes,
or on retrograde from `tape.derivatives`; both are compared. Training uses a few hundred steps of
Adam, then L-BFGS, which makes such networks accurate. The plot compares the result with the exact
solution. Shows derivatives with respect to inputs inside a loss.
"""

import itertools
import time

import numpy as np
import tensorflow as tf
from example_utils import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    RED,
    parse_options,
    print_progress,
    report,
    saved_figure,
)
from lbfgs import minimize

VISCOSITY = 0.01 / np.pi


class Network(tf.Module):
    """A multilayer perceptron from (t, x) to u, with tanh between the layers."""

    def __init__(self, width, depth, seed):
        super().__init__()
        random = np.random.default_rng(seed)
        widths = (2, *(width,) * depth, 1)
        self.weights = [
            tf.Variable(random.normal(0.0, (2 / (a + b)) ** 0.5, (a, b)))
            for a, b in itertools.pairwise(widths)
        ]
        self.biases = [tf.Variable(np.zeros(b)) for b in widths[1:]]

    def __call__(self, t, x):
        h = tf.concat([2.0 * t - 1.0, x], axis=1)
        for w, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            h = tf.tanh(h @ w + b)
        return h @ self.weights[-1] + self.biases[-1]


def residual_by_nested_tapes(network, t, x):
    """Returns the residual of the equation at each point."""
    with tf.GradientTape() as second:
        second.watch(x)
        with tf.GradientTape() as first:
            first.watch([t, x])
            u = network(t, x)
        u_t, u_x = first.gradient(u, [t, x])
    u_xx = second.gradient(u_x, x)
    return u_t + u * u_x - VISCOSITY * u_xx


def residual_by_derivatives(network, t, x):
    """Returns the same residual, computed with `tape.derivatives`."""
    with tf.GradientTape() as tape:
        tape.watch([t, x])
        u = network(t, x)
    d = tape.derivatives(u, {"t": t, "x": x, "xx": x})
    return d["t"] + u * d["x"] - VISCOSITY * d["xx"]


METHODS = {"nested tapes": residual_by_nested_tapes}
if hasattr(tf.GradientTape, "derivatives"):
    METHODS["derivatives"] = residual_by_derivatives
residual = list(METHODS.values())[-1]


def make_points(interior, boundary, seed):
    """Returns random points: in the interior, at t = 0 with their values, and at x = -1 and 1."""
    random = np.random.default_rng(seed)
    near_shock = random.normal(0.0, 0.15, (interior // 2, 1)).clip(-1, 1)
    x = np.concatenate([near_shock, random.uniform(-1, 1, (interior - interior // 2, 1))])
    x_initial = random.uniform(-1, 1, (boundary, 1))
    x_boundary = np.where(random.random((boundary, 1)) < 0.5, -1.0, 1.0)
    points = {
        "interior": (random.uniform(0, 1, (interior, 1)), x),
        "initial": (np.zeros((boundary, 1)), x_initial, -np.sin(np.pi * x_initial)),
        "boundary": (random.uniform(0, 1, (boundary, 1)), x_boundary),
    }
    return {name: tuple(map(tf.constant, arrays)) for name, arrays in points.items()}


def loss_fn(network, points, residual=residual):
    """Returns the mean squared residual plus the mean squared initial and boundary errors."""
    t, x, u = points["initial"]
    return (
        tf.reduce_mean(residual(network, *points["interior"]) ** 2)
        + tf.reduce_mean((network(t, x) - u) ** 2)
        + tf.reduce_mean(network(*points["boundary"]) ** 2)
    )


def train_with_adam(network, points, steps, report):
    """Returns the loss before each step."""
    optimizer = tf.optimizers.Adam(0.003)
    losses = []
    for step in range(1, steps + 1):
        with tf.GradientTape() as tape:
            loss = loss_fn(network, points)
        gradients = tape.gradient(loss, network.trainable_variables)
        optimizer.apply_gradients(zip(gradients, network.trainable_variables))
        losses.append(float(loss))
        report(step, steps, loss=loss)
    return losses


def train_with_lbfgs(network, points, steps, report):
    """Returns the loss after each iteration."""
    return minimize(
        lambda: loss_fn(network, points),
        list(network.trainable_variables),
        steps,
        callback=lambda step, loss: report(step, steps, loss=loss),
        memory=50,
    )


def exact(t, x):
    """Computes the solution by the Cole-Hopf transformation and Gauss-Hermite quadrature."""
    nodes, weights = np.polynomial.hermite.hermgauss(120)
    offsets = np.sqrt(4 * VISCOSITY * np.maximum(t, 1e-12))[..., None] * nodes
    z = x[..., None] - offsets
    kernel = np.exp(-np.cos(np.pi * z) / (2 * np.pi * VISCOSITY) + 1 / (2 * np.pi * VISCOSITY))
    with np.errstate(invalid="ignore"):
        ratio = (np.sin(np.pi * z) * kernel) @ weights / (kernel @ weights)
    return np.where(t > 1e-9, -ratio, -np.sin(np.pi * x))


def on_grid(network, size=201):
    """Returns t, x, the solution of the network and the exact solution on a grid."""
    t, x = np.linspace(0, 1, size // 2 + 1), np.linspace(-1, 1, size)
    grid = np.meshgrid(t, x)
    columns = [tf.constant(axis.reshape(-1, 1)) for axis in grid]
    return t, x, network(*columns).numpy().reshape(grid[0].shape), exact(*grid)


def compare_methods(network, points, times=5):
    """Returns the largest difference between the residuals, and the time per gradient."""
    seconds = {}
    values = {}
    for name, method in METHODS.items():
        values[name] = method(network, *points["interior"]).numpy()
        start = time.perf_counter()
        for _ in range(times):
            with tf.GradientTape() as tape:
                loss = loss_fn(network, points, method)
            tape.gradient(loss, network.trainable_variables)
        seconds[name] = (time.perf_counter() - start) / times
    difference = np.max(np.abs(np.ptp(list(values.values()), axis=0)))
    return difference, seconds


def draw(options, network, adam, lbfgs):
    """Plots the solution, cross sections with the exact solution, and the loss."""
    t, x, u, expected = on_grid(network)
    with saved_figure(options, "burgers", 1, 3, size=(14, 4.2), width_ratios=[1.25, 1, 1]) as (
        f,
        axes,
    ):
        left, middle, right = axes[0]
        extent = (0, 1, -1, 1)
        solution = left.imshow(
            u, origin="lower", extent=extent, aspect="auto", cmap="RdBu_r", vmin=-1, vmax=1
        )
        left.set(title="u(t, x) by the network", xlabel="t", ylabel="x")
        f.colorbar(solution, ax=left, pad=0.02)
        for time_shown, color in ((0.0, GREEN), (0.3, ORANGE), (1.0, BLUE)):
            column = np.argmin(np.abs(t - time_shown))
            left.axvline(t[column], color=color, linewidth=1.2, linestyle=":")
            middle.plot(x, expected[:, column], color=color, linewidth=4, alpha=0.3)
            middle.plot(x, u[:, column], color=color, linewidth=1.4, label=f"t = {time_shown:g}")
        middle.set(title="Network (thin) and exact (broad)", xlabel="x", ylabel="u")
        middle.legend(frameon=False)
        right.semilogy(np.arange(len(adam)), adam, color=INK, linewidth=1.2, label="Adam")
        after = len(adam) + np.arange(len(lbfgs))
        right.semilogy(after, lbfgs, color=RED, linewidth=1.2, label="L-BFGS")
        right.set(title="Loss", xlabel="step")
        right.grid(axis="y", color="#000000", alpha=0.08)
        right.legend(frameon=False)


def main(argv=None):
    options = parse_options(
        __doc__, argv, adam=(400, 3), lbfgs=(2000, 5), width=(20, 8), points=(2000, 60, 10)
    )
    points = make_points(options.points, options.points // 10, options.seed + 2)
    network = Network(options.width, 2 if options.small else 5, options.seed + 2)
    difference, seconds = compare_methods(network, points)
    for name, value in seconds.items():
        print(f"one gradient with {name:12s}  {1e3 * value:6.1f} ms")

    adam = train_with_adam(network, points, options.adam, print_progress)
    lbfgs = train_with_lbfgs(network, points, options.lbfgs, print_progress)

    _, _, u, expected = on_grid(network)
    error = np.linalg.norm(u - expected) / np.linalg.norm(expected)
    if not options.small:
        draw(options, network, adam, lbfgs)
        print(f"largest difference of the residuals  {difference:.1e}")
    return report(
        options,
        {
            "loss after Adam": adam[-1],
            "loss after L-BFGS": lbfgs[-1],
            "relative error of the solution": error,
        },
    )


if __name__ == "__main__":
    main()
