"""Tests that results of compiled functions stay on the device until a value is read."""

import numpy as np
import pytest

import retrograde as tf


class CountedArray:
    """A JAX array that counts its transfers to the host."""

    def __init__(self, array):
        self._array = array
        self.transfers = 0

    def __getattr__(self, name):
        return getattr(self._array, name)

    def __array__(self, *args, **kwargs):
        self.transfers += 1
        return np.asarray(self._array)


def compiled_result():
    double = tf.function(lambda x: 2.0 * x, jit_compile=True)
    y = [double(tf.ones([3, 4])) for _ in range(3)][-1]
    y._spec.device_array = CountedArray(y._device)
    return y


METADATA = {
    "shape": lambda y: y.shape.as_list(),
    "dtype": lambda y: y.dtype,
    "ndim": lambda y: y.ndim,
    "len": len,
    "get_shape": lambda y: y.get_shape(),
    "set_shape": lambda y: y.set_shape([3, 4]),
    "device": lambda y: y.device,
    "tf.shape": tf.shape,
    "tf.size": tf.size,
    "tf.rank": tf.rank,
    "TensorSpec": tf.TensorSpec.from_tensor,
    "convert_to_tensor": tf.convert_to_tensor,
}


@pytest.mark.parametrize("read_metadata", METADATA.values(), ids=METADATA)
def test_shape_and_dtype_need_no_transfer(read_metadata):
    y = compiled_result()

    read_metadata(y)

    assert y._device.transfers == 0


def test_values_are_transferred_only_once():
    y = compiled_result()

    total = tf.reduce_sum(y) + tf.reduce_max(y)

    assert total.numpy() == 26.0
    assert y._device.transfers == 1


def test_shape_and_dtype_of_an_assigned_variable_need_no_transfer():
    v = tf.Variable(tf.zeros([3, 4]))
    step = tf.function(lambda: v.assign_add(tf.ones([3, 4])), jit_compile=True)
    for _ in range(3):
        step()
    tensor = v._current()
    tensor._spec.device_array = counted_array = CountedArray(tensor._device)

    assert (v.shape, v.dtype, v.ndim) == ((3, 4), tf.float32, 2)
    assert tf.shape(v).numpy().tolist() == [3, 4]
    assert counted_array.transfers == 0
    assert v.numpy()[0, 0] == 3.0
