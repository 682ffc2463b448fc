"""Helpers of the examples: command line options, initial weights, plots and results."""

import argparse
import contextlib
import json
import math
import pathlib

import numpy as np

BLUE, ORANGE, GREEN, RED, INK = "#2a6f97", "#e07a1f", "#5b8c3a", "#c8553d", "#22333b"


def parse_options(text, argv, **sizes):
    """Parses the command line; `sizes` maps options to their full, small and minimum values.

    `--small` selects the small values and draws no plot, for a run of a few seconds. The default
    minimum is 1 for integers and 0 for floats.
    """
    parser = argparse.ArgumentParser(description=text.splitlines()[0])
    add = parser.add_argument
    for name, (full, small, *_) in sizes.items():
        add(f"--{name}", type=type(full), help=f"default {full}, with --small {small}")
    add("--seed", type=int, default=1)
    add("--small", action="store_true", help="a short run, without a plot")
    add("--out", type=pathlib.Path, default="demo", help="folder for the plot")
    add("--numbers", type=pathlib.Path, metavar="FILE", help="write the results as JSON")
    options = parser.parse_args(argv)
    for name, (full, small, *explicit) in sizes.items():
        minimum = explicit[0] if explicit else int(isinstance(full, int))
        if getattr(options, name) is None:
            setattr(options, name, small if options.small else full)
        if not getattr(options, name) >= minimum:
            parser.error(f"--{name}: expected at least {minimum}, not {getattr(options, name)}")
    return options


def report(options, numbers):
    """Prints the results, and writes them to the file of `--numbers`."""
    for name, value in numbers.items():
        print(f"{name:36s} {value:.4g}")
    if options.numbers:
        options.numbers.write_text(json.dumps({n: float(v) for n, v in numbers.items()}))
    return numbers


def print_progress(step, steps, **numbers):
    """Prints about ten progress lines in all."""
    if step == 1 or step == steps or step % max(1, steps // 10) == 0:
        values = "  ".join(f"{name} {float(value):.4f}" for name, value in numbers.items())
        print(f"step {step:5d}/{steps}  {values}", flush=True)


def set_initial_weights(variables, seed):
    """Sets weights to the same random values in any library; vectors keep their values."""
    random = np.random.default_rng(seed)
    for variable in variables:
        shape = tuple(variable.shape)
        if len(shape) > 1:
            stddev = math.sqrt(2.0 / (math.prod(shape[:-1]) + shape[-1]))
            variable.assign(random.normal(0.0, stddev, shape).astype(np.float32))


@contextlib.contextmanager
def saved_figure(options, name, rows=1, columns=1, size=(14, 4.4), **kwargs):
    """Yields a figure with axes, and saves it at the end of the block."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    style = {"font.size": 10.5, "axes.spines.top": False, "axes.spines.right": False}
    with plt.rc_context(style):
        figure, axes = plt.subplots(
            rows, columns, figsize=size, layout="constrained", squeeze=False, **kwargs
        )
        yield figure, axes
        options.out.mkdir(parents=True, exist_ok=True)
        path = options.out / f"{name}.png"
        figure.savefig(path, dpi=110)
        plt.close(figure)
    print(f"plot  {path}")


def plot_curve(axis, values, title, color=INK, **kwargs):
    """Plots values over the steps."""
    axis.plot(np.arange(1, len(values) + 1), values, color=color, linewidth=1.2, **kwargs)
    axis.set(title=title, xlabel="step")
    axis.grid(axis="y", color="#000000", alpha=0.08)


def show_image(axis, array, title="", **kwargs):
    """Shows an image without axes."""
    axis.imshow(array, **({"cmap": "gray_r", "vmin": 0, "vmax": 1} | kwargs))
    axis.set_title(title, fontsize=9.5)
    axis.axis("off")
