"""Tapes around functions: one call, differentiable to any order."""

import contextlib
import functools
import gc
import weakref

import numpy as np
import pytest

import retrograde as tf
from retrograde.core.recorders import Recorder

BOTH = pytest.mark.parametrize("compiled", [False, True], ids=["numpy", "xla"])

RNG = np.random.default_rng(0)
W = tf.Variable(RNG.normal(size=(3, 3)) * 0.5)
CAPTURED = tf.constant([1.0, 2.0, 3.0], tf.float64)


def network(x):
    h = tf.tanh(tf.linalg.matvec(W, x)) + CAPTURED * tf.nn.dropout(x, 0.5)
    return tf.reduce_sum(h**3), h


def three_orders(f, x):
    """Values and derivatives by the input, a variable, and a tensor of the closure."""
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


@BOTH
def test_three_orders(compiled):
    f = tf.function(network, jit_compile=compiled)
    for _ in range(3):
        x = tf.constant(RNG.normal(size=3))
        expected, found = three_orders(network, x), three_orders(f, x)
        for a, b in zip(expected, found, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-9)
    assert len(f.recordings()) == 1


@BOTH
@pytest.mark.parametrize("persistent", [False, True])
def test_jacobians_and_forward_mode(compiled, persistent):
    f, x = tf.function(network, jit_compile=compiled), tf.constant(RNG.normal(size=3))

    def jacobian(g):
        tf.random.set_seed(1)
        with tf.GradientTape(persistent=persistent) as tape:
            tape.watch(x)
            _, h = g(x)
        return tape.jacobian(h, [x, W])

    def pushed(g):
        tf.random.set_seed(1)
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            y, _ = g(x)
        return [accumulator.jvp(y)]

    for what in (jacobian, pushed):
        for _ in range(2):
            for a, b in zip(what(network), what(f), strict=True):
                np.testing.assert_allclose(b, a, rtol=1e-12)


def test_a_tape_hears_one_call():
    heard = []

    class Tape(tf.GradientTape):
        def record(self, primitive, inputs, attrs, y):
            heard.append(primitive.name)
            super().record(primitive, inputs, attrs, y)

    f, x = tf.function(network), tf.constant(RNG.normal(size=3))
    for _ in range(2):
        heard.clear()
        with Tape() as tape:
            tape.watch(x)
            y, _ = f(x)
        assert heard == ["function"]
        assert tape.gradient(y, x) is not None


def test_other_recorders_hear_everything():
    heard = []

    class Listener(Recorder):
        def record(self, primitive, *_):
            heard.append(primitive.name)

    from retrograde.core.recorders import use_recorders

    f = tf.function(lambda x: tf.sin(x) + 1.0)
    for _ in range(2):
        heard.clear()
        with use_recorders([Listener()]):
            f(tf.constant(1.0))
        assert heard == ["sin", "add"]


def test_no_way_is_none():
    f = tf.function(lambda x, w: (x * tf.stop_gradient(w), tf.constant(2.0)))
    x, w = tf.constant(3.0), tf.constant(5.0)
    for _ in range(2):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, w])
            y, c = f(x, w)
        assert [g if g is None else g.numpy() for g in tape.gradient(y, [x, w])] == [5.0, None]
        assert tape.gradient(c, x) is None


@BOTH
def test_rows_of_a_table(compiled):
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


@BOTH
def test_custom_gradients_see_the_values_of_the_call(compiled):
    @tf.custom_gradient
    def twice(x):
        e = tf.exp(x)
        return e * 2.0, lambda g: g * e * 5.0

    f = tf.function(lambda x: twice(x) + x, jit_compile=compiled)
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


@BOTH
def test_a_custom_gradient_may_be_made_of_rows(compiled):
    table = tf.Variable([1.0, 2.0, 3.0])
    lookup = tf.recompute_grad(lambda rows: tf.gather(rows, [2, 0, 2]) ** 2)
    f = tf.function(lambda: lookup(table), jit_compile=compiled)
    for _ in range(2):
        with tf.GradientTape() as tape:
            y = f()
        np.testing.assert_allclose(tape.gradient(y, table), [2.0, 0.0, 12.0])


@BOTH
@pytest.mark.parametrize("f", [tf.math.cumprod, tf.sort, tf.nn.softmax])
def test_jacobians_under_another_tape(f, compiled):
    def two_orders(f, x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = f(x) ** 2
            jacobian = inner.jacobian(y, x)
        return [jacobian, outer.gradient(jacobian, x)]

    compiled, x = tf.function(f, jit_compile=compiled), tf.constant([0.3, -1.2, 0.7], tf.float64)
    pairs = zip(two_orders(compiled, x), two_orders(f, x), strict=True)
    for found, expected in pairs:
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_updates_under_a_tape_happen_once():
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


def doubled_first(v, x):
    v.assign(v * 2.0)
    return x * v * v


def read_before_and_after(v, x):
    before = v * x
    v.assign(v * 2.0)
    return before + v * v


def moved_by_the_input(v, x):
    v.assign_add(x)
    v.assign_sub(v / 4.0)
    return x * v


def written_first(v, x):
    v.assign(x * x)
    return v * v * v


def given_a_constant(v, x):
    v.assign(7.0)
    return v * v * x


def trained_by_itself(v, x):
    with tf.GradientTape() as tape:
        loss = v * v * x
    v.assign_sub(0.1 * tape.gradient(loss, v))
    return v * v * x


def written_by_another_function(v, x):
    return tf.function(written_first)(v, x) * v


WRITERS = [
    doubled_first,
    read_before_and_after,
    moved_by_the_input,
    written_first,
    given_a_constant,
    trained_by_itself,
    written_by_another_function,
]


def two_orders_and_forwards(f, x):
    """The value, derivatives by a variable and by `x`, and that of the variable forwards."""
    v = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as outer, tf.GradientTape() as inner:
        outer.watch(x)
        inner.watch(x)
        y = f(v, x)
    found = [y, v.value(), *inner.gradient(y, [v, x])]
    v.assign(2.0)
    with tf.autodiff.ForwardAccumulator(v, tf.constant(1.0)) as accumulator:
        z = f(v, x)
    found += [outer.gradient(y, v), accumulator.jvp(z)]
    return [None if g is None else float(g) for g in found]


@BOTH
@pytest.mark.parametrize("f", WRITERS, ids=lambda f: f.__name__)
def test_what_a_variable_is_given_leads_to_the_variable_as_in_eager_code(f, compiled):
    compiled = tf.function(f, jit_compile=compiled)
    for number in (3.0, 0.5, 1.0):
        x = tf.constant(number)
        assert two_orders_and_forwards(compiled, x) == pytest.approx(two_orders_and_forwards(f, x))


def second_order(f, sources):
    """The gradient, and the gradient of a function of it."""
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(f())
        g = inner.gradient(y, sources)
        again = tf.add_n([tf.reduce_sum(tf.sin(part)) for part in g])
    return [*g, *outer.gradient(again, sources)]


@tf.custom_gradient
def scaled_sine(x):
    return tf.sin(x), lambda upstream: upstream * tf.cos(x) * 1.5


def customized(v):
    return tf.square(scaled_sine(v)) * v


def written_and_read(v):
    v.assign_sub(0.5 * tf.tanh(v))
    return tf.cos(v) * v


def only_written(v):
    v.assign(tf.constant([0.3, 0.4], tf.float64))
    return tf.square(v)


@BOTH
@pytest.mark.parametrize("f", [customized, written_and_read, only_written])
def test_second_derivatives_follow_custom_gradients_and_assignments(f, compiled):
    """Custom gradients inside of custom gradients are followed as well."""
    results = []
    for wrap in (lambda g: g, tf.function(jit_compile=compiled)):
        v = tf.Variable([0.7, -1.2], dtype=tf.float64)
        step = wrap(lambda v=v: f(v))
        results.append([*second_order(step, [v]), *second_order(step, [v])])

    for expected, found in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@BOTH
def test_guards_on_all_digits_hold_in_the_call_that_is_traced(compiled):
    """XLA rounds some of these numbers otherwise than NumPy does."""

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


@BOTH
def test_variables_that_python_code_may_look_at_end_with_their_last_values(compiled):
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


def with_python_code(x):
    a, b = tf.py_function(
        lambda x, n: [tf.sin(x) * tf.cast(n, tf.float64), tf.exp(x)],
        [x, tf.constant(3)],
        [tf.float64, tf.float64],
    )
    return a * b * x


@BOTH
def test_derivatives_of_python_code_have_any_order(compiled):
    x = tf.constant([0.3, -0.8], tf.float64)
    results = []
    for f in (with_python_code, tf.function(with_python_code, jit_compile=compiled)):
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

    for expected, found in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_constants_of_64_bits_that_a_program_does_not_need_are_left_out():
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


@BOTH
def test_third_derivatives_follow_custom_gradients(compiled):
    results = []
    for wrap in (lambda g: g, tf.function(jit_compile=compiled)):
        v = tf.Variable([0.7, -1.2], dtype=tf.float64)
        step = wrap(lambda v=v: customized(v))
        with tf.GradientTape() as tape:
            second = second_order(step, [v])[-1]
        results.append(tape.gradient(second, v))

    np.testing.assert_allclose(results[1], results[0], rtol=1e-12)


def test_a_variable_that_is_only_written_is_not_connected():
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


@BOTH
def test_gradients_and_hessians_inside(compiled):
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
        second, hessian, (by_y, by_x) = f(x)
        np.testing.assert_allclose(second, outer.gradient(g, x))
        np.testing.assert_allclose(hessian, np.diag(6 * x.numpy()))
        np.testing.assert_allclose(by_y, np.cos(y) * values[0])
        np.testing.assert_allclose(by_x, g)


def test_gradients_inside_of_custom_ones_and_of_stopped_ones():
    @tf.custom_gradient
    def times_seven(x):
        return x * x, lambda g: g * 7.0

    @tf.function
    def f(x):
        y = 2.0 * x
        z = y + times_seven(x)
        return tf.gradients(z, [x, y]), tf.gradients(z, [x, y], stop_gradients=[y])

    for _ in range(2):
        a, b = f(tf.constant(3.0))
        assert [float(g) for g in (*a, *b)] == [9.0, 1.0, 7.0, 1.0]


def test_gradients_outside_is_an_error():
    x = tf.constant(1.0)
    for what in (tf.gradients, tf.hessians):
        with pytest.raises(RuntimeError, match="not supported when eager execution is enabled"):
            what(x * x, x)


def test_what_a_call_keeps_is_freed_with_the_tape():
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
def checking_numerics():
    tf.debugging.enable_check_numerics()
    try:
        yield
    finally:
        tf.debugging.disable_check_numerics()


OBSERVERS = {
    "a tape": tf.GradientTape,
    "nonfinite": lambda: tf.debugging.nonfinite("raise"),
    "check_numerics": checking_numerics,
}


@pytest.mark.parametrize("observer", OBSERVERS.values(), ids=OBSERVERS)
@pytest.mark.parametrize("compiled", [False, True], ids=["numpy", "xla"])
class TestVariablesMadeInTheFirstCall:
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

    def test_an_unbuilt_keras_model_and_a_fresh_optimizer(self, observer, compiled):
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
    def several(x, w):
        far = tf.linalg.matvec(w, x) * float("inf")
        return tf.reduce_sum(x * x * w), tf.nn.softmax(far - far), tf.split(tf.sin(x) + x, 3)

    def derivatives(self, f, chosen):
        x, w = tf.Variable([1.0, 2.0, 3.0]), tf.Variable(tf.reshape(tf.range(9.0), [3, 3]))
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                total, _, parts = f(x, w)
                y = {"total": total, "part": parts[1], "both": total + parts[0] * parts[2]}[chosen]
            first = inner.gradient(y, [x, w], unconnected_gradients="zero")
            s = tf.reduce_sum(first[0] ** 3) + tf.reduce_sum(first[1] ** 2)
        return [*first, *outer.gradient(s, [x, w], unconnected_gradients="zero")]

    @BOTH
    @pytest.mark.parametrize("chosen", ["total", "part", "both"])
    def test_nan_of_an_unused_result_reaches_no_gradient(self, compiled, chosen):
        f = tf.function(self.several, jit_compile=compiled)
        expected = self.derivatives(self.several, chosen)
        for _ in range(3):
            for a, b in zip(expected, self.derivatives(f, chosen), strict=True):
                assert np.isfinite(a).all()
                np.testing.assert_allclose(b, a, rtol=1e-6)

    @BOTH
    def test_a_jacobian_of_one_result(self, compiled):
        f, x = tf.function(self.several, jit_compile=compiled), tf.Variable([1.0, 2.0, 3.0])
        with tf.GradientTape() as tape:
            _, _, parts = f(x, tf.zeros([3, 3]))
        expected = [[0.0, np.cos(2.0) + 1, 0.0]]
        np.testing.assert_allclose(tape.jacobian(parts[1], x), expected, rtol=1e-6)

    @BOTH
    def test_a_custom_gradient_of_an_unused_result_is_not_called_with_zeros(self, compiled):
        @tf.custom_gradient
        def clipped(x):
            return x * 1.0, lambda g: tf.clip_by_norm(g, 1.0) + 100.0

        @functools.partial(tf.function, jit_compile=compiled)
        def f(x):
            return x * 3.0, clipped(x)

        x = tf.Variable([1.0, 2.0])
        for _ in range(3):
            with tf.GradientTape() as tape:
                y, _ = f(x)
            np.testing.assert_array_equal(tape.gradient(y, x), [3.0, 3.0])


@BOTH
def test_host_callbacks_that_lead_to_no_gradient_beside_a_custom_gradient(compiled):
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


@BOTH
def test_forward_mode_of_two_host_callbacks_with_gradients(compiled):
    def twice(x):
        near = tf.py_function(lambda a: tf.sin(a) * a, [x], tf.float32)
        far = tf.py_function(lambda a: tf.cos(a) * a, [2.0 * x], tf.float32)
        return tf.ensure_shape(near, []) * tf.ensure_shape(far, [])

    f, x = tf.function(twice, jit_compile=compiled), tf.constant(0.7)
    found = []
    for function in (twice, f, f, f):
        with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as accumulator:
            y = function(x)
        found.append(accumulator.jvp(y).numpy())
    np.testing.assert_allclose(found[1:], found[0], rtol=1e-5)
