"""Sampled losses, sparse embeddings, isotonic regression, average losses and dropout."""

import numpy as np
import pytest
import scipy.optimize

import retrograde as tf
from retrograde.testing import check_gradients
from tests.namespaces.helpers import FLOATS, assert_gradients, assert_raises, float64, gradient

Invalid = tf.errors.InvalidArgumentError
RNG = np.random.default_rng(2)
WEIGHTS, BIASES, INPUTS = RNG.normal(size=(6, 3)), RNG.normal(size=6), RNG.normal(size=(2, 3))
LABELS = [[1, 0], [4, 5]]
LOSSES = {"nce_loss": tf.nn.nce_loss, "sampled_softmax_loss": tf.nn.sampled_softmax_loss}
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


def loss_with_all_classes(loss, weights, biases, inputs, **options):
    all_classes = tf.random.all_candidate_sampler(tf.constant(LABELS, tf.int64), 2, 6, True)
    return loss(weights, biases, LABELS, inputs, 6, 6, 2, all_classes, **options)


# Sampled losses


def test_sampling_all_classes_gives_the_full_softmax():
    y = loss_with_all_classes(
        tf.nn.sampled_softmax_loss, float64(WEIGHTS), float64(BIASES), float64(INPUTS)
    )
    logits = INPUTS @ WEIGHTS.T + BIASES
    expected = np.zeros((2, 6))
    expected[[[0], [1]], LABELS] = 0.5

    assert y.dtype == tf.float64
    np.testing.assert_allclose(y, tf.nn.softmax_cross_entropy_with_logits(expected, logits))


@every_loss
def test_gradients_of_sampled_losses_match_differences_to_second_order(loss):
    check_gradients(
        lambda w, b, x: loss_with_all_classes(loss, w, b, x, remove_accidental_hits=False),
        [tf.constant(v) for v in (WEIGHTS, BIASES, INPUTS)],
        order=2,
    )


@every_loss
def test_gradients_of_weights_and_biases_are_indexed_slices(loss):
    w, b = tf.Variable(WEIGHTS), tf.Variable(BIASES)
    with tf.GradientTape() as tape:
        y = loss_with_all_classes(loss, w, b, tf.constant(INPUTS))
    for g in tape.gradient(y, [w, b]):
        assert isinstance(g, tf.IndexedSlices)
        assert g.indices.numpy().tolist() == [1, 0, 4, 5, 0, 1, 2, 3, 4, 5]


@every_loss
def test_candidates_are_sampled_by_default(loss):
    tf.random.set_seed(4)
    y = loss(WEIGHTS, BIASES, LABELS, INPUTS, 3, 6, 2)
    tf.random.set_seed(4)
    sample = tf.random.log_uniform_candidate_sampler(tf.constant(LABELS, tf.int64), 2, 3, True, 6)

    repeated = loss(WEIGHTS, BIASES, LABELS, INPUTS, 3, 6, 2, sample)
    np.testing.assert_array_equal(y, repeated)


def test_a_seed_determines_the_candidates():
    draws = [
        tf.nn.sampled_softmax_loss(WEIGHTS, BIASES, LABELS, INPUTS, 3, 6, 2, seed=seed).numpy()
        for seed in (8, 9)
    ]
    tf.random.set_seed(1)
    first = tf.nn.sampled_softmax_loss(WEIGHTS, BIASES, LABELS, INPUTS, 3, 6, 2, seed=8)
    tf.random.set_seed(1)
    repeated = tf.nn.sampled_softmax_loss(WEIGHTS, BIASES, LABELS, INPUTS, 3, 6, 2, seed=8)

    assert draws[0].tolist() != draws[1].tolist()
    np.testing.assert_array_equal(first, repeated)


@every_loss
def test_removed_accidental_hits_have_no_effect_and_no_gradient(loss):
    true = tf.constant([[1], [1]], tf.int64)
    ones = tf.ones([2, 1])

    def of(candidates):
        values = (tf.constant(candidates, tf.int64), ones, tf.ones([len(candidates)]))
        return lambda w: loss(w, BIASES, true, INPUTS, 3, 6, 1, values, remove_accidental_hits=True)

    np.testing.assert_allclose(of([2, 1, 3, 1])(WEIGHTS), of([2, 3])(WEIGHTS), rtol=1e-12)
    with_hit, without_hit = (gradient(of(c), WEIGHTS)[0] for c in ([2, 1, 3, 1], [2, 3]))
    np.testing.assert_allclose(with_hit, without_hit, rtol=1e-12)


def test_accidental_hits_are_all_reported():
    candidates = tf.constant([2, 5, 1, 2], tf.int64)
    rows, indices, weights = tf.nn.compute_accidental_hits([[1, 2], [3, 5]], candidates, 2)

    assert rows.numpy().tolist() == [0, 0, 0, 1]
    assert indices.numpy().tolist() == [2, 0, 3, 1]
    assert set(weights.numpy()) == {np.finfo(np.float32).min}


SAMPLED_ERRORS = {
    "labels of another shape": (
        lambda: tf.nn.nce_loss(WEIGHTS, BIASES, [[1], [2]], INPUTS, 3, 6, num_true=2),
        "expected labels of shape (2, 2): num_true labels for each row of the inputs. Received: "
        "shape (2, 1).",
    ),
    "candidates of int32": (
        lambda: tf.nn.compute_accidental_hits([[1]], [1], 1),
        "compute_accidental_hits: sampled_candidates must be a vector of int64. Received: shape "
        "(1,), int32.",
    ),
}


@pytest.mark.parametrize("name", SAMPLED_ERRORS)
def test_errors_of_sampled_losses(name):
    call, message = SAMPLED_ERRORS[name]
    assert_raises(call, Invalid, message)


# Embeddings

INDICES = [[0, 0], [0, 1], [1, 0], [3, 0], [3, 1]]
IDS = tf.SparseTensor(INDICES, tf.constant([1, 3, 0, 2, 2], tf.int64), [5, 2])
ID_WEIGHTS = np.array([1.0, 2.0, 0.5, 3.0, 1.5])


def sparse_weights(values):
    return tf.SparseTensor(INDICES, values, [5, 2])


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
def test_embeddings_are_combined(combiner):
    y = tf.nn.embedding_lookup_sparse(float64(WEIGHTS), IDS, sparse_weights(ID_WEIGHTS), combiner)
    matrix = np.zeros((4, 6))
    np.add.at(matrix, (np.array(INDICES)[:, 0], IDS.values.numpy()), ID_WEIGHTS)
    rows = [ID_WEIGHTS[:2], ID_WEIGHTS[2:3], np.array([1.0]), ID_WEIGHTS[3:]]
    divisors = np.ones(4)
    if combiner != "sum":
        divisors = np.array([np.sum(a) if combiner == "mean" else np.linalg.norm(a) for a in rows])

    np.testing.assert_allclose(y, matrix @ WEIGHTS / divisors[:, None], rtol=1e-12)


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
def test_gradients_of_embeddings_match_differences(combiner):
    assert_gradients(
        lambda w, a: tf.nn.embedding_lookup_sparse(w, IDS, sparse_weights(a), combiner),
        WEIGHTS,
        ID_WEIGHTS,
    )
    assert_gradients(
        lambda w: tf.nn.embedding_lookup_sparse(w, IDS, None, combiner, max_norm=1.0), WEIGHTS
    )
    check_gradients(
        lambda w, a: tf.nn.embedding_lookup_sparse(w, IDS, sparse_weights(a), combiner),
        [tf.constant(WEIGHTS), tf.constant(ID_WEIGHTS)],
        order=2,
    )


def test_gradient_of_the_table_is_indexed_slices():
    table = tf.Variable(WEIGHTS)
    with tf.GradientTape(persistent=True) as tape:
        y = tf.nn.embedding_lookup_sparse(table, IDS, None)
        z = tf.nn.safe_embedding_lookup_sparse(table, IDS)

    assert isinstance(tape.gradient(y, table), tf.IndexedSlices)
    assert isinstance(tape.gradient(z, table), tf.IndexedSlices)


def test_gradients_of_safe_lookups_match_differences():
    ids = tf.SparseTensor(INDICES, tf.constant([1, -3, 0, 2, 2], tf.int64), [5, 2])
    assert_gradients(
        lambda w, a: tf.nn.safe_embedding_lookup_sparse(w, ids, sparse_weights(a), default_id=4),
        WEIGHTS,
        ID_WEIGHTS,
    )
    y = tf.nn.safe_embedding_lookup_sparse(WEIGHTS, ids).numpy()
    assert y.shape == (5, 3)
    np.testing.assert_allclose(y[0], WEIGHTS[1])
    assert not y[[2, 4]].any()


@pytest.mark.parametrize("dtype", FLOATS)
def test_embeddings_have_the_dtype_of_the_table(dtype):
    y = tf.nn.embedding_lookup_sparse(tf.cast(WEIGHTS, dtype), IDS, None)

    assert y.dtype == dtype


EXPECTED_TYPE = "must be a SparseTensor or a RaggedTensor. Received: a"
EMBEDDING_ERRORS = {
    "ids that are not sparse": (
        lambda: tf.nn.embedding_lookup_sparse(WEIGHTS, [1], None),
        TypeError,
        f"embedding_lookup_sparse: sp_ids {EXPECTED_TYPE} list.",
    ),
    "weights that are not sparse": (
        lambda: tf.nn.embedding_lookup_sparse(WEIGHTS, IDS, [1.0]),
        TypeError,
        f"embedding_lookup_sparse: sp_weights {EXPECTED_TYPE} list.",
    ),
    "weights with another structure": (
        lambda: tf.nn.embedding_lookup_sparse(
            WEIGHTS, IDS, tf.SparseTensor([[0, 0]], [1.0], [5, 2])
        ),
        ValueError,
        "embedding_lookup_sparse: sp_ids and sp_weights must have the same type and structure. "
        "Received: (5,) ids and (1,) weights.",
    ),
    "another combiner": (
        lambda: tf.nn.embedding_lookup_sparse(WEIGHTS, IDS, None, "max"),
        ValueError,
        "embedding_lookup_sparse: combiner must be one of 'mean', 'sqrtn', 'sum'. Received: 'max'.",
    ),
    "rows that are not sorted": (
        lambda: tf.nn.embedding_lookup_sparse(
            WEIGHTS, tf.SparseTensor([[1, 0], [0, 0]], [1, 2], [2, 1]), None
        ),
        Invalid,
        "embedding_lookup_sparse: rows must be sorted. Received: [1, 0].",
    ),
    "no table": (
        lambda: tf.nn.safe_embedding_lookup_sparse([], IDS),
        ValueError,
        "safe_embedding_lookup_sparse: `embedding_weights` is required. Received: [].",
    ),
    "dense ids": (
        lambda: tf.nn.safe_embedding_lookup_sparse(WEIGHTS, [[1]]),
        TypeError,
        "safe_embedding_lookup_sparse: sparse_ids must be a SparseTensor. Received: a list.",
    ),
}


@pytest.mark.parametrize("name", EMBEDDING_ERRORS)
def test_errors_of_embeddings(name):
    assert_raises(*EMBEDDING_ERRORS[name])


# Isotonic regression


@pytest.mark.parametrize("decreasing", [True, False])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_isotonic_regression_is_the_closest_monotone_sequence(axis, decreasing):
    x = np.random.default_rng(3).normal(size=(12, 3, 15))
    y, blocks = tf.nn.isotonic_regression(x, decreasing, axis)

    def fit(row):
        return scipy.optimize.isotonic_regression(row, increasing=not decreasing).x

    np.testing.assert_allclose(y, np.apply_along_axis(fit, axis, x), atol=1e-12)
    steps = np.diff(blocks, axis=axis)
    assert blocks.dtype == tf.int32
    assert set(np.unique(steps)) <= {0, 1}
    assert not np.take(blocks, 0, axis).any()
    np.testing.assert_array_equal(steps == 0, np.diff(y.numpy(), axis=axis) == 0)


@pytest.mark.parametrize("decreasing", [True, False])
def test_gradients_of_isotonic_regression_match_differences(decreasing):
    x = np.random.default_rng(4).normal(size=(3, 8))
    assert_gradients(lambda x: tf.nn.isotonic_regression(x, decreasing)[0], x)
    assert_gradients(lambda x: tf.nn.isotonic_regression(x, decreasing, axis=0)[0], x)
    assert_gradients(lambda x: tf.nn.isotonic_regression(x, decreasing)[0], x[0])


def test_a_gradient_is_averaged_within_each_block():
    weights = tf.constant([1.0, 2.0, 4.0, 8.0])
    g = gradient(lambda x: tf.nn.isotonic_regression(x)[0], [3.0, 1.0, 2.0, 0.0], weights=weights)

    assert g[0].tolist() == [1, 3, 3, 8]


@pytest.mark.parametrize("dtype", FLOATS)
def test_isotonic_regression_keeps_float_dtypes(dtype):
    y, _ = tf.nn.isotonic_regression(tf.constant([1.0, 2.0, 4.0], dtype))

    assert y.dtype == dtype
    np.testing.assert_allclose(tf.cast(y, tf.float64), 7 / 3, rtol=1e-2)


def test_isotonic_regression_requires_real_numbers():
    with pytest.raises(Invalid, match="`inputs` has dtype complex64"):
        tf.nn.isotonic_regression(tf.constant([1j], tf.complex64))


# Average losses

AVERAGES = {
    "a scalar": (
        lambda: tf.nn.compute_average_loss(1.0),
        ValueError,
        "compute_average_loss: expected per-example losses of rank >= 1. Received: 1.0.",
    ),
    "a float": (
        lambda: tf.nn.compute_average_loss([1.0], global_batch_size=2.0),
        TypeError,
        "compute_average_loss: global_batch_size must be an integer. Received: dtype float32.",
    ),
    "a list": (
        lambda: tf.nn.compute_average_loss([1.0], global_batch_size=[2]),
        ValueError,
        "compute_average_loss: global_batch_size must be a scalar. Received: shape (1,).",
    ),
    "a negative size": (
        lambda: tf.nn.compute_average_loss([1.0], global_batch_size=-2),
        Invalid,
        "compute_average_loss: global_batch_size must not be negative. Received: -2.",
    ),
}


@pytest.mark.parametrize("name", AVERAGES)
def test_errors_of_average_losses(name):
    assert_raises(*AVERAGES[name])


def test_gradients_of_average_losses_match_differences():
    x, w = RNG.normal(size=(3, 2)), RNG.normal(size=3)
    assert_gradients(lambda x, w: tf.nn.compute_average_loss(x, w, global_batch_size=5), x, w)
    assert_gradients(tf.nn.scale_regularization_loss, x)


# Dropout


def test_a_seed_drops_the_same_elements_again():
    x = tf.ones([1000])
    first, repeated, other = (
        tf.nn.experimental.stateless_dropout(x, 0.3, seed).numpy()
        for seed in ([1, 2], [1, 2], [1, 3])
    )

    np.testing.assert_array_equal(first, repeated)
    assert (first != other).any()
    assert set(first) == {np.float32(0), np.float32(1 / 0.7)}
    assert abs((first == 0).mean() - 0.3) < 0.06


def test_dropped_elements_have_no_gradient():
    f = lambda x: tf.nn.experimental.stateless_dropout(x, 0.5, [1, 2])  # noqa: E731
    y = f(tf.ones([50])).numpy()

    np.testing.assert_array_equal(gradient(f, np.ones(50, np.float32))[0], y)
    f = lambda x: tf.nn.experimental.general_dropout(x, 0.5, tf.random.uniform)  # noqa: E731
    assert set(gradient(f, np.ones(50, np.float32))[0]) == {0, 2}


def test_noise_shape_drops_elements_together():
    y = tf.nn.experimental.stateless_dropout(tf.ones([40, 3]), 0.5, [1, 2], noise_shape=[40, 1])

    assert (y.numpy() == y.numpy()[:, :1]).all()
    assert len(set(y.numpy()[:, 0])) == 2


@pytest.mark.parametrize(
    ("combiner", "weights", "values"),
    [
        ("sum", None, [[2.0, 2.0], [1.0, 1.0]]),
        ("mean", [1.0, 2.0, 0.5], [[1.3333334, 1.3333334], [0.6666667, 0.6666667]]),
    ],
)
def test_gradients_of_sparse_lookups_have_one_slice_for_each_id(combiner, weights, values):
    """Compares with results of TensorFlow 2.21."""
    positions = [[0, 0], [0, 1], [1, 0]]
    ids = tf.SparseTensor(positions, [3, 1, 3], [2, 2])
    weights = weights and tf.SparseTensor(positions, weights, [2, 2])
    table = tf.Variable(np.arange(10, dtype=np.float32).reshape(5, 2))

    with tf.GradientTape() as tape:
        y = tf.nn.embedding_lookup_sparse(table, ids, weights, combiner)
    slices = tape.gradient(y, table)
    assert slices.indices.numpy().tolist() == [3, 1]
    np.testing.assert_allclose(slices.values, values, rtol=1e-6)
