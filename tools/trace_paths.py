"""Counts the Python frames, files and switches between files on common code paths.

    python tools/trace_paths.py

Only frames of retrograde count. Each path has run before, so imports and compilation do not count.
"""

from __future__ import annotations

import itertools
import pathlib
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

import retrograde as tf

PACKAGE = str(pathlib.Path(tf.__file__).parent)


def count_frames(work: Callable[[], Any]) -> tuple[int, int, int]:
    """Returns the number of frames, of files, and of switches between files in `work`."""
    files: list[str] = []

    def profile(frame: Any, event: str, _arg: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith((PACKAGE, "<retrograde")):
            files.append(frame.f_code.co_filename)

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    switches = sum(a != b for a, b in itertools.pairwise(files))
    return len(files), len(set(files)), switches


def scalar_gradient() -> Callable[[], Any]:
    x = tf.Variable(2.0)

    def work() -> None:
        with tf.GradientTape() as tape:
            y = tf.sin(x * x)
        tape.gradient(y, x)

    return work


def large_gradient() -> Callable[[], Any]:
    x = tf.Variable(np.ones(2_000_000, np.float32))

    def work() -> None:
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.sin(x * x))
        tape.gradient(y, x)

    return work


def training_step() -> Callable[[], Any]:
    w, b = tf.Variable(np.ones((4, 3), np.float32)), tf.Variable(np.zeros(3, np.float32))
    x = tf.constant(np.ones((8, 4), np.float32))

    def work() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.tanh(x @ w + b) ** 2)
        for v, g in zip((w, b), tape.gradient(loss, [w, b]), strict=True):
            v.assign_sub(0.1 * g)

    return work


def function_call(number: int) -> Callable[[], Any]:
    """Returns a new function whose next call is call `number`."""

    def new() -> Callable[[], Any]:
        step = training_step()
        return tf.function(step)

    for _ in range(4):
        new()()
    function = new()
    for _ in range(number - 1):
        function()
    return function


def fit_with_a_new_shape() -> Callable[[], Any]:
    from retrograde import keras

    model = keras.Sequential([keras.layers.Dense(3, activation="relu"), keras.layers.Dense(1)])
    model.compile("adam", "mse", jit_compile=False)
    data = np.ones((24, 4), np.float32)
    for size in (8, 6):
        model.fit(data, data[:, :1], batch_size=size, verbose=0)
    return lambda: model.fit(data, data[:, :1], batch_size=4, verbose=0)


def checkpoint() -> Callable[[], Any]:
    saved = tf.train.Checkpoint(a=tf.Variable(1.0), b=tf.Variable([2.0]))
    folder = tempfile.mkdtemp()
    return lambda: saved.write(f"{folder}/weights")


PATHS: dict[str, Callable[[], Callable[[], Any]]] = {
    "gradient of sin(x * x), scalar": scalar_gradient,
    "the same with reduce_sum, 2M floats": large_gradient,
    "eager training step": training_step,
    "tf.function, call 1": lambda: function_call(1),
    "tf.function, call 2": lambda: function_call(2),
    "tf.function, call 3": lambda: function_call(3),
    "fit, new batch shape": fit_with_a_new_shape,
    "Checkpoint.write, 2 weights": checkpoint,
}
ONCE = {"tf.function, call 1", "tf.function, call 2", "tf.function, call 3", "fit, new batch shape"}


def main() -> None:
    """Prints a Markdown table."""
    print("| path | frames | files | switches |\n| --- | --: | --: | --: |")
    for name, make in PATHS.items():
        work = make()
        if name not in ONCE:
            for _ in range(3):
                work()
        print(f"| {name} | {' | '.join(f'{n:,}' for n in count_frames(work))} |")


if __name__ == "__main__":
    main()
