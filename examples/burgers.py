"""Burgers' equation by a physics-informed network: a shock that no data show.

    u_t + u u_x = (0.01 / pi) u_xx,   u(0, x) = -sin(pi x),   u(t, -1) = u(t, 1) = 0

The network u(t, x) is trained to satisfy the equation at random points, and the values at the
edges; it never sees a solution. The derivatives that the equation needs are written in two ways:
with nested tapes, as one does in TensorFlow, and with `tape.derivatives`. A few hundred steps of
Adam come first, then L-BFGS by `tf.optimize.minimize`, which is what makes such networks accurate.
The picture compares with the exact solution.
"""

import argparse
import itertools
import pathlib
import sys
import time

import numpy as np

import retrograde as tf

VISCOSITY = 0.01 / np.pi


class Network:
    """A multilayer perceptron from (t, x) to u: tanh between the layers."""

    def __init__(self, width, depth, seed):
        random = np.random.default_rng(seed)
        widths = (2, *(width,) * depth, 1)
        self.weights = [
            tf.Variable(random.normal(0.0, (2 / (a + b)) ** 0.5, (a, b)))
            for a, b in itertools.pairwise(widths)
        ]
        self.biases = [tf.Variable(np.zeros(b)) for b in widths[1:]]

    @property
    def variables(self):
        return [*self.weights, *self.biases]

    def __call__(self, t, x):
        h = tf.concat([2.0 * t - 1.0, x], axis=1)
        for w, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            h = tf.tanh(h @ w + b)
        return h @ self.weights[-1] + self.biases[-1]


def residual_by_nested_tapes(network, t, x):
    """Returns how far the network is from satisfying the equation at each point."""
    with tf.GradientTape() as second:
        second.watch(x)
        with tf.GradientTape() as first:
            first.watch([t, x])
            u = network(t, x)
        u_t, u_x = first.gradient(u, [t, x])
    u_xx = second.gradient(u_x, x)
    return u_t + u * u_x - VISCOSITY * u_xx


def residual(network, t, x):
    """The same with `tape.derivatives`."""
    with tf.GradientTape() as tape:
        tape.watch([t, x])
        u = network(t, x)
    d = tape.derivatives(u, {"t": t, "x": x, "xx": x})
    return d["t"] + u * d["x"] - VISCOSITY * d["xx"]


def make_points(inside, edge, seed):
    """Returns random points: inside, at the start with their values, and at the two ends."""
    random = np.random.default_rng(seed)
    near_the_middle = random.normal(0.0, 0.15, (inside // 2, 1)).clip(-1, 1)  # where the shock is
    x = np.concatenate([near_the_middle, random.uniform(-1, 1, (inside - inside // 2, 1))])
    x_start = random.uniform(-1, 1, (edge, 1))
    ends = np.where(random.random((edge, 1)) < 0.5, -1.0, 1.0)
    points = {
        "inside": (random.uniform(0, 1, (inside, 1)), x),
        "start": (np.zeros((edge, 1)), x_start, -np.sin(np.pi * x_start)),
        "ends": (random.uniform(0, 1, (edge, 1)), ends),
    }
    return {name: tuple(map(tf.constant, arrays)) for name, arrays in points.items()}


def loss_of(network, points, residual=residual):
    """Returns the mean squares of the residual and of the errors at the edges, added up."""
    t, x, u = points["start"]
    return (
        tf.reduce_mean(residual(network, *points["inside"]) ** 2)
        + tf.reduce_mean((network(t, x) - u) ** 2)
        + tf.reduce_mean(network(*points["ends"]) ** 2)
    )


class Adam:
    """Adam, written out: two running means for each variable."""

    def __init__(self, variables, rate=0.003):
        self.rate, self.steps, self.variables = rate, 0, variables
        self.means = [np.zeros(v.shape) for v in variables]
        self.squares = [np.zeros(v.shape) for v in variables]

    def apply(self, gradients):
        self.steps += 1
        correction = (1 - 0.999**self.steps) ** 0.5 / (1 - 0.9**self.steps)
        slots = zip(self.variables, gradients, self.means, self.squares, strict=True)
        for variable, gradient, mean, squares in slots:
            mean += 0.1 * (gradient.numpy() - mean)
            squares += 0.001 * (gradient.numpy() ** 2 - squares)
            variable.assign_sub(self.rate * correction * mean / (np.sqrt(squares) + 1e-8))


def train_with_adam(network, points, steps, report):
    """Returns the loss before each step."""
    optimizer = Adam(network.variables)
    losses = []
    for step in range(1, steps + 1):
        with tf.GradientTape() as tape:
            loss = loss_of(network, points)
        optimizer.apply(tape.gradient(loss, network.variables))
        losses.append(float(loss))
        report("Adam", step, steps, losses[-1])
    return losses


def train_with_lbfgs(network, points, steps, report):
    """Returns the loss after each iteration."""
    result = tf.optimize.minimize(
        lambda: loss_of(network, points),
        network.variables,
        "L-BFGS-B",
        options={"maxiter": steps, "maxcor": 50, "ftol": 0.0, "gtol": 1e-9},
        callback=lambda r: report("L-BFGS", r.iterations, steps, r.loss),
    )
    return result.history


def exact(t, x):
    """The solution by the transform of Cole and Hopf, integrated by Gauss and Hermite."""
    nodes, weights = np.polynomial.hermite.hermgauss(120)
    spread = np.sqrt(4 * VISCOSITY * np.maximum(t, 1e-12))[..., None] * nodes
    at = x[..., None] - spread
    height = np.exp(-np.cos(np.pi * at) / (2 * np.pi * VISCOSITY) + 1 / (2 * np.pi * VISCOSITY))
    with np.errstate(invalid="ignore"):
        ratio = (np.sin(np.pi * at) * height) @ weights / (height @ weights)
    return np.where(t > 1e-9, -ratio, -np.sin(np.pi * x))


def on_grid(network, size=201):
    """Returns times, places, the network's answers and the exact ones."""
    t, x = np.linspace(0, 1, size // 2 + 1), np.linspace(-1, 1, size)
    grid = np.meshgrid(t, x)
    columns = [tf.constant(axis.reshape(-1, 1)) for axis in grid]
    return t, x, network(*columns).numpy().reshape(grid[0].shape), exact(*grid)


def compare_ways(network, points, times=5):
    """Returns the largest difference between the two residuals, and how long a step takes."""
    seconds = {}
    values = {}
    for name, way in (("nested tapes", residual_by_nested_tapes), ("derivatives", residual)):
        values[name] = way(network, *points["inside"]).numpy()
        start = time.perf_counter()
        for _ in range(times):
            with tf.GradientTape() as tape:
                loss = loss_of(network, points, way)
            tape.gradient(loss, network.variables)
        seconds[name] = (time.perf_counter() - start) / times
    difference = np.max(np.abs(values["nested tapes"] - values["derivatives"]))
    return difference, seconds


def show_progress(phase, step, steps, loss):
    """Writes one line: over the last one on a terminal, now and then into a file."""
    done = 24 * step // steps
    line = f"{phase:6s} {step:5d}/{steps}  {'█' * done}{'░' * (24 - done)}  loss {loss:.3e}"
    if sys.stdout.isatty():
        print(f"\r{line}", end="\n" if step == steps else "", flush=True)
    elif step == 1 or step % 200 == 0 or step == steps:
        print(line, flush=True)


def draw(path, network, adam, lbfgs):
    """Draws the solution, cuts through it beside the exact one, and the loss."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    t, x, u, expected = on_grid(network)
    style = {"font.size": 10.5, "axes.spines.top": False, "axes.spines.right": False}
    with plt.rc_context(style):
        figure, axes = plt.subplots(
            1, 3, figsize=(14, 4.2), layout="constrained", width_ratios=[1.25, 1, 1]
        )
        image = axes[0].imshow(
            u, origin="lower", extent=(0, 1, -1, 1), aspect="auto", cmap="RdBu_r", vmin=-1, vmax=1
        )
        axes[0].set(title="u(t, x) by the network", xlabel="t", ylabel="x")
        figure.colorbar(image, ax=axes[0], pad=0.02)
        for at, colour in ((0.0, "#5b8c3a"), (0.3, "#e07a1f"), (1.0, "#2a6f97")):
            column = np.argmin(np.abs(t - at))
            axes[0].axvline(t[column], color=colour, linewidth=1.2, linestyle=":")
            axes[1].plot(x, expected[:, column], color=colour, linewidth=4, alpha=0.3)
            axes[1].plot(x, u[:, column], color=colour, linewidth=1.4, label=f"t = {at:g}")
        axes[1].set(title="Network (thin) and exact (broad)", xlabel="x", ylabel="u")
        axes[1].legend(frameon=False)
        axes[2].semilogy(np.arange(len(adam)), adam, color="#22333b", linewidth=1.2, label="Adam")
        after = len(adam) + np.arange(len(lbfgs))
        axes[2].semilogy(after, lbfgs, color="#c8553d", linewidth=1.2, label="L-BFGS")
        axes[2].set(title="Loss", xlabel="step")
        axes[2].grid(axis="y", color="#000000", alpha=0.08)
        axes[2].legend(frameon=False)
        figure.savefig(path, dpi=150)
        plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--adam", type=int, default=400, help="steps of Adam")
    parser.add_argument("--lbfgs", type=int, default=2000, help="iterations of L-BFGS")
    parser.add_argument("--width", type=int, default=20, help="width of the hidden layers")
    parser.add_argument("--points", type=int, default=2000, help="points inside")
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--out", type=pathlib.Path, default="demo", help="folder for the picture")
    options = parser.parse_args()

    points = make_points(options.points, 200, options.seed)
    network = Network(options.width, 5, options.seed)
    difference, seconds = compare_ways(network, points)
    for name, value in seconds.items():
        print(f"one gradient with {name:12s}  {1e3 * value:6.1f} ms")
    print(f"largest difference of the residuals  {difference:.1e}")

    adam = train_with_adam(network, points, options.adam, show_progress)
    lbfgs = train_with_lbfgs(network, points, options.lbfgs, show_progress)

    _, _, u, expected = on_grid(network)
    error = np.linalg.norm(u - expected) / np.linalg.norm(expected)
    print(f"\nrelative error against the exact solution  {error:.2e}")
    options.out.mkdir(parents=True, exist_ok=True)
    picture = options.out / "burgers.png"
    draw(picture, network, adam, lbfgs)
    print(f"picture  {picture}")


if __name__ == "__main__":
    main()
