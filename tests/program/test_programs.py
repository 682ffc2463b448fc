"""What is in compiled programs, and how they are compiled."""

import jax
import numpy as np
import pytest

import retrograde as tf
from retrograde.program import xla


def compiled(f, *arguments):
    """The program, and what it makes of the arguments: the first call only records it."""
    function = tf.function(f, jit_compile=True)
    function(*arguments)
    y = function(*arguments)
    (entry,) = function._history
    return entry.trace.executable.compiled(), y


SIZES = [
    (lambda x: x @ x, [64, 64], True),
    (lambda x: x @ x, [65, 65], False),
    (lambda x: x + x * x, [64, 64], True),
    (lambda x: x + x * x, [65, 65], False),
    (tf.reduce_sum, [1 << 16], True),
    (tf.reduce_sum, [1 << 17], False),
    (lambda x: x[3] * 2.0, [100, 512], True),
]


@pytest.mark.parametrize(("f", "shape", "is_small"), SIZES)
def test_only_small_programs_do_without_threads(f, shape, is_small):
    program, _ = compiled(f, tf.ones(shape))
    assert program._is_small() == is_small


def test_options_that_xla_does_not_know_are_left_out(monkeypatch):
    def refusing(*_, compiler_options):
        raise jax.errors.JaxRuntimeError(f"No such compile option: {compiler_options}")

    monkeypatch.setattr(jax, "jit", refusing)
    assert xla._supported.__wrapped__(("no such option", 1)) == {}


def test_convolutions_are_not_fused():
    x, w = tf.ones([8, 28, 28, 8]), tf.ones([3, 3, 8, 16])
    program, y = compiled(lambda x, w: tf.nn.conv2d(x, w, 1, "SAME"), x, w)
    without, _ = compiled(lambda x: x @ x, tf.ones([100, 100]))

    knows_option = jax.__version_info__ >= (0, 8, 1)
    assert program._options() == (dict([xla._NO_FUSED_LAYERS]) if knows_option else {})
    assert without._options() == {}
    np.testing.assert_array_equal(y, tf.nn.conv2d(x, w, 1, "SAME"))


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64, tf.complex64])
def test_a_program_makes_identities_by_itself(dtype):
    x = tf.constant(np.arange(10000).reshape(100, 100), dtype)
    program, y = compiled(lambda x: x + tf.eye(100, dtype=dtype), x)

    assert program.large == ()
    np.testing.assert_array_equal(y, x.numpy() + np.eye(100))


OTHERS = {
    "not square": np.eye(100, 101),
    "something beside the diagonal": np.eye(100) + np.eye(100, k=3),
    "not ones": 2 * np.eye(100),
    "a permutation": np.eye(100)[::-1],
}


@pytest.mark.parametrize("constant", OTHERS.values(), ids=OTHERS)
def test_other_large_constants_are_handed_in(constant):
    constant = constant.astype(np.float32)
    program, y = compiled(lambda x: x + constant, tf.zeros(constant.shape))

    assert len(program.large) == 1
    np.testing.assert_array_equal(y, constant)
