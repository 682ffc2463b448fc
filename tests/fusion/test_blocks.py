"""Blockwise and threaded computation gives the results of the plain kernel."""

import functools
import itertools
import os
import queue
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import retrograde as tf
from retrograde.fusion import blocks
from retrograde.fusion.blocks import (
    BLOCK_SIZE,
    MIN_THREADED_SIZE_IF_CHEAP,
    MIN_THREADED_SIZE_IF_COSTLY,
    block_bounds,
    halves,
    run_in_blocks,
    run_shared,
    sum_of_halves,
    threads,
)
from retrograde.ops import reduction
from tests.threads import run_concurrently

SIZES = [
    MIN_THREADED_SIZE_IF_COSTLY - 1,
    MIN_THREADED_SIZE_IF_COSTLY,
    MIN_THREADED_SIZE_IF_COSTLY + 1,
    MIN_THREADED_SIZE_IF_COSTLY + BLOCK_SIZE - 1,
    MIN_THREADED_SIZE_IF_COSTLY + BLOCK_SIZE,
    MIN_THREADED_SIZE_IF_COSTLY + BLOCK_SIZE + 1,
    threads() * MIN_THREADED_SIZE_IF_COSTLY + 7,
    3 * MIN_THREADED_SIZE_IF_COSTLY - 1,
]


def numbers(size, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).uniform(-2.0, 2.0, size).astype(dtype)


def plus_and_times(x, y, z, *, factor):
    return (x + y) * z * factor


def assert_identical(actual, expected):
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("size", SIZES)
def test_sizes_around_the_thresholds(size):
    x = numbers(size)

    assert_identical(run_in_blocks(np.exp, (x,), {}, x.dtype), np.exp(x))
    assert_identical(run_in_blocks(np.exp, (x,), {}), np.exp(x))


def test_several_axes():
    x = numbers((3, MIN_THREADED_SIZE_IF_COSTLY // 2, 1))

    assert_identical(run_in_blocks(np.tanh, (x,), {}), np.tanh(x))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32])
def test_the_result_has_the_dtype_of_the_kernel(dtype):
    x = numbers(MIN_THREADED_SIZE_IF_COSTLY, dtype)

    assert_identical(run_in_blocks(np.exp, (x,), {}), np.exp(x))
    assert_identical(run_in_blocks(np.isfinite, (x,), {}), np.isfinite(x))


INPUTS = {
    "contiguous": lambda: numbers((4, MIN_THREADED_SIZE_IF_COSTLY // 2)),
    "transposed": lambda: numbers((MIN_THREADED_SIZE_IF_COSTLY // 2, 4)).T,
    "strided": lambda: numbers((4, MIN_THREADED_SIZE_IF_COSTLY))[:, ::2],
    "reversed": lambda: numbers((4, MIN_THREADED_SIZE_IF_COSTLY // 2))[:, ::-1],
    "one row, repeated": lambda: np.broadcast_to(
        numbers(MIN_THREADED_SIZE_IF_COSTLY // 2), (4, MIN_THREADED_SIZE_IF_COSTLY // 2)
    ),
    "one column, repeated": lambda: np.broadcast_to(
        numbers((4, 1)), (4, MIN_THREADED_SIZE_IF_COSTLY // 2)
    ),
    "one element, repeated": lambda: np.broadcast_to(
        np.float64(0.7), (4, MIN_THREADED_SIZE_IF_COSTLY // 2)
    ),
    "a scalar": lambda: np.float64(0.7),
    "0-d array": lambda: np.array(0.7),
    "read-only": lambda: _read_only(numbers((4, MIN_THREADED_SIZE_IF_COSTLY // 2))),
    "broadcast": lambda: numbers((4, 1)),
    "more axes": lambda: numbers((2, 4, MIN_THREADED_SIZE_IF_COSTLY // 2)),
}


def _read_only(array):
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "first", [name for name in INPUTS if name not in ("a scalar", "0-d array")]
)
@pytest.mark.parametrize("second", INPUTS)
def test_any_layout_agrees_with_the_plain_kernel(first, second):
    x, y = INPUTS[first](), INPUTS[second]()
    z = np.float64(2.0)

    actual = run_in_blocks(plus_and_times, (x, y, z), {"factor": 3.0})

    assert_identical(actual, plus_and_times(x, y, z, factor=3.0))


def test_inputs_are_not_modified():
    x, y = numbers(MIN_THREADED_SIZE_IF_COSTLY), numbers(MIN_THREADED_SIZE_IF_COSTLY, seed=1)
    before = x.copy(), y.copy()

    run_in_blocks(plus_and_times, (x, y, np.float64(1.0)), {"factor": 1.0})

    assert_identical(x, before[0])
    assert_identical(y, before[1])


def test_none_arguments_of_rules_are_passed_through():
    def rule(g, y, x):
        assert y is None
        return g * x

    g, x = numbers(MIN_THREADED_SIZE_IF_COSTLY), numbers(MIN_THREADED_SIZE_IF_COSTLY, seed=1)

    assert_identical(run_in_blocks(rule, (g, None, x), {}), g * x)


def test_the_result_is_a_new_array():
    x = numbers(MIN_THREADED_SIZE_IF_COSTLY)

    result = run_in_blocks(lambda x: x, (x,), {})

    assert not np.shares_memory(result, x)
    assert result.flags.writeable


def test_no_thread_raises_floating_point_warnings():
    x = np.full(threads() * MIN_THREADED_SIZE_IF_COSTLY, -1.0)

    with np.errstate(all="raise"):
        assert np.isnan(tf.math.log(tf.constant(x)).numpy()).all()


def test_an_error_in_any_block_is_raised():
    def fail_if_negative(x):
        if x[0] < 0:
            raise ZeroDivisionError
        return x

    x = np.ones(threads() * MIN_THREADED_SIZE_IF_COSTLY)
    x[-BLOCK_SIZE:] = -1.0

    with pytest.raises(ZeroDivisionError):
        run_in_blocks(fail_if_negative, (x,), {})
    assert_identical(run_in_blocks(np.negative, (x,), {}), -x)


@pytest.mark.parametrize(
    "f",
    [
        tf.tanh,
        tf.exp,
        tf.sin,
        tf.sigmoid,
        lambda x: tf.abs(x) ** 1.5,
        lambda x: tf.math.log(x + 3.0),
    ],
)
def test_operations_and_gradients_agree_with_small_pieces(f):
    x = numbers(MIN_THREADED_SIZE_IF_COSTLY + 5)

    def value_and_gradient(array):
        v = tf.constant(array)
        with tf.GradientTape() as tape:
            tape.watch(v)
            y = f(v)
        return y.numpy(), tape.gradient(y, v).numpy()

    together = value_and_gradient(x)
    pieces = [value_and_gradient(piece) for piece in np.array_split(x, 7)]

    for actual, expected in zip(together, zip(*pieces, strict=True), strict=True):
        np.testing.assert_allclose(actual, np.concatenate(expected), rtol=1e-14)


def test_several_threads_can_run_blocks_at_once():
    inputs = [numbers(MIN_THREADED_SIZE_IF_COSTLY + i, seed=i) for i in range(6)]
    results = {}

    def work(i):
        for _ in range(5):
            results[i] = run_in_blocks(np.sin, (inputs[i],), {})

    run_concurrently(*[functools.partial(work, i) for i in range(6)])

    for i, x in enumerate(inputs):
        assert_identical(results[i], np.sin(x))


def run_script(script):
    """Returns the output of a new Python process; this one has threads, so forks are unsafe."""
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    ).stdout


if hasattr(os, "fork"):

    def test_a_forked_process_starts_its_own_threads():
        out = run_script(
            "import os, warnings\n"
            "import numpy as np\n"
            "import retrograde as tf\n"
            "x = tf.constant(np.ones(1 << 20))\n"
            "expected = tf.tanh(x).numpy()\n"
            "warnings.simplefilter('ignore')\n"
            "pid = os.fork()\n"
            "same = np.array_equal(tf.tanh(x).numpy(), expected)\n"
            "if pid == 0:\n"
            "    os._exit(0 if same else 1)\n"
            "print(same, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
        )

        assert out == "True 0\n"


def test_large_arrays_work_while_python_exits():
    out = run_script(
        "import atexit\n"
        "import numpy as np\n"
        "import retrograde as tf\n"
        "x = tf.constant(np.ones(1 << 20))\n"
        "expected = tf.tanh(x).numpy()\n"
        "atexit.register(lambda: print(np.array_equal(tf.tanh(x).numpy(), expected)))\n"
    )

    assert out == "True\n"


@pytest.mark.parametrize("split", [halves, block_bounds])
@pytest.mark.parametrize(("size", "max_size"), [(1, 1), (9, 2), (1000, 128), (1_000_003, 4096)])
def test_halves_cover_the_range_once(size, max_size, split):
    parts = split(size, max_size)

    assert parts[0][0] == 0
    assert parts[-1][1] == size
    assert all(a[1] == b[0] for a, b in itertools.pairwise(parts))
    assert all(0 < stop - start <= max_size for start, stop in parts)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [999, 4097, 100_001, 1_000_000])
def test_sums_of_halves_are_identical_to_the_numpy_sum(size, dtype):
    x = numbers(size, dtype)

    for parts in (halves(size, 512), block_bounds(size, 2048)):
        sums = {(start, stop): np.add.reduce(x[start:stop]) for start, stop in parts}
        assert sum_of_halves(sums, 0, size) == np.add.reduce(x)


@pytest.mark.parametrize(
    "shape",
    [
        (MIN_THREADED_SIZE_IF_CHEAP + 5,),
        (3, MIN_THREADED_SIZE_IF_CHEAP // 2 + 1),
        (MIN_THREADED_SIZE_IF_CHEAP - 1,),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int64, np.complex64])
def test_sums_and_means_of_large_arrays_agree_with_numpy(shape, dtype):
    x = numbers(shape, dtype)
    axis = tuple(range(x.ndim))

    for primitive in (reduction.sum, reduction.mean):
        for array, keepdims in ((x, False), (x, True), (x.T, False), (x[::-1], False)):
            attrs = {"axis": axis, "keepdims": keepdims}
            actual = np.asarray(primitive.on_many(array, **attrs))
            assert_identical(actual, np.asarray(primitive.on_numpy(array, **attrs)))


def test_each_part_is_run_once():
    done = []

    run_shared(done.extend, range(100), helpers=3)

    assert sorted(done) == list(range(100))


def test_no_thread_keeps_a_reference_to_arrays():
    x = numbers(2 * MIN_THREADED_SIZE_IF_COSTLY)
    before = sys.getrefcount(x)

    for _ in range(100):
        run_in_blocks(np.exp, (x,), {}, x.dtype)
        assert sys.getrefcount(x) == before


def test_threads_that_have_not_started_are_not_waited_for(monkeypatch):
    monkeypatch.setattr(blocks, "_jobs", queue.SimpleQueue())  # without workers
    done = []

    run_shared(done.extend, range(5), helpers=2)

    assert done == list(range(5))


def test_all_threads_have_finished_when_one_fails():
    running = []

    def work(parts):
        for part in parts:
            running.append(part)
            if part == 5:
                raise ValueError("five")
            time.sleep(0.001)
            running.remove(part)

    with pytest.raises(ValueError, match="five"):
        run_shared(work, range(1000), helpers=2)
    assert running == [5]


@pytest.mark.parametrize("weight", [1.0, -0.5, 0.0, np.nan])
@pytest.mark.parametrize("size", [3000, 2 * MIN_THREADED_SIZE_IF_COSTLY])
def test_gradients_of_the_sum_of_a_large_product(size, weight):
    x, y = (tf.constant(numbers(size, seed=seed)) for seed in (1, 2))
    infinite = tf.where(tf.range(size) == 7, tf.constant(np.inf, tf.float64), y)

    with tf.GradientTape() as tape:
        tape.watch([x, infinite])
        total = tf.reduce_sum(x * infinite)
    dx, dy = tape.gradient(total, [x, infinite], tf.constant(weight, tf.float64))

    with np.errstate(invalid="ignore"):
        expected = np.zeros(size) if weight == 0 else weight * infinite.numpy()
    np.testing.assert_array_equal(dx.numpy(), expected)
    np.testing.assert_array_equal(dy.numpy(), weight * x.numpy())


def test_an_interrupt_waits_for_threads_that_still_write():
    started, finish, done = threading.Event(), threading.Event(), []

    def work(parts):
        for _ in parts:
            if threading.current_thread() is threading.main_thread():
                started.wait(10)
            else:
                started.set()
                finish.wait(10)
                done.append(1)

    def interrupt():
        started.wait(10)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
        finish.set()

    interrupter = threading.Thread(target=interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it
    try:
        interrupter.start()
        with pytest.raises(KeyboardInterrupt):
            run_shared(work, [0, 1], 1)
    finally:
        signal.signal(signal.SIGINT, before)
        interrupter.join()

    assert done == [1]
