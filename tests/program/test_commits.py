"""Tests that all writes of a call are committed together, under threads, Control-C and fork."""

import contextlib
import itertools
import os
import threading

import numpy as np
import pytest

import retrograde as tf
from retrograde.core import variable, variable_cell
from retrograde.program import function, traces, tracing
from tests.interrupts import CallAtInstruction, interrupt

NUMPY_AND_XLA = pytest.mark.parametrize("compiled", [False, True], ids=["numpy", "xla"])
THREADS = 4


def run_in_threads(work, count=THREADS):
    """Runs `work(i)` in threads that start at the same time, and raises their first error."""
    start, errors = threading.Barrier(count), []

    def run(i):
        try:
            start.wait()
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=[i]) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


class TestThreads:
    @NUMPY_AND_XLA
    def test_concurrent_updates_are_not_lost(self, compiled):
        v = tf.Variable(0)
        add = tf.function(lambda: v.assign_add(1), jit_compile=compiled)

        run_in_threads(lambda _: [add() for _ in range(500)])

        assert int(v) == 500 * THREADS

    @NUMPY_AND_XLA
    def test_updates_by_functions_and_eager_code_are_not_lost(self, compiled):
        v = tf.Variable(0)
        add = tf.function(lambda: v.assign_add(1), jit_compile=compiled)
        subtract = tf.function(lambda n: v.assign_sub(n), jit_compile=compiled)
        steps = [add, lambda: subtract(tf.constant(1)), lambda: v.assign_add(1), add]

        run_in_threads(lambda i: [steps[i]() for _ in range(300)])

        assert int(v) == 300 * 2

    def test_other_threads_use_only_complete_traces(self):
        """The tensors of a trace are in scope until it is closed."""
        for n in itertools.count(1):
            v = tf.Variable(0.0)
            add = tf.function(lambda v=v: v.assign_add(1.0))
            tensor_counts = []

            def count_tensors(add=add, tensor_counts=tensor_counts):
                traces = [trace for traces in add._signatures.values() for trace in traces.all]
                tensor_counts.extend(len(trace._tracer._tensors) for trace in traces)

            with CallAtInstruction(n, count_tensors, [function.__file__]) as at:
                add()
            assert not any(tensor_counts)
            if not at.was_reached:
                break
        assert n > 200

    @NUMPY_AND_XLA
    def test_updates_under_tapes_are_not_lost(self, compiled):
        v, w = tf.Variable(0.0), tf.Variable(2.0)

        @tf.function(jit_compile=compiled)
        def loss(x):
            v.assign_add(1.0)
            return w * x

        def work(i):
            for _ in range(100):
                with tf.GradientTape() as tape:
                    y = loss(tf.ones([]) * i)
                assert float(tape.gradient(y, w)) == i

        run_in_threads(work)

        assert float(v) == 100 * THREADS

    def test_assigned_variables_are_consistent(self):
        a, b = tf.Variable(0), tf.Variable(0)

        @tf.function
        def step():
            a.assign_add(1)
            b.assign(a)

        run_in_threads(lambda _: [step() for _ in range(300)])

        assert int(a) == int(b) == 300 * THREADS

    def test_updates_by_a_function_with_random_numbers_are_not_lost(self):
        v = tf.Variable(0)

        @tf.function
        def step():
            v.assign_add(1)
            return tf.random.normal([])

        run_in_threads(lambda _: [step() for _ in range(200)])

        assert int(v) == 200 * THREADS

    def test_a_py_function_can_wait_for_another_thread(self):
        v, values_read = tf.Variable(0), []

        def read_in_other_thread():
            thread = threading.Thread(target=lambda: values_read.append(int(v)))
            thread.start()
            thread.join(10)
            return np.int32(thread.is_alive())

        @tf.function
        def step():
            v.assign_add(1)
            return tf.py_function(read_in_other_thread, [], tf.int32)

        assert [int(step()) for _ in range(3)] == [0, 0, 0]
        assert len(values_read) == 3


def make_step(compiled=False):
    variables = [tf.Variable(tf.zeros([2])) for _ in range(3)]

    @tf.function(jit_compile=compiled)
    def step(x):
        for v in variables:
            v.assign_add(2.0 * x - 1.0)
        return tf.reduce_sum(variables[0])

    return variables, step


def fast_call(step, x):
    return step(x)


def keyword_call(step, x):
    return step(x=x)


def call_under_a_tape(step, x):
    with tf.GradientTape():
        return step(x)


class TestControlC:
    FILES = (
        "<retrograde call>",
        "<retrograde replay>",
        traces.__file__,
        function.__file__,
        tracing.__file__,
        variable.__file__,
        variable_cell.__file__,
    )

    @pytest.mark.parametrize("call", [fast_call, keyword_call, call_under_a_tape])
    def test_a_replayed_call_writes_all_variables_or_none(self, call):
        variables, step = make_step()
        x = tf.ones([2])
        for _ in range(3):
            call(step, x)

        for n in itertools.count(1):
            before = float(variables[0][0])
            at = CallAtInstruction(n, interrupt, self.FILES, realistic=True)
            with at, contextlib.suppress(KeyboardInterrupt):
                call(step, x)
            values = {float(i) for v in variables for i in v.numpy()}
            assert values in ({before}, {before + 1.0})
            if not at.was_reached:
                break
        assert n > 10
        assert values == {before + 1.0}

    @pytest.mark.parametrize("call", [fast_call, call_under_a_tape])
    def test_a_traced_call_writes_all_variables_or_none(self, call):
        x = tf.ones([2])
        for n in itertools.count(1, 7):
            variables, step = make_step()
            at = CallAtInstruction(n, interrupt, self.FILES, realistic=True)
            with at, contextlib.suppress(KeyboardInterrupt):
                call(step, x)
            values = {float(i) for v in variables for i in v.numpy()}
            assert values in ({0.0}, {1.0})
            call(step, x)
            if not at.was_reached:
                break
        assert n > 10

    def test_a_signal_handler_can_call_the_same_function(self):
        variables, step = make_step()
        x, calls = tf.ones([2]), 3
        for _ in range(calls):
            step(x)
        for n in itertools.count(1):
            at = CallAtInstruction(n, lambda: step(x), ("<retrograde call>",), realistic=True)
            with at:
                step(x)
            if not at.was_reached:
                break
            calls += 2
            values = {float(i) for v in variables for i in v.numpy()}
            assert values == {float(calls)}
        assert n > 5


def result_in_child(f):
    """Returns the result of `f()` in a forked child process, as text."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, str(f()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        text = file.read()
    os.waitpid(child, 0)
    return text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="os.fork is not available")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning", "ignore:.*fork:RuntimeWarning")
class TestFork:
    def test_variables_are_consistent_and_unlocked_in_a_child(self):
        v = tf.Variable(tf.zeros([100_000]))
        one = tf.ones([100_000])
        add = tf.function(lambda: v.assign_add(one))
        stopped = threading.Event()

        def work():
            while not stopped.is_set():
                v.assign_add(one)
                add()

        def count_distinct_values():
            v.assign_add(one)
            add()
            return len(set(v.numpy().tolist()))

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            assert [result_in_child(count_distinct_values) for _ in range(10)] == ["1"] * 10
        finally:
            stopped.set()
            for thread in threads:
                thread.join()

    def test_a_child_is_not_blocked_by_a_trace_in_another_thread(self):
        tracing, resume = threading.Event(), threading.Event()

        def wait(x):
            tracing.set()
            resume.wait(30)
            return x + 1.0

        f = tf.function(wait)
        thread = threading.Thread(target=f, args=[tf.ones([2])])
        thread.start()
        tracing.wait(30)

        def call():
            resume.set()
            return f(tf.ones([2])).numpy().tolist()

        output = result_in_child(call)
        resume.set()
        thread.join()

        assert output == "[2.0, 2.0]"

    @pytest.mark.parametrize("seed", [None, 7])
    def test_children_and_the_parent_draw_different_numbers(self, seed):
        tf.random.set_seed(seed)
        draw = tf.function(lambda: tf.random.normal([]))
        draw()

        def draw_numbers():
            generator = tf.random.get_global_generator()
            return float(tf.random.normal([])), float(draw()), float(generator.normal([]))

        generator = tf.random.get_global_generator()
        generator.normal([])
        outputs = {
            result_in_child(draw_numbers),
            result_in_child(draw_numbers),
            str(draw_numbers()),
        }

        assert len({number for text in outputs for number in text.strip("()").split(", ")}) == 9

    def test_random_numbers_of_children_are_reproducible(self):
        def draw_in_two_children():
            tf.random.set_seed(3)
            return [result_in_child(lambda: float(tf.random.normal([]))) for _ in range(2)]

        first, second = draw_in_two_children(), draw_in_two_children()

        assert first == second
        assert len(set(first)) == 2

    @pytest.mark.parametrize("transformation", ["prefetch", "map"])
    def test_a_dataset_iterator_created_before_a_fork_raises_in_the_child(self, transformation):
        dataset = tf.data.Dataset.range(9)
        if transformation == "map":
            dataset = dataset.map(lambda x: x, num_parallel_calls=2)
        else:
            dataset = dataset.prefetch(2)
        iterator = iter(dataset)
        next(iterator)

        def next_or_error():
            try:
                return next(iterator)
            except tf.errors.FailedPreconditionError as error:
                return error.message

        assert result_in_child(next_or_error) == (
            "This dataset iterator was created before a fork, and its threads do not exist in the "
            "forked process. Create the iterator in the process that uses it."
        )
        assert result_in_child(lambda: int(next(iter(dataset)))) == "0"
        assert int(next(iterator)) == 1
