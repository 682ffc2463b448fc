"""tf.nn: values recorded from TensorFlow, dtypes, errors and gradients."""

import math

import numpy as np
import pytest

import retrograde as tf
from retrograde.errors import InvalidArgumentError
from tests.namespaces.helpers import (
    FLOATS,
    REAL,
    SIGNED,
    UNSIGNED,
    assert_gradients,
    assert_raises,
    float64,
    gradient,
    of_dtype,
)

POINTS = [-2.0, -0.5, 0.0, 0.4, 7.0]

# fmt: off
ACTIVATIONS = [
    ("relu", [0.0, 0.0, 0.0, 0.4, 7.0]),
    ("relu6", [0.0, 0.0, 0.0, 0.4, 6.0]),
    ("leaky_relu", [-0.4, -0.1, 0.0, 0.4, 7.0]),
    ("elu", [-0.864664716763, -0.393469340287, 0.0, 0.4, 7.0]),
    ("selu", [-1.5201664686, -0.691758187803, 0.0, 0.420280394942, 7.35490691149]),
    ("gelu", [0.5 * x * (1 + math.erf(x * math.sqrt(0.5))) for x in POINTS]),
    ("silu", [-0.238405844044, -0.188770334399, 0.0, 0.239475064045, 6.99362264164]),
    ("crelu", [0.0, 0.0, 0.0, 0.4, 7.0, 2.0, 0.5, 0.0, 0.0, 0.0]),
    ("softplus", [0.126928011043, 0.47407698418, 0.69314718056, 0.9130152524, 7.00091146645]),
    ("softsign", [-0.666666666667, -0.333333333333, 0.0, 0.285714285714, 0.875]),
    ("sigmoid", [0.119202922022, 0.377540668798, 0.5, 0.598687660112, 0.999088948806]),
    ("tanh", [-0.964027580076, -0.46211715726, 0.0, 0.379948962255, 0.999998336944]),
    ("softmax", [
        0.00012304697005, 0.000551458260812, 0.000909200964504, 0.00135636845397, 0.997059925351,
    ]),
    ("log_softmax", [
        -9.00294440516, -7.50294440516, -7.00294440516, -6.60294440516, -0.0029444051589,
    ]),
]
# fmt: on

LABELS = [[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]]
LOGITS = [[1.0, 2.0, 0.5], [3.0, 0.0, -1.0]]


def _cross_entropy(labels, logits, axis=-1):
    logs = logits - np.log(np.sum(np.exp(logits), axis=axis, keepdims=True))
    return -np.sum(labels * logs, axis=axis)


# Activations


@pytest.mark.parametrize(("name", "expected"), ACTIVATIONS, ids=[row[0] for row in ACTIVATIONS])
def test_activations(name, expected):
    f = getattr(tf.nn, name)

    y = f(float64(POINTS))

    assert y.dtype == tf.float64
    np.testing.assert_allclose(y.numpy(), expected, rtol=5e-12)
    for x in (tf.Variable(POINTS), POINTS, np.array(POINTS, np.float32)):
        np.testing.assert_allclose(f(x).numpy(), expected, rtol=1e-4)


def test_gelu_by_tanh():
    expected = [-0.045402306788, -0.154285990208, 0.0, 0.262161169413, 7.0]

    np.testing.assert_allclose(tf.nn.gelu(float64(POINTS), True).numpy(), expected, rtol=2e-8)
    x = np.array(POINTS)
    exact = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(tf.nn.gelu(x, True).numpy(), exact, rtol=1e-14)


def test_parameters_of_activations():
    x = float64([-1.0, 2.0])

    assert tf.nn.leaky_relu(x, alpha=0.5).numpy().tolist() == [-0.5, 2]
    expected = [-1 / (1 + np.exp(2.0)), 2 / (1 + np.exp(-4.0))]
    for beta in (2, 2.0, tf.Variable(2.0), float64(2.0)):
        np.testing.assert_allclose(tf.nn.silu(x, beta).numpy(), expected, rtol=1e-14)
    assert tf.nn.swish is tf.nn.silu
    assert tf.nn.crelu([[1.0, -2.0]], axis=0).numpy().tolist() == [[1, 0], [0, 2]]


@pytest.mark.parametrize("name", [row[0] for row in ACTIVATIONS])
def test_activations_of_non_finite_values(name):
    y = getattr(tf.nn, name)(tf.constant([[np.nan], [1000.0]]))

    assert np.isnan(y.numpy()[0]).any()
    assert not np.isnan(y.numpy()[1]).any()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [row[0] for row in ACTIVATIONS] + ["l2_loss"])
def test_activations_keep_float_dtypes(name, dtype):
    assert getattr(tf.nn, name)(of_dtype([1, 2], dtype)).dtype == dtype


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
def test_relu_of_integers(dtype):
    x = of_dtype([1, 9], dtype)

    assert tf.nn.relu(x).dtype == tf.nn.relu6(x).dtype == dtype
    assert tf.nn.relu6(x).numpy().tolist() == [1, 6]
    assert tf.nn.leaky_relu(x).dtype == tf.float32


@pytest.mark.parametrize("approximate", [False, True])
def test_gradient_of_gelu(approximate):
    assert_gradients(lambda x: tf.nn.gelu(x, approximate), [-2.0, -0.5, 0.4, 3.0])


@pytest.mark.parametrize("name", [row[0] for row in ACTIVATIONS])
def test_gradients_of_activations(name):
    assert_gradients(getattr(tf.nn, name), [-2.0, -0.5, 0.4, 3.0, 7.0])


def test_gradients_with_respect_to_parameters():
    assert_gradients(lambda x, beta: tf.nn.silu(x, beta), [-2.0, -0.5, 0.4], 1.7)
    assert_gradients(lambda x: tf.nn.leaky_relu(x, 0.3), [-2.0, 0.5])
    assert_gradients(lambda x: tf.nn.softmax(x, axis=0), [[0.3, 1.0], [2.0, -1.0]])


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("relu", [0.0], [0.0]), ("relu6", [0.0, 6.0], [0.0, 0.0]), ("leaky_relu", [0.0], [0.2]),
        ("elu", [0.0], [1.0]), ("selu", [0.0], [1.0507009873554805]), ("crelu", [0.0], [0.0]),
    ],
)  # fmt: skip
def test_gradients_at_non_differentiable_points(name, x, expected):
    (g,) = gradient(getattr(tf.nn, name), float64(x))

    np.testing.assert_allclose(g, expected, rtol=1e-15)


# Cross entropies


@pytest.mark.parametrize("axis", [-1, 1, None, 0])
def test_softmax_cross_entropy(axis):
    y = tf.nn.softmax_cross_entropy_with_logits(float64(LABELS), float64(LOGITS), axis)

    expected = _cross_entropy(np.array(LABELS), np.array(LOGITS), -1 if axis is None else axis)
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-14)


@pytest.mark.parametrize("labels", [[0.2, 0.3, 0.5], [[0.2, 0.3, 0.5]], [[[0.2, 0.3, 0.5]]]])
def test_one_row_of_labels_broadcasts(labels):
    y = tf.nn.softmax_cross_entropy_with_logits(labels, tf.constant(LOGITS))

    np.testing.assert_allclose(y.numpy(), [1.4143689, 2.9658835], rtol=1e-6)


def test_one_label_broadcasts_to_all_classes():
    y = tf.nn.softmax_cross_entropy_with_logits([[1.0], [0.0]], [[2.0, 3.0], [1.0, 2.0]])

    np.testing.assert_allclose(y.numpy(), [1.6265233, 0.0], rtol=1e-6)


def test_labels_are_cast_to_the_dtype_of_the_logits():
    for labels in (tf.constant([[1, 0]]), float64([[1.0, 0.0]]), [[1, 0]]):
        y = tf.nn.softmax_cross_entropy_with_logits(labels, tf.constant([[2.0, 3.0]]))
        assert y.dtype == tf.float32
        np.testing.assert_allclose(y.numpy(), [1.3132616], rtol=1e-6)


def test_a_label_of_zero_does_not_contribute():
    y = tf.nn.softmax_cross_entropy_with_logits([[0.0, 1.0]], [[-np.inf, 0.0]])

    assert y.numpy().tolist() == [0]


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 4, 3), (0, 3)])
def test_sparse_labels_of_any_rank(shape):
    rng = np.random.default_rng(5)
    logits = rng.normal(size=shape)
    labels = rng.integers(0, 3, shape[:-1])
    expected = _cross_entropy(np.eye(3)[labels], logits)

    for dtype in ("int32", "int64"):
        y = tf.nn.sparse_softmax_cross_entropy_with_logits(labels.astype(dtype), logits)
        assert y.shape == shape[:-1]
        np.testing.assert_allclose(y.numpy(), expected, rtol=1e-14)


@pytest.mark.parametrize("dtype", FLOATS)
def test_cross_entropies_keep_the_dtype_of_the_logits(dtype):
    logits = of_dtype([[1, 2]], dtype)

    assert tf.nn.sparse_softmax_cross_entropy_with_logits([0], logits).dtype == dtype
    assert tf.nn.softmax_cross_entropy_with_logits([[0, 1]], logits).dtype == dtype
    assert tf.nn.sigmoid_cross_entropy_with_logits(logits, logits).dtype == dtype


def test_sigmoid_cross_entropy():
    y = tf.nn.sigmoid_cross_entropy_with_logits([1.0, 0.0, 0.5, 1.0], [0.5, -2.0, 0.0, 20.0])

    np.testing.assert_allclose(
        y.numpy(), [0.474077, 0.12692805, 0.6931472, 2.0611537e-09], rtol=1e-6
    )


def test_weighted_cross_entropy():
    y = tf.nn.weighted_cross_entropy_with_logits([1.0, 0.0, 1.0], [0.5, -2.0, 1000.0], 3.0)

    np.testing.assert_allclose(y.numpy(), [1.422231, 0.12692805, 0.0], rtol=1e-6)


def test_weights_of_cross_entropies_broadcast():
    y = tf.nn.weighted_cross_entropy_with_logits([1.0], [2.0], tf.constant([[3.0]]))

    np.testing.assert_allclose(y.numpy(), [[0.38078403]], rtol=1e-6)


def test_log_poisson_loss():
    targets, logs = float64([1.0, 2.0, 0.0]), float64([0.5, 1.0, 1.0])
    expected = np.exp(logs.numpy()) - logs.numpy() * targets.numpy()

    np.testing.assert_allclose(tf.nn.log_poisson_loss(targets, logs).numpy(), expected, rtol=1e-14)
    full = tf.nn.log_poisson_loss(targets, logs, compute_full_loss=True)
    stirling = 2 * np.log(2) - 2 + 0.5 * np.log(4 * np.pi)
    np.testing.assert_allclose(full.numpy() - expected, [0, stirling, 0], rtol=1e-14)


def test_gradients_of_softmax_cross_entropy():
    f = tf.nn.softmax_cross_entropy_with_logits

    assert_gradients(f, LABELS, LOGITS)
    assert_gradients(lambda y, x: f(y, x, axis=0), LABELS, LOGITS)
    assert_gradients(f, [0.2, 0.3, 0.5], LOGITS)
    assert_gradients(lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits([0, 2], x), LOGITS)


def test_gradients_of_the_other_cross_entropies():
    labels, logits = [0.2, 1.0, 0.0], [1.0, -2.0, 0.5]

    assert_gradients(tf.nn.sigmoid_cross_entropy_with_logits, labels, logits)
    assert_gradients(tf.nn.weighted_cross_entropy_with_logits, labels, logits, [3.0, 2.0, 1.0])
    assert_gradients(lambda y, x: tf.nn.log_poisson_loss(y, x, True), [2.0, 1.5, 0.5], logits)


def test_gradients_of_cross_entropies_at_zero():
    """The gradient with respect to the logits is sigmoid(0) minus the label."""
    labels = [0.2, 1.0, 0.0]

    _, g = gradient(tf.nn.sigmoid_cross_entropy_with_logits, labels, [0.0, -0.0, 0.0])
    np.testing.assert_allclose(g, [0.3, -0.5, 0.5], rtol=1e-6)
    weighted = tf.nn.weighted_cross_entropy_with_logits
    _, g = gradient(lambda y, x: weighted(y, x, 2.0), labels, [0.0, -0.0, 0.0])
    np.testing.assert_allclose(g, [0.2, -1.0, 0.5], rtol=1e-6)


def test_l2_loss():
    assert tf.nn.l2_loss([[3.0], [4.0]]).numpy() == 12.5
    assert_gradients(tf.nn.l2_loss, [[0.2, 1.0], [3.0, 0.0]])


# Moments and normalization

X = [[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]]


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axes", [[0], [1], [0, 1], [-1], 0, [], None])
def test_moments(axes, keepdims):
    mean, variance = tf.nn.moments(float64(X), axes, keepdims=keepdims)

    reduced_axes = tuple(axes) if isinstance(axes, list) else axes
    np.testing.assert_allclose(
        mean.numpy(), np.mean(X, reduced_axes, keepdims=keepdims), rtol=1e-14
    )
    np.testing.assert_allclose(
        variance.numpy(), np.var(X, reduced_axes, keepdims=keepdims), atol=1e-14
    )


@pytest.mark.parametrize("dtype", REAL)
def test_moments_keep_the_dtype(dtype):
    mean, variance = tf.nn.moments(of_dtype([[1, 5], [3, 9]], dtype), [0])

    assert mean.dtype == variance.dtype == dtype
    assert (mean.numpy().tolist(), variance.numpy().tolist()) == ([2, 7], [1, 4])


def test_moments_of_half_precision_are_computed_in_float32():
    x = of_dtype([300.0] * 1000 + [310.0] * 1000, "float16")

    mean, variance = tf.nn.moments(x, [0])

    assert (mean.numpy(), variance.numpy()) == (305, 25)


def test_weighted_moments():
    mean, variance = tf.nn.weighted_moments(float64(X), [0], float64([[1.0], [3.0]]))

    assert mean.numpy().tolist() == [3.25, 4.25, 6]
    assert variance.numpy().tolist() == [1.6875, 1.6875, 3]
    mean, _ = tf.nn.weighted_moments(float64(X), [1], tf.constant([1, 2, 3]), keepdims=True)
    np.testing.assert_allclose(mean.numpy(), [[14 / 6], [35 / 6]], rtol=1e-14)


def test_gelu_is_accurate_in_the_left_tail():
    x = tf.constant([-10.0, -6.0, -4.0])
    exact = [-7.6198530e-23, -5.9195259e-09, -1.2668497e-04]

    np.testing.assert_allclose(tf.nn.gelu(x), exact, rtol=1e-5)


def test_gradient_of_sigmoid_cross_entropy_is_accurate_for_correct_logits():
    x = tf.constant([12.0, 40.0, -12.0, -40.0])
    labels = tf.constant([1.0, 1.0, 0.0, 0.0])
    (slope,) = gradient(lambda x: tf.nn.sigmoid_cross_entropy_with_logits(labels, x), x)

    tail = 1 / (1 + np.exp([12.0, 40.0]))
    np.testing.assert_allclose(slope, [*-tail, *tail], rtol=1e-6)


@pytest.mark.parametrize(
    "loss",
    [
        lambda x: tf.nn.softmax_cross_entropy_with_logits([[1.0, 0.0]], x),
        lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits([0], x),
    ],
)
@pytest.mark.parametrize(("dtype", "rtol"), [(tf.float16, 2e-3), (tf.bfloat16, 1e-2)])
def test_cross_entropies_of_half_precision_are_computed_in_float32(loss, dtype, rtol):
    x = tf.constant([[7.0, 0.0]], dtype)
    (slope,) = gradient(loss, x)

    tail = 1 / (1 + np.exp(7.0))
    np.testing.assert_allclose(tf.cast(loss(x), tf.float64), [np.log1p(np.exp(-7.0))], rtol=rtol)
    np.testing.assert_allclose(tf.cast(slope, tf.float64), [[-tail, tail]], rtol=rtol)


def test_weights_that_add_up_to_zero_give_moments_of_zero():
    x = tf.constant([[1.0, 2.0], [3.0, 5.0]])
    mean, variance = tf.nn.weighted_moments(x, [1], [[0.0, 0.0], [1.0, 1.0]])

    assert mean.numpy().tolist() == [0.0, 4.0]
    assert variance.numpy().tolist() == [0.0, 1.0]


def test_moments_from_sufficient_statistics():
    for shift in (None, 2.0, tf.constant(2.0, tf.float64)):
        statistics = tf.nn.sufficient_statistics(float64(X), [0], shift)
        assert statistics[0].numpy() == 2
        assert (statistics[3] is None) == (shift is None)
        mean, variance = tf.nn.normalize_moments(*statistics)
        assert mean.numpy().tolist() == [2.5, 3.5, 5]
        assert variance.numpy().tolist() == [2.25, 2.25, 4]
    assert tf.nn.sufficient_statistics(X, [1], keepdims=True)[1].shape == (2, 1)


def test_batch_normalization():
    x, mean, variance = float64([[1.0, 5.0]]), float64([1.0, 1.0]), float64([1.0, 4.0])

    def run(offset, scale):
        return tf.nn.batch_normalization(x, mean, variance, offset, scale, 0.0).numpy().tolist()

    assert run(None, None) == [[0, 2]]
    assert run(float64([1.0, 2.0]), None) == [[1, 4]]
    assert run(None, float64([5.0, 3.0])) == [[0, 6]]
    assert run(float64([1.0, 2.0]), float64([5.0, 3.0])) == [[1, 8]]


def test_batch_normalization_keeps_the_dtype_of_x():
    x = of_dtype([[1, 2]], "float16")

    y = tf.nn.batch_normalization(
        x, tf.constant([1.0, 1.0]), tf.constant([1.0, 4.0]), None, None, 1e-3
    )

    assert y.dtype == tf.float16


def test_gradients_of_moments():
    assert_gradients(lambda x: tf.nn.moments(x, [0])[0], X)
    assert_gradients(lambda x: tf.nn.moments(x, [0, 1])[1], X)
    assert_gradients(lambda x, w: tf.nn.weighted_moments(x, [0], w)[0], X, [[1.0], [3.0]])
    assert_gradients(lambda x, w: tf.nn.weighted_moments(x, [0], w)[1], X, [[1.0], [3.0]])
    assert_gradients(lambda c, m, v: tf.nn.normalize_moments(c, m, v, 0.5)[1], 4.0, 2.0, 10.0)


def test_gradients_of_batch_normalization():
    def f(x, mean, variance, offset, scale):
        return tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-3)

    assert_gradients(f, X, *([[0.2, 1.0, 0.7]] * 4))


def test_the_variance_has_a_second_derivative():
    """The Hessian has 2/n on the diagonal, minus 2/n**2 everywhere, from the mean."""
    x = float64([1.0, 2.0, 6.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            variance = tf.nn.moments(x, [0])[1]
        slope = inner.gradient(variance, x)[0]

    np.testing.assert_allclose(
        outer.gradient(slope, x).numpy(), [4 / 9, -2 / 9, -2 / 9], rtol=1e-14
    )


# Biases, embeddings, dropout


@pytest.mark.parametrize("data_format", [None, "NHWC", "NWC", "N...C"])
def test_biases_along_the_last_axis(data_format):
    y = tf.nn.bias_add(tf.zeros([2, 3, 2]), [1.0, 2.0], data_format)

    assert y.numpy().tolist() == [[[1, 2]] * 3] * 2


@pytest.mark.parametrize("data_format", ["NCHW", "NCW", "NC..."])
def test_biases_along_the_second_axis(data_format):
    y = tf.nn.bias_add(tf.zeros([2, 2, 3]), tf.Variable([1.0, 2.0]), data_format)

    assert y.numpy().tolist() == [[[1] * 3, [2] * 3]] * 2


def test_gradients_of_biases():
    assert_gradients(tf.nn.bias_add, X, [1.0, 2.0, 3.0])
    assert_gradients(lambda x, b: tf.nn.bias_add(x, b, "NCHW"), np.ones([2, 2, 1, 3]), [1.0, 2.0])


TABLE = [[1.0, 2.0], [3.0, 4.0], [6.0, 8.0]]


@pytest.mark.parametrize("ids", [[0, 2], [[0, 2], [1, 1]], 1, np.array([2]), tf.Variable([0])])
def test_embeddings(ids):
    expected = np.array(TABLE)[np.asarray(ids)]

    for params in (tf.constant(TABLE), tf.Variable(TABLE), [tf.Variable(TABLE)]):
        assert tf.nn.embedding_lookup(params, ids).numpy().tolist() == expected.tolist()


def test_partitioned_embeddings():
    parts = [tf.constant(TABLE), tf.Variable(TABLE[:2])]

    y = tf.nn.embedding_lookup(parts, [[0, 4], [3, 2]])

    assert y.numpy().tolist() == [[[1, 2], [3, 4]], [[1, 2], [6, 8]]]


def test_embeddings_are_clipped_to_max_norm():
    y = tf.nn.embedding_lookup(float64(TABLE), [[2, 0]], max_norm=5.0)

    np.testing.assert_allclose(y.numpy(), [[[3, 4], [1, 2]]], rtol=1e-15)


def test_gradient_of_a_table_has_only_the_looked_up_rows():
    table = tf.Variable(TABLE)
    with tf.GradientTape() as tape:
        y = tf.nn.embedding_lookup(table, [[0, 1], [1, 2]])
    g = tape.gradient(y, table)

    assert isinstance(g, tf.IndexedSlices)
    assert g.indices.numpy().tolist() == [0, 1, 1, 2]
    assert g.values.shape == (4, 2)


def test_gradients_of_embeddings():
    assert_gradients(lambda p: tf.nn.embedding_lookup(p, [[0, 1], [1, 2]]), TABLE)
    assert_gradients(lambda p: tf.nn.embedding_lookup(p, [0, 2], max_norm=4.0), TABLE)
    assert_gradients(lambda p, q: tf.nn.embedding_lookup([p, q], [0, 3, 3]), TABLE, TABLE[:2])


@pytest.mark.parametrize("dtype", FLOATS)
def test_dropout_keeps_the_mean(dtype):
    tf.random.set_seed(1)
    x = tf.ones([20000], dtype)

    y = tf.nn.dropout(x, 0.75)

    assert y.dtype == dtype
    assert set(y.numpy().tolist()) == {0, 4}
    assert abs(np.mean(y.numpy() == 0) - 0.75) < 0.02


def test_the_gradient_of_dropout_uses_the_same_mask():
    x = tf.ones([100])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.nn.dropout(x, tf.constant(0.5))

    assert tape.gradient(y, x).numpy().tolist() == y.numpy().tolist()


def test_dropout_with_rate_zero():
    v = tf.Variable([1.0, 2.0])
    y = tf.nn.dropout(v, 0.0)
    v.assign([5.0, 6.0])

    assert y.numpy().tolist() == [1, 2]


@pytest.mark.parametrize("noise_shape", [[100, 1], [None, 1], tf.constant([100, 1])])
def test_rows_that_are_dropped_together(noise_shape):
    y = tf.nn.dropout(tf.ones([100, 3]), 0.5, noise_shape).numpy()

    assert set(map(tuple, y.tolist())) == {(0, 0, 0), (2, 2, 2)}


def test_noise_of_lower_rank_broadcasts():
    y = tf.nn.dropout(tf.ones([5, 100]), 0.5, [100]).numpy()

    assert (y == y[0]).all()
    assert len(set(y[0].tolist())) == 2


# Errors


@pytest.mark.parametrize("name", ["elu", "selu", "silu", "softmax", "l2_loss"])
def test_functions_that_require_floats(name):
    with pytest.raises(InvalidArgumentError, match="dtype int32 is not supported"):
        getattr(tf.nn, name)([1, 2])


def test_errors_of_activations():
    assert_raises(
        lambda: tf.nn.gelu([1]),
        ValueError,
        "gelu: features must be a floating point tensor. Received: dtype int32.",
    )
    assert_raises(
        lambda: tf.nn.leaky_relu([1.0], alpha="a"),
        TypeError,
        "leaky_relu: alpha must be a Python number. Received: 'a'.",
    )
    with pytest.raises(InvalidArgumentError, match="crelu: axis 1 is out of range"):
        tf.nn.crelu([1.0], axis=1)


@pytest.mark.parametrize(
    ("labels", "logits"),
    [((1, 2), (2, 3)), ((2, 3), (1, 3)), ((1, 3, 4), (2, 3, 4)), ((3, 2, 4), (2, 2, 4))],
)
def test_incompatible_labels_and_logits(labels, logits):
    assert_raises(
        lambda: tf.nn.softmax_cross_entropy_with_logits(tf.zeros(labels), tf.zeros(logits)),
        InvalidArgumentError,
        "softmax_cross_entropy_with_logits: logits and labels must be broadcastable. Received: "
        f"logits of shape {logits}, labels of shape {labels}.",
    )


def test_cross_entropy_requires_floats():
    with pytest.raises(InvalidArgumentError, match="dtype int32 is not supported"):
        tf.nn.softmax_cross_entropy_with_logits([[1, 0]], [[2, 3]])
    with pytest.raises(InvalidArgumentError, match="axis -1 is out of range"):
        tf.nn.softmax_cross_entropy_with_logits(1.0, 2.0)


SPARSE = "sparse_softmax_cross_entropy_with_logits"


@pytest.mark.parametrize(("labels", "shape"), [([0], (2, 3)), ([[0, 2]], (2, 3)), ([0], (3,))])
def test_incompatible_sparse_labels(labels, shape):
    assert_raises(
        lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(labels, tf.zeros(shape)),
        ValueError,
        f"{SPARSE}: `labels.shape` must equal `logits.shape` except for the last dimension. "
        f"Received: labels.shape={np.shape(labels)} and logits.shape={shape}.",
    )


@pytest.mark.parametrize("label", [-1, 3])
def test_labels_out_of_range(label):
    assert_raises(
        lambda: tf.nn.sparse_softmax_cross_entropy_with_logits([0, label], tf.zeros([2, 3])),
        InvalidArgumentError,
        f"Received a label value of {label} which is outside the valid range of [0, 3): the logits "
        "have 3 classes.",
    )


def test_sparse_labels_must_be_integers():
    f = tf.nn.sparse_softmax_cross_entropy_with_logits

    for labels, name in (([0.0], "float32"), (of_dtype([0], "uint8"), "uint8"), (["a"], "string")):
        message = f"{SPARSE}: `labels` has dtype {name}. Expected one of int32, int64."
        assert_raises(lambda x=labels: f(x, [[1.0, 2.0]]), InvalidArgumentError, message)
    assert_raises(
        lambda: f([0], [[1, 2]]),
        InvalidArgumentError,
        f"{SPARSE}: `logits` has dtype int32. Expected one of float16, bfloat16, float32, float64.",
    )
    assert_raises(
        lambda: f([0, 0], tf.zeros([2, 0])),
        InvalidArgumentError,
        f"{SPARSE}: must have at least one class, but got shape (2, 0).",
    )
    with pytest.raises(ValueError, match="`logits` cannot be a scalar"):
        f(0, 1.0)
    with pytest.raises(ValueError, match="both `labels` and `logits` must be provided"):
        f(None, [[1.0]])


def test_cross_entropies_require_equal_shapes():
    for name in ("sigmoid", "weighted"):
        f = getattr(tf.nn, f"{name}_cross_entropy_with_logits")
        extra_args = (1.0,) if name == "weighted" else ()
        assert_raises(
            lambda f=f, extra_args=extra_args: f([1.0, 0.0], [0.5], *extra_args),
            ValueError,
            f"{name}_cross_entropy_with_logits: `logits` and `labels` must have the same shape. "
            "Received: (1,) and (2,).",
        )
    with pytest.raises(ValueError, match="both `labels` and `logits` must be provided"):
        tf.nn.sigmoid_cross_entropy_with_logits()
    with pytest.raises(ValueError, match="`log_input` and `targets` must have the same shape"):
        tf.nn.log_poisson_loss([1.0], [1.0, 2.0])


def test_cross_entropies_require_the_same_dtype():
    with pytest.raises(InvalidArgumentError, match="was expected to be a float32 tensor"):
        tf.nn.sigmoid_cross_entropy_with_logits(tf.constant([1]), [0.5])


def test_incompatible_biases():
    x = tf.zeros([2, 3])
    assert_raises(
        lambda: tf.nn.bias_add(x, [1.0]),
        InvalidArgumentError,
        "bias_add: expected one bias per channel. Received: 1 biases for 3 channels (axis 1 of "
        "shape (2, 3)).",
    )
    assert_raises(
        lambda: tf.nn.bias_add(x, [[1.0]]),
        InvalidArgumentError,
        "bias_add: biases must be 1D. Received: shape (1, 1).",
    )
    assert_raises(
        lambda: tf.nn.bias_add([1.0], [1.0]),
        InvalidArgumentError,
        "bias_add: value must be at least 2D. Received: shape (1,).",
    )
    assert_raises(
        lambda: tf.nn.bias_add(x, [1.0, 2.0, 3.0], "nchw"),
        ValueError,
        "bias_add: `data_format` must be of the form `N...C` or `NC...`. "
        "Received: data_format=nchw.",
    )


def test_embedding_errors():
    with pytest.raises(InvalidArgumentError, match=r"indices\[1\] = 3 is not in \[0, 3\)"):
        tf.nn.embedding_lookup(tf.constant(TABLE), [0, 3])
    assert_raises(
        lambda: tf.nn.embedding_lookup(tf.constant(TABLE), [0.0]),
        InvalidArgumentError,
        "embedding_lookup: `ids` has dtype float32. Expected one of int16, int32, int64.",
    )
    assert_raises(
        lambda: tf.nn.embedding_lookup(None, [0]),
        ValueError,
        "embedding_lookup: `params` is required. Received: None.",
    )
    assert_raises(
        lambda: tf.nn.embedding_lookup([], [0]),
        ValueError,
        "embedding_lookup: expected at least one table. Received: an empty list.",
    )


@pytest.mark.parametrize("rate", [1.0, 1, -0.1, 1.5])
def test_dropout_rates_out_of_range(rate):
    assert_raises(
        lambda: tf.nn.dropout([1.0], rate),
        ValueError,
        "dropout: `rate` must be a scalar tensor or a float in the range [0, 1). Received: "
        f"rate={rate}.",
    )


def test_dropout_rates_must_be_scalars():
    assert_raises(
        lambda: tf.nn.dropout([1.0], "a"),
        ValueError,
        "dropout: `rate` must be a scalar or scalar tensor. Received: 'a'.",
    )
    assert_raises(
        lambda: tf.nn.dropout([1.0], float64(0.5)),
        ValueError,
        "dropout: `rate` must be a scalar of the dtype of x, float32. Received: shape (), float64.",
    )
    assert_raises(
        lambda: tf.nn.dropout([1], 0.5),
        ValueError,
        "dropout: x must be a floating point tensor, since it is scaled. Received: dtype int32.",
    )
    with pytest.raises(InvalidArgumentError, match=r"incompatible shapes \(2, 3\) and \(2,\)"):
        tf.nn.dropout(tf.ones([2, 3]), 0.5, [2])
