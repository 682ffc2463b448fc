"""Tests functions with state: variables, random numbers, Python callbacks and datasets."""

import sys

import numpy as np
import pytest

import retrograde as tf

NUMPY_AND_XLA = pytest.mark.parametrize("compiled", [False, True], ids=["numpy", "xla"])


class TestVariables:
    @NUMPY_AND_XLA
    def test_reads_and_assignments_keep_their_order(self, compiled):
        v = tf.Variable(1.0)

        @tf.function(jit_compile=compiled)
        def f(x):
            before = v.value()
            v.assign(x)
            v.assign_add(2.0 * v)
            v.assign_sub(before)
            return before, v.value()

        results = [[float(r) for r in f(tf.constant(x))] for x in (1.0, 2.0, 3.0)]

        assert results == [[1.0, 2.0], [2.0, 4.0], [4.0, 5.0]]
        assert v.numpy() == 5.0

    @NUMPY_AND_XLA
    def test_later_calls_do_not_change_values_read_before(self, compiled):
        v = tf.Variable([1.0, 2.0])
        f = tf.function(lambda: v.assign_add([1.0, 1.0]), jit_compile=compiled)

        results = [f().numpy() for _ in range(4)]
        value_read = v.value()
        f()

        assert [result.tolist() for result in results] == [[2, 3], [3, 4], [4, 5], [5, 6]]
        assert value_read.numpy().tolist() == [5.0, 6.0]

    @NUMPY_AND_XLA
    def test_a_variable_can_be_assigned_to_itself(self, compiled):
        v, w = tf.Variable(2.0), tf.Variable(5.0)

        @tf.function(jit_compile=compiled)
        def f(x):
            v.assign(v * x)
            v.assign(v)
            w.assign(w)
            return v * w

        for value in (6.0, 18.0, 54.0):
            assert float(f(tf.constant(3.0))) == value * 5.0
            assert (float(v), float(w)) == (value, 5.0)

    @NUMPY_AND_XLA
    def test_assignments_between_calls_are_used(self, compiled):
        v = tf.Variable(1.0)
        f = tf.function(lambda x: v * x, jit_compile=compiled)

        assert f(tf.constant(2.0)).numpy() == 2.0
        v.assign(5.0)
        assert f(tf.constant(2.0)).numpy() == 10.0
        v.assign_add(1.0)
        assert f(tf.constant(2.0)).numpy() == 12.0

    @NUMPY_AND_XLA
    def test_scatter_methods(self, compiled):
        v, w = tf.Variable(tf.zeros([4, 2])), tf.Variable(tf.zeros([4, 2]))

        def body(variable, i, x):
            variable.scatter_add(tf.IndexedSlices(x, i))
            variable.scatter_nd_update([[3]], x[:1] * 7.0)
            variable[0].assign([9.0, 9.0])
            return tf.reduce_sum(variable)

        f = tf.function(lambda i, x: body(v, i, x), jit_compile=compiled)
        for k in range(3):
            i, x = tf.constant([k, 1]), tf.constant([[1.0, k], [k, 2.0]])
            assert f(i, x).numpy() == body(w, i, x).numpy()
        assert np.array_equal(v, w)

    def test_variables_of_unknown_shape(self):
        v = tf.Variable([1.0], shape=tf.TensorShape([None]))
        f = tf.function(lambda: tf.reduce_sum(v))

        for values in ([1.0], [1.0, 2.0], [3.0], [4.0, 5.0]):
            v.assign(values)
            assert f().numpy() == sum(values)
        assert len(f.recordings()) == 2

    @pytest.mark.parametrize("failing_call", [1, 2, 3], ids=["first", "second", "third"])
    def test_a_failed_call_does_not_change_variables(self, failing_call):
        v, n = tf.Variable(1.0), [0]

        def check(x):
            n[0] += 1
            if n[0] == failing_call:
                raise ValueError("enough")
            return x

        @tf.function
        def f(x):
            v.assign_add(x)
            return tf.numpy_function(check, [v * 2.0], tf.float32)

        for _ in range(failing_call - 1):
            f(tf.constant(1.0))
        with pytest.raises(ValueError, match="enough"):
            f(tf.constant(1.0))

        assert v.numpy() == failing_call


RANDOM_FUNCTIONS = {
    "normal": lambda: tf.random.normal([3]),
    "uniform with a seed": lambda: tf.random.uniform([3], seed=7),
    "integers": lambda: tf.random.uniform([3], 0, 100, tf.int32),
    "truncated": lambda: tf.random.truncated_normal([3]),
    "shuffle": lambda: tf.random.shuffle(tf.range(20)),
    "gamma": lambda: tf.random.gamma([3], 2.0),
    "poisson": lambda: tf.random.poisson([3], 50.0),
    "categorical": lambda: tf.random.categorical(tf.zeros([2, 50]), 5),
    "dropout": lambda: tf.nn.dropout(tf.ones([20]), 0.5),
    "two draws": lambda: tf.random.normal([2]) + tf.random.normal([2]),
}


class TestRandomNumbers:
    @NUMPY_AND_XLA
    @pytest.mark.parametrize("name", RANDOM_FUNCTIONS)
    def test_calls_draw_the_same_numbers_as_eager_code(self, name, compiled):
        body = RANDOM_FUNCTIONS[name]
        f = tf.function(body, jit_compile=compiled)
        tf.random.set_seed(3)
        expected = [body().numpy() for _ in range(4)]
        tf.random.set_seed(3)

        actual = [f().numpy() for _ in range(4)]

        np.testing.assert_allclose(actual, expected, rtol=1e-6)
        assert not np.array_equal(actual[1], actual[2])
        assert len(f.recordings()) == 1

    def test_generators_advance_and_stateless_seeds_are_arguments(self):
        a, b = (tf.random.Generator.from_seed(1) for _ in range(2))
        f = tf.function(lambda: a.normal([2]))
        g = tf.function(lambda seed: tf.random.stateless_normal([2], seed))

        for k in range(3):
            assert np.array_equal(f(), b.normal([2]))
            seed = tf.constant([k, 1])
            assert np.array_equal(g(seed), tf.random.stateless_normal([2], seed))
        assert len(f.recordings()) == len(g.recordings()) == 1

    def test_a_replay_that_violates_a_guard_draws_no_numbers(self):
        def body(x):
            y = tf.random.normal([])
            return y + tf.random.normal([]) if x > 0.0 else y

        f = tf.function(body)
        signs = [1.0, -1.0, 1.0, 1.0, -1.0, -1.0]
        tf.random.set_seed(3)
        expected = [body(tf.constant(s)).numpy() for s in signs]
        tf.random.set_seed(3)

        assert [f(tf.constant(s)).numpy() for s in signs] == expected

    def test_recompute_grad_draws_the_same_numbers(self):
        block = tf.recompute_grad(lambda x: x * tf.nn.dropout(x, 0.5))

        def body(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(block(x))
            return y, tape.gradient(y, x)

        f, x = tf.function(body), tf.constant(np.arange(1.0, 20.0, dtype=np.float32))
        for _ in range(3):
            y, g = f(x)
            np.testing.assert_allclose(2 * y, np.sum(g * x), rtol=1e-6)


class TestPythonCode:
    def test_print_runs_in_every_call(self, capsys):
        @tf.function
        def f(x):
            tf.print("x:", x, {"twice": 2.0 * x})
            return x

        for v in (1.0, 2.0):
            f(tf.constant(v))

        assert capsys.readouterr().err == "x: 1 {'twice': 2}\nx: 2 {'twice': 4}\n"

    @NUMPY_AND_XLA
    def test_numpy_function_runs_in_every_call(self, compiled):
        calls = []

        def count(x):
            calls.append(1)
            return np.float32(x * len(calls))

        f = tf.function(
            lambda x: tf.numpy_function(count, [x * 1.0], tf.float32) + 1.0, jit_compile=compiled
        )

        assert [f(tf.constant(1.0)).numpy() for _ in range(3)] == [2.0, 3.0, 4.0]
        assert len(calls) == 3

    def test_print_in_a_compiled_function_runs_in_every_call(self, capsys):
        def step(x):
            tf.print(tf.sin(x), output_stream=sys.stdout)
            return x * 2.0

        f = tf.function(step, jit_compile=True)
        for _ in range(3):
            f(tf.constant(0.0))

        assert capsys.readouterr().out == "0\n" * 3
        assert f.recordings()[0].uncompiled == "print"

    def test_py_function_is_differentiable_inside_and_outside_of_functions(self):
        scale = [1.0]

        def body(x):
            return tf.py_function(lambda t: t * t * scale[0], [x], tf.float32)

        def value_and_gradient(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = body(x)
            return y, tape.gradient(y, x)

        f, g = tf.function(body), tf.function(value_and_gradient)
        x = tf.constant(3.0)
        for scale[0] in (1.0, 2.0, 3.0):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = f(x)
            assert (float(y), float(tape.gradient(y, x))) == (9 * scale[0], 6 * scale[0])
            assert [float(v) for v in g(x)] == [9 * scale[0], 6 * scale[0]]

    @NUMPY_AND_XLA
    def test_numpy_function_reads_variables_assigned_before_it(self, compiled):
        v, values_read = tf.Variable(0.0), []

        def read_and_assign(x):
            values_read.append(v.numpy().item())
            v.assign_add(100.0)
            return x

        @tf.function(jit_compile=compiled)
        def f(x):
            v.assign(x * 2.0)
            y = tf.numpy_function(read_and_assign, [x + 0.0], tf.float32)
            return y + v

        assert [f(tf.constant(x)).numpy() for x in (1.0, 2.0, 3.0)] == [103.0, 106.0, 109.0]
        assert values_read == [2.0, 4.0, 6.0]
        assert v.numpy() == 106.0

    def test_numpy_function_reads_a_variable_argument(self):
        def body(v, x):
            v.assign(x * 2.0)
            y = tf.numpy_function(lambda x: x + v.numpy(), [x], tf.float32)
            return y + v

        f = tf.function(body)
        a, b = tf.Variable(0.0), tf.Variable(10.0)
        for v, x in ((a, 1.0), (b, 2.0), (a, 3.0)):
            assert f(v, tf.constant(x)).numpy() == 5 * x
            with tf.GradientTape() as tape:
                y = f(v, tf.constant(x))
            assert (y.numpy(), v.numpy()) == (5 * x, 2 * x)
            assert tape.gradient(y, v).numpy() == 1.0

    def test_assignments_are_undone_if_a_numpy_function_fails(self):
        v, fails = tf.Variable(0.0), [False]

        def fail_or_return(x):
            if fails[0]:
                raise ValueError("no")
            return x

        @tf.function
        def f(x):
            v.assign(x)
            return tf.numpy_function(fail_or_return, [x], tf.float32)

        for x in (1.0, 2.0):
            f(tf.constant(x))
        fails[0] = True
        with pytest.raises(ValueError, match="no"):
            f(tf.constant(3.0))
        assert v.numpy() == 2.0

    def test_numpy_function_results_of_another_shape_have_another_trace(self):
        size = [2]
        f = tf.function(lambda: tf.numpy_function(lambda: np.ones(size[0]), [], tf.float64) * 2.0)

        for size[0] in (2, 2, 3, 2, 3):
            assert f().numpy().tolist() == [2.0] * size[0]
        assert len(f.recordings()) == 2


class TestDatasets:
    @NUMPY_AND_XLA
    def test_an_iterator_advances_in_every_call(self, compiled):
        elements = iter(tf.data.Dataset.range(5).repeat())
        f = tf.function(lambda: next(elements) * 10, jit_compile=compiled)

        assert [int(f()) for _ in range(7)] == [0, 10, 20, 30, 40, 0, 10]

    def test_a_loop_over_a_dataset_reads_its_current_elements(self):
        count = [3]

        def generate():
            yield from range(count[0])

        data = tf.data.Dataset.from_generator(
            generate, output_signature=tf.TensorSpec([], tf.int32)
        )

        @tf.function
        def total():
            result = 0
            for x in data:
                result += x
            return result

        for count[0] in (3, 3, 5, 1, 5):
            assert int(total()) == sum(range(count[0]))

    def test_different_dataset_arguments(self):
        @tf.function
        def total(data):
            result = tf.constant(0, tf.int64)
            for x in data:
                result += x
            return result

        short, long = tf.data.Dataset.range(3), tf.data.Dataset.range(5)

        assert [int(total(data)) for data in (short, long, short, long)] == [3, 10, 3, 10]

    def test_a_dataset_is_shuffled_in_every_call(self):
        data = tf.data.Dataset.range(20).shuffle(20)
        f = tf.function(lambda: tf.stack(list(data)))

        orders = [tuple(f().numpy()) for _ in range(4)]

        assert len(set(orders)) == 4
        assert all(sorted(order) == list(range(20)) for order in orders)

    def test_the_end_of_an_iterator_raises(self):
        elements = iter(tf.data.Dataset.range(2))
        f = tf.function(elements.get_next)

        assert [int(f()), int(f())] == [0, 1]
        for _ in range(2):
            with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
                f()

    def test_a_replay_that_violates_a_guard_loses_no_elements(self):
        elements = iter(tf.data.Dataset.range(8))

        @tf.function
        def f():
            x = next(elements)
            return x * 100 if x % 3 == 0 else x

        assert [int(f()) for _ in range(8)] == [0, 1, 2, 300, 4, 5, 600, 7]
