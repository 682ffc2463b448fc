"""What the examples share: options, the same start everywhere, pictures, and numbers to compare."""

import argparse
import contextlib
import json
import math
import pathlib

import numpy as np

BLUE, ORANGE, GREEN, RED, INK = "#2a6f97", "#e07a1f", "#5b8c3a", "#c8553d", "#22333b"


def options_of(text, arguments, **sizes):
    """Reads the command line; `sizes` maps options to their full, small and smallest values.

    `--small` takes the small values and draws nothing, for a run of a few seconds. The smallest
    value that an option accepts is 1 if it is not given, 0 for a float.
    """
    parser = argparse.ArgumentParser(description=text.splitlines()[0])
    add = parser.add_argument
    for name, (full, small, *_) in sizes.items():
        add(f"--{name}", type=type(full), help=f"default {full}, with --small {small}")
    add("--seed", type=int, default=1)
    add("--small", action="store_true", help="a short run, without a picture")
    add("--out", type=pathlib.Path, default="demo", help="folder for the picture")
    add("--numbers", type=pathlib.Path, metavar="FILE", help="write the results as JSON")
    options = parser.parse_args(arguments)
    for name, (full, small, *smallest) in sizes.items():
        least = smallest[0] if smallest else int(isinstance(full, int))
        if getattr(options, name) is None:
            setattr(options, name, small if options.small else full)
        if not getattr(options, name) >= least:
            parser.error(f"--{name}: expected at least {least}, not {getattr(options, name)}")
    return options


def report(options, numbers):
    """Prints the results, and writes them where another run can be compared with them."""
    for name, value in numbers.items():
        print(f"{name:36s} {value:.4g}")
    if options.numbers:
        options.numbers.write_text(json.dumps({n: float(v) for n, v in numbers.items()}))
    return numbers


def progress(step, steps, **numbers):
    """Prints about ten lines on the way."""
    if step == 1 or step == steps or step % max(1, steps // 10) == 0:
        values = "  ".join(f"{name} {float(value):.4f}" for name, value in numbers.items())
        print(f"step {step:5d}/{steps}  {values}", flush=True)


def start_alike(variables, seed):
    """Sets weights to the same random values in any library; biases and scales stay as they are."""
    random = np.random.default_rng(seed)
    for variable in variables:
        shape = tuple(variable.shape)
        if len(shape) > 1:
            spread = math.sqrt(2.0 / (math.prod(shape[:-1]) + shape[-1]))
            variable.assign(random.normal(0.0, spread, shape).astype(np.float32))


@contextlib.contextmanager
def picture(options, name, rows=1, columns=1, size=(14, 4.4), **more):
    """A figure to draw on, saved at the end."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    style = {"font.size": 10.5, "axes.spines.top": False, "axes.spines.right": False}
    with plt.rc_context(style):
        figure, axes = plt.subplots(
            rows, columns, figsize=size, layout="constrained", squeeze=False, **more
        )
        yield figure, axes
        options.out.mkdir(parents=True, exist_ok=True)
        path = options.out / f"{name}.png"
        figure.savefig(path, dpi=110)
        plt.close(figure)
    print(f"picture  {path}")


def curve(axis, values, title, colour=INK, **more):
    """One line over the steps."""
    axis.plot(np.arange(1, len(values) + 1), values, color=colour, linewidth=1.2, **more)
    axis.set(title=title, xlabel="step")
    axis.grid(axis="y", color="#000000", alpha=0.08)


def image(axis, array, title="", **more):
    """One image without axes."""
    axis.imshow(array, **({"cmap": "gray_r", "vmin": 0, "vmax": 1} | more))
    axis.set_title(title, fontsize=9.5)
    axis.axis("off")
