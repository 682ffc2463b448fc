"""Runs threads and processes: no update is lost, no value is torn, nothing deadlocks."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

import retrograde as tf

SHORT = 24

_TIMEOUT = 60  # seconds until a thread or a child counts as stuck


def trial(seed: int) -> str | None:
    """Runs one kind of concurrent program. See `KINDS`."""
    rng = np.random.default_rng(seed)
    tf.get_logger().setLevel("ERROR")  # some trials retrace often
    names = list(KINDS)
    weights = np.array([KINDS[name][1] for name in names], float)
    name = names[int(rng.choice(len(names), p=weights / weights.sum()))]
    with _frequent_switches(rng):
        problem = KINDS[name][0](rng)
    return None if problem is None else f"{name}: {problem}"


@contextmanager
def _frequent_switches(rng: np.random.Generator) -> Iterator[None]:
    """Makes the interpreter switch threads after a few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(float(rng.choice([1e-6, 1e-5, 1e-4, 5e-3])))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _in_threads(works: list[Callable[[], None]]) -> str | None:
    """Runs all `works` concurrently. Returns an error, or that a thread is stuck, or `None`."""
    start, errors = threading.Barrier(len(works)), []

    def run(work: Callable[[], None]) -> None:
        try:
            start.wait()
            work()
        except BaseException:
            errors.append(traceback.format_exc())

    threads = [threading.Thread(target=run, args=[work], daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_TIMEOUT)
        if thread.is_alive():
            frames = sys._current_frames()[thread.ident]
            return "a thread is stuck:\n" + "".join(traceback.format_stack(frames))
    return errors[0] if errors else None


# Threads


def _updates(rng: np.random.Generator) -> str | None:
    """Threads add to the same variables: eagerly, in functions, compiled, and under tapes."""
    size = int(rng.choice([0, 1, 3, 1000]))
    shape = [] if size == 0 else [size]
    dtype = tf.int64 if rng.random() < 0.5 else tf.float64
    variables = [tf.Variable(tf.zeros(shape, dtype)) for _ in range(int(rng.integers(1, 4)))]
    one = tf.ones(shape, dtype)

    def add_all() -> None:
        for v in variables:
            v.assign_add(one)

    def add_one_by_one() -> None:
        for v in variables:
            v.assign(v + one)

    replayed, compiled = tf.function(add_all), tf.function(add_all, jit_compile=True)
    assigned = tf.function(add_one_by_one)
    other = tf.function(lambda x: [v.assign_add(x) for v in variables] and None)

    def under_a_tape() -> None:
        with tf.GradientTape():
            replayed()

    def draw_and_add() -> None:
        tf.random.uniform([])
        add_all()

    modes = {
        "eager": add_all,
        "replayed": replayed,
        "assigned": assigned,
        "with an argument": lambda: other(one),
        "under a tape": under_a_tape,
        "drawing": tf.function(draw_and_add),
    }
    if rng.random() < 0.3:
        modes["compiled"] = compiled
    names = [str(name) for name in rng.choice(list(modes), size=8)]
    count = int(rng.integers(20, 400)) if "compiled" not in names else 50
    is_traced = rng.random() < 0.5
    for name in names:
        # A call that traces is eager code, in which `v.assign(v + 1)` is not atomic.
        if is_traced or name == "assigned":
            modes[name]()
            modes[name]()
    before = [int(np.ravel(v.numpy())[0]) if size != 0 else int(v.numpy()) for v in variables]

    def work(name: str) -> Callable[[], None]:
        return lambda: [modes[name]() for _ in range(count)] and None

    problem = _in_threads([work(name) for name in names])
    if problem is not None:
        return problem
    expected = [b + count * len(names) for b in before]
    actual = [np.unique(v.numpy()).tolist() for v in variables]
    if actual != [[e] for e in expected]:
        return (
            f"{names}, {count} calls each: {len(variables)} variables hold {actual}, not {expected}"
        )
    return None


def _torn_values(rng: np.random.Generator) -> str | None:
    """Readers never see partially written values."""
    size = int(rng.choice([10, 1000, 100_000]))
    v = tf.Variable(tf.zeros([size]))
    add = tf.function(lambda: v.assign_add(tf.ones([size])))
    torn: list[list] = []

    def read() -> None:
        for _ in range(100):
            for array in (v.numpy(), (v + 0.0).numpy(), v.value().numpy()):
                if array.min() != array.max():
                    torn.append(np.unique(array).tolist())

    def write() -> None:
        for i in range(100):
            v.assign(tf.fill([size], float(i)))
            v.assign_add(tf.ones([size]))
            add()

    problem = _in_threads([read, read, write, write])
    return problem or (f"a reader saw {torn[0]} in one value" if torn else None)


def _tapes(rng: np.random.Generator) -> str | None:
    """Gradients do not depend on other threads."""
    w = tf.Variable(rng.standard_normal([4, 4]))

    def loss(x: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(tf.tanh(x @ w) ** 2)

    functions = [loss, tf.function(loss)]
    inputs = [tf.constant(rng.standard_normal([int(rng.integers(1, 4)), 4])) for _ in range(6)]

    def gradients(f: Callable, x: tf.Tensor) -> np.ndarray:
        with tf.GradientTape() as outer:
            with tf.GradientTape() as tape:
                y = f(x)
            g = tape.gradient(y, w)
            z = tf.reduce_sum(g * g)
        return np.stack([g.numpy(), outer.gradient(z, w).numpy()])

    expected = [gradients(loss, x) for x in inputs]
    wrong: list[str] = []

    def work(i: int) -> None:
        for _ in range(20):
            actual = gradients(functions[i % 2], inputs[i])
            if not np.allclose(actual, expected[i], rtol=1e-9, atol=1e-12):
                wrong.append(f"{actual} is not {expected[i]}")

    problem = _in_threads([lambda i=i: work(i) for i in range(len(inputs))])
    return problem or (wrong[0] if wrong else None)


def _new_shapes(rng: np.random.Generator) -> str | None:
    """Threads trace the same function for new shapes at the same time."""
    f = tf.function(lambda x, k: k * tf.reduce_sum(x) + 1.0, trace_limit=int(rng.integers(1, 20)))
    wrong: list[str] = []

    def work(sizes: np.ndarray) -> None:
        for size in sizes.tolist():
            actual = float(f(tf.ones([size]), float(size % 3)))
            if actual != size * (size % 3) + 1.0:
                wrong.append(f"f(ones([{size}]), {size % 3}) = {actual}")

    problem = _in_threads([lambda: work(rng.integers(1, 12, 60)) for _ in range(4)])
    return problem or (wrong[0] if wrong else None)


def _large_arrays(rng: np.random.Generator) -> str | None:
    """Threads share lazily evaluated tensors."""
    x = tf.constant(rng.random(1 << 20, np.float32))
    y = tf.sqrt(x * x + 1.0)
    expected = np.sqrt(x.numpy() * x.numpy() + np.float32(1.0))
    arrays: list[np.ndarray] = []
    problem = _in_threads([lambda: arrays.append((y * 1.0).numpy()) for _ in range(3)])
    if problem is not None:
        return problem
    return None if all(np.array_equal(f, expected) for f in arrays) else "a lazy value differs"


def _datasets(rng: np.random.Generator) -> str | None:
    """Threads iterate over one dataset, with parallel calls and prefetching."""
    count = int(rng.integers(5, 60))
    dataset = tf.data.Dataset.range(count).shuffle(7, seed=3, reshuffle_each_iteration=False)
    dataset = dataset.map(lambda x: x * x, num_parallel_calls=int(rng.integers(1, 4)))
    dataset = dataset.batch(int(rng.integers(1, 5))).prefetch(2)
    expected = [x.tolist() for x in dataset.as_numpy_iterator()]
    wrong: list[str] = []

    def work() -> None:
        actual = [x.tolist() for x in dataset.as_numpy_iterator()]
        if actual != expected:
            wrong.append(f"{actual} is not {expected}")

    problem = _in_threads([work] * 4)
    return problem or (wrong[0] if wrong else None)


# Processes


def _fork(rng: np.random.Generator) -> str | None:
    """Checks that a child forked while threads write can compute, draw and write."""
    size = int(rng.choice([1, 1000, 200_000]))
    v, stopped = tf.Variable(tf.zeros([size])), threading.Event()
    add = tf.function(lambda: v.assign_add(tf.ones([size])))
    add()

    def write() -> None:
        while not stopped.is_set():
            v.assign_add(tf.ones([size]))
            add()

    threads = [threading.Thread(target=write, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(float(rng.random()) * 0.01)
        first, second = _child(lambda: _child_work(v, add)), _child(lambda: _child_work(v, add))
    finally:
        stopped.set()
        for thread in threads:
            thread.join(_TIMEOUT)
    for text in (first, second):
        if not text.startswith("complete "):
            return f"a forked child replied {text!r}"
    return None if first != second else f"two children drew the same numbers: {first}"


def _child_work(v: tf.Variable, add: Callable) -> str:
    v.assign_add(tf.ones(v.shape))
    add()
    array = v.numpy()
    large = tf.reduce_sum(tf.sin(tf.ones([1 << 20])))  # shares work among threads
    complete = array.min() == array.max() and float(large) > 0
    return f"{'complete' if complete else 'torn'} {tf.random.normal([3]).numpy().tolist()}"


def _child(work: Callable[[], str]) -> str:
    """Returns the result of `work` in a forked child."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX and Python warn about threads
        child = os.fork()
    if child == 0:
        signal.alarm(_TIMEOUT)
        try:
            text = work()
        except BaseException:
            text = traceback.format_exc()
        os.write(writing, text.encode()[:4000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        text = file.read()
    _, status = os.waitpid(child, 0)
    return text if status == 0 else f"status {status} {text}"


def _spawn(_rng: np.random.Generator) -> str | None:
    """Tensors, variables and specs can be sent to a spawned process and back."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        arguments = (tf.constant([1.0, 2.0]), tf.Variable([3.0, 4.0]), tf.TensorSpec([2]))
        received = pool.apply_async(_sum_and_spec, arguments).get(_TIMEOUT)
    expected = ([4.0, 6.0], tf.TensorSpec([2]))
    return (
        None if (received[0].numpy().tolist(), received[1]) == expected else f"received {received}"
    )


def _sum_and_spec(x: tf.Tensor, v: tf.Variable, spec: tf.TensorSpec) -> tuple:
    return x + v, spec


KINDS: dict[str, tuple[Callable[[np.random.Generator], str | None], float]] = {
    "updates": (_updates, 8),
    "torn values": (_torn_values, 2),
    "tapes": (_tapes, 2),
    "new shapes": (_new_shapes, 2),
    "large arrays": (_large_arrays, 1),
    "datasets": (_datasets, 2),
    "fork": (_fork, 2 if hasattr(os, "fork") else 0),
    "spawn": (_spawn, 0.1),
}
