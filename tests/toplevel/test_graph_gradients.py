"""tf.gradients and tf.hessians outside functions."""

import pytest

import retrograde as tf
from tests.namespaces.helpers import assert_raises


@pytest.mark.parametrize("name", ["gradients", "hessians"])
def test_graph_gradients_raise_in_eager_mode(name):
    x = tf.constant(3.0)

    assert_raises(
        lambda: getattr(tf, name)(x * x, x),
        RuntimeError,
        f"tf.{name} is not supported when eager execution is enabled. Use tf.GradientTape instead.",
    )
