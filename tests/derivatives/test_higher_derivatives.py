"""Tape methods that TensorFlow does not have: hessian, hvp, jvp, laplacian, derivatives."""

import numpy as np
import pytest

import retrograde as tf
from retrograde.derivatives import taylor
from tests.namespaces.helpers import assert_raises

RNG = np.random.default_rng(11)
W1, W2 = (tf.Variable(RNG.uniform(-1, 1, shape)) for shape in ((2, 5), (5, 1)))
POINTS = RNG.uniform(-1, 1, (4, 2))


def network(x):
    return tf.tanh(x @ W1) @ W2


def record(f, *sources, persistent=False):
    with tf.GradientTape(persistent=persistent) as tape:
        tape.watch(sources)
        y = f(*sources)
    return tape, y


def gradient(f, x, *others):
    tape, y = record(f, x, *others)
    return tape.gradient(y, x, unconnected_gradients="zero")


def loss(x):
    return tf.reduce_sum(network(x) ** 2)


# hessian and hvp


def test_a_hessian_is_the_jacobian_of_the_gradient():
    x = tf.constant(POINTS)
    tape, y = record(loss, x)
    outer, g = record(lambda x: gradient(loss, x), x)

    np.testing.assert_allclose(tape.hessian(y, x), outer.jacobian(g, x), rtol=1e-11, atol=1e-13)


def test_a_hessian_of_several_sources_has_a_block_for_each_pair():
    x, y, unused = tf.Variable([1.0, 2.0]), tf.Variable(3.0), tf.Variable([5.0])
    tape, z = record(lambda x, y, _: x[0] ** 2 * x[1] * y, x, y, unused)

    h = tape.hessian(z, {"x": x, "y": y, "unused": unused})

    assert h["x"]["x"].numpy().tolist() == [[12.0, 6.0], [6.0, 0.0]]
    assert h["x"]["y"].numpy().tolist() == h["y"]["x"].numpy().tolist() == [4.0, 1.0]
    assert float(h["y"]["y"]) == 0.0
    assert h["x"]["unused"].numpy().tolist() == [[0.0], [0.0]]
    assert h["unused"]["unused"].numpy().tolist() == [[0.0]]


def test_the_hessian_of_a_linear_function_is_zero():
    x = tf.Variable([1.0, 2.0])
    tape, y = record(lambda x: tf.reduce_sum(x * 3.0), x)

    assert tape.hessian(y, x).numpy().tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_hvp_is_the_hessian_times_a_vector():
    x, v = tf.constant(POINTS), RNG.uniform(-1, 1, POINTS.shape)
    tape, y = record(loss, x, persistent=True)
    hessian = tape.hessian(y, x).numpy()

    product = tape.hvp(y, x, tf.constant(v))

    np.testing.assert_allclose(product, np.einsum("ijkl,kl->ij", hessian, v), rtol=1e-11)


def test_hvp_accepts_structures_and_returns_zeros_for_unconnected_sources():
    a, b, c = tf.Variable(2.0), tf.Variable(3.0), tf.Variable(4.0)
    tape, y = record(lambda a, b, _: a * a * b, a, b, c)

    products = tape.hvp(y, [a, b, c], [tf.constant(1.0), tf.constant(10.0), tf.constant(1.0)])

    assert [float(p) for p in products] == [6.0 + 40.0, 4.0, 0.0]


def test_a_tape_around_a_hessian_computes_third_derivatives():
    x = tf.constant(1.5, tf.float64)
    with tf.GradientTape() as outer:
        outer.watch(x)
        tape, y = record(lambda x: x**5, x)
        second = tape.hessian(y, x)

    assert float(second) == 20 * 1.5**3
    assert float(outer.gradient(second, x)) == 60 * 1.5**2


def test_a_persistent_tape_computes_several_derivatives():
    x = tf.Variable([1.0, 2.0])
    tape, y = record(lambda x: tf.reduce_sum(x**3), x, persistent=True)
    count = len(tape._entries)

    assert tape.hessian(y, x).numpy().tolist() == [[6.0, 0.0], [0.0, 12.0]]
    assert tape.hvp(y, x, tf.ones([2])).numpy().tolist() == [6.0, 12.0]
    assert tape.gradient(y, x).numpy().tolist() == [3.0, 12.0]
    assert len(tape._entries) == count


def test_a_non_persistent_tape_can_be_used_once():
    x = tf.Variable([1.0, 2.0])
    tape, y = record(lambda x: tf.reduce_sum(x**3), x)
    tape.hessian(y, x)

    with pytest.raises(RuntimeError, match="can only be used to compute one set of gradients"):
        tape.gradient(y, x)


# jvp


def test_jvp_agrees_with_a_forward_accumulator():
    x, t = tf.constant(POINTS), tf.constant(RNG.uniform(-1, 1, POINTS.shape))
    tape, y = record(network, x)
    with tf.autodiff.ForwardAccumulator(x, t) as forward:
        z = network(x)

    np.testing.assert_allclose(tape.jvp(y, x, t), forward.jvp(z), rtol=1e-12)


def test_jvp_accepts_structures_of_sources_and_targets():
    a, b = tf.Variable(2.0), tf.Variable([3.0, 4.0])
    with tf.GradientTape() as tape:
        y = {"p": a * b, "q": tf.constant(1.0), "n": tf.argmax(b)}

    tangents = tape.jvp(y, [a, b], [tf.constant(1.0), tf.constant([10.0, 0.0])])

    assert tangents["p"].numpy().tolist() == [3.0 + 20.0, 4.0]
    assert tangents["q"] is None
    assert tangents["n"] is None


# laplacian


def test_a_laplacian_is_the_trace_of_the_hessian_at_each_point():
    x = tf.constant(POINTS)
    expected = []
    for point in POINTS:
        p = tf.constant(point)
        tape, y = record(lambda p: network(p[None])[0, 0], p)
        hessian = tape.hessian(y, p).numpy()
        expected.append(np.trace(hessian))

    tape, u = record(network, x)

    actual = tape.laplacian(u, x)

    assert actual.shape == u.shape
    np.testing.assert_allclose(actual.numpy()[:, 0], expected, rtol=1e-11)


def test_a_laplacian_of_one_value_sums_over_all_coordinates():
    x = tf.constant([1.0, 2.0, 3.0])
    tape, y = record(lambda x: tf.reduce_sum(x**3), x)

    assert float(tape.laplacian(y, x)) == 36.0


def test_a_laplacian_can_be_differentiated():
    x = tf.constant(POINTS)
    with tf.GradientTape() as outer:
        tape, u = record(network, x)
        total = tf.reduce_sum(tape.laplacian(u, x) ** 2)
    g = outer.gradient(total, W1).numpy()

    before, step = W1.numpy(), 1e-6
    for index in ((0, 0), (1, 3)):
        values = []
        for h in (step, -step):
            shifted = before.copy()
            shifted[index] += h
            W1.assign(shifted)
            tape, u = record(network, x)
            values.append(float(tf.reduce_sum(tape.laplacian(u, x) ** 2)))
        W1.assign(before)
        np.testing.assert_allclose(g[index], (values[0] - values[1]) / (2 * step), rtol=1e-6)


# derivatives


def test_partial_derivatives_agree_with_nested_tapes_to_fourth_order():
    t, x = (tf.constant(POINTS[:, i : i + 1]) for i in range(2))

    def u(t, x):
        return tf.sin(t * 2.0) * tf.exp(x * x) + network(tf.concat([t, x], 1))

    def differentiate(variable, f):
        return lambda t, x: gradient(
            (lambda s: f(s, x)) if variable == "t" else (lambda s: f(t, s)),
            t if variable == "t" else x,
        )

    orders = {"t": t, "x": x, "xx": x, "tx": (t, x), "xxx": x, "ttx": (t, t, x), "xxxx": x,
              "ttxx": (t, t, x, x)}  # fmt: skip
    tape, y = record(u, t, x)

    actual = tape.derivatives(y, orders)

    assert list(actual) == list(orders)
    for name, value in actual.items():
        f = u
        for letter in name:
            f = differentiate(letter, f)
        np.testing.assert_allclose(value, f(t, x), rtol=1e-9, atol=1e-11, err_msg=name)


def test_derivatives_that_vanish_are_zeros():
    x = tf.constant([[1.0], [2.0]])
    tape, y = record(lambda x: x * 3.0, x)

    d = tape.derivatives(y, {"x": x, "xx": x, "xxx": x})

    assert d["x"].numpy().tolist() == [[3.0], [3.0]]
    assert d["xx"].numpy().tolist() == d["xxx"].numpy().tolist() == [[0.0], [0.0]]


def test_derivatives_can_be_differentiated_with_respect_to_weights():
    x = tf.constant(POINTS[:, :1])
    w = tf.Variable(0.7, dtype=tf.float64)
    with tf.GradientTape() as outer:
        tape, u = record(lambda x: tf.sin(w * x), x)
        residual = tf.reduce_sum(tape.derivatives(u, {"xx": x})["xx"])
    expected = np.sum(-2 * 0.7 * np.sin(0.7 * x) - 0.7**2 * np.cos(0.7 * x) * x.numpy())

    np.testing.assert_allclose(outer.gradient(residual, w), expected, rtol=1e-12)


# Taylor mode


def by_nested_gradients(f, x, order):
    for _ in range(order):
        f = lambda x, f=f: gradient(f, x)  # noqa: E731
    return f(x)


WEIGHTS = tf.constant(RNG.uniform(-1, 1, (1, 4)))
SERIES = {
    "tanh": lambda x: tf.tanh(x * x),
    "sigmoid": lambda x: tf.sigmoid(x * 2.0) * x,
    "exp": lambda x: tf.exp(-x * x),
    "sin_and_cos": lambda x: tf.sin(x * x) + tf.cos(3.0 * x) * x,
    "log_and_sqrt": lambda x: tf.math.log(x + 2.0) * tf.sqrt(x * x + 1.0),
    "quotients": lambda x: x / (1.0 + x * x) + 1.0 / (x + 2.0),
    "square": lambda x: tf.square(tf.square(x)) - x,
    "network": lambda x: tf.reduce_sum(tf.tanh(tf.tanh(x @ WEIGHTS) @ tf.ones([4, 4], x.dtype)), 1),
    "shapes": lambda x: tf.reshape(tf.concat([x, tf.sin(x)], 1)[:, ::-1], [-1, 2])[:, :1] * 2.0,
    "split_and_stack": lambda x: tf.add_n(tf.split(tf.concat([x**2, tf.exp(x)], 1), 2, axis=1)),
    "indices": lambda x: tf.gather(tf.sin(x) * x, [3, 2, 1, 0])[::-1],
    "where": lambda x: tf.where(x > 0.0, tf.sin(x), tf.exp(x)),
    "constant_factor": lambda x: tf.sin(x) * tf.constant([[2.0], [3.0], [4.0], [5.0]], x.dtype),
    "weights": lambda x: tf.tanh(x @ W1[:1]) @ W2,
}


@pytest.mark.parametrize("name", SERIES)
def test_taylor_mode_agrees_with_nested_tapes(name, monkeypatch):
    x, f = tf.constant(POINTS[:, :1]), SERIES[name]
    fallbacks = []
    monkeypatch.setattr(taylor, "nested_gradients", lambda *a: fallbacks.append(a[2]) or [])
    tape, y = record(f, x)

    derivatives = tape.derivatives(y, {"x" * k: x for k in range(1, 5)})

    assert fallbacks == [[]], "the series was not used"
    for k in range(1, 5):
        expected = by_nested_gradients(f, x, k)
        np.testing.assert_allclose(
            derivatives["x" * k], expected, rtol=1e-8, atol=1e-10, err_msg=str(k)
        )


@pytest.mark.parametrize(
    "f", [lambda x: tf.math.erf(x), lambda x: tf.nn.softplus(x) * x, lambda x: tf.atan(x)]
)
def test_functions_without_a_series_use_nested_gradients(f):
    x = tf.constant(POINTS[:, :1])
    tape, y = record(f, x)

    derivative = tape.derivatives(y, {"xxx": x})["xxx"]

    np.testing.assert_allclose(derivative, by_nested_gradients(f, x, 3), rtol=1e-9)


@pytest.mark.parametrize("order", [2, 3, 4])
def test_high_derivatives_can_be_differentiated_with_respect_to_weights(order):
    x = tf.constant(POINTS[:, :1])
    gradients = []
    for uses_taylor_mode in (True, False):
        with tf.GradientTape() as outer:
            if uses_taylor_mode:
                tape, y = record(lambda x: tf.tanh(x @ W1[:1]) @ W2, x)
                d = tape.derivatives(y, {"x" * order: x})["x" * order]
            else:
                d = by_nested_gradients(lambda x: tf.tanh(x @ W1[:1]) @ W2, x, order)
            total = tf.reduce_sum(d**2)
        gradients.append([tf.convert_to_tensor(g).numpy() for g in outer.gradient(total, [W1, W2])])

    for a, e in zip(*gradients, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-8, atol=1e-10)


# Errors


def test_error_messages():
    x = tf.ones([2, 3])
    tape, y = record(lambda x: x * x, x, persistent=True)

    for method in ("hessian", "hvp"):
        arguments = (y, x, x)[: 2 if method == "hessian" else 3]
        assert_raises(
            lambda method=method, arguments=arguments: getattr(tape, method)(*arguments),
            ValueError,
            f"{method}: the target must have one element. Received: shape (2, 3). Use "
            "tf.reduce_sum first, or the jacobian of a gradient.",
        )
    assert_raises(
        lambda: tape.laplacian(y, x),
        ValueError,
        "laplacian: expected one value for each row of the source, of shape (2, 3). Received: a "
        "target of shape (2, 3).",
    )
    assert_raises(
        lambda: tape.derivatives(y, {"xx": (x,)}),
        ValueError,
        "derivatives: 'xx' has 2 letters. Received: 1 tensors. Expected one tensor for each "
        "letter, or a single one for all.",
    )
    assert_raises(
        lambda: tape.derivatives(y, {"": x}),
        ValueError,
        "derivatives: '' has 0 letters. Received: 0 tensors. Expected one tensor for each "
        "letter, or a single one for all.",
    )
