"""Candidate samplers: distributions and expected counts."""

import numpy as np
import pytest
import scipy.stats

import retrograde as tf
from tests.namespaces.helpers import assert_raises

Invalid = tf.errors.InvalidArgumentError
TRUE = tf.constant([[1, 2], [3, 0]], tf.int64)
SIZE = 20_000
WEIGHTS = [1.0, 2.0, 3.0, 4.0, 5.0]
LOG_UNIFORM = np.diff(np.log(np.arange(1, 7))) / np.log(6)

SAMPLERS = {  # the sampler, and the probabilities of its classes from 0 to 4
    "uniform": (
        lambda *args, **kwargs: tf.random.uniform_candidate_sampler(*args, 5, **kwargs),
        np.full(5, 0.2),
    ),
    "log_uniform": (
        lambda *args, **kwargs: tf.random.log_uniform_candidate_sampler(*args, 5, **kwargs),
        LOG_UNIFORM,
    ),
    "learned_unigram": (
        lambda *args, **kwargs: tf.random.learned_unigram_candidate_sampler(*args, 5, **kwargs),
        np.full(5, 0.2),
    ),
    "fixed_unigram": (
        lambda *args, **kwargs: tf.random.fixed_unigram_candidate_sampler(
            *args, 5, unigrams=WEIGHTS, **kwargs
        ),
        np.array(WEIGHTS) / 15,
    ),
}
every_sampler = pytest.mark.parametrize(
    ("sampler", "probabilities"), SAMPLERS.values(), ids=SAMPLERS
)


@every_sampler
def test_frequencies_match_the_probabilities(sampler, probabilities):
    tf.random.set_seed(1)
    sampled = sampler(TRUE, 2, SIZE, False).sampled_candidates

    assert sampled.dtype == tf.int64
    counts = np.bincount(sampled.numpy(), minlength=5)
    assert scipy.stats.chisquare(counts, probabilities * SIZE).pvalue > 0.01


@every_sampler
def test_expected_counts_match_the_number_of_tries(sampler, probabilities):
    sampled, true_count, sampled_count = sampler(TRUE, 2, 3, False)

    assert true_count.dtype == sampled_count.dtype == tf.float32
    np.testing.assert_allclose(true_count, probabilities[TRUE.numpy()] * 3, rtol=1e-6)
    np.testing.assert_allclose(sampled_count, probabilities[sampled.numpy()] * 3, rtol=1e-6)


@every_sampler
def test_unique_classes_are_distinct_and_counts_use_the_number_of_tries(sampler, probabilities):
    tf.random.set_seed(3)
    tries = set()
    for _ in range(20):
        sampled, true_count, sampled_count = sampler(TRUE, 2, 3, True)
        assert len(set(sampled.numpy().tolist())) == 3
        probability = probabilities[TRUE.numpy()]
        if np.allclose(true_count, probability * 3):
            tries.add(3)
            continue
        tries_made = np.log1p(-true_count.numpy()[0, 0]) / np.log1p(-probability[0, 0])
        number = round(float(tries_made))
        tries.add(number)
        np.testing.assert_allclose(true_count, 1 - (1 - probability) ** number, rtol=1e-5)
        probability = probabilities[sampled.numpy()]
        np.testing.assert_allclose(sampled_count, 1 - (1 - probability) ** number, rtol=1e-5)

    assert len(tries) > 1
    assert min(tries) == 3


@every_sampler
def test_a_seed_reproduces_the_classes(sampler, probabilities):
    del probabilities
    draws = []
    for _ in range(2):
        tf.random.set_seed(5)
        draws.append([sampler(TRUE, 2, 20, False).sampled_candidates.numpy() for _ in range(2)])

    np.testing.assert_array_equal(draws[0], draws[1])
    assert draws[0][0].tolist() != draws[0][1].tolist()


@every_sampler
def test_all_classes_may_be_drawn(sampler, probabilities):
    del probabilities
    sampled = sampler(TRUE, 2, 5, True).sampled_candidates

    assert sorted(sampled.numpy().tolist()) == [0, 1, 2, 3, 4]


def test_all_candidate_sampler_returns_each_class_once():
    sampled, true_count, sampled_count = tf.random.all_candidate_sampler(TRUE, 2, 4, True)

    assert sampled.numpy().tolist() == [0, 1, 2, 3]
    assert sampled.dtype == tf.int64
    assert true_count.numpy().tolist() == [[1, 1], [1, 1]]
    assert sampled_count.numpy().tolist() == [1, 1, 1, 1]


def test_learned_probabilities_follow_the_true_classes():
    def counts(**kwargs):
        sampler = tf.random.learned_unigram_candidate_sampler
        return sampler([[1], [1], [2]], 1, 9, False, 6, **kwargs).true_expected_count.numpy()[:, 0]

    np.testing.assert_allclose(counts(seed=1234), [1.5, 1.5, 1.5])
    np.testing.assert_allclose(counts(seed=1234), [3, 3, 2])
    np.testing.assert_allclose(counts(seed=1234), 9 * np.array([5, 5, 3]) / 12)
    np.testing.assert_allclose([counts(), counts()], 1.5)
    tf.random.set_seed(1)
    np.testing.assert_allclose(counts(seed=1234), [1.5, 1.5, 1.5])


def test_fixed_weights_are_distorted_reserved_and_sharded():
    def counts(range_max, **kwargs):
        classes = [[k] for k in range(range_max)]
        sampler = tf.random.fixed_unigram_candidate_sampler
        return sampler(classes, 1, 6, False, range_max, **kwargs).true_expected_count.numpy()[:, 0]

    root = np.sqrt(WEIGHTS)
    np.testing.assert_allclose(counts(5, unigrams=WEIGHTS, distortion=0.0), 1.2, rtol=1e-6)
    np.testing.assert_allclose(
        counts(5, unigrams=WEIGHTS, distortion=0.5), 6 * root / root.sum(), rtol=1e-6
    )
    np.testing.assert_allclose(
        counts(7, unigrams=WEIGHTS, num_reserved_ids=2), [0, 0, 0.4, 0.8, 1.2, 1.6, 2], rtol=1e-6
    )
    np.testing.assert_allclose(
        counts(2, unigrams=WEIGHTS, num_shards=2, shard=1), [2, 4], rtol=1e-6
    )


def test_fixed_weights_can_be_read_from_a_file(tmp_path):
    file = tmp_path / "vocabulary.csv"
    file.write_text("cat,1\nthe, dog,2\nox,3\n")
    sample = tf.random.fixed_unigram_candidate_sampler(
        [[0, 2]], 2, 6, False, 3, vocab_file=str(file)
    )

    np.testing.assert_allclose(sample.true_expected_count, [[1, 3]], rtol=1e-6)


def test_nn_has_the_same_samplers():
    for name in ("all", "fixed_unigram", "learned_unigram"):
        name = f"{name}_candidate_sampler"
        assert getattr(tf.nn, name) is getattr(tf.random, name)


# Errors

ERRORS = {
    "too many unique classes": (
        lambda: tf.random.uniform_candidate_sampler(TRUE, 2, 6, True, 5),
        "unique candidates: cannot draw 6 distinct classes from 5.",
    ),
    "unique classes without weight": (
        lambda: tf.random.fixed_unigram_candidate_sampler(
            [[0]], 1, 2, True, 3, unigrams=[0.0, 1.0, 0.0]
        ),
        "unique candidates: cannot draw 2 distinct classes from 1.",
    ),
    "another number of columns": (
        lambda: tf.random.uniform_candidate_sampler(TRUE, 1, 3, False, 5),
        "uniform_candidate_sampler: `true_classes` must be a matrix with num_true >= 1 columns. "
        "Received: shape (2, 2), num_true=1.",
    ),
    "a vector": (
        lambda: tf.random.uniform_candidate_sampler([1], 1, 3, False, 5),
        "uniform_candidate_sampler: `true_classes` must be a matrix with num_true >= 1 columns. "
        "Received: shape (1,), num_true=1.",
    ),
    "int32": (
        lambda: tf.random.uniform_candidate_sampler(tf.constant([[1]]), 1, 3, False, 5),
        "uniform_candidate_sampler: `true_classes` has dtype int32. Expected int64. Use tf.cast.",
    ),
    "no samples": (
        lambda: tf.random.log_uniform_candidate_sampler(TRUE, 2, 0, False, 5),
        "log_uniform_candidate_sampler: num_sampled must be at least 1. Received: 0.",
    ),
    "no classes": (
        lambda: tf.random.learned_unigram_candidate_sampler(TRUE, 2, 3, False, 0),
        "learned_unigram_candidate_sampler: range_max must be at least 1. Received: 0.",
    ),
    "a class out of range": (
        lambda: tf.random.all_candidate_sampler([[1, 7]], 2, 5, False),
        "all_candidate_sampler: true classes must be in [0, 5). Received: 7.",
    ),
    "no weights": (
        lambda: tf.random.fixed_unigram_candidate_sampler(TRUE, 2, 3, False, 5),
        "fixed_unigram_candidate_sampler: expected one of vocab_file and unigrams. Received: "
        "vocab_file='' and unigrams=[].",
    ),
    "another number of weights": (
        lambda: tf.random.fixed_unigram_candidate_sampler(TRUE, 2, 3, False, 5, unigrams=[1.0]),
        "fixed_unigram_candidate_sampler: range_max must be the number of weights. Received: "
        "range_max=5, and 1 weights.",
    ),
    "weights below zero": (
        lambda: tf.random.fixed_unigram_candidate_sampler(
            [[0]], 1, 1, False, 2, unigrams=[-1.0, 2.0]
        ),
        "fixed_unigram_candidate_sampler: weights must be finite, non-negative and not all 0. "
        "Received: [-1.  2.].",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    call, message = ERRORS[name]
    assert_raises(call, Invalid, message)


def test_a_missing_file_is_reported():
    assert_raises(
        lambda: tf.random.fixed_unigram_candidate_sampler(
            TRUE, 2, 3, False, 5, vocab_file="nowhere.csv"
        ),
        tf.errors.NotFoundError,
        "fixed_unigram_candidate_sampler: no such vocab_file: 'nowhere.csv'.",
    )


@pytest.mark.parametrize("line", [b"word", b"word,x", b"a,0x", b"a,\xff", b"a,1_0"])
def test_lines_of_a_vocabulary_must_end_in_numbers(tmp_path, line):
    path = tmp_path / "words.csv"
    path.write_bytes(b"a,1\n" + line + b"\n")
    last_field = line.rpartition(b",")[2]

    assert_raises(
        lambda: tf.random.fixed_unigram_candidate_sampler(
            [[0]], 1, 1, True, 2, vocab_file=str(path)
        ),
        tf.errors.InvalidArgumentError,
        f"fixed_unigram_candidate_sampler: line 2 of vocab_file ends in {last_field!r}. Expected "
        "a number.",
    )
    with pytest.raises(tf.errors.FailedPreconditionError, match="Is a directory"):
        tf.random.fixed_unigram_candidate_sampler([[0]], 1, 1, True, 2, vocab_file=str(tmp_path))
