"""The writes of one call are committed at once: under threads, Control-C and fork."""

import contextlib
import itertools
import os
import threading

import numpy as np
import pytest

import retrograde as tf
from retrograde.core import variable, variable_cell
from retrograde.program import function, traces, tracing
from tests.interrupts import At, interrupt

BOTH = pytest.mark.parametrize("compiled", [False, True], ids=["numpy", "xla"])
THREADS = 4


def run_in_threads(work, count=THREADS):
    """Runs `work(i)` in threads that start together, and raises what one of them raises."""
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
    @BOTH
    def test_no_update_is_lost(self, compiled):
        v = tf.Variable(0)
        add = tf.function(lambda: v.assign_add(1), jit_compile=compiled)

        run_in_threads(lambda _: [add() for _ in range(500)])

        assert int(v) == 500 * THREADS

    @BOTH
    def test_functions_and_eager_code_update_the_same_variable(self, compiled):
        v = tf.Variable(0)
        add = tf.function(lambda: v.assign_add(1), jit_compile=compiled)
        subtract = tf.function(lambda n: v.assign_sub(n), jit_compile=compiled)
        works = [add, lambda: subtract(tf.constant(1)), lambda: v.assign_add(1), add]

        run_in_threads(lambda i: [works[i]() for _ in range(300)])

        assert int(v) == 300 * 2

    def test_other_threads_find_a_trace_once_it_is_complete(self):
        """Until a trace is closed, its tensors are in scope, and closing it would end that."""
        for n in itertools.count(1):
            v = tf.Variable(0.0)
            add = tf.function(lambda v=v: v.assign_add(1.0))
            found = []

            def look(add=add, found=found):
                traces = [trace for traces in add._signatures.values() for trace in traces.all]
                found.extend(len(trace._tracer._tensors) for trace in traces)

            with At(n, look, [function.__file__]) as place:
                add()
            assert not any(found)
            if not place.was_reached:
                break
        assert n > 200

    @BOTH
    def test_no_update_is_lost_under_tapes(self, compiled):
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

    def test_variables_that_are_written_together_are_seen_together(self):
        a, b = tf.Variable(0), tf.Variable(0)

        @tf.function
        def both():
            a.assign_add(1)
            b.assign(a)

        run_in_threads(lambda _: [both() for _ in range(300)])

        assert int(a) == int(b) == 300 * THREADS

    def test_a_call_that_draws_random_numbers_loses_no_update(self):
        v = tf.Variable(0)

        @tf.function
        def step():
            v.assign_add(1)
            return tf.random.normal([])

        run_in_threads(lambda _: [step() for _ in range(200)])

        assert int(v) == 200 * THREADS

    def test_python_code_in_a_call_may_wait_for_another_thread(self):
        v, seen = tf.Variable(0), []

        def other_thread():
            thread = threading.Thread(target=lambda: seen.append(int(v)))
            thread.start()
            thread.join(10)
            return np.int32(thread.is_alive())

        @tf.function
        def step():
            v.assign_add(1)
            return tf.py_function(other_thread, [], tf.int32)

        assert [int(step()) for _ in range(3)] == [0, 0, 0]
        assert len(seen) == 3


def three_variables(compiled=False):
    variables = [tf.Variable(tf.zeros([2])) for _ in range(3)]

    @tf.function(jit_compile=compiled)
    def step(x):
        for v in variables:
            v.assign_add(2.0 * x - 1.0)
        return tf.reduce_sum(variables[0])

    return variables, step


def fast_call(step, x):
    return step(x)


def by_name(step, x):
    return step(x=x)


def under_a_tape(step, x):
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

    @pytest.mark.parametrize("call", [fast_call, by_name, under_a_tape])
    def test_a_replayed_call_writes_all_variables_or_none(self, call):
        variables, step = three_variables()
        x = tf.ones([2])
        for _ in range(3):
            call(step, x)

        for n in itertools.count(1):
            before = float(variables[0][0])
            place = At(n, interrupt, self.FILES, realistic=True)
            with place, contextlib.suppress(KeyboardInterrupt):
                call(step, x)
            values = {float(i) for v in variables for i in v.numpy()}
            assert values in ({before}, {before + 1.0})
            if not place.was_reached:
                break
        assert n > 10
        assert values == {before + 1.0}

    @pytest.mark.parametrize("call", [fast_call, under_a_tape])
    def test_a_traced_call_writes_all_variables_or_none(self, call):
        x = tf.ones([2])
        for n in itertools.count(1, 7):
            variables, step = three_variables()
            place = At(n, interrupt, self.FILES, realistic=True)
            with place, contextlib.suppress(KeyboardInterrupt):
                call(step, x)
            values = {float(i) for v in variables for i in v.numpy()}
            assert values in ({0.0}, {1.0})
            call(step, x)
            if not place.was_reached:
                break
        assert n > 10

    def test_a_signal_handler_may_call_the_same_function(self):
        variables, step = three_variables()
        x, calls = tf.ones([2]), 3
        for _ in range(calls):
            step(x)
        for n in itertools.count(1):
            place = At(n, lambda: step(x), ("<retrograde call>",), realistic=True)
            with place:
                step(x)
            if not place.was_reached:
                break
            calls += 2
            values = {float(i) for v in variables for i in v.numpy()}
            assert values == {float(calls)}
        assert n > 5


def result_in_child(f):
    """What `f()` returns in a forked child, as text."""
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform does not fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning", "ignore:.*fork:RuntimeWarning")
class TestFork:
    def test_a_child_finds_each_variable_complete_and_free(self):
        v = tf.Variable(tf.zeros([100_000]))
        one = tf.ones([100_000])
        add = tf.function(lambda: v.assign_add(one))
        stopped = threading.Event()

        def work():
            while not stopped.is_set():
                v.assign_add(one)
                add()

        def look():
            v.assign_add(one)
            add()
            return len(set(v.numpy().tolist()))

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            assert [result_in_child(look) for _ in range(10)] == ["1"] * 10
        finally:
            stopped.set()
            for thread in threads:
                thread.join()

    def test_a_child_is_not_stopped_by_a_call_that_another_thread_traces(self):
        tracing, go_on = threading.Event(), threading.Event()

        def wait(x):
            tracing.set()
            go_on.wait(30)
            return x + 1.0

        f = tf.function(wait)
        thread = threading.Thread(target=f, args=[tf.ones([2])])
        thread.start()
        tracing.wait(30)

        def call():
            go_on.set()
            return f(tf.ones([2])).numpy().tolist()

        found = result_in_child(call)
        go_on.set()
        thread.join()

        assert found == "[2.0, 2.0]"

    @pytest.mark.parametrize("seed", [None, 7])
    def test_children_draw_other_numbers_than_each_other_and_the_parent(self, seed):
        tf.random.set_seed(seed)
        draw = tf.function(lambda: tf.random.normal([]))
        draw()

        def drawn():
            generator = tf.random.get_global_generator()
            return float(tf.random.normal([])), float(draw()), float(generator.normal([]))

        generator = tf.random.get_global_generator()
        generator.normal([])
        texts = {result_in_child(drawn), result_in_child(drawn), str(drawn())}

        assert len({number for text in texts for number in text.strip("()").split(", ")}) == 9

    def test_what_children_draw_follows_from_the_seed_and_the_order_of_forks(self):
        def two_children():
            tf.random.set_seed(3)
            return [result_in_child(lambda: float(tf.random.normal([]))) for _ in range(2)]

        first, second = two_children(), two_children()

        assert first == second
        assert len(set(first)) == 2

    @pytest.mark.parametrize("kind", ["prefetch", "map"])
    def test_an_iterator_that_was_made_before_a_fork_says_so(self, kind):
        dataset = tf.data.Dataset.range(9)
        if kind == "map":
            dataset = dataset.map(lambda x: x, num_parallel_calls=2)
        else:
            dataset = dataset.prefetch(2)
        iterator = iter(dataset)
        next(iterator)

        def go_on():
            try:
                return next(iterator)
            except tf.errors.FailedPreconditionError as error:
                return error.message

        assert result_in_child(go_on) == (
            "This dataset iterator was created before a fork, and its threads do not exist in the "
            "forked process. Create the iterator in the process that uses it."
        )
        assert result_in_child(lambda: int(next(iter(dataset)))) == "0"
        assert int(next(iterator)) == 1
