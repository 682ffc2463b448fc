"""Operations that accept ragged and sparse tensors. TensorFlow computed the expected values."""

import numpy as np
import pytest

import retrograde as tf

ROWS = tf.ragged.constant([[1.0, 2.0], [3.0], [4.0, 5.0, 6.0]])


def test_standard_deviation_of_equal_values_is_zero():
    x = tf.ragged.constant([[0.214441] * 7, [0.1]])

    assert tf.math.reduce_std(x, axis=1).numpy().tolist() == [0.0, 0.0]
    assert tf.math.reduce_std(tf.ragged.constant([[0.214441]] * 7), axis=0).numpy().tolist() == [
        0.0
    ]
    assert (tf.math.reduce_variance(x, axis=1).numpy() >= 0).all()


def test_unsorted_segments():
    ids = [0, 2, 0]

    mean = tf.math.unsorted_segment_mean(ROWS, ids, 3)
    assert mean.to_list() == [[2.5, 3.5, 6.0], [], [3.0]]
    sqrt_n = tf.math.unsorted_segment_sqrt_n(ROWS, ids, 3)
    np.testing.assert_allclose(sqrt_n.flat_values, [3.535534, 4.9497476, 6.0, 3.0], rtol=1e-6)


def test_reshape_uses_the_flat_values():
    x = tf.ragged.constant([[1, 2], [3]])

    assert tf.reshape(x, [-1]).numpy().tolist() == [1, 2, 3]
    assert tf.reshape(x, [3, 1]).numpy().tolist() == [[1], [2], [3]]


def test_split_along_a_uniform_axis():
    x = tf.ragged.constant([[[1, 2, 3]], [[3, 4, 5]]], ragged_rank=1)

    parts = [part.to_list() for part in tf.split(x, [1, 2], axis=-1)]
    assert parts == [[[[1]], [[3]]], [[[2, 3]], [[4, 5]]]]
    with pytest.raises(ValueError, match="only along uniform axes"):
        tf.split(x, 2, axis=1)


@pytest.mark.parametrize("axis", [0, 1])
def test_concat_of_one_tensor_returns_it(axis):
    assert tf.concat(ROWS, axis=axis) is ROWS


def test_stack_dynamic_partitions_along_several_axes():
    stack = tf.ragged.stack_dynamic_partitions
    words = [["a", "b"], ["c", "d"]]

    assert stack(words, [[3, 0], [2, 2]], 4).to_list() == [[b"b"], [], [b"c", b"d"], [b"a"]]
    assert stack(words, [1, 0], 2).to_list() == [[[b"c", b"d"]], [[b"a", b"b"]]]
    ragged = stack(tf.ragged.constant([["a"], ["b", "c"]]), tf.ragged.constant([[3], [0, 3]]), 4)
    assert ragged.to_list() == [[b"b"], [], [], [b"a", b"c"]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="shape of data to start"):
        stack(words, [[0]], 1)


def test_resize_accepts_images_of_different_sizes():
    images = tf.ragged.stack([tf.ones([2, 3, 1]), 2 * tf.ones([4, 5, 1])])

    resized = tf.image.resize(images, [2, 2])
    assert resized.shape == (2, 2, 2, 1)
    assert resized[1].numpy().ravel().tolist() == [2.0] * 4


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "function"])
def test_custom_gradients_of_ragged_tensors(wrap):
    @tf.custom_gradient
    def square(x):
        return x * x, lambda dy: dy * x * 2.0

    x = tf.ragged.constant([[1.0, 2.0], [3.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = wrap(square)(x)

    assert y.to_list() == [[1.0, 4.0], [9.0]]
    assert tape.gradient(y, x).to_list() == [[2.0, 4.0], [6.0]]


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "function"])
def test_python_functions_get_ragged_tensors(wrap):
    x = tf.ragged.constant([[1, 2, 3], [4]])
    f = wrap(lambda x: tf.py_function(lambda r: tf.reduce_sum(r, axis=1), [x], tf.int32))

    assert f(x).numpy().tolist() == [6, 4]
    assert f(x + 1).numpy().tolist() == [9, 5]


def test_map_fn_over_the_rows_of_a_sparse_tensor():
    x = tf.sparse.from_dense([[1, 2], [3, 0]])

    sums = tf.map_fn(tf.sparse.reduce_sum, x, fn_output_signature=tf.int32)
    assert sums.numpy().tolist() == [3, 3]
    same = tf.map_fn(lambda row: row, x)
    assert tf.sparse.to_dense(same).numpy().tolist() == [[1, 2], [3, 0]]
