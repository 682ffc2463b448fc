"""Tests IndexedSlices: rows of a tensor that is zero elsewhere."""

import numpy as np
import pytest

import retrograde as tf


def slices(dense_shape=True):
    return tf.IndexedSlices(
        tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
        tf.constant([2, 0, 2]),
        tf.constant([3, 2]) if dense_shape else None,
    )


def test_attributes():
    s = slices()

    assert s.values.shape == [3, 2]
    assert s.indices.numpy().tolist() == [2, 0, 2]
    assert s.dense_shape.numpy().tolist() == [3, 2]
    assert s.shape == [3, 2]
    assert s.dtype is tf.float32
    assert s.device == s.values.device


def test_shape_is_unknown_without_dense_shape():
    s = slices(dense_shape=False)

    assert s.dense_shape is None
    assert s.shape.rank is None
    with pytest.raises(ValueError, match="without dense_shape"):
        tf.convert_to_tensor(s)


@pytest.mark.parametrize("args", [(None, [0]), ([1.0], None), ([1.0], [None])])
def test_values_and_indices_must_be_convertible_to_tensors(args):
    with pytest.raises(ValueError, match="unsupported type"):
        tf.IndexedSlices(*args)


def test_conversion_to_a_tensor_sums_repeated_indices():
    dense = tf.convert_to_tensor(slices())

    assert isinstance(dense, tf.Tensor)
    assert dense.numpy().tolist() == [[3.0, 4.0], [0.0, 0.0], [6.0, 8.0]]


def test_operations_convert_indexed_slices_to_tensors():
    assert float(tf.reduce_sum(slices())) == 21.0
    assert (tf.ones([3, 2]) + slices()).numpy()[0].tolist() == [4.0, 5.0]


def test_negation_returns_indexed_slices():
    negated = -slices()

    assert isinstance(negated, tf.IndexedSlices)
    assert tf.convert_to_tensor(negated).numpy()[2].tolist() == [-6.0, -8.0]
    with pytest.raises(TypeError):
        slices() * 2.0


@pytest.mark.parametrize("f", [tf.identity, tf.stop_gradient])
def test_identity_and_stop_gradient_return_indexed_slices(f):
    s = slices()
    with tf.GradientTape() as tape:
        tape.watch(s.values)
        y = f(s)

    assert isinstance(y, tf.IndexedSlices)
    assert y.indices.numpy().tolist() == [2, 0, 2]
    assert y.dense_shape.numpy().tolist() == [3, 2]
    g = tape.gradient(y.values, s.values)
    assert g is None if f is tf.stop_gradient else g.numpy().tolist() == [[1.0, 1.0]] * 3


def test_the_gradient_of_gather_from_the_last_axis_is_dense():
    table = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        y, z = tf.gather(table, [2, 2], axis=-1), tf.gather(table, [2, 2], axis=0)

    assert tape.gradient(y, table).numpy().tolist() == [0.0, 0.0, 2.0]
    assert isinstance(tape.gradient(z, table), tf.IndexedSlices)


def test_conversion_to_a_tensor_is_differentiable():
    values = tf.Variable([1.0, 2.0, 3.0])

    with tf.GradientTape() as tape:
        s = tf.IndexedSlices(values * values, tf.constant([1, 0, 1]), tf.constant([2]))
        y = tf.convert_to_tensor(s) * tf.constant([10.0, 100.0])

    assert tape.gradient(y, values).numpy().tolist() == [200.0, 40.0, 600.0]


def test_indices_out_of_bounds_raise():
    s = tf.IndexedSlices(tf.constant([1.0]), tf.constant([3]), tf.constant([3]))

    with pytest.raises(tf.errors.InvalidArgumentError, match=r"not in \[0, 3\)"):
        tf.convert_to_tensor(s)


def test_str():
    s = tf.IndexedSlices(tf.constant([1.0]), tf.constant([0]), tf.constant([3]))

    assert str(s) == (
        "IndexedSlices(indices=tf.Tensor([0], shape=(1,), dtype=int32), "
        "values=tf.Tensor([1.], shape=(1,), dtype=float32), "
        "dense_shape=tf.Tensor([3], shape=(1,), dtype=int32))"
    )


def test_variables_can_be_updated_with_indexed_slices():
    v = tf.Variable(np.zeros((3, 2), np.float32))

    v.scatter_add(slices())
    v.assign_sub(slices())

    assert not v.numpy().any()


READ = {
    "variable": lambda v: tf.gather(v, [1, 1]),
    "identity": lambda v: tf.gather(tf.identity(v), [1, 1]),
    "identity of identity": lambda v: tf.gather(tf.identity(tf.identity(v)), [1, 1]),
    "convert_to_tensor": lambda v: tf.gather(tf.convert_to_tensor(v), [1, 1]),
    "read_value": lambda v: tf.gather(v.read_value(), [1, 1]),
}


@pytest.mark.parametrize("read", READ.values(), ids=READ)
def test_gradients_of_gather_are_indexed_slices(read):
    v = tf.Variable(tf.ones([4, 2]))
    with tf.GradientTape() as tape:
        y = read(v)
    g = tape.gradient(y, v)

    assert isinstance(g, tf.IndexedSlices)
    assert g.indices.numpy().tolist() == [1, 1]
    assert g.values.numpy().tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert g.dense_shape.numpy().tolist() == [4, 2]


def test_gradients_of_several_reads_are_summed():
    v = tf.Variable(tf.ones([4, 2]))
    with tf.GradientTape(persistent=True) as tape:
        sparse_loss = tf.reduce_sum(tf.gather(v, [0]) * 2 + tf.gather(tf.identity(v), [3]) * 3)
        mixed_loss = sparse_loss + tf.reduce_sum(v)

    g = tape.gradient(sparse_loss, v)
    assert isinstance(g, tf.IndexedSlices)
    assert tf.convert_to_tensor(g).numpy()[:, 0].tolist() == [2.0, 0.0, 0.0, 3.0]
    g = tape.gradient(mixed_loss, v)
    assert isinstance(g, tf.Tensor)
    assert g.numpy()[:, 0].tolist() == [3.0, 1.0, 1.0, 4.0]


DENSE = {
    "sum": lambda v: tf.gather(v + 1.0, [1, 1]),
    "reshape": lambda v: tf.gather(tf.reshape(v, [2, 4]), [1]),
    "roll": lambda v: tf.roll(v, 1, axis=0),
    "sort": lambda v: tf.sort(v[:, 0]),
    "repeat": lambda v: tf.repeat(v, 2, axis=0),
    "top_k": lambda v: tf.math.top_k(v[:, 0], 2).values,
    "output of tf.function": lambda v: tf.gather(tf.function(lambda: tf.identity(v))(), [1, 1]),
    "reflect padding": lambda v: tf.pad(v, [[1, 1], [0, 0]], "REFLECT"),
}


@pytest.mark.parametrize("f", DENSE.values(), ids=DENSE)
def test_gradients_are_dense_where_they_are_in_tensorflow(f):
    v = tf.Variable(tf.ones([4, 2]))
    with tf.GradientTape() as tape:
        y = f(v)

    assert isinstance(tape.gradient(y, v), tf.Tensor)


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "function"])
def test_int32_and_int64_indices_can_be_mixed(wrap):
    table = tf.Variable([[1.0], [2.0], [3.0]])

    @wrap
    def gradient(table):
        with tf.GradientTape() as tape:
            y = tf.gather(table, tf.constant([0, 1])) ** 2
            y += tf.gather(table, tf.constant([2, 1], tf.int64))
        return tape.gradient(y, table)

    for _ in range(2):
        g = gradient(table)
        assert isinstance(g, tf.IndexedSlices) and g.indices.dtype == tf.int64
        np.testing.assert_array_equal(tf.convert_to_tensor(g), [[2.0], [5.0], [1.0]])


def test_second_derivative_with_int32_and_int64_indices():
    table = tf.Variable([[1.0], [2.0], [3.0]])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.gather(table, tf.constant([0, 1])) ** 3
            y += tf.gather(table, tf.constant([2, 1], tf.int64)) ** 3
        first = tf.convert_to_tensor(inner.gradient(y, table))
    np.testing.assert_array_equal(
        tf.convert_to_tensor(outer.gradient(first, table)), [[6.0], [24.0], [18.0]]
    )
