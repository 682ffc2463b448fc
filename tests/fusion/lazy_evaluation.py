"""Helpers for tests of lazy evaluation."""

import contextlib

import numpy as np
import pytest

import retrograde as tf
from retrograde.core import apply
from retrograde.core.lazy import LazyTensor
from retrograde.core.tensor import Tensor
from retrograde.fusion import blocks, lazy_calls


@contextlib.contextmanager
def lazy_small_arrays():
    """Defers calls on arrays of any size, and shares work between two threads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(apply, "LARGE_ARRAY_SIZE", 1)
        patch.setattr(lazy_calls, "MIN_DEFERRED_SIZE", 1)
        patch.setattr(lazy_calls, "MIN_DEFERRED_SIZE_IF_CHEAP", 1)
        patch.setattr(blocks, "processors", lambda: 2)
        yield


def numbers(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).uniform(0.2, 2.0, shape).astype(dtype)


def is_deferred(x):
    return type(x) is LazyTensor


def eagerly(f):
    """Returns `f()` without lazy evaluation."""
    tf.config.experimental.set_synchronous_execution(True)
    try:
        return f()
    finally:
        tf.config.experimental.set_synchronous_execution(None)


def assert_same(actual, expected):
    """Asserts that structures of tensors are bit-for-bit identical; `expected` is not deferred."""
    for a, b in zip(tf.nest.flatten(actual), tf.nest.flatten(expected), strict=True):
        assert type(b) is Tensor
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_array_equal(a.numpy(), b.numpy())
