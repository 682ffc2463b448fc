"""Random augmentation of images for training: flips, crops and color changes.

The result of a `stateless_*` function is determined by its `seed`, a pair of integers. The other
functions use the global random state, which `tf.random.set_seed` sets.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.image._inputs import as_image_or_batch
from retrograde.image.color_adjustment import (
    adjust_brightness,
    adjust_contrast,
    adjust_hue,
    adjust_saturation,
)
from retrograde.image.flip import flip
from retrograde.ops.arithmetic import select
from retrograde.ops.conversion import as_tensor
from retrograde.ops.shaping import reshape
from retrograde.random import stateless_uniform, uniform
from retrograde.toplevel.indexing import slice as take_part
from retrograde.values import dtypes
from retrograde.values.arguments import as_text
from retrograde.values.errors import invalid

_HEIGHT, _WIDTH = -3, -2


def _stateful_sampler(seed: Any) -> Callable:
    return functools.partial(uniform, seed=seed)


def _stateless_sampler(seed: Any) -> Callable:
    return functools.partial(stateless_uniform, seed=seed)


# Flips


def random_flip_left_right(image: Any, seed: int | None = None) -> Tensor:
    """Flips each image horizontally with probability 1/2."""
    return _random_flip(image, _WIDTH, _stateful_sampler(seed), "random_flip_left_right")


def random_flip_up_down(image: Any, seed: int | None = None) -> Tensor:
    """Flips each image vertically with probability 1/2."""
    return _random_flip(image, _HEIGHT, _stateful_sampler(seed), "random_flip_up_down")


def stateless_random_flip_left_right(image: Any, seed: Any) -> Tensor:
    """Computes `tf.image.random_flip_left_right` as a function of `seed`."""
    return _random_flip(image, _WIDTH, _stateless_sampler(seed), "stateless_random_flip_left_right")


def stateless_random_flip_up_down(image: Any, seed: Any) -> Tensor:
    """Computes `tf.image.random_flip_up_down` as a function of `seed`."""
    return _random_flip(image, _HEIGHT, _stateless_sampler(seed), "stateless_random_flip_up_down")


def _random_flip(image: Any, axis: int, draw: Callable, op_name: str) -> Tensor:
    x = as_image_or_batch(image, op_name)
    batch = x._spec.shape[:-3]
    flipped = reshape(draw(batch) < 0.5, shape=(*batch, 1, 1, 1))
    return select(flipped, flip(x, axis), x)


# Crops


def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """Crops a tensor to `size`, one size per axis, at a random position.

    >>> tf.image.random_crop(tf.ones([32, 32, 3]), [24, 24, 3]).shape
    TensorShape([24, 24, 3])
    """
    return _random_crop(value, size, _stateful_sampler(seed))


def stateless_random_crop(value: Any, size: Any, seed: Any, name: str | None = None) -> Tensor:
    """Computes `tf.image.random_crop` as a function of `seed`."""
    return _random_crop(value, size, _stateless_sampler(seed))


def _random_crop(value: Any, size: Any, draw: Callable) -> Tensor:
    x = as_tensor(value)
    sizes = np.asarray(as_tensor(size, dtypes.int32.numpy_dtype))
    shape = np.array(x._spec.shape, np.int32)
    if sizes.shape != shape.shape or (sizes > shape).any():
        raise invalid(
            f"random_crop: size {sizes.tolist()} does not fit into shape {shape.tolist()}. "
            "Expected one size per axis, at most the size of the axis."
        )
    # The number of possible starts differs between axes, so it is applied by a modulo.
    start = draw(sizes.shape, maxval=dtypes.int32.max, dtype=dtypes.int32)
    return take_part(x, start % (shape - sizes + 1), sizes)


# Color changes


def random_brightness(image: Any, max_delta: Any, seed: int | None = None) -> Tensor:
    """Changes the brightness of images by a random delta in `[-max_delta, max_delta)`."""
    return adjust_brightness(image, _random_delta(max_delta, _stateful_sampler(seed)))


def stateless_random_brightness(image: Any, max_delta: Any, seed: Any) -> Tensor:
    """Computes `tf.image.random_brightness` as a function of `seed`."""
    return adjust_brightness(image, _random_delta(max_delta, _stateless_sampler(seed)))


def random_hue(image: Any, max_delta: Any, seed: int | None = None) -> Tensor:
    """Shifts the hue of RGB images by a random delta in `[-max_delta, max_delta)`.

    `max_delta` must be in [0, 0.5].
    """
    return adjust_hue(image, _random_delta(max_delta, _stateful_sampler(seed), limit=0.5))


def stateless_random_hue(image: Any, max_delta: Any, seed: Any) -> Tensor:
    """Computes `tf.image.random_hue` as a function of `seed`."""
    return adjust_hue(image, _random_delta(max_delta, _stateless_sampler(seed), limit=0.5))


def random_contrast(image: Any, lower: Any, upper: Any, seed: int | None = None) -> Tensor:
    """Multiplies the contrast of images by a random factor between `lower` and `upper`."""
    return adjust_contrast(image, _random_factor(lower, upper, _stateful_sampler(seed)))


def stateless_random_contrast(image: Any, lower: Any, upper: Any, seed: Any) -> Tensor:
    """Computes `tf.image.random_contrast` as a function of `seed`."""
    return adjust_contrast(image, _random_factor(lower, upper, _stateless_sampler(seed)))


def random_saturation(image: Any, lower: Any, upper: Any, seed: int | None = None) -> Tensor:
    """Multiplies the saturation of RGB images by a random factor between `lower` and `upper`."""
    return adjust_saturation(image, _random_factor(lower, upper, _stateful_sampler(seed)))


def stateless_random_saturation(image: Any, lower: Any, upper: Any, seed: Any = None) -> Tensor:
    """Computes `tf.image.random_saturation` as a function of `seed`."""
    return adjust_saturation(image, _random_factor(lower, upper, _stateless_sampler(seed)))


def _random_delta(max_delta: Any, draw: Callable, limit: float | None = None) -> Tensor:
    if max_delta < 0:
        raise ValueError(f"max_delta must be non-negative. Received: {as_text(max_delta)}.")
    if limit is not None and max_delta > limit:
        raise ValueError(f"max_delta must be <= {limit}. Received: {as_text(max_delta)}.")
    return draw([], minval=-max_delta, maxval=max_delta)


def _random_factor(lower: Any, upper: Any, draw: Callable) -> Tensor:
    try:
        empty = upper <= lower
    except OverflowError:  # raised by NumPy for integers beyond 64 bits
        empty = True
    if empty:
        raise ValueError(f"upper must be > lower. Received: {as_text(upper)} and {as_text(lower)}.")
    if lower < 0:
        raise ValueError(f"lower must be non-negative. Received: {as_text(lower)}.")
    return draw([], minval=lower, maxval=upper)
