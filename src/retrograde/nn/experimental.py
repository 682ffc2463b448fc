"""tf.nn.experimental: dropout with a seed or with a custom sampler."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from retrograde._api.lazy import from_all
from retrograde.core.tensor import Tensor
from retrograde.nn.regularization import apply_dropout
from retrograde.random.stateless import stateless_uniform

__all__ = ["general_dropout", "stateless_dropout"]

__getattr__, __dir__ = from_all(__name__)


def stateless_dropout(
    x: Any,
    rate: Any,
    seed: Any,
    rng_alg: Any = None,
    noise_shape: Any = None,
    name: str | None = None,
) -> Tensor:
    """Applies dropout that depends only on `seed`, a pair of integers.

    >>> a, b = (tf.nn.experimental.stateless_dropout(tf.ones([9]), 0.5, [1, 2]) for _ in range(2))
    >>> bool(tf.reduce_all(a == b))
    True
    """
    alg = "auto_select" if rng_alg is None else rng_alg
    return apply_dropout(x, rate, partial(stateless_uniform, seed=seed, alg=alg), noise_shape)


def general_dropout(
    x: Any,
    rate: Any,
    uniform_sampler: Callable,
    noise_shape: Any = None,
    name: str | None = None,
) -> Tensor:
    """Applies dropout with the uniform random numbers of `uniform_sampler(shape=, dtype=)`.

    >>> half = lambda shape, dtype: tf.constant([0.2, 0.7], dtype)
    >>> tf.nn.experimental.general_dropout(tf.ones([2]), 0.5, half).numpy()
    array([0., 2.], dtype=float32)
    """
    return apply_dropout(x, rate, uniform_sampler, noise_shape)
