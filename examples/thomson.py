"""Electrons on a sphere: the lowest energy, by L-BFGS of SciPy with gradients from a tape.

Charges that repel each other settle where the sum of 1 / distance over all pairs is lowest. The
energies are known to many digits, so that anybody can check the result. What is taught: how a
minimiser that wants one vector of numbers is given variables of any shapes.
"""

import numpy as np
import tensorflow as tf
from flat import minimize
from showing import BLUE, RED, curve, options_of, picture, report

KNOWN = {4: 3.674234614, 6: 9.985281374, 8: 19.675287861, 12: 49.165253058, 32: 412.261274651}


def energy_of(points):
    """The sum of 1 / distance over all pairs of points, which are moved onto the sphere first."""
    on_sphere = points / tf.norm(points, axis=1, keepdims=True)
    count = points.shape[0]
    first, second = np.triu_indices(count, k=1)
    apart = tf.gather(on_sphere, first) - tf.gather(on_sphere, second)
    return tf.reduce_sum(1.0 / tf.norm(apart, axis=1))


def settle(count, starts, seed):
    """Returns the best points of several starts, and the energies on the way there."""
    random = np.random.default_rng(seed)
    best, history = None, [np.inf]
    for _ in range(starts):
        points = tf.Variable(random.normal(size=(count, 3)))
        found = minimize(lambda points=points: energy_of(points), [points], steps=400)
        if found[-1] < history[-1]:
            best, history = points.numpy(), found
    return best / np.linalg.norm(best, axis=1, keepdims=True), history


def main(arguments=None):
    options = options_of(__doc__, arguments, starts=(6, 2), largest=(32, 8, min(KNOWN)))
    numbers, settled = {}, {}
    for count in [count for count in KNOWN if count <= options.largest]:
        settled[count], history = settle(count, options.starts, options.seed)
        numbers[f"energy of {count} electrons"] = history[-1]
        numbers[f"above the known one, {count}"] = history[-1] / KNOWN[count] - 1.0
    if not options.small:
        draw(options, settled, history)
    return report(options, numbers)


def draw(options, settled, history):
    """Draws the electrons with lines to their neighbours, and how the energy fell."""
    with picture(options, "thomson", 1, 4, size=(14, 3.9)) as (figure, axes):
        for axis, count in zip(axes[0], (6, 12, 32), strict=False):
            axis.remove()
            if count not in settled:
                continue
            axis = figure.add_subplot(axis.get_subplotspec(), projection="3d")
            points = settled[count]
            apart = np.linalg.norm(points[:, None] - points[None], axis=-1)
            np.fill_diagonal(apart, np.inf)
            for i, j in np.argwhere(apart < 1.25 * apart.min()):
                axis.plot(*points[[i, j]].T, color=BLUE, linewidth=0.8, alpha=0.5)
            axis.scatter(*points.T, color=RED, s=26)
            axis.set(title=f"{count} electrons", box_aspect=(1, 1, 1))
            axis.axis("off")
        last = max(settled)
        above = np.array(history) / KNOWN[last] - 1
        curve(axes[0, 3], above, f"Above the lowest energy, {last} electrons")
        axes[0, 3].set_yscale("log")
        axes[0, 3].title.set_fontsize(10)


if __name__ == "__main__":
    main()
