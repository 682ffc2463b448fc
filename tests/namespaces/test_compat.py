"""tf.autograph, tf.compat, tf.sysconfig, tf.types and other names besides operations."""

import pathlib

import numpy as np
import pytest

import retrograde as tf
from tests.namespaces.helpers import assert_raises


def test_autograph_leaves_functions_unchanged():
    @tf.autograph.experimental.do_not_convert
    def double(x):
        return 2 * x

    @tf.autograph.experimental.do_not_convert()
    def triple(x):
        return 3 * x

    assert (double(2), triple(2)) == (4, 6)
    assert tf.autograph.experimental.Feature.ALL.value == "ALL"
    assert tf.autograph.experimental.set_loop_options(maximum_iterations=3) is None
    assert tf.autograph.set_verbosity(3, alsologtostdout=True) is None


def test_autograph_trace_prints(capsys):
    tf.autograph.trace("a", 1)
    assert capsys.readouterr().out == "a 1\n"


def test_strings_and_paths():
    assert tf.compat.as_bytes("grün") == "grün".encode()
    assert tf.compat.as_bytes(bytearray(b"x")) == b"x"
    assert tf.compat.as_text(b"x") == tf.compat.as_str("x") == "x"
    assert tf.compat.as_str_any(b"x") == "x"
    assert tf.compat.as_str_any(3) == "3"
    assert tf.compat.path_to_str(pathlib.PurePosixPath("/a")) == "/a"
    assert tf.compat.path_to_str(3) == 3
    for call in (tf.compat.as_bytes, tf.compat.as_text):
        assert_raises(
            lambda call=call: call(3), TypeError, "Expected binary or unicode string, got 3"
        )


def test_numbers_and_shapes():
    assert isinstance(np.float32(1), tf.compat.real_types)
    assert isinstance(np.int8(1), tf.compat.integral_types)
    assert isinstance(np.complex64(1), tf.compat.complex_types)
    assert isinstance("x", tf.compat.bytes_or_text_types)
    assert tf.compat.dimension_value(3) == 3
    assert tf.compat.dimension_at_index(tf.TensorShape([2, None]), 0) == 2
    assert tf.compat.dimension_at_index(tf.TensorShape(None), 0) is None


def test_forward_compatibility():
    assert tf.compat.forward_compatible(2019, 1, 1)
    assert not tf.compat.forward_compatible(9999, 1, 1)
    with tf.compat.forward_compatibility_horizon(2019, 1, 1):
        pass


def test_compat_v2_is_retrograde():
    assert tf.compat.v2 is tf
    with pytest.raises(AttributeError, match=r"tf\.compat\.v1 is in TensorFlow but not"):
        tf.compat.v1  # noqa: B018


def test_sysconfig_and_version():
    assert set(tf.sysconfig.get_build_info().values()) == {False}
    assert pathlib.Path(tf.sysconfig.get_lib(), "version.py").exists()
    assert (tf.sysconfig.CXX11_ABI_FLAG, tf.sysconfig.MONOLITHIC_BUILD) == (1, 0)
    assert tf.version.VERSION.startswith("2.")


def test_tensor_like_types():
    for value in (1.0, [1.0], np.ones(2), np.float32(1), tf.constant(1.0), tf.Variable(1.0)):
        assert isinstance(value, tf.types.experimental.TensorLike)
    assert not isinstance(object(), tf.types.experimental.TensorLike)


def test_dlpack_round_trip_and_import():
    x, array = tf.constant([[1.0, 2.0]]), np.arange(3.0)
    copied = tf.experimental.dlpack.from_dlpack(tf.experimental.dlpack.to_dlpack(x))
    imported = tf.experimental.dlpack.from_dlpack(array.__dlpack__())

    np.testing.assert_array_equal(copied, x)
    assert np.shares_memory(np.asarray(imported), array)


def test_error_codes():
    assert tf.errors.OK == 0
    assert tf.errors.NotFoundError.error_code == tf.errors.NOT_FOUND == 5
    assert tf.errors.UNAUTHENTICATED == 16
