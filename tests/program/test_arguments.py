"""Arguments of functions and concrete functions. TensorFlow accepts the same ones."""

import copy
import pickle

import numpy as np
import pytest

import retrograde as tf


@tf.function(input_signature=[tf.TensorSpec([]), tf.TensorSpec([])])
def scale(x, y=2.0):
    return x * y


def test_an_input_signature_uses_defaults():
    assert scale(3.0).numpy() == 6.0
    assert scale(3.0, 4.0).numpy() == 12.0
    with pytest.raises(TypeError, match=r"input_signature of 2 arguments\. Received: 0"):
        scale()


def test_defaults_can_be_tensors_and_arrays():
    two, array = tf.constant(2.0), np.float32([1.0, 2.0])
    f = tf.function(lambda x, y=two, z=array: x * y + z)

    assert f(3.0).numpy().tolist() == [7.0, 8.0]


def test_functions_can_be_copied():
    f = tf.function(lambda x: x + 1.0)
    f(tf.constant(1.0))
    g = copy.deepcopy(f)

    assert g is not f
    assert g(tf.constant(2.0)).numpy() == 3.0
    assert len(g.recordings()) == 1


def add_one(x):
    return x + 1.0


def test_functions_can_be_pickled():
    f = pickle.loads(pickle.dumps(tf.function(add_one)))

    assert f(tf.constant(1.0)).numpy() == 2.0


def test_concrete_functions_accept_numbers_and_arrays():
    f = tf.function(lambda x: x * 2.0)

    assert f.get_concrete_function(tf.TensorSpec([]))(3.0).numpy() == 6.0
    concrete = f.get_concrete_function(tf.TensorSpec([None]))
    assert concrete(np.ones(2, np.float32)).numpy().tolist() == [2.0, 2.0]
    assert concrete([1.0, 3.0]).numpy().tolist() == [2.0, 6.0]
    with pytest.raises(TypeError, match="expected TensorSpec"):
        concrete("a")


def test_concrete_functions_accept_nested_arguments():
    f = tf.function(lambda x: x["a"] + x["b"])
    concrete = f.get_concrete_function({"a": tf.TensorSpec([], tf.int32), "b": 3})

    assert concrete({"a": tf.constant(1), "b": 3}).numpy() == 4
    assert concrete(tf.constant(1)).numpy() == 4


def test_concrete_functions_accept_composite_specs():
    dense = tf.function(lambda x: tf.sparse.to_dense(x))
    concrete = dense.get_concrete_function(tf.SparseTensorSpec([None, 3], tf.float32))
    assert concrete(tf.sparse.from_dense([[1.0, 0, 0]])).numpy().tolist() == [[1.0, 0.0, 0.0]]

    total = tf.function(lambda x: tf.reduce_sum(x, axis=1))
    concrete = total.get_concrete_function(tf.RaggedTensorSpec([None, None], tf.float32))
    assert concrete(tf.ragged.constant([[1.0, 2.0], [3.0]])).numpy().tolist() == [3.0, 3.0]
    words = tf.function(lambda x: x.flat_values)
    concrete = words.get_concrete_function(tf.RaggedTensorSpec([None, None], tf.string))
    assert concrete(tf.ragged.constant([["a"], []])).numpy().tolist() == [b"a"]


def test_equal_specs_have_one_concrete_function():
    f = tf.function(lambda x: x)

    assert f.get_concrete_function(tf.TensorSpec([2])) is f.get_concrete_function(
        tf.TensorSpec([2])
    )
    assert f.get_concrete_function(tf.TensorSpec([2])) is f.get_concrete_function(tf.ones([2]))
    assert f.get_concrete_function(tf.TensorSpec([3])) is not f.get_concrete_function(tf.ones([2]))


def test_the_body_of_a_loop_can_return_a_bare_tensor_in_a_function():
    loop = lambda: tf.while_loop(lambda i: i < 4, lambda i: i + 1, [tf.constant(0)])  # noqa: E731

    assert tf.function(loop)()[0].numpy() == 4
    with pytest.raises(TypeError, match="'body' must return a list or a tuple"):
        loop()
