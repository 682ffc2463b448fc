"""Runs loops of many kinds and checks that they do not leak memory."""

from __future__ import annotations

import gc
import itertools
import os
import sys
from collections.abc import Callable

import numpy as np

import retrograde as tf

SHORT = 6
STEPS = 20_000
_TOLERANCE = 4 << 20  # bytes, because allocators keep some memory


def trial(seed: int) -> str | None:
    """Runs one kind of loop, and compares the memory after a warm-up and after all steps.

    A loop whose steps are slow runs `STEPS` divided by its divisor.
    """
    name = list(LOOPS)[seed % len(LOOPS)]
    step, divisor = LOOPS[name](np.random.default_rng(seed))
    steps = STEPS // divisor
    for _ in range(steps // 10):
        step()
    before = _resident_bytes()
    for _ in range(steps):
        step()
    growth = _resident_bytes() - before
    if growth <= _TOLERANCE:
        return None
    return (
        f"{name}: {steps} steps leaked {growth / 2**20:.1f} MB, {growth / steps:.0f} bytes per step"
    )


def _resident_bytes() -> int:
    """Returns the resident set size in bytes, or its peak on other systems than Linux."""
    gc.collect()
    if sys.platform != "linux":
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _eager(rng: np.random.Generator) -> tuple[Callable, int]:
    w = tf.Variable(rng.standard_normal([16, 16], np.float32))
    x = tf.constant(rng.standard_normal([8, 16], np.float32))

    def step() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.tanh(x @ w) ** 2)
        w.assign_sub(0.01 * tape.gradient(loss, w))

    return step, 1


def _function(rng: np.random.Generator, compiled: bool = False) -> tuple[Callable, int]:
    return tf.function(_eager(rng)[0], jit_compile=compiled), 1


def _compiled_function(rng: np.random.Generator) -> tuple[Callable, int]:
    return _function(rng, compiled=True)


def _function_under_a_tape(rng: np.random.Generator) -> tuple[Callable, int]:
    w = tf.Variable(rng.standard_normal([16, 16], np.float32))
    loss = tf.function(lambda x: tf.reduce_sum(tf.tanh(x @ w)))

    def step() -> None:
        with tf.GradientTape() as tape:
            y = loss(tf.ones([8, 16]))
        w.assign_sub(0.01 * tape.gradient(y, w))

    return step, 1


def _new_signatures(_rng: np.random.Generator) -> tuple[Callable, int]:
    """Traces with a new signature in each step."""
    f = tf.function(lambda x, k: tf.reduce_sum(x) * k, trace_limit=32)
    counter = itertools.count()
    tf.get_logger().setLevel("ERROR")  # otherwise each retracing warns
    return lambda: f(tf.ones([3]), next(counter)), 10


def _second_order(rng: np.random.Generator) -> tuple[Callable, int]:
    w = tf.Variable(rng.standard_normal([4]))

    def step() -> None:
        with tf.GradientTape(persistent=True) as outer:
            with tf.GradientTape() as inner:
                y = tf.reduce_sum(w**3)
            g = inner.gradient(y, w)
        outer.gradient(g, w)
        outer.jacobian(g, w)

    return step, 10


def _forward(rng: np.random.Generator) -> tuple[Callable, int]:
    x = tf.constant(rng.standard_normal([8]))

    def step() -> None:
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            y = tf.sin(x) * x
        accumulator.jvp(y)

    return step, 2


def _large(rng: np.random.Generator) -> tuple[Callable, int]:
    x = tf.constant(rng.random(1 << 20, np.float32))
    return lambda: float(tf.reduce_sum(tf.sqrt(x * x + 1.0) * 0.5)), 100


def _dataset(_rng: np.random.Generator) -> tuple[Callable, int]:
    dataset = tf.data.Dataset.range(32).shuffle(8).map(lambda x: x + 1).batch(4).prefetch(2)
    return lambda: [None for _ in dataset], 40


def _failing_function(_rng: np.random.Generator) -> tuple[Callable, int]:
    def checked(x: tf.Tensor) -> tf.Tensor:
        return tf.debugging.check_numerics(tf.math.log(x), "log")

    f = tf.function(checked)
    f(tf.constant(1.0))

    def step() -> None:
        for g in (f, checked):
            try:
                g(tf.constant(-1.0))
            except tf.errors.InvalidArgumentError:
                continue
            raise AssertionError("check_numerics accepted a NaN")

    return step, 10


def _variables(_rng: np.random.Generator) -> tuple[Callable, int]:
    f = tf.function(lambda v: v.assign_add(1.0))

    def step() -> None:
        f(tf.Variable(1.0))

    return step, 2


def _explain(_rng: np.random.Generator) -> tuple[Callable, int]:
    def step() -> None:
        x = tf.Variable(1.0)
        with tf.GradientTape() as tape:
            y = tf.constant(float(x)) * 2.0
        tape.explain(y, x)

    return step, 40


def _keras(_rng: np.random.Generator) -> tuple[Callable, int]:
    model = tf.keras.Sequential([tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
    model.compile(optimizer="adam", loss="mse")
    x, y = np.ones([8, 3], np.float32), np.ones([8, 1], np.float32)
    return lambda: model.train_on_batch(x, y), 20


LOOPS: dict[str, Callable[[np.random.Generator], tuple[Callable, int]]] = {
    "eager training": _eager,
    "replayed training": _function,
    "compiled training": _compiled_function,
    "a function under a tape": _function_under_a_tape,
    "new signatures": _new_signatures,
    "second order": _second_order,
    "forward mode": _forward,
    "large arrays": _large,
    "datasets": _dataset,
    "calls that raise": _failing_function,
    "new variables": _variables,
    "explanations": _explain,
    "Keras training": _keras,
}
