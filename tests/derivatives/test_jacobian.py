"""jacobian and batch_jacobian."""

import numpy as np
import pytest

import retrograde as tf
from retrograde.derivatives import jacobian as jacobian_module
from tests.namespaces.helpers import assert_raises


def jacobian_by_gradients(f, x):
    """Computes the Jacobian of `f` at `x` with one gradient for each element of the target."""
    size = int(tf.size(f(x)))
    rows = []
    for i in range(size):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reshape(f(x), [-1])[i]
        rows.append(tf.convert_to_tensor(tape.gradient(y, x, unconnected_gradients="zero")).numpy())
    return np.reshape(rows, (*f(x).shape, *x.shape))


def jacobian(f, x, **options):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
    return tape.jacobian(y, x, **options)


MATRIX = np.random.default_rng(0).uniform(0.2, 0.9, (3, 3))
VECTOR = np.array([0.3, -0.7, 1.1])
KERNEL = tf.constant(MATRIX[:, :2])

FUNCTIONS = {
    "elementwise": (lambda x: tf.sin(x) * x, VECTOR),
    "matmul": (lambda x: tf.tanh(x @ KERNEL), MATRIX),
    "matmul_left": (lambda x: tf.transpose(KERNEL) @ x, MATRIX),
    "broadcast": (lambda x: x[:, None] * x + tf.reduce_sum(x), VECTOR),
    "reduction": (lambda x: tf.reduce_prod(x, 0) / tf.reduce_max(x), MATRIX),
    "gather": (lambda x: tf.gather(x, [2, 0, 2]) ** 2, VECTOR),
    "scatter": (lambda x: tf.scatter_nd([[1], [1], [4]], x**2, [6]), VECTOR),
    "slices": (lambda x: tf.concat([x[1:], x[::-2] * x[0]], 0), VECTOR),
    "softmax": (lambda x: tf.nn.softmax(x) @ MATRIX, MATRIX),
    "cumsum": (lambda x: tf.cumsum(x * x) * tf.math.cumprod(x), VECTOR),
    "where": (lambda x: tf.where(x > 0, tf.sqrt(tf.abs(x)), x * x), VECTOR),
    "stop": (lambda x: tf.stop_gradient(x) * x, VECTOR),
    "recomputed": (lambda x: tf.recompute_grad(lambda x: tf.sin(x) * x[0])(x), VECTOR),
    "to_scalar": (lambda x: tf.reduce_sum(x**3), VECTOR),
    "to_single_element": (lambda x: tf.reshape(tf.reduce_sum(x**3), [1, 1]), VECTOR),
    "from_scalar": (lambda x: tf.stack([x, x * x, tf.exp(x)]), np.array(0.5)),
    "widening": (
        lambda x: tf.reshape(x[:, None] * tf.range(1.0, 12.0, dtype=x.dtype), [-1]),
        VECTOR,
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_row_is_a_gradient(name):
    f, point = FUNCTIONS[name]
    x = tf.constant(point)
    expected = jacobian_by_gradients(f, x)

    np.testing.assert_allclose(jacobian(f, x), expected, rtol=1e-12, atol=1e-14)
    by_rows = jacobian(f, x, experimental_use_pfor=False)
    np.testing.assert_allclose(by_rows, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_small_memory_limit_needs_more_passes(name, monkeypatch):
    monkeypatch.setattr(jacobian_module, "_FEW", 1)
    f, point = FUNCTIONS[name]
    x = tf.constant(point)
    passes = []
    original = jacobian_module._pull_back_batch
    monkeypatch.setattr(
        jacobian_module, "_pull_back_batch", lambda *a: passes.append(1) or original(*a)
    )

    j = jacobian(f, x, memory_limit=1)

    np.testing.assert_allclose(j, jacobian_by_gradients(f, x), rtol=1e-12, atol=1e-14)
    assert len(passes) in (0 if f(x).numpy().size == 1 else f(x).numpy().size, point.size)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_jacobian_can_be_differentiated(name):
    """Compares the gradients of Jacobians computed in a batch and row by row."""
    f, point = FUNCTIONS[name]
    x = tf.constant(point)
    gradients = []
    for batched in (True, False):
        with tf.GradientTape() as outer:
            outer.watch(x)
            j = jacobian(f, x, experimental_use_pfor=batched)
        weights = np.cos(np.arange(j.numpy().size)).reshape(j.shape)
        gradients.append(outer.gradient(j, x, tf.constant(weights), unconnected_gradients="zero"))

    np.testing.assert_allclose(*map(tf.convert_to_tensor, gradients), rtol=1e-11, atol=1e-13)


def test_forward_mode_is_used_if_targets_outnumber_sources(monkeypatch):
    pushed = []
    original = jacobian_module.push_forward_batched
    monkeypatch.setattr(
        jacobian_module, "push_forward_batched", lambda *a: pushed.append(1) or original(*a)
    )
    f, point = FUNCTIONS["widening"]

    j = jacobian(f, tf.constant(point))

    assert pushed == [1]
    np.testing.assert_array_equal(j, jacobian_by_gradients(f, tf.constant(point)))


def test_zero_derivatives_in_forward_and_reverse_mode():
    x = tf.constant([0.5, -1.5])

    few = jacobian(lambda x: tf.sign(x), x)
    many = jacobian(lambda x: tf.reshape(tf.sign(x)[:, None] * tf.ones([20]), [-1]), x)

    assert few.numpy().tolist() == [[0, 0], [0, 0]]
    assert many.numpy().tolist() == [[0, 0]] * 40


def test_sources_can_be_structures_of_tensors_and_variables():
    v, x, unused = tf.Variable([1.0, 2.0]), tf.constant([3.0, 4.0]), tf.Variable(5.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = v * x
    j = tape.jacobian(y, {"v": v, "rest": (x, unused)})

    assert j["v"].numpy().tolist() == [[3, 0], [0, 4]]
    assert j["rest"][0].numpy().tolist() == [[1, 0], [0, 2]]
    assert j["rest"][1] is None


def test_zeros_for_unconnected_sources_have_the_shape_of_the_jacobian():
    v, w = tf.Variable([[1.0, 2.0]]), tf.Variable([3.0, 4.0, 5.0])
    with tf.GradientTape() as tape:
        y = v * v

    j = tape.jacobian(y, [v, w], unconnected_gradients="zero")

    assert j[1].shape == (1, 2, 3)
    assert not j[1].numpy().any()


def test_complex_targets_and_sources_agree_with_a_loop():
    z = tf.constant([1.0 + 2.0j, 0.5 - 1.0j])

    j = jacobian(lambda z: z * z * tf.constant([1j, 2.0], tf.complex128), z)

    expected = jacobian_by_gradients(lambda z: z * z * tf.constant([1j, 2.0], tf.complex128), z)
    np.testing.assert_allclose(j, expected, rtol=1e-12)
    np.testing.assert_allclose(np.diag(j), np.conj(2 * z.numpy() * [1j, 2.0]), rtol=1e-12)


def test_custom_gradients_are_called_once_for_all_rows():
    calls = []

    @tf.custom_gradient
    def f(x):
        def grad(upstream):
            calls.append(upstream.shape)
            return upstream * 7.0 * x

        return x * x, grad

    j = jacobian(f, tf.constant([1.0, 2.0, 3.0]))

    assert j.numpy().tolist() == [[7, 0, 0], [0, 14, 0], [0, 0, 21]]
    assert calls == [(3,)]


def test_sources_and_targets_can_be_empty():
    x = tf.ones([0, 2])

    assert jacobian(lambda x: x * x, x).shape == (0, 2, 0, 2)
    assert jacobian(lambda x: tf.reduce_sum(x, 0), x).shape == (2, 0, 2)


def test_float32_stays_float32_and_integers_have_no_jacobian():
    assert jacobian(lambda x: x * x, tf.constant([1.0, 2.0])).dtype == tf.float32
    assert jacobian(lambda x: tf.cast(x, tf.int32), tf.constant([1.0, 2.0])) is None


def test_the_jacobian_of_a_gradient_is_the_hessian():
    x = tf.constant(VECTOR)

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.tanh(x[None] @ tf.constant(MATRIX)) ** 2)
        return tape.gradient(y, x)

    hessian = jacobian(gradient, x).numpy()

    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-12)
    np.testing.assert_allclose(hessian, jacobian_by_gradients(gradient, x), rtol=1e-12)


def test_a_tape_computes_one_jacobian_unless_it_is_persistent():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = x * x
    tape.jacobian(y, x)
    with pytest.raises(RuntimeError, match="can only be used to compute one set of gradients"):
        tape.jacobian(y, x)

    with tf.GradientTape(persistent=True) as tape:
        y = x * x
    assert [tape.jacobian(y, x).numpy().tolist() for _ in range(2)] == [[[2, 0], [0, 4]]] * 2


def test_batching_restores_the_namespaces():
    from retrograde.core import namespaces

    before = namespaces.foreign
    jacobian(lambda x: x * x, tf.constant([1.0, 2.0]))

    assert namespaces.foreign is before


# batch_jacobian


def batch_jacobian(f, x, **options):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
    return tape.batch_jacobian(y, x, **options)


ROWWISE = {
    "dense": lambda x: tf.tanh(x @ KERNEL),
    "same": lambda x: x * x,
    "narrow": lambda x: tf.reduce_prod(x, 1, keepdims=True),
    "wide": lambda x: tf.reshape(x[:, :, None] * tf.sin(x)[:, None] @ MATRIX, [3, 9]),
    "very_wide": lambda x: tf.sin(x[:, :, None] * tf.range(1.0, 9.0, dtype=x.dtype)),
}


@pytest.mark.parametrize("name", ROWWISE)
def test_a_batch_jacobian_is_the_diagonal_of_the_jacobian(name):
    f, x = ROWWISE[name], tf.constant(MATRIX)
    full_jacobian = jacobian_by_gradients(f, x)
    axis = len(f(x).shape)
    expected = np.stack([np.take(full_jacobian[i], i, axis=axis - 1) for i in range(3)])

    for options in ({}, {"memory_limit": 1}, {"experimental_use_pfor": False}):
        actual = batch_jacobian(f, x, **options)
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-14)


def test_batch_jacobian_of_an_unconnected_source_is_zero():
    x, w = tf.constant([[1.0, 2.0]]), tf.constant([[1.0, 2.0, 3.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = w * 2.0

    assert tape.batch_jacobian(y, x).numpy().tolist() == [[[0, 0]] * 3]


# Errors


def test_error_messages():
    x = tf.ones([2, 3])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        doubled, squared, summed = tf.concat([x, x], 0), x * x, tf.reduce_sum(x, 1)

    assert_raises(
        lambda: tape.batch_jacobian(doubled, x),
        ValueError,
        "Need first dimension of target shape ((4, 3)) and source shape ((2, 3)) to match.",
    )
    assert_raises(
        lambda: tape.batch_jacobian(summed, x),
        ValueError,
        "batch_jacobian: target must have rank at least 2 (the first axis is the batch axis). "
        "Received: shape (2,).",
    )
    assert_raises(
        lambda: tape.batch_jacobian(squared, tf.ones([2])),
        ValueError,
        "batch_jacobian: source must have rank at least 2 (the first axis is the batch axis). "
        "Received: shape (2,).",
    )
    assert_raises(
        lambda: tape.jacobian([1.0], x),
        TypeError,
        "jacobian() expects a single tensor or variable as the target. Received: [1.0] of type "
        "'list'.",
    )
    for method in (tape.jacobian, tape.batch_jacobian):
        assert_raises(
            lambda method=method: method(squared, x, unconnected_gradients="foo"),
            ValueError,
            "Unknown value for unconnected_gradients: 'foo'. Expected 'none' or 'zero'.",
        )


@pytest.mark.parametrize("method_name", ["jacobian", "batch_jacobian"])
def test_row_by_row_requires_a_persistent_tape(method_name):
    x = tf.ones([2, 3])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x

    assert_raises(
        lambda: getattr(tape, method_name)(y, x, experimental_use_pfor=False),
        RuntimeError,
        f"GradientTape must be created with persistent=True to compute the {method_name} with "
        "eager execution enabled and with experimental_use_pfor set to False.",
    )
    assert getattr(tape, method_name)(y, x).shape[0] == 2


@pytest.mark.parametrize("pfor", [True, False])
def test_the_jacobian_of_indexed_slices_matches_the_dense_tensor(pfor):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], tf.float64)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            energy = tf.reduce_sum((tf.gather(x, [0, 1]) - tf.gather(x, [1, 0])) ** 3)
        forces = -inner.gradient(energy, x)
        dense = tf.convert_to_tensor(forces)

    assert isinstance(forces, tf.IndexedSlices)
    expected = tape.jacobian(dense, x)
    assert expected.shape == (3, 2, 3, 2)
    np.testing.assert_allclose(tape.jacobian(forces, x, experimental_use_pfor=pfor), expected)
    assert tape.jacobian(forces, tf.constant(1.0)) is None


def test_the_jacobian_of_indexed_slices_requires_dense_shape():
    x = tf.Variable([[1.0, 2.0]])
    with tf.GradientTape() as tape:
        y = tf.IndexedSlices(x * x, [2])

    assert_raises(
        lambda: tape.jacobian(y, x),
        ValueError,
        f"Tensor conversion requested for IndexedSlices without dense_shape: {y!r}. Pass "
        "dense_shape when you create them.",
    )
