"""Connectionist temporal classification: the loss and the decoders."""

import itertools

import numpy as np
import pytest

import retrograde as tf
from retrograde.testing import check_gradients
from tests.namespaces.helpers import assert_raises, float64, gradient

Invalid = tf.errors.InvalidArgumentError
LABELS = [[1, 2], [3, 3]]
LOGITS = np.random.default_rng(5).normal(size=(5, 2, 4))


def collapse(path, blank):
    """Returns the labels of a path: repetitions are merged, then blanks are removed."""
    return tuple(k for k, _ in itertools.groupby(path) if k != blank)


def probabilities(logits, blank):
    """Computes the probability of each label sequence by enumerating all paths."""
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    totals = {}
    for path in itertools.product(range(p.shape[1]), repeat=len(p)):
        probability = np.prod([row[k] for row, k in zip(p, path, strict=True)])
        totals[collapse(path, blank)] = totals.get(collapse(path, blank), 0) + probability
    return totals


# The loss


@pytest.mark.parametrize(
    ("blank", "labels"),
    [(0, [[1, 3, 1], [3, 3, 2]]), (2, [[1, 3, 1], [3, 3, 0]]), (-1, [[1, 0, 1], [2, 2, 0]])],
)
def test_loss_sums_over_all_paths(blank, labels):
    lengths, times = [3, 2], [5, 4]
    actual = tf.nn.ctc_loss(labels, float64(LOGITS), lengths, times, blank_index=blank)
    expected = []
    for b in range(2):
        sequences = probabilities(LOGITS[: times[b], b], blank % 4)
        expected.append(-np.log(sequences[tuple(labels[b][: lengths[b]])]))

    assert actual.dtype == tf.float64
    np.testing.assert_allclose(actual, expected, rtol=1e-12)


@pytest.mark.parametrize("lengths", [([2, 2], [5, 5]), ([2, 1], [3, 4]), ([0, 2], [5, 4])], ids=str)
def test_gradients_match_differences_to_second_order(lengths):
    check_gradients(lambda x: tf.nn.ctc_loss(LABELS, x, *lengths), [tf.constant(LOGITS)], order=2)


def test_gradient_weights_each_path_by_its_probability():
    """The gradient of a logit is its probability minus its class's posterior probability."""
    g = gradient(lambda x: tf.nn.ctc_loss([[1]], x, [1], [3]), LOGITS[:3, :1])[0]
    p = np.exp(LOGITS[:3, 0]) / np.exp(LOGITS[:3, 0]).sum(-1, keepdims=True)
    visited, total = np.zeros_like(p), 0
    for path in itertools.product(range(4), repeat=3):
        if collapse(path, 0) == (1,):
            probability = np.prod(p[np.arange(3), path])
            visited[np.arange(3), path] += probability
            total += probability

    np.testing.assert_allclose(g[:, 0], p - visited / total, rtol=1e-10, atol=1e-14)


def test_batch_major_logits():
    first = tf.nn.ctc_loss(LABELS, LOGITS, [2, 2], [4, 5])
    x = LOGITS.transpose(1, 0, 2)
    second = tf.nn.ctc_loss(LABELS, x, [2, 2], [4, 5], logits_time_major=False)

    np.testing.assert_array_equal(first, second)


def test_labels_that_are_too_long_have_infinite_loss_and_no_gradient():
    times = [2, 2]  # 3, 3 needs a blank in between
    y = tf.nn.ctc_loss(LABELS, LOGITS, [2, 2], times)
    g = gradient(lambda x: tf.nn.ctc_loss(LABELS, x, [2, 2], times), LOGITS)[0]

    assert np.isfinite(y[0])
    assert y[1] == np.inf
    assert np.count_nonzero(g[:2, 0]) == 8
    assert not g[:, 1].any()
    assert not g[2:].any()


def test_empty_labels_and_logits():
    y = tf.nn.ctc_loss(LABELS, LOGITS, [0, 2], [0, 0])

    assert y.numpy().tolist() == [0, np.inf]
    assert tf.nn.ctc_loss(LABELS, np.zeros((0, 2, 4)), [0, 1], [0, 0]).numpy().tolist() == [
        0,
        np.inf,
    ]
    no_lengths = np.zeros(0, int)
    assert tf.nn.ctc_loss(
        np.zeros((0, 2), int), np.zeros((3, 0, 4)), no_lengths, no_lengths
    ).shape == (0,)


def test_empty_labels_require_only_blanks():
    p = tf.nn.log_softmax(LOGITS).numpy()
    expected = -p[:, :, 0].sum(0)

    np.testing.assert_allclose(tf.nn.ctc_loss(LABELS, LOGITS, [0, 0], [5, 5]), expected)
    empty = tf.zeros([2, 0], tf.int32)
    np.testing.assert_allclose(tf.nn.ctc_loss(empty, LOGITS, [0, 0], [5, 5]), expected)


def test_values_beyond_the_lengths_are_ignored():
    labels, x = np.array([[1, 2, -7], [3, 99, 99]]), LOGITS.copy()
    x[4:, 0] = x[2:, 1] = 1e6
    y = tf.nn.ctc_loss(labels, x, [2, 1], [4, 2])
    g = gradient(lambda x: tf.nn.ctc_loss(labels, x, [2, 1], [4, 2]), x)[0]

    np.testing.assert_allclose(y, tf.nn.ctc_loss(LABELS, LOGITS, [2, 1], [4, 2]), rtol=1e-12)
    assert not g[4:, 0].any()
    assert not g[2:, 1].any()


def test_classes_without_probability():
    x = LOGITS.copy()
    x[:, 0, 3] = -np.inf
    x[:, 1, 3] = -np.inf
    y = tf.nn.ctc_loss(LABELS, x, [2, 2], [5, 5])
    g = gradient(lambda x: tf.nn.ctc_loss(LABELS, x, [2, 2], [5, 5]), x)[0]

    assert np.isfinite(y[0])
    assert y[1] == np.inf
    assert np.isfinite(g).all()


def test_nan_affects_only_its_row():
    x = LOGITS.copy()
    x[1, 1, 2] = np.nan
    y = tf.nn.ctc_loss(LABELS, x, [2, 2], [5, 5]).numpy()

    assert np.isfinite(y[0])
    assert np.isnan(y[1])


def test_long_sequences_are_accurate():
    rng = np.random.default_rng(1)
    x, labels = rng.normal(size=(800, 1, 6)) * 3, rng.integers(1, 6, (1, 90))
    wide, narrow = (
        gradient(lambda x: tf.nn.ctc_loss(labels, x, [90], [800]), x.astype(dtype))[0]
        for dtype in ("float64", "float32")
    )

    assert np.isfinite(wide).all()
    np.testing.assert_allclose(wide.sum(-1), 0, atol=1e-12)
    np.testing.assert_allclose(narrow, wide, atol=1e-3)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_the_loss_has_the_dtype_of_the_logits(dtype):
    x = tf.cast(LOGITS, dtype)
    y = tf.nn.ctc_loss(LABELS, x, [2, 2], [5, 5])

    assert y.dtype == dtype
    exact = tf.nn.ctc_loss(LABELS, tf.cast(x, tf.float64), [2, 2], [5, 5])
    np.testing.assert_allclose(tf.cast(y, tf.float64), exact, rtol=1e-2)


def test_labels_may_be_sparse():
    sparse = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1, 2, 3], [2, 2])
    y = tf.nn.ctc_loss(sparse, LOGITS, None, [4, 5], blank_index=0)

    np.testing.assert_array_equal(y, tf.nn.ctc_loss(LABELS, LOGITS, [2, 1], [4, 5]))
    unordered = tf.SparseTensor([[1, 0], [0, 0], [0, 1]], [3, 1, 2], [2, 2])
    from_sparse = tf.nn.ctc_loss(unordered, LOGITS, None, [4, 5], blank_index=0)
    np.testing.assert_array_equal(from_sparse, y)
    check_gradients(
        lambda x: tf.nn.ctc_loss(sparse, x, None, [4, 5], blank_index=0),
        [tf.constant(LOGITS)],
        order=2,
    )


def test_jacobians_are_computed_in_one_backward_pass():
    x = tf.constant(LOGITS)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.nn.ctc_loss(LABELS, x, [2, 2], [5, 5])
    rows = tape.jacobian(y, x)

    for b in range(2):
        g = gradient(lambda x, b=b: tf.nn.ctc_loss(LABELS, x, [2, 2], [5, 5])[b], LOGITS)[0]
        np.testing.assert_allclose(rows[b], g, atol=1e-14)


COUNT = "ctc_loss: expected `{}` of shape (2,). Received: shape {}."
LOSS_ERRORS = {
    "no blank for sparse labels": (
        lambda: tf.nn.ctc_loss(tf.sparse.from_dense(LABELS), LOGITS, None, [5, 5]),
        ValueError,
        "ctc_loss: `blank_index` must be given if labels are a SparseTensor.",
    ),
    "two axes": (
        lambda: tf.nn.ctc_loss(LABELS, LOGITS[0], [2, 2], [5, 5]),
        Invalid,
        "ctc_loss: logits must have 3 axes. Received: shape (2, 4).",
    ),
    "integers": (
        lambda: tf.nn.ctc_loss(LABELS, tf.zeros([5, 2, 4], tf.int32), [2, 2], [5, 5]),
        Invalid,
        "ctc_loss: `logits` has dtype int32. Expected one of float16, bfloat16, float32, float64.",
    ),
    "float labels": (
        lambda: tf.nn.ctc_loss([[1.0], [2.0]], LOGITS, [1, 1], [5, 5]),
        Invalid,
        "ctc_loss: `labels` has dtype float32. Expected one of int32, int64.",
    ),
    "another batch": (
        lambda: tf.nn.ctc_loss([[1, 2]], LOGITS, [2], [5]),
        Invalid,
        "ctc_loss: expected one row of labels for each of the 2 batch elements. Received: shape "
        "(1, 2).",
    ),
    "too few label lengths": (
        lambda: tf.nn.ctc_loss(LABELS, LOGITS, [2], [5, 5]),
        Invalid,
        COUNT.format("label_length", (1,)),
    ),
    "too few logit lengths": (
        lambda: tf.nn.ctc_loss(LABELS, LOGITS, [2, 2], 5),
        Invalid,
        COUNT.format("logit_length", ()),
    ),
    "a blank out of range": (
        lambda: tf.nn.ctc_loss(LABELS, LOGITS, [2, 2], [5, 5], blank_index=4),
        Invalid,
        "ctc_loss: expected blank_index from -4 to 3, because there are 4 classes. Received: 4.",
    ),
    "a label out of range": (
        lambda: tf.nn.ctc_loss([[1, 9], [1, 2]], LOGITS, [2, 2], [5, 5]),
        Invalid,
        "indices[0, 3] = [9] does not index into shape (4,). Expected 0 <= index < size along each "
        "axis.",
    ),
}


@pytest.mark.parametrize("name", LOSS_ERRORS)
def test_loss_errors(name):
    assert_raises(*LOSS_ERRORS[name])


# Decoders


def rows_of(sparse):
    """Returns the labels in each row of a SparseTensor."""
    rows = [[] for _ in range(sparse.shape[0])]
    for (row, column), label in zip(sparse.indices.numpy(), sparse.values.numpy(), strict=True):
        assert column == len(rows[row])
        rows[row].append(int(label))
    assert sparse.shape[1] == max(map(len, rows), default=0)
    return rows


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("blank", [None, 0, -2])
def test_greedy_decoder_selects_the_best_class_at_each_step(blank, merge):
    x = np.random.default_rng(3).normal(size=(9, 3, 3))
    times = [9, 4, 0]
    (labels,), cost = tf.nn.ctc_greedy_decoder(x, times, merge_repeated=merge, blank_index=blank)
    blank_class = 2 if blank is None else blank % 3
    expected = []
    for b, time in enumerate(times):
        path = x[:time, b].argmax(-1).tolist()
        expected.append([k for k in path if k != blank_class])
        if merge:
            expected[-1] = list(collapse(path, blank_class))

    assert rows_of(labels) == expected
    assert labels.dtype == tf.int64
    sums = [[-x[:time, b].max(-1).sum()] for b, time in enumerate(times)]
    np.testing.assert_allclose(cost, sums, atol=1e-15)


def test_a_wide_beam_finds_the_most_likely_labels():
    x = np.random.default_rng(8).normal(size=(5, 2, 3))
    paths, scores = tf.nn.ctc_beam_search_decoder(x, [5, 4], beam_width=1000, top_paths=6)
    for b, time in enumerate([5, 4]):
        sequences = sorted(probabilities(x[:time, b], 2).items(), key=lambda item: -item[1])[:6]
        assert [tuple(rows_of(path)[b]) for path in paths] == [labels for labels, _ in sequences]
        np.testing.assert_allclose(
            scores[b], np.log([probability for _, probability in sequences]), rtol=1e-10
        )


def test_a_narrow_beam_never_exceeds_the_exact_probability():
    x = np.random.default_rng(9).normal(size=(6, 1, 3)) * 2
    sequences = probabilities(x[:, 0], 2)
    for width in (1, 2, 4):
        (path,), score = tf.nn.ctc_beam_search_decoder(x, [6], beam_width=width)
        assert score.numpy()[0, 0] <= np.log(sequences[tuple(rows_of(path)[0])]) + 1e-12


def test_no_gradient_flows_through_decoders():
    x = tf.constant(LOGITS)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        _, cost = tf.nn.ctc_greedy_decoder(x, [5, 5])
        _, score = tf.nn.ctc_beam_search_decoder(x, [5, 5])

    assert tape.gradient(cost, x) is None
    assert tape.gradient(score, x) is None


Precondition = tf.errors.FailedPreconditionError
LENGTHS = (
    "{}: expected a sequence_length from 0 to 5 for each of the 2 batch elements. Received: [5, 6]."
)
DECODER_ERRORS = {
    "too long": (
        lambda: tf.nn.ctc_greedy_decoder(LOGITS, [5, 6]),
        Precondition,
        LENGTHS.format("ctc_greedy_decoder"),
    ),
    "too long for a beam": (
        lambda: tf.nn.ctc_beam_search_decoder(LOGITS, [5, 6]),
        Precondition,
        LENGTHS.format("ctc_beam_search_decoder"),
    ),
    "int64": (
        lambda: tf.nn.ctc_greedy_decoder(LOGITS, tf.constant([5, 5], tf.int64)),
        Invalid,
        "ctc_greedy_decoder: `sequence_length` has dtype int64. Expected one of int32.",
    ),
    "half precision": (
        lambda: tf.nn.ctc_greedy_decoder(tf.cast(LOGITS, tf.float16), [5, 5]),
        Invalid,
        "ctc_greedy_decoder: `inputs` has dtype float16. Expected one of float32, float64.",
    ),
    "two axes": (
        lambda: tf.nn.ctc_beam_search_decoder(LOGITS[0], [5, 5]),
        Invalid,
        "ctc_beam_search_decoder: inputs must have 3 axes. Received: shape (2, 4).",
    ),
    "a blank out of range": (
        lambda: tf.nn.ctc_greedy_decoder(LOGITS, [5, 5], blank_index=-5),
        Invalid,
        "ctc_greedy_decoder: expected blank_index from -4 to 3, because there are 4 classes. "
        "Received: -5.",
    ),
    "more paths than beams": (
        lambda: tf.nn.ctc_beam_search_decoder(LOGITS, [5, 5], beam_width=2, top_paths=3),
        Invalid,
        "ctc_beam_search_decoder: expected 1 <= top_paths <= beam_width. Received: top_paths=3 and "
        "beam_width=2.",
    ),
    "more paths than there are": (
        lambda: tf.nn.ctc_beam_search_decoder(LOGITS, [0, 1], beam_width=3, top_paths=2),
        Invalid,
        "ctc_beam_search_decoder: found only 1 sequences of labels. Expected at least top_paths=2.",
    ),
    "labels without rows": (
        lambda: tf.nn.ctc_unique_labels([1, 2]),
        Invalid,
        "ctc_unique_labels: labels must be a matrix. Received: shape (2,).",
    ),
    "repeated labels without rows": (
        lambda: tf.nn.collapse_repeated([1, 2], [2]),
        Invalid,
        "collapse_repeated: labels must be a matrix. Received: shape (2,).",
    ),
}


@pytest.mark.parametrize("name", DECODER_ERRORS)
def test_decoder_errors(name):
    assert_raises(*DECODER_ERRORS[name])
