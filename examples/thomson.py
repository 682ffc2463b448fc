"""The Thomson problem: electrons on a sphere, with SciPy's L-BFGS and gradients from a tape.

The sum of 1 / distance over all pairs of electrons is minimized. The lowest energies are known to
many digits, so the result can be checked. Shows how to use an optimizer that needs one flat vector.
"""

import numpy as np
import tensorflow as tf
from example_utils import BLUE, RED, parse_options, plot_curve, report, saved_figure
from lbfgs import minimize

KNOWN = {4: 3.674234614, 6: 9.985281374, 8: 19.675287861, 12: 49.165253058, 32: 412.261274651}


def energy_of(points):
    """Computes the sum of 1 / distance over all pairs of points, projected onto the sphere."""
    on_sphere = points / tf.norm(points, axis=1, keepdims=True)
    count = points.shape[0]
    first, second = np.triu_indices(count, k=1)
    differences = tf.gather(on_sphere, first) - tf.gather(on_sphere, second)
    return tf.reduce_sum(1.0 / tf.norm(differences, axis=1))


def minimize_energy(count, starts, seed):
    """Returns the best points of several starts, and their energies after each iteration."""
    random = np.random.default_rng(seed)
    best, history = None, [np.inf]
    for _ in range(starts):
        points = tf.Variable(random.normal(size=(count, 3)))
        energies = minimize(lambda points=points: energy_of(points), [points], steps=400)
        if energies[-1] < history[-1]:
            best, history = points.numpy(), energies
    return best / np.linalg.norm(best, axis=1, keepdims=True), history


def main(argv=None):
    options = parse_options(__doc__, argv, starts=(6, 2), largest=(32, 8, min(KNOWN)))
    numbers, solutions = {}, {}
    for count in [count for count in KNOWN if count <= options.largest]:
        solutions[count], history = minimize_energy(count, options.starts, options.seed)
        numbers[f"energy of {count} electrons"] = history[-1]
        numbers[f"relative error, {count} electrons"] = history[-1] / KNOWN[count] - 1.0
    if not options.small:
        draw(options, solutions, history)
    return report(options, numbers)


def draw(options, solutions, history):
    """Plots the electrons with lines to their neighbors, and the energy."""
    with saved_figure(options, "thomson", 1, 4, size=(14, 3.9)) as (figure, axes):
        for axis, count in zip(axes[0], (6, 12, 32), strict=False):
            axis.remove()
            if count not in solutions:
                continue
            axis = figure.add_subplot(axis.get_subplotspec(), projection="3d")
            points = solutions[count]
            distances = np.linalg.norm(points[:, None] - points[None], axis=-1)
            np.fill_diagonal(distances, np.inf)
            for i, j in np.argwhere(distances < 1.25 * distances.min()):
                axis.plot(*points[[i, j]].T, color=BLUE, linewidth=0.8, alpha=0.5)
            axis.scatter(*points.T, color=RED, s=26)
            axis.set(title=f"{count} electrons", box_aspect=(1, 1, 1))
            axis.axis("off")
        last = max(solutions)
        error = np.array(history) / KNOWN[last] - 1
        plot_curve(axes[0, 3], error, f"Relative error of the energy, {last} electrons")
        axes[0, 3].set_yscale("log")
        axes[0, 3].title.set_fontsize(10)


if __name__ == "__main__":
    main()
