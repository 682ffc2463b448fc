"""Images changed at random, for training: flipped, cropped, brighter or darker.

Those named `stateless_*` are a function of their `seed`, a pair of integers. The others draw from
the stream of `tf.random.set_seed`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.image._inputs import image_or_batch
from retrograde.image.color_adjustment import (
    adjust_brightness,
    adjust_contrast,
    adjust_hue,
    adjust_saturation,
)
from retrograde.image.flip import flipped
from retrograde.ops.arithmetic import select
from retrograde.ops.conversion import as_tensor
from retrograde.ops.shaping import reshape
from retrograde.random import stateless_uniform, uniform
from retrograde.toplevel.indexing import slice as take_part
from retrograde.values import dtypes
from retrograde.values.arguments import as_text
from retrograde.values.errors import invalid

_HEIGHT, _WIDTH = -3, -2


def _stateful(seed: Any) -> Callable:
    return functools.partial(uniform, seed=seed)


def _stateless(seed: Any) -> Callable:
    return functools.partial(stateless_uniform, seed=seed)


# Flips


def random_flip_left_right(image: Any, seed: int | None = None) -> Tensor:
    """Images with left and right exchanged, each with probability one half."""
    return _flipped(image, _WIDTH, _stateful(seed), "random_flip_left_right")


def random_flip_up_down(image: Any, seed: int | None = None) -> Tensor:
    """Images mirrored upside down, each with probability one half."""
    return _flipped(image, _HEIGHT, _stateful(seed), "random_flip_up_down")


def stateless_random_flip_left_right(image: Any, seed: Any) -> Tensor:
    """As `tf.image.random_flip_left_right`; the same `seed` gives the same result."""
    return _flipped(image, _WIDTH, _stateless(seed), "stateless_random_flip_left_right")


def stateless_random_flip_up_down(image: Any, seed: Any) -> Tensor:
    """As `tf.image.random_flip_up_down`; the same `seed` gives the same result."""
    return _flipped(image, _HEIGHT, _stateless(seed), "stateless_random_flip_up_down")


def _flipped(image: Any, axis: int, draw: Callable, what: str) -> Tensor:
    x = image_or_batch(image, what)
    batch = x._spec.shape[:-3]
    chosen = reshape(draw(batch) < 0.5, shape=(*batch, 1, 1, 1))
    return select(chosen, flipped(x, axis), x)


# Crops


def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """A part of `size` somewhere in a tensor; the sizes along all axes are given.

    >>> tf.image.random_crop(tf.ones([32, 32, 3]), [24, 24, 3]).shape
    TensorShape([24, 24, 3])
    """
    return _cropped(value, size, _stateful(seed))


def stateless_random_crop(value: Any, size: Any, seed: Any, name: str | None = None) -> Tensor:
    """As `tf.image.random_crop`; the same `seed` gives the same part."""
    return _cropped(value, size, _stateless(seed))


def _cropped(value: Any, size: Any, draw: Callable) -> Tensor:
    x = as_tensor(value)
    wanted = np.asarray(as_tensor(size, dtypes.int32.numpy_dtype))
    shape = np.array(x._spec.shape, np.int32)
    if wanted.shape != shape.shape or (wanted > shape).any():
        raise invalid(
            f"random_crop: size {wanted.tolist()} does not fit into shape {shape.tolist()}. "
            "Expected a size for each axis, at most as large."
        )
    # Any number modulo the room there is, which differs from axis to axis.
    start = draw(wanted.shape, maxval=dtypes.int32.max, dtype=dtypes.int32)
    return take_part(x, start % (shape - wanted + 1), wanted)


# Colours


def random_brightness(image: Any, max_delta: Any, seed: int | None = None) -> Tensor:
    """Images made brighter or darker by at most `max_delta`."""
    return adjust_brightness(image, _about_zero(max_delta, _stateful(seed)))


def stateless_random_brightness(image: Any, max_delta: Any, seed: Any) -> Tensor:
    """As `tf.image.random_brightness`; the same `seed` gives the same result."""
    return adjust_brightness(image, _about_zero(max_delta, _stateless(seed)))


def random_hue(image: Any, max_delta: Any, seed: int | None = None) -> Tensor:
    """Images in RGB with their hue turned by at most `max_delta`, from 0 to 0.5."""
    return adjust_hue(image, _about_zero(max_delta, _stateful(seed), most=0.5))


def stateless_random_hue(image: Any, max_delta: Any, seed: Any) -> Tensor:
    """As `tf.image.random_hue`; the same `seed` gives the same result."""
    return adjust_hue(image, _about_zero(max_delta, _stateless(seed), most=0.5))


def random_contrast(image: Any, lower: Any, upper: Any, seed: int | None = None) -> Tensor:
    """Images with contrast times a factor between `lower` and `upper`."""
    return adjust_contrast(image, _between(lower, upper, _stateful(seed)))


def stateless_random_contrast(image: Any, lower: Any, upper: Any, seed: Any) -> Tensor:
    """As `tf.image.random_contrast`; the same `seed` gives the same result."""
    return adjust_contrast(image, _between(lower, upper, _stateless(seed)))


def random_saturation(image: Any, lower: Any, upper: Any, seed: int | None = None) -> Tensor:
    """Images in RGB with saturation times a factor between `lower` and `upper`."""
    return adjust_saturation(image, _between(lower, upper, _stateful(seed)))


def stateless_random_saturation(image: Any, lower: Any, upper: Any, seed: Any = None) -> Tensor:
    """As `tf.image.random_saturation`; the same `seed` gives the same result."""
    return adjust_saturation(image, _between(lower, upper, _stateless(seed)))


def _about_zero(max_delta: Any, draw: Callable, most: float | None = None) -> Tensor:
    if max_delta < 0:
        raise ValueError(f"max_delta must be non-negative. Received: {as_text(max_delta)}.")
    if most is not None and max_delta > most:
        raise ValueError(f"max_delta must be <= {most}. Received: {as_text(max_delta)}.")
    return draw([], minval=-max_delta, maxval=max_delta)


def _between(lower: Any, upper: Any, draw: Callable) -> Tensor:
    try:
        empty = upper <= lower
    except OverflowError:  # of NumPy, for integers beyond 64 bits
        empty = True
    if empty:
        raise ValueError(f"upper must be > lower. Received: {as_text(upper)} and {as_text(lower)}.")
    if lower < 0:
        raise ValueError(f"lower must be non-negative. Received: {as_text(lower)}.")
    return draw([], minval=lower, maxval=upper)
