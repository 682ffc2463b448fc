"""Stateless random numbers, which depend only on a seed, and functions that derive seeds."""

from __future__ import annotations

from typing import Any

from retrograde.core.recorders import thread
from retrograde.core.tensor import Tensor
from retrograde.ops.arguments import integer, shape_from
from retrograde.ops.conversion import as_tensor
from retrograde.ops.host_functions import register_function
from retrograde.ops.random_state import Draw
from retrograde.random import _distributions as distributions
from retrograde.random._sampling import (
    STATELESS,
    WORD_MODULUS,
    check_algorithm,
    draw_from,
    full_range,
    stateless_draw,
    unit_normal,
    unit_truncated_normal,
)
from retrograde.values import dtypes


def stateless_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    name: Any = None,
    alg: Any = "auto_select",
) -> Tensor:
    """Draws uniform random numbers that depend only on `seed`, a pair of integers.

    Integers come from the full range of `dtype` if both `minval` and `maxval` are `None`.

    >>> a, b = (tf.random.stateless_uniform([2], seed=[1, 2]) for _ in range(2))
    >>> bool(tf.reduce_all(a == b))
    True
    """
    draw = stateless_draw(seed, alg)
    return distributions.uniform_or_full_range(draw, shape, minval, maxval, dtype)


def stateless_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    name: Any = None,
    alg: Any = "auto_select",
) -> Tensor:
    """Draws normal random numbers that depend only on `seed`, a pair of integers."""
    draw = stateless_draw(seed, alg)
    return distributions.draw_scaled(unit_normal, draw, shape, mean, stddev, dtype)


def stateless_truncated_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    name: Any = None,
    alg: Any = "auto_select",
) -> Tensor:
    """Draws truncated normal random numbers that depend only on `seed`."""
    draw = stateless_draw(seed, alg)
    return distributions.draw_scaled(unit_truncated_normal, draw, shape, mean, stddev, dtype)


def stateless_parameterized_truncated_normal(
    shape: Any,
    seed: Any,
    means: Any = 0.0,
    stddevs: Any = 1.0,
    minvals: Any = -2.0,
    maxvals: Any = 2.0,
    name: Any = None,
) -> Tensor:
    """Draws normal random numbers between `minvals` and `maxvals`, even far in the tail.

    `shape` ends with the broadcast shape of the parameters. Gradients flow to all four by implicit
    reparameterization.

    >>> x = tf.random.stateless_parameterized_truncated_normal([3], [1, 2], minvals=1.5)
    >>> bool(tf.reduce_all((x >= 1.5) & (x <= 2.0)))
    True
    """
    return distributions.truncated_normal(
        stateless_draw(seed), shape, means, stddevs, minvals, maxvals
    )


def stateless_gamma(
    shape: Any,
    seed: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = dtypes.float32,
    name: Any = None,
) -> Tensor:
    """Draws gamma random numbers; `shape` is the full shape and ends with the shape of `alpha`."""
    return distributions.stateless_gamma(stateless_draw(seed), shape, alpha, beta, dtype)


def stateless_poisson(
    shape: Any, seed: Any, lam: Any, dtype: Any = dtypes.int32, name: Any = None
) -> Tensor:
    """Draws Poisson random numbers; `shape` is the full shape and ends with the shape of `lam`."""
    return distributions.stateless_poisson(stateless_draw(seed), shape, lam, dtype)


def stateless_binomial(
    shape: Any,
    seed: Any,
    counts: Any,
    probs: Any,
    output_dtype: Any = dtypes.int32,
    name: Any = None,
) -> Tensor:
    """Draws the number of successes in `counts` trials with probability `probs`.

    `shape` ends with the broadcast shape of the parameters. No gradient flows.

    >>> tf.random.stateless_binomial([3], [1, 2], counts=10.0, probs=[0.0, 1.0, 1.0]).numpy()
    array([ 0, 10, 10], dtype=int32)
    """
    draw = stateless_draw(seed)
    return distributions.binomial(draw, shape, counts, probs, output_dtype, "stateless_binomial")


def stateless_categorical(
    logits: Any, num_samples: Any, seed: Any, dtype: Any = dtypes.int64, name: Any = None
) -> Tensor:
    """Draws classes like `tf.random.categorical`; the result depends only on `seed`."""
    return distributions.categorical(
        stateless_draw(seed), logits, num_samples, dtype, "stateless_categorical"
    )


def split(seed: Any, num: int = 2, alg: Any = "auto_select") -> Tensor:
    """Derives `num` new seeds from one."""
    shape = shape_from([integer(num, "split"), 2], "split")
    return full_range(stateless_draw(seed, alg), shape, as_tensor(seed)._spec.dtype)


def fold_in(seed: Any, data: Any, alg: Any = "auto_select") -> Tensor:
    """Derives a new seed from a seed and an integer."""
    tensors = [as_tensor(v) for v in (seed, data)]
    check_algorithm(alg)
    is_tracing = thread.recorders.tracer is not None
    draw = draw_from(_fold, *tensors) if is_tracing else _fold(*tensors)
    return full_range(draw, (2,), tensors[1]._spec.dtype)


# The names in tf.random.experimental.
stateless_split, stateless_fold_in = split, fold_in


@register_function
def _fold(seed: Any, data: Any) -> Draw:
    draw = stateless_draw(seed)
    return Draw(draw.key, (integer(data, "fold_in") % WORD_MODULUS, STATELESS + 1))
