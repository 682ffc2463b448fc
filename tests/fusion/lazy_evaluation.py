"""Calls that wait: how tests make few elements many, and what they compare with."""

import contextlib

import numpy as np
import pytest

import retrograde as tf
from retrograde.core import apply
from retrograde.core.lazy import LazyTensor
from retrograde.core.tensor import Tensor
from retrograde.fusion import blocks, lazy_calls


@contextlib.contextmanager
def few_are_many():
    """A block in which calls on arrays of any size wait, and two threads share large ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(apply, "MANY", 1)
        patch.setattr(lazy_calls, "LEAST", 1)
        patch.setattr(lazy_calls, "_BEGIN", 1)
        patch.setattr(blocks, "processors", lambda: 2)
        yield


def numbers(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).uniform(0.2, 2.0, shape).astype(dtype)


def waits(x):
    return type(x) is LazyTensor


def at_once(f):
    """What `f` returns if nothing waits."""
    tf.config.experimental.set_synchronous_execution(True)
    try:
        return f()
    finally:
        tf.config.experimental.set_synchronous_execution(None)


def assert_same(found, expected):
    """That structures of tensors agree to the last bit; nothing of the second has waited."""
    for a, b in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
        assert type(b) is Tensor
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_array_equal(a.numpy(), b.numpy())
