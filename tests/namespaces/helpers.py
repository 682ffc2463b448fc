"""Helpers of the namespace tests: tensors of any dtype, numerical gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograde as tf

FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEXES = ("complex64", "complex128")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INEXACT = FLOATS + COMPLEXES
REAL = FLOATS + SIGNED + UNSIGNED
NUMERIC = INEXACT + SIGNED + UNSIGNED
REAL_PART = {"complex64": "float32", "complex128": "float64"}


def of_dtype(values: Any, dtype: str) -> tf.Tensor:
    """Converts `values` to a tensor of any dtype."""
    return tf.cast(tf.constant(values), dtype)


def float64(values: Any) -> tf.Tensor:
    return tf.constant(values, tf.float64)


def gradient(f: Callable, *inputs: Any, weights: Any = None) -> list:
    """Returns the gradients of `f(*inputs)` with respect to all inputs; `None` if none flows."""
    xs = [x if isinstance(x, tf.Tensor) else tf.constant(x) for x in inputs]
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    results = tape.gradient(y, xs, output_gradients=weights)
    return [None if g is None else tf.convert_to_tensor(g).numpy() for g in results]


def assert_gradients(f: Callable, *inputs: Any, step: float = 1e-6, rtol: float = 1e-7) -> None:
    """Checks the gradients of `f` in float64 against central differences.

    The differences are taken along a random direction, and the result has random weights, so that
    errors cannot cancel.
    """
    rng = np.random.default_rng(3)
    arrays = [np.asarray(x, np.float64) for x in inputs]
    weights = rng.uniform(0.5, 1.5, f(*map(tf.constant, arrays)).shape)
    results = gradient(f, *arrays, weights=tf.constant(weights))

    def weighted_sum(*xs: np.ndarray) -> float:
        return float(np.sum(weights * f(*map(tf.constant, xs)).numpy()))

    for index, (x, g) in enumerate(zip(arrays, results, strict=True)):
        assert g.dtype == np.float64
        assert g.shape == x.shape
        direction = rng.uniform(0.5, 1.5, x.shape)
        forward, backward = (
            weighted_sum(*arrays[:index], x + h * direction, *arrays[index + 1 :])
            for h in (step, -step)
        )
        difference = (forward - backward) / (2 * step)
        np.testing.assert_allclose(np.sum(g * direction), difference, rtol=rtol, atol=1e-8)


def assert_raises(call: Callable, error: type, message: str) -> None:
    """Checks that `call` raises exactly this class with this message."""
    with pytest.raises(error) as raised:
        call()
    assert type(raised.value) is error
    assert str(raised.value) == message
    del raised  # its traceback refers to this frame: a cycle would keep open files alive
