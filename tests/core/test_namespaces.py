"""Tests tensors that hold JAX arrays: the kernels run in the jax.numpy namespace."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrograde as tf
from retrograde.core import namespaces


@pytest.fixture(autouse=True)
def _restore_foreign_flag(monkeypatch):
    monkeypatch.setattr(namespaces, "foreign", namespaces.foreign)


@pytest.fixture
def x():
    return tf.Tensor(jnp.array([[1.0, 2.0], [3.0, 4.0]], jnp.float32))


def test_namespace_of_mixed_arrays():
    assert namespaces.namespace_of([np.ones(2), np.float32(1.0)]) is np
    assert namespaces.namespace_of([np.ones(2), jnp.ones(2)]) is jnp
    assert namespaces.namespace_of([]) is np


def test_the_first_jax_array_sets_the_foreign_flag(monkeypatch):
    monkeypatch.setattr(namespaces, "foreign", False)

    tf.Tensor(np.ones(2))
    tf.Tensor(np.float32(1.0))
    assert namespaces.foreign is False
    tf.Tensor(jnp.ones(2))
    assert namespaces.foreign is True


def test_numpy_operations_do_not_look_up_the_namespace(x, monkeypatch):
    lookups = []
    monkeypatch.setattr(namespaces, "namespace_of", lambda arrays: lookups.append(arrays) or np)
    numpy_tensor = tf.constant([1.0, 2.0])

    tf.reduce_sum(numpy_tensor + numpy_tensor)
    assert namespaces.foreign is True
    assert not lookups
    assert namespaces.involves_foreign([np.ones(2), x._array])


def test_attributes_and_conversions_of_a_jax_tensor(x):
    assert x.shape == (2, 2)
    assert x.dtype is tf.float32
    assert x.device == tf.constant(1.0).device
    assert repr(x) == repr(tf.constant(x.numpy()))
    assert str(x) == str(tf.constant(x.numpy()))
    assert float(x[0, 1]) == 2.0
    assert [float(row[0]) for row in x] == [1.0, 3.0]


def test_numpy_returns_a_writable_copy_and_asarray_a_read_only_view(x):
    array = x.numpy()
    array[0, 0] = 9.0

    assert float(x[0, 0]) == 1.0
    assert not np.asarray(x).flags.writeable
    assert np.from_dlpack(x).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert pickle.loads(pickle.dumps(x)).numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x + 1.0,
        lambda x: 2.0 * x,
        lambda x: x @ x,
        lambda x: tf.tanh(x),
        lambda x: tf.reduce_sum(x, axis=0),
        lambda x: tf.reshape(x, [4]),
        lambda x: x[:, 0],
        lambda x: x + tf.constant([1.0, 2.0]),
        lambda x: tf.concat([x, tf.ones([1, 2])], 0),
        lambda x: x / x,
    ],
)
def test_results_are_jax_arrays(x, f):
    y = f(x)

    assert isinstance(y._array, jax.Array)
    assert y.dtype is tf.float32
    np.testing.assert_allclose(y.numpy(), f(tf.constant(x.numpy())).numpy(), rtol=1e-6)


def test_gradients_are_jax_arrays(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.tanh(x @ x))

    gradient = tape.gradient(y, x)

    assert isinstance(gradient._array, jax.Array)
    x_numpy = tf.constant(x.numpy())
    with tf.GradientTape() as tape:
        tape.watch(x_numpy)
        y = tf.reduce_sum(tf.tanh(x_numpy @ x_numpy))
    np.testing.assert_allclose(gradient.numpy(), tape.gradient(y, x_numpy).numpy(), rtol=1e-5)


def test_variables_hold_jax_arrays(x):
    v = tf.Variable(x)
    before = v.value()

    v.assign_add(tf.ones([2, 2]))
    v.assign_sub(x)
    v.scatter_add(tf.IndexedSlices(tf.constant([[1.0, 1.0]]), tf.constant([0])))

    assert v.numpy().tolist() == [[2.0, 2.0], [1.0, 1.0]]
    assert before.numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]
