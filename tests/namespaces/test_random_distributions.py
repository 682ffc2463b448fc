"""Gamma, Poisson, binomial and truncated normal numbers: distributions, gradients, errors."""

import numpy as np
import pytest
import scipy.special
import scipy.stats

import retrograde as tf
from retrograde.core.apply import apply
from retrograde.ops.sampling import gamma_sample_derivative
from tests.namespaces.helpers import assert_raises

SIZE = 20_000
SEED = [3, 5]
Invalid = tf.errors.InvalidArgumentError


def follows(x, distribution):
    """Tests whether `x` may come from a continuous distribution."""
    return scipy.stats.kstest(x, distribution.cdf).pvalue > 0.01


def counts_follow(x, distribution):
    """Tests whether the integers `x` may come from a discrete distribution.

    Rare values are counted together, with one added so that the count is never zero.
    """
    values = np.arange(x.max() + 1)
    expected = distribution.pmf(values) * len(x)
    is_frequent = expected >= 50
    observed = np.bincount(x)
    pair = [[*n[is_frequent], len(x) - n[is_frequent].sum() + 1] for n in (observed, expected)]
    return scipy.stats.chisquare(*pair).pvalue > 0.01


# Distributions


@pytest.mark.parametrize("alpha", [0.05, 0.7, 1.0, 3.5, 200.0])
def test_gamma_numbers_follow_the_gamma_distribution(alpha):
    x = tf.random.stateless_gamma([SIZE], SEED, alpha, 2.0, tf.float64).numpy()

    assert follows(x, scipy.stats.gamma(alpha, scale=0.5))
    assert abs(x.mean() - alpha / 2) < 4 * np.sqrt(alpha) / 2 / np.sqrt(SIZE)


@pytest.mark.parametrize("lam", [0.3, 4.0, 60.0])
def test_poisson_numbers_follow_the_poisson_distribution(lam):
    x = tf.random.stateless_poisson([SIZE], SEED, lam).numpy()

    assert counts_follow(x, scipy.stats.poisson(lam))
    assert abs(x.mean() - lam) < 4 * np.sqrt(lam / SIZE)


@pytest.mark.parametrize(("counts", "probs"), [(1.0, 0.3), (10.0, 0.5), (1000.0, 0.02)])
def test_binomial_numbers_follow_the_binomial_distribution(counts, probs):
    x = tf.random.stateless_binomial([SIZE], SEED, counts, probs).numpy()
    y = tf.random.Generator.from_seed(3).binomial([SIZE], counts, probs).numpy()

    assert counts_follow(x, scipy.stats.binom(int(counts), probs))
    assert counts_follow(y, scipy.stats.binom(int(counts), probs))


ENDS = [(-1.0, 2.0), (-np.inf, 0.5), (3.0, np.inf), (-np.inf, np.inf), (-6.0, -5.5), (30.0, 31.0)]


@pytest.mark.parametrize(("low", "high"), ENDS)
def test_truncated_normal_numbers_follow_their_distribution_in_the_tails(low, high):
    x = tf.random.stateless_parameterized_truncated_normal(
        [SIZE], SEED, *(tf.constant(v, tf.float64) for v in (0.5, 1.5, low, high))
    ).numpy()
    a, b = ((v - 0.5) / 1.5 for v in (low, high))

    assert x.min() >= low
    assert x.max() <= high
    assert follows(x, scipy.stats.truncnorm(a, b, 0.5, 1.5))


def test_parameters_are_broadcast():
    gamma = tf.random.gamma([SIZE], [[1.0], [4.0]], [1.0, 2.0]).numpy()
    poisson = tf.random.poisson([SIZE], [1.0, 9.0]).numpy()
    normal = tf.random.stateless_parameterized_truncated_normal(
        [SIZE, 2, 2], SEED, [[0.0], [10.0]], [1.0, 2.0], -30.0, 30.0
    ).numpy()

    assert gamma.shape == (SIZE, 2, 2)
    np.testing.assert_allclose(gamma.mean(0), [[1, 0.5], [4, 2]], rtol=0.05)
    np.testing.assert_allclose(poisson.mean(0), [1, 9], rtol=0.05)
    np.testing.assert_allclose(normal.mean(0), [[0, 0], [10, 10]], atol=0.1)
    np.testing.assert_allclose(normal.std(0), [[1, 2], [1, 2]], rtol=0.05)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_dtypes_of_continuous_numbers(dtype):
    half = [tf.constant(v, dtype) for v in (0.0, 1.0, -1.0, 1.0)]
    for x in (
        tf.random.gamma([3], 2.0, dtype=dtype),
        tf.random.stateless_gamma([3], SEED, 2.0, dtype=dtype),
        tf.random.stateless_parameterized_truncated_normal([3], SEED, *half),
    ):
        assert x.dtype == dtype
        assert np.isfinite(x.numpy()).all()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64"])
def test_dtypes_of_counts(dtype):
    assert tf.random.poisson([2], 3.0, dtype).dtype == dtype
    assert tf.random.stateless_poisson([2], SEED, 3.0, dtype).dtype == dtype
    assert tf.random.stateless_binomial([2], SEED, 3.0, 0.5, dtype).dtype == dtype
    assert tf.random.Generator.from_seed(1).binomial([2], 3.0, 0.5, dtype).dtype == dtype


def test_a_seed_reproduces_the_numbers():
    def draw():
        tf.random.set_seed(7)
        return [tf.random.gamma([2], 0.5).numpy().tolist() for _ in range(2)] + [
            tf.random.poisson([9], 5.0).numpy().tolist() for _ in range(2)
        ]

    first = draw()

    assert first == draw()
    assert first[0] != first[1]
    assert first[2] != first[3]


def test_gamma_numbers_are_never_zero():
    x = tf.random.stateless_gamma([1000], SEED, 1e-4).numpy()

    assert x.min() == np.finfo(np.float32).tiny


def test_limiting_parameters():
    gamma = tf.random.gamma([2], [-1.0, 0.0, np.nan]).numpy()
    np.testing.assert_array_equal(gamma[0], [np.nan, np.finfo(np.float32).tiny, np.nan])
    assert tf.random.gamma([2], 1.0, 0.0).numpy().tolist() == [np.inf, np.inf]
    assert tf.random.gamma([0], [1.0, 2.0]).shape == (0, 2)
    assert tf.random.gamma([2], []).shape == (2, 0)
    assert tf.random.poisson([2], [-1.0, 0.0]).numpy().tolist() == [[0, 0], [0, 0]]
    assert tf.random.poisson([], 0).numpy() == 0
    x = tf.random.stateless_binomial([2], SEED, [5.0, 0.0], [1.0, 0.5])
    assert x.numpy().tolist() == [5, 0]


# Gradients by implicit reparameterization: a sample keeps its quantile


@pytest.mark.parametrize("draw", ["gamma", "stateless_gamma"])
def test_gradient_of_gamma_with_respect_to_alpha_matches_the_quantile_function(draw):
    alpha = np.array([0.3, 0.9, 2.0, 30.0, 4000.0])
    x, first, second = _with_gradients(
        lambda a: (
            tf.random.gamma([20], a, dtype=tf.float64, seed=4)
            if draw == "gamma"
            else tf.random.stateless_gamma([20, 5], SEED, a, dtype=tf.float64)
        ),
        alpha,
    )
    u = scipy.special.gammainc(alpha, x)
    step = 1e-4 * alpha
    forward, backward = (scipy.special.gammaincinv(alpha + h, u) for h in (step, -step))

    np.testing.assert_allclose(first, ((forward - backward) / (2 * step)).sum(0), rtol=1e-6)
    second_difference = ((forward - 2 * x + backward) / step**2).sum(0)
    np.testing.assert_allclose(second[:4], second_difference[:4], rtol=1e-4, atol=1e-3)


def _with_gradients(draw, parameter):
    """Returns a sample and the sums of its first and second derivatives."""
    p = tf.constant(parameter)
    with tf.GradientTape() as outer:
        outer.watch(p)
        with tf.GradientTape() as inner:
            inner.watch(p)
            x = draw(p)
        first = inner.gradient(x, p)
    return x.numpy(), first.numpy(), outer.gradient(first, p).numpy()


@pytest.mark.parametrize("alpha", [1e-3, 0.5, 20.0, 1e4])
def test_gamma_gradients_are_accurate_in_float32(alpha):
    x = scipy.stats.gamma(max(alpha, 0.5)).ppf([0.1, 0.5, 0.9])
    slopes = [
        apply(
            gamma_sample_derivative, (tf.constant(alpha, d), tf.constant(x, d)), {"order": 0}
        ).numpy()
        for d in ("float32", "float64")
    ]

    np.testing.assert_allclose(slopes[0], slopes[1], rtol=1e-5)


def test_gamma_numbers_are_scaled_by_beta():
    beta = tf.Variable([1.0, 4.0])
    with tf.GradientTape() as tape:
        x = tf.random.stateless_gamma([3, 2], SEED, 2.0, beta)

    np.testing.assert_allclose(tape.gradient(x, beta), -(x.numpy() / beta.numpy()).sum(0), 1e-6)


@pytest.mark.parametrize(("low", "high"), ENDS)
def test_gradients_of_truncated_normal_match_the_quantile_function(low, high):
    values = [np.float64(v) for v in (0.5, 1.5, low, high)]
    parameters = [tf.Variable(v) for v in values]
    with tf.GradientTape() as tape:
        x = tf.random.stateless_parameterized_truncated_normal([9], SEED, *parameters)
    gradients = tape.gradient(x, parameters)
    for index, g in enumerate(gradients):
        if np.isinf(values[index]):
            assert g.numpy() == 0
            continue
        slope = _difference(lambda *p: _moved_quantiles(x.numpy(), values, p), values, index)
        np.testing.assert_allclose(g, slope.sum(), rtol=1e-5, atol=1e-7)


def _difference(f, values, index, step=1e-4):
    shifted = [[v + h * (i == index) for i, v in enumerate(values)] for h in (step, -step)]
    return (f(*shifted[0]) - f(*shifted[1])) / (2 * step)


def _moved_quantiles(x, before, after):
    """Returns the values at the quantiles of `x` after the parameters change."""
    if before[2] > 0:  # mirrored, because SciPy is accurate in the left tail
        mirrored = [(-p[0], p[1], -p[3], -p[2]) for p in (before, after)]
        return -_moved_quantiles(-x, *mirrored)
    ends = [[scipy.special.log_ndtr((e - p[0]) / p[1]) for e in p[2:]] for p in (before, after)]
    at = scipy.special.log_ndtr((x - before[0]) / before[1])
    top = ends[0][1]
    share = (np.exp(at - top) - np.exp(ends[0][0] - top)) / (1 - np.exp(ends[0][0] - top))
    low, high = (np.exp(e - ends[1][1]) for e in ends[1])
    new = ends[1][1] + np.log(low + share * (high - low))
    return after[0] + after[1] * scipy.special.ndtri_exp(new)


@pytest.mark.parametrize(("low", "high"), [(-1.0, 2.0), (-np.inf, 0.5), (3.0, np.inf)])
def test_second_derivatives_of_truncated_normal_numbers(low, high):
    values = [np.float64(v) for v in (0.5, 1.5, low, high)]

    def first(*parameters):
        with tf.GradientTape() as tape:
            tape.watch(parameters)
            x = tf.random.stateless_parameterized_truncated_normal([5], SEED, *parameters)
        return tf.add_n(tape.gradient(x, parameters)[:2])

    parameters = [tf.constant(v) for v in values]
    with tf.GradientTape() as tape:
        tape.watch(parameters)
        total = first(*parameters)
    for index, g in enumerate(tape.gradient(total, parameters)):
        if np.isfinite(values[index]):
            slope = _difference(lambda *v: first(*map(tf.constant, v)).numpy(), values, index, 1e-5)
            np.testing.assert_allclose(g, slope, rtol=1e-5, atol=1e-8)


def test_no_gradient_flows_to_the_parameters_of_counts():
    rate, probability = tf.Variable(3.0), tf.Variable(0.5)
    with tf.GradientTape(persistent=True) as tape:
        x = tf.random.poisson([2], rate)
        y = tf.random.stateless_binomial([2], SEED, 5.0, probability, tf.float32)

    assert tape.gradient(x, rate) is None
    assert tape.gradient(y, probability) is None


# Errors

TAIL = "Expected one of float16, float32, float64."
COUNTS = "Expected one of float16, float32, float64, int32, int64."
ENDING = (
    "the shape of the samples must end with the broadcast shape of the parameters. Received: shape"
)
ERRORS = {
    "gamma of integers": (
        lambda: tf.random.gamma([2], 1, dtype=tf.int32),
        f"gamma: dtype int32 is not supported. {TAIL}",
    ),
    "gamma of two shapes": (
        lambda: tf.random.gamma([2], [1.0, 2.0], [1.0, 2.0, 3.0]),
        "gamma: the shapes of alpha and beta must broadcast. Received: (2,) and (3,).",
    ),
    "a negative size": (
        lambda: tf.random.gamma([-1], 1.0),
        "gamma: dimension -1 must be >= 0. Received: shape (-1,).",
    ),
    "stateless_gamma": (
        lambda: tf.random.stateless_gamma([3], SEED, [1.0, 2.0], 1.0),
        f"stateless_gamma: {ENDING} (3,), parameters of shape (2,) and ().",
    ),
    "stateless_poisson": (
        lambda: tf.random.stateless_poisson([], SEED, [1.0, 2.0]),
        f"stateless_poisson: {ENDING} (), parameters of shape (2,).",
    ),
    "stateless_binomial": (
        lambda: tf.random.stateless_binomial([3], SEED, [1.0, 2.0], [0.1, 0.2, 0.3]),
        f"stateless_binomial: {ENDING} (3,), parameters of shape (2,) and (3,).",
    ),
    "counts of bfloat16": (
        lambda: tf.random.poisson([2], 1.0, tf.bfloat16),
        f"poisson: dtype bfloat16 is not supported. {COUNTS}",
    ),
    "binomial numbers as bools": (
        lambda: tf.random.Generator.from_seed(1).binomial([2], 1.0, 0.5, tf.bool),
        f"binomial: dtype bool is not supported. {COUNTS}",
    ),
    "an infinite rate": (
        lambda: tf.random.poisson([2], np.inf),
        "poisson: expected rates below 2 ** 62. Received: inf.",
    ),
    "no probability": (
        lambda: tf.random.stateless_binomial([1], SEED, 3.0, 1.5),
        "stateless_binomial: expected counts from 0 to 2 ** 62 and probabilities from 0 to 1. "
        "Received: 3.0 and 1.5.",
    ),
    "bounds in the wrong order": (
        lambda: tf.random.stateless_parameterized_truncated_normal([2], SEED, 0.0, 1.0, 2.0, 1.0),
        "stateless_parameterized_truncated_normal: expected finite means, stddevs > 0 and minvals "
        "< maxvals. Received: 0.0, 1.0, 2.0 and 1.0.",
    ),
    "truncated integers": (
        lambda: tf.random.stateless_parameterized_truncated_normal([2], SEED, 0, 1, -2, 2),
        f"stateless_parameterized_truncated_normal: dtype int32 is not supported. {TAIL}",
    ),
    "a seed of one": (
        lambda: tf.random.stateless_gamma([2], [1], 1.0),
        "seed must have shape [2]. Received: shape (1,).",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    call, message = ERRORS[name]
    assert_raises(call, Invalid, message)


def test_alpha_must_have_the_dtype_of_the_numbers():
    with pytest.raises(ValueError, match="float64"):
        tf.random.gamma([2], tf.constant(1.0, tf.float64))


# Integers from the full range


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
def test_without_bounds_integers_come_from_the_full_range(dtype):
    x = tf.random.stateless_uniform([SIZE], SEED, None, None, dtype)
    limits = np.iinfo(dtype)
    share = (x.numpy().astype(np.float64) - limits.min) / (float(limits.max) - limits.min)

    assert x.dtype == dtype
    assert scipy.stats.kstest(share, "uniform").pvalue > 0.01


def test_integers_require_both_bounds_or_none():
    assert_raises(
        lambda: tf.random.stateless_uniform([2], SEED, dtype=tf.int32),
        ValueError,
        "For dtype int32, `minval` and `maxval` must both be given, or both be None. Received: "
        "minval=0 and maxval=None.",
    )
    assert_raises(
        lambda: tf.random.stateless_uniform([2], SEED, 1, 3, tf.uint32),
        ValueError,
        "Argument `dtype` got invalid value uint32. Expected a signed dtype if `minval` and "
        "`maxval` are given.",
    )


@pytest.mark.parametrize("alg", ["nonsense", 7])
def test_only_known_algorithms_are_accepted(alg):
    message = (
        f"Argument `alg` got unsupported value {alg}. Expected 'philox', 'threefry' or "
        "'auto_select', or 1, 2 or 3 for these."
    )
    for call in (
        lambda: tf.random.stateless_uniform([2], SEED, alg=alg),
        lambda: tf.random.Generator.from_seed(1, alg),
        lambda: tf.random.create_rng_state(1, alg),
        lambda: tf.random.split(SEED, alg=alg),
    ):
        assert_raises(call, ValueError, message)
    assert tf.random.stateless_uniform([2], SEED, alg=tf.random.Algorithm.PHILOX).shape == (2,)


def test_create_rng_state_matches_a_generator():
    for seed in (7, -1, 1 << 63, 1 << 70, [1, 2], tf.constant(3, tf.int64)):
        state = tf.random.create_rng_state(seed, "philox")
        generator = tf.random.Generator.from_seed(seed)

        np.testing.assert_array_equal(state, generator.state)
        expected = tf.random.Generator.from_state(state, "philox").normal([2])
        np.testing.assert_array_equal(expected, generator.normal([2]))
    assert_raises(
        lambda: tf.random.create_rng_state([1, 2, 3], "philox"),
        ValueError,
        "Generator: expected a seed of one or two integers. Received: [1, 2, 3].",
    )


CATEGORICAL = {
    "no classes": (
        lambda: tf.random.categorical(tf.zeros([2, 0]), 3),
        Invalid,
        "categorical: logits should be a matrix with at least one column, one for each class. "
        "Received: shape (2, 0).",
    ),
    "a vector": (
        lambda: tf.random.stateless_categorical(tf.zeros([2]), 3, SEED),
        Invalid,
        "stateless_categorical: logits should be a matrix with at least one column, one for each "
        "class. Received: shape (2,).",
    ),
    "a negative number of samples": (
        lambda: tf.random.categorical(tf.zeros([2, 3]), -1),
        Invalid,
        "categorical: num_samples should not be negative. Received: -1.",
    ),
    "classes that are floats": (
        lambda: tf.random.categorical(tf.zeros([2, 3]), 1, tf.float32),
        ValueError,
        "Argument `dtype` got invalid value float32. Expected int32 or int64.",
    ),
}


@pytest.mark.parametrize("name", CATEGORICAL)
def test_errors_of_categorical(name):
    assert_raises(*CATEGORICAL[name])


def test_categorical_frequencies_match_the_logits():
    logits = np.log([[0.1, 0.2, 0.3, 0.4], [0.4, 0.1, 0.1, 0.4]])
    x = tf.random.stateless_categorical(logits, SIZE, SEED, tf.int32)

    assert x.dtype == tf.int32
    for row, weights in zip(x.numpy(), np.exp(logits), strict=True):
        assert scipy.stats.chisquare(np.bincount(row), weights * SIZE).pvalue > 0.01


def test_classes_with_probability_zero_are_never_drawn():
    logits = [[-np.inf, 0.0, -np.inf], [0.0, -1e9, -np.inf]]
    x = tf.random.stateless_categorical(logits, SIZE, SEED).numpy()

    assert set(x[0]) == {1}
    assert set(x[1]) == {0}
    assert tf.random.categorical(logits, 0).shape == (2, 0)
    assert tf.random.categorical(tf.zeros([0, 2]), 3).shape == (0, 3)


# Generators


def test_a_generator_draws_integers_from_the_full_range():
    g = tf.random.Generator.from_seed(1)
    x = g.uniform([1000], None, None, tf.int32).numpy()

    assert x.min() < -(2**30)
    assert x.max() > 2**30
    assert g.uniform_full_int([2], tf.uint32).dtype == tf.uint32
    assert_raises(
        lambda: g.uniform_full_int([2], tf.float32),
        Invalid,
        "uniform_full_int: dtype float32 is not supported. Expected one of int32, int64, uint32, "
        "uint64.",
    )
    assert_raises(
        lambda: g.make_seeds(-1),
        Invalid,
        "make_seeds: dimension -1 must be >= 0. Received: shape (2, -1).",
    )


def test_a_counter_has_one_or_two_words():
    make = tf.random.Generator.from_key_counter
    one, two = make(7, 3, "philox"), make(7, [3, 4], "philox")

    assert one.state.numpy().tolist() == [3, 0, 7]
    assert two.state.numpy().tolist() == [3, 4, 7]
    assert one.normal([]).numpy() != two.normal([]).numpy()
    assert_raises(
        lambda: make(7, [1, 2, 3], "philox"),
        ValueError,
        "Generator: expected a counter of one or two integers. Received: [1, 2, 3].",
    )


def test_fold_in_of_int64_gives_an_int64_seed():
    assert tf.random.fold_in(SEED, 3).dtype == tf.int32
    assert tf.random.fold_in(SEED, tf.constant(3, tf.int64)).dtype == tf.int64
    assert tf.random.fold_in(tf.constant([1, 2], tf.int64), 3).dtype == tf.int32


@pytest.mark.parametrize("draw", [tf.random.uniform, tf.random.normal, tf.random.truncated_normal])
def test_parameters_have_the_dtype_of_the_numbers(draw):
    with pytest.raises(ValueError, match="float64"):
        draw([2], tf.constant(0.0, tf.float64))
    with pytest.raises(TypeError, match=r"Cannot convert 0\.5 to a tensor of dtype int32"):
        tf.random.uniform([2], 0.5, 3, tf.int32)
