"""tf.random: reproducibility, distributions, gradients of parameters, generators."""

import threading

import numpy as np
import pytest
import scipy.stats

import retrograde as tf
from retrograde.ops import random_state
from tests.threads import run_concurrently

SIZE = 20_000
SEED = [3, 5]
DRAWS = {
    "normal": tf.random.normal,
    "uniform": tf.random.uniform,
    "truncated_normal": tf.random.truncated_normal,
}


def draws(count=3):
    return [tf.random.uniform([2]).numpy().tolist() for _ in range(count)]


# Reproducibility


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_a_seed_reproduces_the_numbers(draw):
    tf.random.set_seed(7)
    first = [draw([3]).numpy().tolist(), draw([3]).numpy().tolist()]
    tf.random.set_seed(7)
    second = [draw([3]).numpy().tolist(), draw([3]).numpy().tolist()]

    assert first == second
    assert first[0] != first[1]


def test_another_seed_gives_other_numbers():
    tf.random.set_seed(7)
    first = draws()
    tf.random.set_seed(8)

    assert first != draws()


def test_an_operation_seed_has_its_own_stream():
    tf.random.set_seed(7)
    expected = draws()
    tf.random.set_seed(7)
    first_draws = [tf.random.uniform([2], seed=1).numpy().tolist() for _ in range(2)]
    after = draws()
    tf.random.set_seed(7)
    second_draws = [tf.random.uniform([2], seed=1).numpy().tolist() for _ in range(2)]

    assert after == expected
    assert first_draws == second_draws
    assert first_draws[0] != first_draws[1]
    assert first_draws[0] != tf.random.uniform([2], seed=2).numpy().tolist()


def test_an_operation_seed_suffices_without_a_global_seed():
    def sequence():
        random_state.set_seed(None)
        return [tf.random.normal([2], seed=4).numpy().tolist() for _ in range(2)]

    assert sequence() == sequence()


def test_without_any_seed_numbers_differ():
    random_state.set_seed(None)

    assert draws(1) != draws(1)


def test_draws_of_other_threads_have_no_effect():
    tf.random.set_seed(7)
    single_threaded = draws(6)
    tf.random.set_seed(7)
    first = draws(3)
    other = []
    thread = threading.Thread(target=lambda: other.extend(draws(3)))
    thread.start()
    thread.join()

    assert first + draws(3) == single_threaded
    assert not any(numbers in single_threaded for numbers in other)


def test_concurrent_threads_draw_different_numbers():
    tf.random.set_seed(7)
    samples = []

    def work():
        samples.extend([float(tf.random.uniform([], dtype=tf.float64)) for _ in range(100)])

    run_concurrently(*[work] * 4)

    assert len(set(samples)) == 400


def test_replaying_a_saved_state_does_not_affect_the_stream():
    tf.random.set_seed(7)
    draws(2)
    saved = random_state.state()
    first = [draws(), tf.random.normal([2], seed=3).numpy().tolist()]
    with random_state.replaying(saved):
        second = [draws(), tf.random.normal([2], seed=3).numpy().tolist()]
        with random_state.replaying(saved):
            third = [draws(), tf.random.normal([2], seed=3).numpy().tolist()]
        replayed = draws()
    after_replay = draws()

    assert first == second == third
    assert replayed == after_replay


def test_recomputed_functions_draw_the_same_numbers():
    @tf.recompute_grad
    def noisy(x):
        return x * tf.random.uniform([4])

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = noisy(x)

    np.testing.assert_allclose(tape.gradient(y, x), tf.reduce_sum(y) / 2.0, rtol=1e-6)


# Distributions


def test_uniform_numbers_are_uniform():
    x = tf.random.stateless_uniform([SIZE], SEED, dtype=tf.float64).numpy()

    assert x.min() >= 0
    assert x.max() < 1
    assert scipy.stats.kstest(x, "uniform").pvalue > 0.01
    assert abs(x.mean() - 0.5) < 4 * np.sqrt(1 / 12 / SIZE)


def test_normal_numbers_are_normal():
    x = tf.random.stateless_normal([SIZE], SEED, mean=3.0, stddev=2.0, dtype=tf.float64).numpy()

    assert scipy.stats.kstest((x - 3) / 2, "norm").pvalue > 0.01
    assert abs(x.mean() - 3) < 4 * 2 / np.sqrt(SIZE)
    assert abs(x.std() - 2) < 4 * 2 / np.sqrt(2 * SIZE)


def test_truncated_normal_numbers_are_within_two_standard_deviations():
    x = tf.random.stateless_truncated_normal([SIZE], SEED, 3.0, 2.0, tf.float64).numpy()

    assert np.abs(x - 3).max() <= 4
    assert scipy.stats.kstest((x - 3) / 2, scipy.stats.truncnorm(-2, 2).cdf).pvalue > 0.01


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32])
def test_narrow_dtypes_stay_below_maxval(dtype):
    x = tf.random.stateless_uniform([SIZE], SEED, dtype=dtype)
    values = x.numpy().astype(np.float64)

    assert x.dtype == dtype
    assert values.min() >= 0
    assert values.max() < 1
    assert abs(values.mean() - 0.5) < 0.01


def test_integers_are_all_equally_likely():
    x = tf.random.stateless_uniform([SIZE], SEED, -2, 5, tf.int32)
    values, counts = np.unique(x.numpy(), return_counts=True)

    assert x.dtype == tf.int32
    assert values.tolist() == [-2, -1, 0, 1, 2, 3, 4]
    assert scipy.stats.chisquare(counts).pvalue > 0.01


def test_consecutive_draws_are_independent():
    tf.random.set_seed(11)
    x = np.stack([tf.random.normal([SIZE], dtype=tf.float64).numpy() for _ in range(2)])
    pairs = tf.random.stateless_normal([SIZE], [3, 6], dtype=tf.float64).numpy(), x[0]

    assert abs(np.corrcoef(x)[0, 1]) < 4 / np.sqrt(SIZE)
    assert abs(np.corrcoef(pairs)[0, 1]) < 4 / np.sqrt(SIZE)


def test_categorical_frequencies_match_the_logits():
    logits = np.log([[0.2, 0.8], [0.5, 0.5]])
    x = tf.random.stateless_categorical(logits, SIZE, SEED).numpy()

    assert x.shape == (2, SIZE)
    np.testing.assert_allclose(x.mean(1), [0.8, 0.5], atol=4 * 0.5 / np.sqrt(SIZE))


def test_shuffling_keeps_the_rows():
    x = tf.reshape(tf.range(20), [10, 2])
    tf.random.set_seed(1)
    y = tf.random.shuffle(x).numpy()

    assert y.tolist() != x.numpy().tolist()
    np.testing.assert_array_equal(y[np.argsort(y[:, 0])], x)


# Parameters


def test_gradients_flow_to_mean_and_stddev():
    mean, stddev = tf.Variable([1.0, 2.0]), tf.Variable(3.0)
    standard = tf.random.stateless_normal([4, 2], SEED).numpy()
    with tf.GradientTape() as tape:
        x = tf.random.stateless_normal([4, 2], SEED, mean, stddev)
    g = tape.gradient(x, [mean, stddev])

    np.testing.assert_allclose(x, standard * 3 + [1, 2], rtol=1e-6)
    np.testing.assert_allclose(g[0], [4.0, 4.0])
    np.testing.assert_allclose(g[1], standard.sum(), rtol=1e-5)


def test_integers_require_maxval():
    with pytest.raises(ValueError, match="Must specify maxval for integer dtype int32"):
        tf.random.uniform([2], dtype=tf.int32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected minval < maxval"):
        tf.random.uniform([2], 3, 3, tf.int32)


def test_unsupported_dtypes_raise():
    with pytest.raises(ValueError, match="invalid value bool"):
        tf.random.uniform([2], dtype=tf.bool)
    with pytest.raises(ValueError, match="invalid value int32"):
        tf.random.normal([2], dtype=tf.int32)


def test_a_stateless_seed_must_be_a_pair():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"seed must have shape \[2\]"):
        tf.random.stateless_uniform([2], seed=1)


def test_a_shape_may_be_a_tensor():
    assert tf.random.normal(tf.constant([2, 3])).shape == (2, 3)
    assert tf.random.uniform([]).shape == ()


# Derived seeds


def test_split_seeds_are_new_and_reproducible():
    seeds = tf.random.split(SEED, 3)

    assert seeds.shape == (3, 2)
    assert seeds.dtype == tf.int32
    assert len(np.unique(seeds.numpy())) == 6
    np.testing.assert_array_equal(seeds, tf.random.split(SEED, 3))


def test_folding_in_another_number_gives_another_seed():
    first, repeated, other = (tf.random.fold_in(SEED, n).numpy().tolist() for n in (1, 1, 2))

    assert first == repeated
    assert first != other


# Generators


def test_generators_with_the_same_seed_agree():
    a, b = (tf.random.Generator.from_seed(5) for _ in range(2))

    np.testing.assert_array_equal(a.normal([3]), b.normal([3]))
    np.testing.assert_array_equal(a.uniform([3], 0, 9, tf.int32), b.uniform([3], 0, 9, tf.int32))
    np.testing.assert_array_equal(a.truncated_normal([3]), b.truncated_normal([3]))
    assert (
        a.normal([3]).numpy().tolist()
        != tf.random.Generator.from_seed(6).normal([3]).numpy().tolist()
    )


def test_the_state_of_a_generator_can_be_saved_and_restored():
    g = tf.random.Generator.from_seed(5)
    g.normal([2])
    saved = g.state.numpy()
    first = g.normal([2]).numpy()
    g.reset(saved)

    np.testing.assert_array_equal(g.normal([2]), first)
    np.testing.assert_array_equal(tf.random.Generator.from_state(saved).normal([2]), first)
    g.reset_from_seed(5)
    g.skip(1)
    np.testing.assert_array_equal(g.normal([2]), first)


def test_a_copied_generator_is_independent():
    g = tf.random.Generator.from_seed(5)
    copy = tf.random.Generator(g)

    np.testing.assert_array_equal(g.normal([2]), copy.normal([2]))
    g.normal([2])
    assert g.normal([2]).numpy().tolist() != copy.normal([2]).numpy().tolist()


def test_split_generators_are_independent():
    g = tf.random.Generator.from_seed(5)
    parts = [g, *g.split(3)]
    numbers = {float(part.uniform([], dtype=tf.float64)) for part in parts}

    assert len(numbers) == 4
    assert g.make_seeds(2).shape == (2, 2)
    assert g.make_seeds().dtype == tf.int64


def test_the_global_generator_can_be_replaced():
    previous = tf.random.get_global_generator()
    generator = tf.random.Generator.from_seed(1)
    try:
        tf.random.set_global_generator(generator)
        assert tf.random.get_global_generator() is generator
    finally:
        tf.random.set_global_generator(previous)
    assert tf.random.get_global_generator() is previous


def test_threads_share_a_generator_without_repeating_numbers():
    g, samples = tf.random.Generator.from_seed(5), []

    def work():
        samples.extend([float(g.uniform([], dtype=tf.float64)) for _ in range(100)])

    run_concurrently(*[work] * 4)

    assert len(set(samples)) == 400
