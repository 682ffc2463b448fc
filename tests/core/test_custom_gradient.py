"""Tests custom_gradient, grad_pass_through and recompute_grad."""

import gc
import weakref

import numpy as np
import pytest

import retrograde as tf


def gradient_of(f, *sources, **options):
    with tf.GradientTape(**options) as tape:
        tape.watch(list(sources))
        y = f(*sources)
    return tape.gradient(y, list(sources))


@tf.custom_gradient
def log1pexp(x):
    e = tf.exp(x)
    return tf.math.log(1.0 + e), lambda upstream: upstream * (1.0 - 1.0 / (1.0 + e))


def test_the_gradient_function_replaces_the_derivative():
    (g,) = gradient_of(log1pexp, tf.constant(100.0))
    assert float(g) == 1.0


def test_second_order_differentiates_the_gradient_function():
    x = tf.Variable(0.5, dtype=tf.float64)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = log1pexp(x)
        dy = inner.gradient(y, x)
    s = 1 / (1 + np.exp(-0.5))
    np.testing.assert_allclose(outer.gradient(dy, x), s * (1 - s), rtol=1e-12)


def test_third_order():
    @tf.custom_gradient
    def cube(x):
        return x * x * x, lambda dy: dy * 3.0 * x * x

    x = tf.Variable(2.0)
    with tf.GradientTape() as a, tf.GradientTape() as b:
        with tf.GradientTape() as c:
            y = cube(x)
        d1 = c.gradient(y, x)
        d2 = b.gradient(d1, x)
    assert [float(d1), float(d2), float(a.gradient(d2, x))] == [12.0, 12.0, 6.0]


def test_nested_inputs_and_outputs():
    @tf.custom_gradient
    def f(pair, z):
        x, y = pair

        def grad(da, db):
            return [da * 2.0, db * 3.0], da * db

        return {"a": x * y, "b": z * 1.0}, grad

    x, y, z = tf.constant(2.0), tf.constant(5.0), tf.constant(7.0)
    with tf.GradientTape() as tape:
        tape.watch([x, y, z])
        outputs = f((x, y), z)
        target = 10.0 * outputs["a"] + 100.0 * outputs["b"]
    assert [float(g) for g in tape.gradient(target, [x, y, z])] == [20.0, 300.0, 1000.0]


def test_an_unused_output_has_a_zero_cotangent():
    cotangents = []

    @tf.custom_gradient
    def f(x):
        def grad(da, db):
            cotangents.append((da.numpy().tolist(), db.numpy().tolist()))
            return da

        return (x * 1.0, tf.stack([x, x])), grad

    gradient_of(lambda x: f(x)[0], tf.constant(1.0))
    assert cotangents == [(1.0, [0.0, 0.0])]


def test_none_means_no_gradient():
    f = tf.custom_gradient(lambda x, y: (x * y, lambda dy: (None, dy)))
    a, b = gradient_of(f, tf.constant(2.0), tf.constant(3.0))
    assert a is None
    assert float(b) == 1.0


def test_gradients_can_be_python_numbers():
    f = tf.custom_gradient(lambda x: (x * 1.0, lambda _: 2.0))
    (g,) = gradient_of(f, tf.constant(1.0, tf.float64))
    assert g.dtype == tf.float64
    assert float(g) == 2.0


def test_keyword_arguments():
    @tf.custom_gradient
    def f(x, scale=1.0):
        return x * scale, lambda dy: dy * 50.0

    with tf.GradientTape() as tape:
        x = tf.Variable(2.0)
        y = f(x, scale=3.0)
    assert [float(y), float(tape.gradient(y, x))] == [6.0, 50.0]


def test_variables_are_passed_in_the_order_of_first_use():
    v, w = tf.Variable(2.0, name="v"), tf.Variable(3.0, name="w")
    names = []

    @tf.custom_gradient
    def f(x):
        def grad(dy, variables=None):
            names.extend(q.name for q in variables)
            return dy, [dy * 20.0, dy * 30.0]

        return x * v * w * v, grad

    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert [float(g) for g in tape.gradient(y, [x, v, w])] == [1.0, 20.0, 30.0]
    assert names == ["v:0", "w:0"]


def test_a_function_that_reads_variables_needs_the_variables_argument():
    v = tf.Variable(2.0)
    f = tf.custom_gradient(lambda x: (x * v, lambda dy: dy))
    with pytest.raises(TypeError, match="must accept keyword argument 'variables'"):
        f(tf.constant(1.0))


@pytest.mark.parametrize(
    ("gradient", "count"), [(lambda dy: (dy, dy), 2), (lambda _: (), 0)], ids=["many", "few"]
)
def test_a_wrong_number_of_gradients_raises(gradient, count):
    f = tf.custom_gradient(lambda x: (x * 1.0, gradient))
    with pytest.raises(ValueError, match=f"return 1 gradients, but returned {count} instead"):
        gradient_of(f, tf.constant(1.0))


def test_custom_gradient_of_methods_and_with_parentheses():
    class Layer:
        k = 11.0

        @tf.custom_gradient
        def f(self, x):
            """Doc."""
            return x * 1.0, lambda dy: dy * self.k

    assert Layer.f.__doc__ == "Doc."
    (g,) = gradient_of(Layer().f, tf.constant(1.0))
    assert float(g) == 11.0
    (g,) = gradient_of(tf.custom_gradient()(lambda x: (x, lambda dy: dy * 4.0)), tf.constant(1.0))
    assert float(g) == 4.0


def test_gradients_can_be_indexed_slices():
    @tf.custom_gradient
    def first_row(table):
        return table[0] * 1.0, lambda dy: tf.IndexedSlices(
            tf.expand_dims(dy, 0), tf.constant([0]), tf.constant([2, 3])
        )

    (g,) = gradient_of(first_row, tf.ones([2, 3]))
    assert isinstance(g, tf.IndexedSlices)
    assert tf.convert_to_tensor(g).numpy().tolist() == [[1.0] * 3, [0.0] * 3]


def test_no_values_are_kept_without_a_tape():
    x = tf.constant([1.0])
    gc.disable()
    try:
        output = weakref.ref(log1pexp(x))
        assert output() is None
    finally:
        gc.enable()


def test_integer_outputs_have_no_gradient():
    f = tf.custom_gradient(lambda x: (tf.cast(x, tf.int32), lambda dy: dy))
    assert gradient_of(f, tf.constant(1.0)) == [None]


def test_grad_pass_through_with_variables_and_second_order():
    v = tf.Variable(3.0)
    quantize = tf.grad_pass_through(lambda x: tf.round(x * v))
    x = tf.Variable(0.4)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = quantize(x) * x
        dy = inner.gradient(y, x)
    assert [float(y), float(dy)] == pytest.approx([0.4, 1.4])
    assert float(outer.gradient(dy, x)) == 2.0


def test_recompute_grad_frees_and_recomputes_intermediates():
    intermediates, calls = [], []

    def f(x):
        calls.append(1)
        h = tf.exp(x)
        intermediates.append(weakref.ref(h))
        return h * h

    x = tf.Variable([1.0, 2.0])
    gc.disable()
    try:
        with tf.GradientTape() as tape:
            y = tf.recompute_grad(f)(x)
        assert intermediates[0]() is None
        g = tape.gradient(y, x)
    finally:
        gc.enable()
    assert len(calls) == 2
    np.testing.assert_allclose(g, 2 * np.exp([2.0, 4.0]), rtol=1e-6)


def test_recompute_grad_with_variables_and_keyword_arguments():
    v = tf.Variable(3.0)
    f = tf.recompute_grad(lambda x, k=None: x * v * k)
    x, k = tf.Variable(2.0), tf.Variable(5.0)
    with tf.GradientTape() as tape:
        y = f(x, k=k)
    assert [float(g) for g in tape.gradient(y, [x, v, k])] == [15.0, 10.0, 6.0]


def test_recompute_grad_draws_the_same_random_numbers():
    f = tf.recompute_grad(lambda x: x * tf.random.normal([4]))
    x = tf.Variable(tf.ones([4]))
    with tf.GradientTape() as tape:
        y = f(x)
    tf.random.normal([4])
    np.testing.assert_array_equal(tape.gradient(y, x), y)


def test_recompute_grad_returns_zeros_for_unused_inputs():
    x, unused = tf.Variable(2.0), tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.recompute_grad(lambda x, _: x * x)(x, unused)
    gradients = tape.gradient(y, [x, unused])
    assert [g.numpy().tolist() for g in gradients] == [4.0, [0.0, 0.0]]


def test_recompute_grad_to_third_order():
    f = tf.recompute_grad(lambda x: x**5.0)
    x = tf.Variable(2.0)
    with tf.GradientTape() as a, tf.GradientTape() as b:
        with tf.GradientTape() as c:
            y = f(x)
        d1 = c.gradient(y, x)
        d2 = b.gradient(d1, x)
    gradients = [float(d1), float(d2), float(a.gradient(d2, x))]
    assert gradients == pytest.approx([80.0, 160.0, 240.0], rel=1e-6)


def test_recompute_grad_nests():
    f = tf.recompute_grad(lambda x: tf.recompute_grad(tf.sin)(x) * x)
    (g,) = gradient_of(f, tf.constant(0.7, tf.float64))
    np.testing.assert_allclose(g, np.cos(0.7) * 0.7 + np.sin(0.7), rtol=1e-12)


def test_recompute_grad_accepts_and_returns_dicts_keyed_by_references():
    v, w, x = tf.Variable(2.0), tf.Variable(3.0), tf.constant(5.0)

    @tf.recompute_grad
    def f(x, factors):
        return {v.ref(): x * factors[v.ref()], w.ref(): x * factors[w.ref()]}

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x, {v.ref(): v, w.ref(): w})[v.ref()]
    gradients = tape.gradient(y, [x, v])
    assert [float(g) for g in gradients] == [2.0, 5.0]
