"""Activations."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.math._inputs import axis_of, dtype_name, unary
from retrograde.ops import arithmetic as ar
from retrograde.ops import elementary as el
from retrograde.ops.casting import to_dtype
from retrograde.ops.conversion import as_tensor
from retrograde.ops.shaping import concat
from retrograde.values import dtypes
from retrograde.values.arguments import as_float, shown
from retrograde.values.composites import dispatched

_FLOAT32 = np.dtype(np.float32)


def relu(features: Any, name: str | None = None) -> Tensor:
    """Computes `max(x, 0)`; the gradient at 0 is 0.

    >>> tf.nn.relu([-1.0, 0.0, 2.0]).numpy()
    array([0., 0., 2.], dtype=float32)
    """
    return unary(el.relu, features)


def relu6(features: Any, name: str | None = None) -> Tensor:
    """Computes `min(max(x, 0), 6)`; the gradient at 0 and 6 is 0."""
    return unary(el.relu6, features)


@dispatched
def leaky_relu(features: Any, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """Returns `x` where it is positive, else `alpha * x`. Integers become float32.

    >>> tf.nn.leaky_relu([-1.0, 2.0], alpha=0.5).numpy()
    array([-0.5,  2. ], dtype=float32)
    """
    if not isinstance(alpha, numbers.Real):
        raise TypeError(f"leaky_relu: alpha must be a Python number. Received: {shown(alpha)}.")
    x = as_tensor(features)
    if x._spec.dtype in dtypes.INTEGER:
        x = to_dtype(x, _FLOAT32)
    return apply(el.leaky_relu, (x,), {"alpha": as_float(alpha, "leaky_relu: alpha")})


def elu(features: Any, name: str | None = None) -> Tensor:
    """Computes `exp(x) - 1` for negative `x`, and `x` otherwise."""
    return unary(el.elu, features)


def selu(features: Any, name: str | None = None) -> Tensor:
    """Computes `elu` with a scale that preserves mean 0 and variance 1."""
    return unary(el.selu, features)


@dispatched
def gelu(features: Any, approximate: bool = False, name: str | None = None) -> Tensor:
    """Computes `x` times the standard normal cumulative distribution function of `x`.

    With `approximate`, the distribution function is approximated by a tanh.

    >>> tf.nn.gelu([-1.0, 0.0, 1.0]).numpy().round(3)
    array([-0.159,  0.   ,  0.841], dtype=float32)
    """
    x = as_tensor(features)
    if x._spec.dtype not in dtypes.FLOATING:
        raise ValueError(
            f"gelu: features must be a floating point tensor. Received: dtype {dtype_name(x)}."
        )
    return apply(el.gelu, (x,), {"approximate": bool(approximate)})


@dispatched
def silu(features: Any, beta: Any = 1.0) -> Tensor:
    """Computes `x * sigmoid(beta * x)`.

    >>> tf.nn.silu([-1.0, 0.0, 1.0]).numpy().round(3)
    array([-0.269,  0.   ,  0.731], dtype=float32)
    """
    x = as_tensor(features)
    dtype = x._spec.dtype
    if dtype not in dtypes.INEXACT:
        return apply(el.sigmoid, (x,))  # raises with an explanation
    beta = to_dtype(as_tensor(beta, hint=dtype), dtype)
    return x * apply(el.sigmoid, (x * beta,))


swish = silu


def crelu(features: Any, axis: Any = -1, name: str | None = None) -> Tensor:
    """Concatenates `relu(x)` and `relu(-x)` along `axis`.

    >>> tf.nn.crelu([-1.0, 2.0]).numpy()
    array([0., 2., 1., 0.], dtype=float32)
    """
    x = as_tensor(features)
    parts = (x, apply(ar.negative, (x,)))
    return apply(el.relu, (concat(*parts, axis=axis_of(axis, x, "crelu")),))
