"""Stateful random numbers: each call draws from the stream of its thread."""

from __future__ import annotations

from typing import Any

from retrograde.core.tensor import Tensor
from retrograde.ops import casting, indexing, random_state
from retrograde.ops.arguments import shape_from
from retrograde.ops.conversion import as_tensor
from retrograde.random import _distributions as distributions
from retrograde.random._sampling import (
    call_each_time,
    permutation,
    unit_normal,
    unit_truncated_normal,
)
from retrograde.random.candidate_sampling import reset_learned
from retrograde.values import dtypes
from retrograde.values.arguments import as_int


def set_seed(seed: int) -> None:
    """Restarts the random numbers of this process from `seed`.

    >>> tf.random.set_seed(7)
    >>> first = tf.random.uniform([2])
    >>> tf.random.set_seed(7)
    >>> bool(tf.reduce_all(first == tf.random.uniform([2])))
    True
    """
    random_state.set_seed(None if seed is None else as_int(seed, "set_seed: seed"))
    reset_learned()


def uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: Any = None,
) -> Tensor:
    """Draws uniform random numbers in [`minval`, `maxval`).

    `maxval` defaults to 1 for floats and is required for integers. After `tf.random.set_seed`, or
    with a `seed`, a program draws the same numbers in each run.

    >>> dice = tf.random.uniform([100], 1, 7, tf.int32)
    >>> int(tf.reduce_min(dice)) >= 1 and int(tf.reduce_max(dice)) <= 6
    True
    """
    return distributions.uniform(random_state.draw_key(seed), shape, minval, maxval, dtype)


def normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: Any = None,
) -> Tensor:
    """Draws random numbers from a normal distribution.

    `mean` and `stddev` broadcast with `shape`, and gradients flow to them. After
    `tf.random.set_seed`, or with a `seed`, a program draws the same numbers in each run.

    >>> tf.random.set_seed(1)
    >>> x = tf.random.normal([10_000], mean=5.0)
    >>> abs(float(tf.reduce_mean(x)) - 5.0) < 0.1
    True
    """
    draw = random_state.draw_key(seed)
    return distributions.draw_scaled(unit_normal, draw, shape, mean, stddev, dtype)


def truncated_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: Any = None,
) -> Tensor:
    """Draws random numbers from a normal distribution truncated at two `stddev` from `mean`."""
    draw = random_state.draw_key(seed)
    return distributions.draw_scaled(unit_truncated_normal, draw, shape, mean, stddev, dtype)


def gamma(
    shape: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: Any = None,
) -> Tensor:
    """Draws `shape` random numbers from the gamma distribution of each `alpha` and `beta`.

    `beta` is the rate: the numbers have mean `alpha / beta`. Gradients flow to both parameters by
    implicit reparameterization.

    >>> tf.random.gamma([10], alpha=[0.5, 1.5]).shape
    TensorShape([10, 2])
    """
    return distributions.gamma(random_state.draw_key(seed), shape, alpha, beta, dtype)


def poisson(
    shape: Any, lam: Any, dtype: Any = dtypes.float32, seed: int | None = None, name: Any = None
) -> Tensor:
    """Draws `shape` random numbers from the Poisson distribution of each rate `lam`.

    No gradient flows.

    >>> tf.random.poisson([10], lam=[0.5, 1.5]).shape
    TensorShape([10, 2])
    """
    rates = as_tensor(lam)
    sizes = (*shape_from(shape, "poisson"), *rates._spec.shape)
    return distributions.poisson(random_state.draw_key(seed), sizes, rates, dtype, "poisson")


def categorical(
    logits: Any, num_samples: Any, dtype: Any = None, seed: int | None = None, name: Any = None
) -> Tensor:
    """Draws classes with probabilities proportional to `exp(logits)`, for each row."""
    return distributions.categorical(
        random_state.draw_key(seed), logits, num_samples, dtype, "categorical"
    )


def shuffle(value: Any, seed: int | None = None, name: Any = None) -> Tensor:
    """Shuffles the rows of a tensor randomly. No gradient flows, as in TensorFlow."""
    x = casting.stop_gradient(as_tensor(value))
    if not x._spec.ndim:
        return x
    count = x._spec.shape[0]
    order = call_each_time(permutation, random_state.draw_key(seed), size=count)
    return indexing.gather(x, order, axis=0)
