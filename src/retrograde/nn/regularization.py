"""Dropout."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from functools import partial
from typing import Any

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.math._inputs import dtype_name
from retrograde.ops import arithmetic as ar
from retrograde.ops.casting import identity
from retrograde.ops.conversion import as_tensor
from retrograde.random import uniform
from retrograde.values import dtypes
from retrograde.values.arguments import as_int, as_text, shown
from retrograde.values.composites import dispatched
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import to_list


@dispatched
def dropout(
    x: Any, rate: Any, noise_shape: Any = None, seed: int | None = None, name: str | None = None
) -> Tensor:
    """Sets a fraction `rate` of the elements to 0 at random and divides the others by `1 - rate`.

    Elements along axes where `noise_shape` is 1, or that it omits, are dropped together.

    >>> sorted(set(tf.nn.dropout(tf.ones([100]), rate=0.5).numpy().tolist()))
    [0.0, 2.0]
    """
    return apply_dropout(x, rate, partial(uniform, seed=seed), noise_shape)


def apply_dropout(x: Any, rate: Any, sampler: Callable, noise_shape: Any) -> Tensor:
    """Applies dropout with the numbers in [0, 1) of `sampler(shape=, dtype=)`."""
    x = as_tensor(x)
    dtype = x._spec.dtype
    if dtype not in dtypes.FLOATING:
        raise ValueError(
            "dropout: x must be a floating point tensor, since it is scaled. Received: dtype "
            f"{dtype_name(x)}."
        )
    rate = _rate(rate, x)
    if isinstance(rate, float) and not rate:
        return apply(identity, (x,))
    noise = as_tensor(sampler(shape=_noise_shape(noise_shape, x), dtype=dtypes.of(dtype)))
    kept = apply(ar.greater_equal, (noise, as_tensor(rate, dtype)))
    scaled = x * (1.0 / (1.0 - rate))
    return apply(ar.mask, (scaled, kept))


def _rate(rate: Any, x: Tensor) -> float | Tensor:
    """Returns a Python number in [0, 1), or a scalar tensor of the dtype of `x`."""
    rate_tensor = tensor_or_variable(rate)
    if rate_tensor is None:
        if not isinstance(rate, numbers.Real):
            raise ValueError(
                f"dropout: `rate` must be a scalar or scalar tensor. Received: {shown(rate)}."
            )
        if not 0 <= rate < 1:
            raise ValueError(
                "dropout: `rate` must be a scalar tensor or a float in the range [0, 1). "
                f"Received: rate={as_text(rate)}."
            )
        return float(rate)
    tensor = rate_tensor._read()
    if tensor.ndim or tensor._spec.dtype != x._spec.dtype:
        raise ValueError(
            f"dropout: `rate` must be a scalar of the dtype of x, {dtype_name(x)}. Received: shape "
            f"{tensor._spec.shape}, {dtype_name(tensor)}."
        )
    return tensor


def _noise_shape(noise_shape: Any, x: Tensor) -> tuple[int, ...]:
    shape = x._spec.shape
    if noise_shape is None:
        return shape
    sizes = [
        None if n is None else as_int(n, "dropout: noise_shape")
        for n in to_list("dropout", noise_shape)
    ]
    if len(sizes) != len(shape):
        return tuple(sizes)
    return tuple(m if n is None else n for n, m in zip(sizes, shape, strict=True))
