"""A neural ordinary differential equation: the law of motion, learned from a noisy orbit.

A point moves on a spiral by a law that we pretend not to know. A network stands in for the law,
dy/dt = network(y); a Runge-Kutta solver written with tensors follows it over short stretches, and
the gradient goes back through all steps of the solver to L-BFGS. `tf.recompute_grad` around a step
keeps the memory small: what is inside a step is computed again on the way back.
"""

import argparse
import pathlib
import sys
import time

import numpy as np

import retrograde as tf

TRUE = np.array([[-0.1, 2.0], [-2.0, -0.1]])
START = np.array([[2.0, 0.0]])


def true_law(y):
    return tf.linalg.matmul(y**3, tf.constant(TRUE, y.dtype))


class Law:
    """A small network that reads the cube of the position, as the true law does."""

    def __init__(self, width, seed):
        random = np.random.default_rng(seed)
        self.variables = [
            tf.Variable(random.normal(0.0, 0.1, (2, width)), name="w1"),
            tf.Variable(np.zeros(width), name="b1"),
            tf.Variable(random.normal(0.0, 0.1, (width, 2)), name="w2"),
            tf.Variable(np.zeros(2), name="b2"),
        ]

    def __call__(self, y):
        w1, b1, w2, b2 = self.variables
        return tf.tanh(y**3 @ w1 + b1) @ w2 + b2


def runge_kutta_step(law, y, h):
    """One step of the classical method, of fourth order."""
    k1 = law(y)
    k2 = law(y + 0.5 * h * k1)
    k3 = law(y + 0.5 * h * k2)
    k4 = law(y + h * k3)
    return y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)


def follow(law, start, h, steps, recompute=False):
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
    """Returns times, and positions on the true orbit seen through noise."""
    times = np.linspace(0.0, end, count)
    orbit = follow(true_law, tf.constant(START), times[1] - times[0], count - 1).numpy()[:, 0]
    return times, orbit, orbit + np.random.default_rng(seed).normal(0.0, noise, orbit.shape)


def stretches(observed, length, every):
    """Returns the observations cut into overlapping stretches, shape (length + 1, stretches, 2)."""
    first = np.arange(0, len(observed) - length, every)
    return tf.constant(observed[first[None] + np.arange(length + 1)[:, None]])


def loss_of(law, seen, h):
    """Returns the mean square of how far the solver ends up from what was seen."""
    followed = follow(law, seen[0], h, len(seen) - 1, recompute=True)
    return tf.reduce_mean((followed - seen) ** 2)


def train(law, seen, h, steps, report):
    """Fits `law` to all stretches at once; returns the loss after each iteration."""
    start = time.perf_counter()
    result = tf.optimize.minimize(
        lambda: loss_of(law, seen, h),
        law.variables,
        "L-BFGS-B",
        options={"maxiter": steps, "maxcor": 30, "ftol": 0.0, "gtol": 1e-8},
        callback=lambda r: report(
            r.iterations, steps, r.loss, r.evaluations / (time.perf_counter() - start)
        ),
    )
    return result.history


def show_progress(step, steps, loss, speed):
    """Writes one line: over the last one on a terminal, now and then into a file."""
    done = 24 * step // steps
    line = (
        f"step {step:4d}/{steps}  {'█' * done}{'░' * (24 - done)}  loss {loss:.3e}"
        f"  {speed:4.0f} gradients/s"
    )
    if sys.stdout.isatty():
        print(f"\r{line}", end="\n" if step == steps else "", flush=True)
    elif step == 1 or step % 50 == 0 or step == steps:
        print(line, flush=True)


def draw(path, law, times, orbit, observed, losses):
    """Draws the orbit that the network predicts from the start alone, its law, and the loss."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    h = times[1] - times[0]
    predicted = follow(law, tf.constant(START), h, len(times) - 1).numpy()[:, 0]
    line = np.linspace(-2.2, 2.2, 17)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    field = law(tf.constant(grid)).numpy()
    field /= np.linalg.norm(field, axis=1, keepdims=True) + 1e-9
    style = {"font.size": 10.5, "axes.spines.top": False, "axes.spines.right": False}
    with plt.rc_context(style):
        figure, axes = plt.subplots(1, 3, figsize=(14, 4.4), layout="constrained")
        axes[0].plot(*observed.T, ".", color="#9aa5ab", markersize=2.5, label="observed")
        axes[0].plot(*orbit.T, color="#2a6f97", linewidth=4, alpha=0.35, label="true")
        axes[0].plot(*predicted.T, color="#c8553d", linewidth=1.3, label="network")
        axes[0].set(title="Orbit from the start alone", aspect="equal")
        axes[0].legend(frameon=False, loc="upper right", fontsize=9)
        axes[1].quiver(*grid.T, *field.T, color="#22333b", scale=28, width=0.004)
        axes[1].set(title="Direction of the learned law", aspect="equal")
        axes[2].semilogy(losses, color="#22333b", linewidth=1.0)
        axes[2].set(title="Loss", xlabel="iteration", ylabel="mean square")
        axes[2].grid(axis="y", which="both", color="#000000", alpha=0.08)
        figure.savefig(path, dpi=150)
        plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300, help="iterations of L-BFGS")
    parser.add_argument("--width", type=int, default=50, help="width of the hidden layer")
    parser.add_argument("--noise", type=float, default=0.01, help="of the observations")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--out", type=pathlib.Path, default="demo", help="folder for the picture")
    options = parser.parse_args()

    times, orbit, observed = observe(500, 12.0, options.noise, options.seed)
    law = Law(options.width, options.seed)
    seen = stretches(observed, length=20, every=5)
    losses = train(law, seen, times[1] - times[0], options.steps, show_progress)

    predicted = follow(law, tf.constant(START), times[1] - times[0], len(times) - 1).numpy()[:, 0]
    distance = np.mean(np.linalg.norm(predicted - orbit, axis=1))
    print(f"mean distance of the predicted orbit  {distance:.3f}")
    options.out.mkdir(parents=True, exist_ok=True)
    picture = options.out / "neural_ode.png"
    draw(picture, law, times, orbit, observed, losses)
    print(f"picture  {picture}")


if __name__ == "__main__":
    main()
