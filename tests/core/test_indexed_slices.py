"""IndexedSlices: rows of a tensor that is zero elsewhere."""

import numpy as np
import pytest

import retrograde as tf


def slices(dense_shape=True):
    return tf.IndexedSlices(
        tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
        tf.constant([2, 0, 2]),
        tf.constant([3, 2]) if dense_shape else None,
    )


def test_parts():
    s = slices()

    assert s.values.shape == [3, 2]
    assert s.indices.numpy().tolist() == [2, 0, 2]
    assert s.dense_shape.numpy().tolist() == [3, 2]
    assert s.shape == [3, 2]
    assert s.dtype is tf.float32
    assert s.device == s.values.device


def test_without_a_shape_the_number_of_rows_is_unknown():
    s = slices(dense_shape=False)

    assert s.dense_shape is None
    assert s.shape == tf.TensorShape([None, 2])
    with pytest.raises(ValueError, match="without dense_shape"):
        tf.convert_to_tensor(s)


def test_repeated_rows_add_up():
    whole = tf.convert_to_tensor(slices())

    assert isinstance(whole, tf.Tensor)
    assert whole.numpy().tolist() == [[3.0, 4.0], [0.0, 0.0], [6.0, 8.0]]


def test_operations_take_them_as_whole_tensors():
    assert float(tf.reduce_sum(slices())) == 21.0
    assert (tf.ones([3, 2]) + slices()).numpy()[0].tolist() == [4.0, 5.0]


def test_negation_keeps_them_sparse():
    negated = -slices()

    assert isinstance(negated, tf.IndexedSlices)
    assert tf.convert_to_tensor(negated).numpy()[2].tolist() == [-6.0, -8.0]
    with pytest.raises(TypeError):
        slices() * 2.0


@pytest.mark.parametrize("f", [tf.identity, tf.stop_gradient])
def test_functions_that_pass_values_on_keep_them_sparse(f):
    s = slices()
    with tf.GradientTape() as tape:
        tape.watch(s.values)
        y = f(s)

    assert isinstance(y, tf.IndexedSlices)
    assert y.indices.numpy().tolist() == [2, 0, 2]
    assert y.dense_shape.numpy().tolist() == [3, 2]
    g = tape.gradient(y.values, s.values)
    assert g is None if f is tf.stop_gradient else g.numpy().tolist() == [[1.0, 1.0]] * 3


def test_the_gradient_of_a_gather_from_the_last_axis_is_whole():
    table = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        y, z = tf.gather(table, [2, 2], axis=-1), tf.gather(table, [2, 2], axis=0)

    assert tape.gradient(y, table).numpy().tolist() == [0.0, 0.0, 2.0]
    assert isinstance(tape.gradient(z, table), tf.IndexedSlices)


def test_tapes_follow_the_conversion():
    values = tf.Variable([1.0, 2.0, 3.0])

    with tf.GradientTape() as tape:
        s = tf.IndexedSlices(values * values, tf.constant([1, 0, 1]), tf.constant([2]))
        y = tf.convert_to_tensor(s) * tf.constant([10.0, 100.0])

    assert tape.gradient(y, values).numpy().tolist() == [200.0, 40.0, 600.0]


def test_indices_outside_the_shape_are_refused():
    s = tf.IndexedSlices(tf.constant([1.0]), tf.constant([3]), tf.constant([3]))

    with pytest.raises(tf.errors.InvalidArgumentError, match=r"not in \[0, 3\)"):
        tf.convert_to_tensor(s)


def test_repr_is_that_of_the_parts():
    s = tf.IndexedSlices(tf.constant([1.0]), tf.constant([0]), tf.constant([3]))

    assert str(s) == (
        "IndexedSlices(indices=tf.Tensor([0], shape=(1,), dtype=int32), "
        "values=tf.Tensor([1.], shape=(1,), dtype=float32), "
        "dense_shape=tf.Tensor([3], shape=(1,), dtype=int32))"
    )


def test_variables_take_them():
    v = tf.Variable(np.zeros((3, 2), np.float32))

    v.scatter_add(slices())
    v.assign_sub(slices())

    assert not v.numpy().any()


READ = {
    "itself": lambda v: tf.gather(v, [1, 1]),
    "its identity": lambda v: tf.gather(tf.identity(v), [1, 1]),
    "its identity twice over": lambda v: tf.gather(tf.identity(tf.identity(v)), [1, 1]),
    "as a tensor": lambda v: tf.gather(tf.convert_to_tensor(v), [1, 1]),
    "what it held": lambda v: tf.gather(v.read_value(), [1, 1]),
}


@pytest.mark.parametrize("read", READ.values(), ids=READ)
def test_gradients_come_as_rows(read):
    v = tf.Variable(tf.ones([4, 2]))
    with tf.GradientTape() as tape:
        y = read(v)
    g = tape.gradient(y, v)

    assert isinstance(g, tf.IndexedSlices)
    assert g.indices.numpy().tolist() == [1, 1]
    assert g.values.numpy().tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert g.dense_shape.numpy().tolist() == [4, 2]


def test_rows_that_arrive_in_two_ways_are_all_there():
    v = tf.Variable(tf.ones([4, 2]))
    with tf.GradientTape(persistent=True) as tape:
        rows = tf.reduce_sum(tf.gather(v, [0]) * 2 + tf.gather(tf.identity(v), [3]) * 3)
        both = rows + tf.reduce_sum(v)

    g = tape.gradient(rows, v)
    assert isinstance(g, tf.IndexedSlices)
    assert tf.convert_to_tensor(g).numpy()[:, 0].tolist() == [2.0, 0.0, 0.0, 3.0]
    g = tape.gradient(both, v)
    assert isinstance(g, tf.Tensor)
    assert g.numpy()[:, 0].tolist() == [3.0, 1.0, 1.0, 4.0]


WHOLE = {
    "a sum": lambda v: tf.gather(v + 1.0, [1, 1]),
    "another shape": lambda v: tf.gather(tf.reshape(v, [2, 4]), [1]),
    "rows in another order": lambda v: tf.roll(v, 1, axis=0),
    "sorted": lambda v: tf.sort(v[:, 0]),
    "repeated": lambda v: tf.repeat(v, 2, axis=0),
    "largest": lambda v: tf.math.top_k(v[:, 0], 2).values,
    "what a function returned": lambda v: tf.gather(tf.function(lambda: tf.identity(v))(), [1, 1]),
    "mirrored": lambda v: tf.pad(v, [[1, 1], [0, 0]], "REFLECT"),
}


@pytest.mark.parametrize("f", WHOLE.values(), ids=WHOLE)
def test_gradients_are_whole_where_tensorflow_has_whole_ones(f):
    v = tf.Variable(tf.ones([4, 2]))
    with tf.GradientTape() as tape:
        y = f(v)

    assert isinstance(tape.gradient(y, v), tf.Tensor)


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "function"])
def test_rows_read_with_int32_and_with_int64_add_up(wrap):
    table = tf.Variable([[1.0], [2.0], [3.0]])

    @wrap
    def gradient(table):
        with tf.GradientTape() as tape:
            y = tf.gather(table, tf.constant([0, 1])) ** 2
            y += tf.gather(table, tf.constant([2, 1], tf.int64))
        return tape.gradient(y, table)

    for _ in range(2):
        found = gradient(table)
        assert isinstance(found, tf.IndexedSlices) and found.indices.dtype == tf.int64
        np.testing.assert_array_equal(tf.convert_to_tensor(found), [[2.0], [5.0], [1.0]])


def test_rows_read_with_int32_and_with_int64_have_second_derivatives():
    table = tf.Variable([[1.0], [2.0], [3.0]])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.gather(table, tf.constant([0, 1])) ** 3
            y += tf.gather(table, tf.constant([2, 1], tf.int64)) ** 3
        first = tf.convert_to_tensor(inner.gradient(y, table))
    np.testing.assert_array_equal(
        tf.convert_to_tensor(outer.gradient(first, table)), [[6.0], [24.0], [18.0]]
    )
