"""Tests functions under tapes: a function is one call, differentiable to any order."""

import contextlib
import functools
import gc
import weakref

import numpy as np
import pytest

import retrograde as tf
from retrograde.core.recorders import Recorder

NUMPY_AND_XLA = pytest.mark.parametrize("compiled", [False, True], ids=["numpy", "xla"])

RNG = np.random.default_rng(0)
W = tf.Variable(RNG.normal(size=(3, 3)) * 0.5)
CAPTURED = tf.constant([1.0, 2.0, 3.0], tf.float64)


def network(x):
    h = tf.tanh(tf.linalg.matvec(W, x)) + CAPTURED * tf.nn.dropout(x, 0.5)
    return tf.reduce_sum(h**3), h


def derivatives_to_third_order(f, x):
    """Returns the value and derivatives with respect to the input, W and CAPTURED."""
    tf.random.set_seed(3)
    sources = [x, W, CAPTURED]
    with tf.GradientTape() as third:
        third.watch([x, CAPTURED])
        with tf.GradientTape() as second:
            second.watch([x, CAPTURED])
            with tf.GradientTape() as first:
                first.watch([x, CAPTURED])
                y, _ = f(x)
            g = first.gradient(y, sources)
            s = tf.add_n([tf.reduce_sum(tf.sin(part)) for part in g])
        gg = second.gradient(s, sources)
        ss = tf.add_n([tf.reduce_sum(part**2) for part in gg])
    return [y, *g, *gg, *third.gradient(ss, sources)]


@NUMPY_AND_XLA
def test_derivatives_to_third_order(compiled):
    f = tf.function(network, jit_compile=compiled)
    for _ in range(3):
        x = tf.constant(RNG.normal(size=3))
        expected, actual = derivatives_to_third_order(network, x), derivatives_to_third_order(f, x)
        for a, b in zip(expected, actual, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-9)
    assert len(f.recordings()) == 1


@NUMPY_AND_XLA
@pytest.mark.parametrize("persistent", [False, True])
def test_jacobians_and_forward_mode(compiled, persistent):
    f, x = tf.function(network, jit_compile=compiled), tf.constant(RNG.normal(size=3))

    def jacobian(g):
        tf.random.set_seed(1)
        with tf.GradientTape(persistent=persistent) as tape:
            tape.watch(x)
            _, h = g(x)
        return tape.jacobian(h, [x, W])

    def jvp(g):
        tf.random.set_seed(1)
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            y, _ = g(x)
        return [accumulator.jvp(y)]

    for differentiate in (jacobian, jvp):
        for _ in range(2):
            for a, b in zip(differentiate(network), differentiate(f), strict=True):
                np.testing.assert_allclose(b, a, rtol=1e-12)


def test_a_tape_records_a_function_as_one_call():
    recorded = []

    class Tape(tf.GradientTape):
        def record(self, primitive, inputs, attrs, y):
            recorded.append(primitive.name)
            super().record(primitive, inputs, attrs, y)

    f, x = tf.function(network), tf.constant(RNG.normal(size=3))
    for _ in range(2):
        recorded.clear()
        with Tape() as tape:
            tape.watch(x)
            y, _ = f(x)
        assert recorded == ["function"]
        assert tape.gradient(y, x) is not None


def test_other_recorders_record_every_operation():
    recorded = []

    class CallRecorder(Recorder):
        def record(self, primitive, *_):
            recorded.append(primitive.name)

    from retrograde.core.recorders import use_recorders

    f = tf.function(lambda x: tf.sin(x) + 1.0)
    for _ in range(2):
        recorded.clear()
        with use_recorders([CallRecorder()]):
            f(tf.constant(1.0))
        assert recorded == ["sin", "add"]


def test_unconnected_gradients_are_none():
    f = tf.function(lambda x, w: (x * tf.stop_gradient(w), tf.constant(2.0)))
    x, w = tf.constant(3.0), tf.constant(5.0)
    for _ in range(2):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, w])
            y, c = f(x, w)
        assert [g if g is None else g.numpy() for g in tape.gradient(y, [x, w])] == [5.0, None]
        assert tape.gradient(c, x) is None


@NUMPY_AND_XLA
def test_gradients_of_gather_are_indexed_slices(compiled):
    table = tf.Variable(RNG.normal(size=(10, 2)).astype(np.float32))
    f = tf.function(lambda i: tf.reduce_sum(tf.gather(table, i) ** 2), jit_compile=compiled)
    for rows in ([1, 2], [3, 3]):
        with tf.GradientTape() as tape:
            y = f(tf.constant(rows))
        g = tape.gradient(y, table)
        expected = np.zeros((10, 2), np.float32)
        np.add.at(expected, rows, 2 * table.numpy()[rows])
        assert isinstance(g, tf.IndexedSlices)
        np.testing.assert_allclose(tf.convert_to_tensor(g), expected, rtol=1e-6)


@NUMPY_AND_XLA
def test_custom_gradients_use_the_values_of_the_call(compiled):
    @tf.custom_gradient
    def scaled_exp(x):
        e = tf.exp(x)
        return e * 2.0, lambda g: g * e * 5.0

    f = tf.function(lambda x: scaled_exp(x) + x, jit_compile=compiled)
    for v in (1.0, 2.0, 0.5):
        x = tf.constant(v)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            d = inner.gradient(y, x)
        np.testing.assert_allclose(d, 5 * np.exp(v) + 1, rtol=1e-6)
        np.testing.assert_allclose(outer.gradient(d, x), 5 * np.exp(v), rtol=1e-6)


@NUMPY_AND_XLA
def test_recompute_grad_of_gather(compiled):
    table = tf.Variable([1.0, 2.0, 3.0])
    lookup = tf.recompute_grad(lambda rows: tf.gather(rows, [2, 0, 2]) ** 2)
    f = tf.function(lambda: lookup(table), jit_compile=compiled)
    for _ in range(2):
        with tf.GradientTape() as tape:
            y = f()
        np.testing.assert_allclose(tape.gradient(y, table), [2.0, 0.0, 12.0])


@NUMPY_AND_XLA
@pytest.mark.parametrize("f", [tf.math.cumprod, tf.sort, tf.nn.softmax])
def test_gradient_of_a_jacobian(f, compiled):
    def jacobian_and_gradient(f, x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = f(x) ** 2
            jacobian = inner.jacobian(y, x)
        return [jacobian, outer.gradient(jacobian, x)]

    function, x = tf.function(f, jit_compile=compiled), tf.constant([0.3, -1.2, 0.7], tf.float64)
    pairs = zip(jacobian_and_gradient(function, x), jacobian_and_gradient(f, x), strict=True)
    for actual, expected in pairs:
        np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-12)


def test_variables_are_assigned_once_under_a_tape():
    v = tf.Variable(1.0)

    @tf.function
    def f(x):
        v.assign_add(1.0)
        return v * x

    x = tf.constant(2.0)
    for k in range(3):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        assert (float(v), float(y), float(tape.gradient(y, x))) == (k + 2, 2 * (k + 2), k + 2)


def double_then_read(v, x):
    v.assign(v * 2.0)
    return x * v * v


def read_before_and_after(v, x):
    before = v * x
    v.assign(v * 2.0)
    return before + v * v


def update_by_the_input(v, x):
    v.assign_add(x)
    v.assign_sub(v / 4.0)
    return x * v


def assign_input_then_read(v, x):
    v.assign(x * x)
    return v * v * v


def assign_constant_then_read(v, x):
    v.assign(7.0)
    return v * v * x


def train_then_read(v, x):
    with tf.GradientTape() as tape:
        loss = v * v * x
    v.assign_sub(0.1 * tape.gradient(loss, v))
    return v * v * x


def assign_in_a_nested_function(v, x):
    return tf.function(assign_input_then_read)(v, x) * v


ASSIGNING_FUNCTIONS = [
    double_then_read,
    read_before_and_after,
    update_by_the_input,
    assign_input_then_read,
    assign_constant_then_read,
    train_then_read,
    assign_in_a_nested_function,
]


def all_derivatives(f, x):
    """Returns the value, the variable, and derivatives in reverse and forward mode."""
    v = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as outer, tf.GradientTape() as inner:
        outer.watch(x)
        inner.watch(x)
        y = f(v, x)
    values = [y, v.value(), *inner.gradient(y, [v, x])]
    v.assign(2.0)
    with tf.autodiff.ForwardAccumulator(v, tf.constant(1.0)) as accumulator:
        z = f(v, x)
    values += [outer.gradient(y, v), accumulator.jvp(z)]
    return [None if g is None else float(g) for g in values]


@NUMPY_AND_XLA
@pytest.mark.parametrize("f", ASSIGNING_FUNCTIONS, ids=lambda f: f.__name__)
def test_derivatives_through_assignments_match_eager_code(f, compiled):
    function = tf.function(f, jit_compile=compiled)
    for number in (3.0, 0.5, 1.0):
        x = tf.constant(number)
        assert all_derivatives(function, x) == pytest.approx(all_derivatives(f, x))


def first_and_second_derivatives(f, sources):
    """Returns the gradient, and the gradient of a function of it."""
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(f())
        g = inner.gradient(y, sources)
        loss = tf.add_n([tf.reduce_sum(tf.sin(part)) for part in g])
    return [*g, *outer.gradient(loss, sources)]


@tf.custom_gradient
def scaled_sine(x):
    return tf.sin(x), lambda upstream: upstream * tf.cos(x) * 1.5


def with_custom_gradient(v):
    return tf.square(scaled_sine(v)) * v


def update_and_read(v):
    v.assign_sub(0.5 * tf.tanh(v))
    return tf.cos(v) * v


def assign_and_read(v):
    v.assign(tf.constant([0.3, 0.4], tf.float64))
    return tf.square(v)


@NUMPY_AND_XLA
@pytest.mark.parametrize("f", [with_custom_gradient, update_and_read, assign_and_read])
def test_second_derivatives_of_custom_gradients_and_assignments(f, compiled):
    """This includes custom gradients inside custom gradients."""
    results = []
    for wrap in (lambda g: g, tf.function(jit_compile=compiled)):
        v = tf.Variable([0.7, -1.2], dtype=tf.float64)
        step = wrap(lambda v=v: f(v))
        results.append(
            [*first_and_second_derivatives(step, [v]), *first_and_second_derivatives(step, [v])]
        )

    for expected, actual in zip(*results, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-12)


@NUMPY_AND_XLA
def test_guards_on_floats_hold_in_the_traced_call(compiled):
    """XLA and NumPy round some of these numbers differently."""

    def f(x):
        return x * float(tf.reduce_mean(tf.tanh(x) * tf.exp(x)))

    for i in range(8):
        x = tf.constant(np.random.default_rng(i).normal(size=7))
        function = tf.function(f, jit_compile=compiled)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        np.testing.assert_allclose(y, f(x), rtol=1e-12)
        np.testing.assert_allclose(tape.gradient(y, x), y / x, rtol=1e-12)


@NUMPY_AND_XLA
def test_variables_have_their_last_values_after_a_numpy_function(compiled):
    v, w = tf.Variable(1.0), tf.Variable(0.0)

    @tf.function(jit_compile=compiled)
    def f(x):
        v.assign_add(x)
        w.assign(v)
        y = tf.numpy_function(lambda a: a * a.dtype.type(0.5), [v], tf.float32)
        v.assign_sub(y)
        return v * x

    for expected in (1.5, 1.75, 1.875):
        with tf.GradientTape() as tape:
            y = f(tf.constant(2.0))
        assert (float(v), float(w)) == (expected, 2 * expected)
        assert (float(y), float(tape.gradient(y, v))) == (2 * expected, 2.0)


def with_py_function(x):
    a, b = tf.py_function(
        lambda x, n: [tf.sin(x) * tf.cast(n, tf.float64), tf.exp(x)],
        [x, tf.constant(3)],
        [tf.float64, tf.float64],
    )
    return a * b * x


@NUMPY_AND_XLA
def test_higher_derivatives_of_py_function(compiled):
    x = tf.constant([0.3, -0.8], tf.float64)
    results = []
    for f in (with_py_function, tf.function(with_py_function, jit_compile=compiled)):
        with tf.GradientTape() as third:
            third.watch(x)
            with tf.GradientTape() as second:
                second.watch(x)
                with tf.GradientTape() as first:
                    first.watch(x)
                    y = f(x)
                g = first.gradient(y, x)
            gg = second.gradient(g, x)
        with tf.autodiff.ForwardAccumulator(x, tf.cos(x)) as accumulator:
            y = f(x)
        results.append([y, g, gg, third.gradient(gg, x), accumulator.jvp(y)])

    for expected, actual in zip(*results, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-12)


def test_unused_float64_constants_are_omitted():
    @tf.function(jit_compile=True)
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.cast(tf.sqrt(x), tf.float64) * tf.ones([1, 1], tf.float64)
        return tape.gradient(y, x)

    x = tf.constant([[4.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_allclose([y[0, 0], tape.gradient(y, x)[0, 0]], [0.25, -0.03125])


@NUMPY_AND_XLA
def test_third_derivatives_of_custom_gradients(compiled):
    results = []
    for wrap in (lambda g: g, tf.function(jit_compile=compiled)):
        v = tf.Variable([0.7, -1.2], dtype=tf.float64)
        step = wrap(lambda v=v: with_custom_gradient(v))
        with tf.GradientTape() as tape:
            second = first_and_second_derivatives(step, [v])[-1]
        results.append(tape.gradient(second, v))

    np.testing.assert_allclose(results[1], results[0], rtol=1e-12)


def test_a_variable_that_is_only_assigned_has_no_gradient():
    v, x = tf.Variable(2.0), tf.constant(3.0)

    @tf.function
    def f(x):
        v.assign(x * x)
        return x * 2.0

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert tape.gradient(y, v) is None
    assert float(v) == 9.0


@NUMPY_AND_XLA
def test_tf_gradients_and_hessians(compiled):
    @tf.function(jit_compile=compiled)
    def f(x):
        y = tf.reduce_sum(x**3)
        z = tf.sin(y) * x[0]
        (g,) = tf.gradients(z, x)
        return tf.gradients(g, x)[0], tf.hessians(y, [x])[0], tf.gradients(z, [y, x])

    for values in ([1.0, 2.0], [0.5, 0.25]):
        x = tf.constant(values, tf.float64)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(x**3)
                z = tf.sin(y) * x[0]
            g = tape.gradient(z, x)
        second, hessian, (gradient_of_y, gradient_of_x) = f(x)
        np.testing.assert_allclose(second, outer.gradient(g, x))
        np.testing.assert_allclose(hessian, np.diag(6 * x.numpy()))
        np.testing.assert_allclose(gradient_of_y, np.cos(y) * values[0])
        np.testing.assert_allclose(gradient_of_x, g)


def test_tf_gradients_with_custom_gradients_and_stop_gradients():
    @tf.custom_gradient
    def square_with_gradient_seven(x):
        return x * x, lambda g: g * 7.0

    @tf.function
    def f(x):
        y = 2.0 * x
        z = y + square_with_gradient_seven(x)
        return tf.gradients(z, [x, y]), tf.gradients(z, [x, y], stop_gradients=[y])

    for _ in range(2):
        a, b = f(tf.constant(3.0))
        assert [float(g) for g in (*a, *b)] == [9.0, 1.0, 7.0, 1.0]


def test_tf_gradients_in_eager_code_raises():
    x = tf.constant(1.0)
    for differentiate in (tf.gradients, tf.hessians):
        with pytest.raises(RuntimeError, match="not supported when eager execution is enabled"):
            differentiate(x * x, x)


def test_saved_values_are_freed_with_the_tape():
    f, x = tf.function(network), tf.constant(RNG.normal(size=3))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y, _ = f(x)
    tape.gradient(y, x)
    gc.collect()
    gc.disable()
    try:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y, h = f(x)
        reference = weakref.ref(h)
        del h, y, tape
        assert reference() is None
    finally:
        gc.enable()


@contextlib.contextmanager
def check_numerics():
    tf.debugging.enable_check_numerics()
    try:
        yield
    finally:
        tf.debugging.disable_check_numerics()


OBSERVERS = {
    "tape": tf.GradientTape,
    "nonfinite": lambda: tf.debugging.nonfinite("raise"),
    "check_numerics": check_numerics,
}


@pytest.mark.parametrize("observer", OBSERVERS.values(), ids=OBSERVERS)
@pytest.mark.parametrize("compiled", [False, True], ids=["numpy", "xla"])
class TestVariablesCreatedInTheFirstCall:
    def test_a_module_that_is_built_in_its_first_call(self, observer, compiled):
        class Dense(tf.Module):
            def __init__(self):
                super().__init__()
                self.w = None

            @tf.function(jit_compile=compiled)
            def __call__(self, x, scale):
                if self.w is None:
                    self.w = tf.Variable(2.0 * tf.ones([3, 2]))
                return scale * (x @ self.w)

        dense, x = Dense(), tf.ones([4, 3])
        for _ in range(3):
            with observer() as tape:
                y = dense(x, scale=tf.constant(0.5))
            assert y.numpy().tolist() == [[3.0, 3.0]] * 4
        if isinstance(tape, tf.GradientTape):
            assert tape.gradient(y, dense.w).numpy().tolist() == [[2.0, 2.0]] * 3

    def test_an_unbuilt_keras_model_and_a_new_optimizer(self, observer, compiled):
        decorate = functools.partial(tf.function, jit_compile=compiled)

        np.testing.assert_allclose(
            adam_losses(decorate, observer),
            adam_losses(lambda step: step, contextlib.nullcontext),
            rtol=1e-5,
        )


def adam_losses(decorate, observer):
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential([tf.keras.layers.Dense(2), tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.Adam(0.1)

    @decorate
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    losses = []
    for _ in range(4):
        with observer():
            losses.append(float(step(tf.ones([8, 3]), tf.zeros([8, 1]))))
    assert int(optimizer.iterations) == 4
    return losses


class TestUnusedResults:
    """A result without a cotangent takes no part in the backward pass."""

    @staticmethod
    def multiple_results(x, w):
        far = tf.linalg.matvec(w, x) * float("inf")
        return tf.reduce_sum(x * x * w), tf.nn.softmax(far - far), tf.split(tf.sin(x) + x, 3)

    def derivatives(self, f, target):
        x, w = tf.Variable([1.0, 2.0, 3.0]), tf.Variable(tf.reshape(tf.range(9.0), [3, 3]))
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                total, _, parts = f(x, w)
                y = {"total": total, "part": parts[1], "both": total + parts[0] * parts[2]}[target]
            first = inner.gradient(y, [x, w], unconnected_gradients="zero")
            s = tf.reduce_sum(first[0] ** 3) + tf.reduce_sum(first[1] ** 2)
        return [*first, *outer.gradient(s, [x, w], unconnected_gradients="zero")]

    @NUMPY_AND_XLA
    @pytest.mark.parametrize("target", ["total", "part", "both"])
    def test_nan_in_an_unused_result_does_not_reach_gradients(self, compiled, target):
        f = tf.function(self.multiple_results, jit_compile=compiled)
        expected = self.derivatives(self.multiple_results, target)
        for _ in range(3):
            for a, b in zip(expected, self.derivatives(f, target), strict=True):
                assert np.isfinite(a).all()
                np.testing.assert_allclose(b, a, rtol=1e-6)

    @NUMPY_AND_XLA
    def test_jacobian_of_one_result(self, compiled):
        f, x = (
            tf.function(self.multiple_results, jit_compile=compiled),
            tf.Variable([1.0, 2.0, 3.0]),
        )
        with tf.GradientTape() as tape:
            _, _, parts = f(x, tf.zeros([3, 3]))
        expected = [[0.0, np.cos(2.0) + 1, 0.0]]
        np.testing.assert_allclose(tape.jacobian(parts[1], x), expected, rtol=1e-6)

    @NUMPY_AND_XLA
    def test_a_custom_gradient_of_an_unused_result_is_not_called_with_zeros(self, compiled):
        @tf.custom_gradient
        def clip_gradient(x):
            return x * 1.0, lambda g: tf.clip_by_norm(g, 1.0) + 100.0

        @functools.partial(tf.function, jit_compile=compiled)
        def f(x):
            return x * 3.0, clip_gradient(x)

        x = tf.Variable([1.0, 2.0])
        for _ in range(3):
            with tf.GradientTape() as tape:
                y, _ = f(x)
            np.testing.assert_array_equal(tape.gradient(y, x), [3.0, 3.0])


@NUMPY_AND_XLA
def test_host_callbacks_without_a_gradient_next_to_a_custom_gradient(compiled):
    v = tf.Variable([1.0, 2.0])

    @functools.partial(tf.function, jit_compile=compiled)
    def f(x):
        tf.repeat(x > 0.0, 2)  # runs in Python
        tf.recompute_grad(tf.exp)(x)
        return v * v

    for _ in range(3):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = f(tf.constant([1.0, 2.0]))
            g = inner.gradient(y, v)
        np.testing.assert_array_equal(outer.gradient(g, v), [2.0, 2.0])


@NUMPY_AND_XLA
def test_forward_mode_of_two_host_callbacks_with_gradients(compiled):
    def product(x):
        first = tf.py_function(lambda a: tf.sin(a) * a, [x], tf.float32)
        second = tf.py_function(lambda a: tf.cos(a) * a, [2.0 * x], tf.float32)
        return tf.ensure_shape(first, []) * tf.ensure_shape(second, [])

    f, x = tf.function(product, jit_compile=compiled), tf.constant(0.7)
    jvps = []
    for function in (product, f, f, f):
        with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as accumulator:
            y = function(x)
        jvps.append(accumulator.jvp(y).numpy())
    np.testing.assert_allclose(jvps[1:], jvps[0], rtol=1e-5)
