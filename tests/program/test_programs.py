"""Tests compiled programs: their XLA options and large constants."""

import jax
import numpy as np
import pytest

import retrograde as tf
from retrograde.program import xla


def compile_and_call(f, *args):
    """Returns the compiled program of `f` and its result. The first call only traces `f`."""
    function = tf.function(f, jit_compile=True)
    function(*args)
    y = function(*args)
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
def test_only_small_programs_run_without_threads(f, shape, is_small):
    program, _ = compile_and_call(f, tf.ones(shape))
    assert program._is_small() == is_small


def test_unknown_xla_options_are_omitted(monkeypatch):
    def reject_options(*_, compiler_options):
        raise jax.errors.JaxRuntimeError(f"No such compile option: {compiler_options}")

    monkeypatch.setattr(jax, "jit", reject_options)
    assert xla._supported.__wrapped__(("no such option", 1)) == {}


def test_convolutions_are_not_fused():
    x, w = tf.ones([8, 28, 28, 8]), tf.ones([3, 3, 8, 16])
    program, y = compile_and_call(lambda x, w: tf.nn.conv2d(x, w, 1, "SAME"), x, w)
    matmul_program, _ = compile_and_call(lambda x: x @ x, tf.ones([100, 100]))

    has_option = jax.__version_info__ >= (0, 8, 1)
    assert program._options() == (dict([xla._NO_FUSED_LAYERS]) if has_option else {})
    assert matmul_program._options() == {}
    np.testing.assert_array_equal(y, tf.nn.conv2d(x, w, 1, "SAME"))


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64, tf.complex64])
def test_identity_matrices_are_created_inside_the_program(dtype):
    x = tf.constant(np.arange(10000).reshape(100, 100), dtype)
    program, y = compile_and_call(lambda x: x + tf.eye(100, dtype=dtype), x)

    assert program.large == ()
    np.testing.assert_array_equal(y, x.numpy() + np.eye(100))


LARGE_CONSTANTS = {
    "not square": np.eye(100, 101),
    "nonzero off the diagonal": np.eye(100) + np.eye(100, k=3),
    "not ones": 2 * np.eye(100),
    "permutation": np.eye(100)[::-1],
}


@pytest.mark.parametrize("constant", LARGE_CONSTANTS.values(), ids=LARGE_CONSTANTS)
def test_other_large_constants_are_passed_as_arguments(constant):
    constant = constant.astype(np.float32)
    program, y = compile_and_call(lambda x: x + constant, tf.zeros(constant.shape))

    assert len(program.large) == 1
    np.testing.assert_array_equal(y, constant)
