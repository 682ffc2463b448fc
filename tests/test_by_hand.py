"""Compares gradients with derivatives computed by hand."""

import numpy as np

import retrograde as tf


def test_square():
    """d/dx x^2 = 2x: at 3, 6."""
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x

    assert tape.gradient(y, x).numpy() == 6.0


def test_two_variables():
    """z = x^2 y + y: dz/dx = 2xy = 12, dz/dy = x^2 + 1 = 5, at x = 2, y = 3."""
    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        z = x**2 * y + y
    dx, dy = tape.gradient(z, [x, y])

    assert dx.numpy() == 12.0
    assert dy.numpy() == 5.0


def test_quotient():
    """d/dx x/(1+x) = 1/(1+x)^2: at 1, 1/4."""
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = x / (1.0 + x)

    assert tape.gradient(y, x).numpy() == 0.25


def test_chain_of_elementary_functions():
    """d/dx exp(sin(x)) = cos(x) exp(sin(x)): at 0, 1."""
    x = tf.Variable(0.0)
    with tf.GradientTape() as tape:
        y = tf.exp(tf.sin(x))

    assert tape.gradient(y, x).numpy() == 1.0


def test_matrix_product():
    """For y = sum(A B), dy/dA holds the row sums of B and dy/dB the column sums of A."""
    a = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    b = tf.constant([[5.0, 6.0], [7.0, 8.0]])
    with tf.GradientTape() as tape:
        tape.watch([a, b])
        y = tf.reduce_sum(a @ b)
    da, db = tape.gradient(y, [a, b])

    np.testing.assert_array_equal(da.numpy(), [[11.0, 15.0], [11.0, 15.0]])
    np.testing.assert_array_equal(db.numpy(), [[4.0, 4.0], [6.0, 6.0]])


def test_broadcast_bias():
    """A bias that is added to three rows has the gradient 3."""
    x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    b = tf.Variable([10.0, 20.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(x + b)

    np.testing.assert_array_equal(tape.gradient(y, b).numpy(), [3.0, 3.0])


def test_least_squares():
    """L = mean((w x - y)^2): dL/dw = 2 mean(x (w x - y)) = 2 (1*(-1) + 2*(-1)) / 2 = -3."""
    w = tf.Variable(1.0)
    x, y = tf.constant([1.0, 2.0]), tf.constant([2.0, 3.0])
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((w * x - y) ** 2)

    assert tape.gradient(loss, w).numpy() == -3.0


def test_softmax_cross_entropy():
    """The gradient with respect to logits is softmax - labels; the softmax is 1/2 here."""
    logits = tf.Variable([[0.0, 0.0]])
    with tf.GradientTape() as tape:
        loss = tf.nn.softmax_cross_entropy_with_logits(labels=[[1.0, 0.0]], logits=logits)

    np.testing.assert_array_equal(tape.gradient(loss, logits).numpy(), [[-0.5, 0.5]])


def test_second_derivative():
    """d2/dx2 x^3 = 6x: at 2, 12, with nested tapes."""
    x = tf.Variable(2.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x**3
        first = inner.gradient(y, x)
    second = outer.gradient(first, x)

    assert first.numpy() == 12.0
    assert second.numpy() == 12.0


def test_selected_element_and_repeated_rows():
    """y = x[1]^2 + sum of rows 0, 0 of t: dy/dx = (0, 2 x[1], 0), row 0 of t counts twice."""
    x = tf.Variable([1.0, 4.0, 9.0])
    t = tf.Variable([[1.0], [2.0]])
    with tf.GradientTape() as tape:
        y = x[1] ** 2 + tf.reduce_sum(tf.gather(t, [0, 0]))
    dx, dt = tape.gradient(y, [x, t])

    np.testing.assert_array_equal(dx.numpy(), [0.0, 8.0, 0.0])
    np.testing.assert_array_equal(tf.convert_to_tensor(dt).numpy(), [[2.0], [0.0]])


def test_largest_element_and_product():
    """The derivative of max(x) is 1 at the maximum; the product of 2, 3, 4 has 12, 8, 6."""
    x = tf.Variable([2.0, 3.0, 4.0])
    with tf.GradientTape(persistent=True) as tape:
        largest = tf.reduce_max(x)
        product = tf.reduce_prod(x)

    np.testing.assert_array_equal(tape.gradient(largest, x).numpy(), [0.0, 0.0, 1.0])
    np.testing.assert_array_equal(tape.gradient(product, x).numpy(), [12.0, 8.0, 6.0])


def test_python_control_flow():
    """With Python control flow, the gradient is the gradient of the branch that ran."""
    x = tf.Variable(-3.0)
    with tf.GradientTape() as tape:
        y = x * x if x > 0 else -5.0 * x

    assert tape.gradient(y, x).numpy() == -5.0


def test_modulus_of_a_complex_number():
    """|z| = sqrt(x^2 + y^2): d|z|/dx + i d|z|/dy = z/|z| = 0.6 + 0.8i at 3 + 4i."""
    z = tf.constant(3.0 + 4.0j, tf.complex128)
    with tf.GradientTape() as tape:
        tape.watch(z)
        r = tf.abs(z)

    assert r.numpy() == 5.0
    assert tape.gradient(r, z).numpy() == 0.6 + 0.8j
