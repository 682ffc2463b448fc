"""`keras.random`: seeds, distributions, dtypes and gradients."""

import numpy as np
import pytest
import scipy.stats

import retrograde as tf
from retrograde import keras
from tests.namespaces.helpers import assert_gradients, gradient

random = keras.random

SAMPLERS = {
    "normal": lambda **options: random.normal((200, 50), 1.0, 2.0, **options),
    "truncated_normal": lambda **options: random.truncated_normal((200, 50), 1.0, 2.0, **options),
    "uniform": lambda **options: random.uniform((200, 50), -1.0, 3.0, **options),
    "gamma": lambda **options: random.gamma((200, 50), 1.7, **options),
    "beta": lambda **options: random.beta((200, 50), 0.8, 2.5, **options),
}
DISTRIBUTIONS = {
    "normal": scipy.stats.norm(1, 2),
    "truncated_normal": scipy.stats.truncnorm(-2, 2, 1, 2),
    "uniform": scipy.stats.uniform(-1, 4),
    "gamma": scipy.stats.gamma(1.7),
    "beta": scipy.stats.beta(0.8, 2.5),
}
DISCRETE = {
    "randint": lambda **options: random.randint((300,), -2, 5, **options),
    "binomial": lambda **options: random.binomial((300,), 10, 0.3, **options),
    "categorical": lambda **options: random.categorical(np.ones((3, 4)), 100, **options),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_samples_follow_the_distribution(name):
    x = np.asarray(SAMPLERS[name](seed=3)).ravel()

    assert scipy.stats.kstest(x, DISTRIBUTIONS[name].cdf).pvalue > 0.001


@pytest.mark.parametrize("name", [*SAMPLERS, *DISCRETE])
def test_same_seed_gives_the_same_samples(name):
    draw = (SAMPLERS | DISCRETE)[name]
    x, same, other = (np.asarray(draw(seed=seed)) for seed in (5, 5, 6))

    assert (x == same).all() and (x != other).any()


@pytest.mark.parametrize("name", [*SAMPLERS, *DISCRETE])
def test_seed_generator_advances(name):
    draw = (SAMPLERS | DISCRETE)[name]
    first, second = (keras.random.SeedGenerator(9) for _ in range(2))
    xs = [np.asarray(draw(seed=generator)) for generator in (first, first, second, second)]

    assert (xs[0] == xs[2]).all() and (xs[1] == xs[3]).all()
    assert (xs[0] != xs[1]).any()


def test_set_random_seed():
    xs = []
    for _ in range(2):
        keras.utils.set_random_seed(4)
        xs.append([np.asarray(random.normal((3,))) for _ in range(2)])

    np.testing.assert_array_equal(xs[0], xs[1])
    assert (xs[0][0] != xs[0][1]).any()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", SAMPLERS)
def test_dtype(name, dtype):
    x = SAMPLERS[name](seed=1, dtype=dtype)

    assert x.dtype == dtype
    assert np.isfinite(np.asarray(x, "float64")).all()


def test_uniform_matches_stateless_uniform():
    """Keras and `tf.random` use the same generator."""
    expected = tf.random.stateless_uniform([4], seed=[11, 0])

    np.testing.assert_array_equal(random.uniform((4,), seed=11), expected)


def test_randint_range():
    x = np.asarray(random.randint((1000,), -2, 5, seed=2))

    assert x.dtype == "int32" and set(x.tolist()) == set(range(-2, 5))
    assert random.randint((2,), 0, 9, dtype="uint8", seed=1).dtype == "uint8"
    bounds = np.array([1, 10, 100])
    assert (np.asarray(random.randint((3,), bounds, bounds + 1, seed=1)) == bounds).all()


def test_categorical_probabilities():
    logits = np.log([[0.1, 0.2, 0.7], [1e-9, 1.0, 1e-9]])
    x = np.asarray(random.categorical(logits, 4000, seed=8))

    assert x.shape == (2, 4000)
    np.testing.assert_allclose(np.bincount(x[0]) / 4000, [0.1, 0.2, 0.7], atol=0.03)
    assert (x[1] == 1).all()


def test_binomial():
    x = np.asarray(random.binomial((3000,), 10, 0.3, seed=8))

    expected = 3000 * scipy.stats.binom(10, 0.3).pmf(np.arange(8))
    counts = np.bincount(x.astype(int), minlength=8)[:8]
    np.testing.assert_allclose(counts, expected, atol=5 * np.sqrt(3000 * 0.3 * 0.7))


def test_dropout_zeroes_and_rescales():
    x = np.ones((200, 100), "float32")
    y = np.asarray(random.dropout(x, 0.25, seed=1))

    assert set(np.unique(y)) == {0, np.float32(1 / 0.75)}
    assert abs((y == 0).mean() - 0.25) < 0.02
    assert (np.asarray(random.dropout(x, 1.0)) == 0).all()
    assert (np.asarray(random.dropout(x, 0.0)) == 1).all()


def test_dropout_noise_shape_broadcasts():
    y = np.asarray(random.dropout(np.ones((4, 6, 5)), 0.5, (None, 1, None), seed=2))

    assert (y == y[:, :1]).all() and (y == 0).any()


def test_dropout_gradient():
    x = np.random.default_rng(0).normal(size=(4, 5))

    assert_gradients(lambda x: random.dropout(x, 0.4, seed=3), x)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_shuffle_permutes_slices_and_their_gradients(axis):
    x = np.arange(24.0).reshape(4, 6)
    y = np.asarray(random.shuffle(x, axis=axis, seed=3))

    assert (y != x).any()
    moved = np.moveaxis(y, axis, 0)
    assert sorted(moved.tolist()) == sorted(np.moveaxis(x, axis, 0).tolist())
    assert_gradients(lambda x: random.shuffle(x, axis=axis, seed=3), x)


def test_normal_gradients_flow_to_parameters():
    def draw(mean, stddev):
        return random.normal((3,), mean, stddev, dtype="float64", seed=4)

    unit = np.asarray(random.normal((3,), dtype="float64", seed=4))
    grad_mean, grad_stddev = gradient(draw, np.float64(1), np.float64(2))

    np.testing.assert_allclose([grad_mean, grad_stddev], [3, unit.sum()])


def test_gamma_gradients_flow_to_alpha():
    """The gradient is the derivative of the quantile function."""
    alpha, step = 1.7, 1e-5
    x = float(np.asarray(random.gamma((1,), alpha, dtype="float64", seed=4))[0])
    quantile = scipy.stats.gamma(alpha).cdf(x)
    plus, minus = (scipy.stats.gamma(alpha + h).ppf(quantile) for h in (step, -step))

    derivative = gradient(
        lambda a: random.gamma((1,), a, dtype="float64", seed=4), np.float64(alpha)
    )[0]
    np.testing.assert_allclose(derivative, (plus - minus) / (2 * step), rtol=1e-5)


def sample_all(generator):
    x = tf.ones([4, 5])
    return [
        random.normal((3,), seed=generator),
        random.truncated_normal((3,), seed=generator),
        random.uniform((3,), seed=generator),
        random.randint((3,), 0, 100, seed=generator),
        random.gamma((3,), 2.0, seed=generator),
        random.beta((3,), 2.0, 3.0, seed=generator),
        random.binomial((3,), 10, 0.3, seed=generator),
        random.categorical(np.ones((2, 4), "float32"), 5, seed=generator),
        random.dropout(x, 0.5, seed=generator),
        random.shuffle(tf.range(6.0), seed=generator),
    ]


@pytest.mark.parametrize("jit_compile", [False, True], ids=["replayed", "compiled"])
def test_traced_functions_draw_the_same_samples(jit_compile):
    generator, other = (random.SeedGenerator(3) for _ in range(2))
    draw = tf.function(lambda: sample_all(generator), jit_compile=jit_compile)

    for _ in range(3):
        for actual, expected in zip(draw(), sample_all(other), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_compiled_sampling_without_x64():
    layer = keras.layers.Dropout(0.5, seed=4)
    same_layer = keras.layers.Dropout(0.5, seed=4)
    compiled = tf.function(lambda x: layer(x, training=True), jit_compile=True)

    for _ in range(3):
        np.testing.assert_array_equal(
            compiled(tf.ones([6, 7])), same_layer(tf.ones([6, 7]), training=True)
        )


@pytest.mark.parametrize("sample", ["uniform", "normal", "truncated_normal"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_large_arrays_start_with_the_numbers_of_small_ones(sample, dtype):
    function = getattr(keras.random, sample)

    large, small = (function((n,), dtype=dtype, seed=3).numpy() for n in (100_001, 1_000))

    np.testing.assert_array_equal(large[:1_000], small)
    assert len(np.unique(large[40_000:41_000])) > 500
