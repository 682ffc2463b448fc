"""Tests indexing with brackets: NumPy's results for the keys that TensorFlow supports."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import retrograde as tf
from retrograde.values import errors

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)

KEYS = {
    "0": 0,
    "-1": -1,
    "1, 2, 3": (1, 2, 3),
    ":": slice(None),
    "1:": slice(1, None),
    ":-1": slice(None, -1),
    "::2": slice(None, None, 2),
    "::-1": slice(None, None, -1),
    "2:0:-1": slice(2, 0, -1),
    "-4::-1": slice(-4, None, -1),
    "-4:-4:-1": slice(-4, -4, -1),
    "..., -6::-2": (..., slice(-6, None, -2)),
    "-100:2": slice(-100, 2),
    "100:": slice(100, None),
    "2:1": slice(2, 1),
    "...": ...,
    "..., 0": (..., 0),
    "0, ...": (0, ...),
    "0, ..., 1": (0, ..., 1),
    "..., 1:3, 0": (..., slice(1, 3), 0),
    "0, 1, 2, ...": (0, 1, 2, ...),
    "None": None,
    "None, 0": (None, 0),
    ":, None, 1": (slice(None), None, 1),
    "..., None": (..., None),
    "None, ..., None": (None, ..., None),
    "0, None, 1:, None": (0, None, slice(1, None), None),
    "()": (),
    ":, ::-2, 1:4:2": (slice(None), slice(None, None, -2), slice(1, 4, 2)),
    "np.int64(1)": np.int64(1),
    "np.array(1)": np.array(1),
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_indexing_matches_numpy(key):
    for x in (tf.constant(X), tf.Variable(X)):
        y = x[key]

        assert isinstance(y, tf.Tensor)
        assert y.shape == X[key].shape
        np.testing.assert_array_equal(y.numpy(), X[key])


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_gradients_of_indexing(key):
    x = tf.Variable(X)
    weights = np.arange(X[key].size, dtype=np.float32).reshape(X[key].shape) + 1.0
    expected = np.zeros_like(X)
    expected[key] = weights

    with tf.GradientTape() as tape:
        y = x[key]

    np.testing.assert_array_equal(tape.gradient(y, x, weights).numpy(), expected)


@st.composite
def arrays_and_keys(draw):
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, max_side=4))
    return shape, draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))


@settings(deadline=None)
@given(arrays_and_keys())
def test_random_basic_indices_match_numpy(array_and_key):
    shape, key = array_and_key
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape)

    actual = tf.constant(array)[key]

    assert actual.shape == array[key].shape
    np.testing.assert_array_equal(actual.numpy(), array[key])


@pytest.mark.parametrize("dtype", [tf.int16, tf.int32, tf.int64])
def test_tensors_and_variables_can_be_indices(dtype):
    x = tf.constant(X)

    for wrap in (lambda v: tf.constant(v, dtype), lambda v: tf.Variable(v, dtype=dtype)):
        np.testing.assert_array_equal(x[wrap(1)].numpy(), X[1])
        np.testing.assert_array_equal(x[wrap(0), wrap(2)].numpy(), X[0, 2])
        np.testing.assert_array_equal(x[wrap(1) :, : wrap(-1)].numpy(), X[1:, :-1])
        np.testing.assert_array_equal(x[:: wrap(-1)].numpy(), X[::-1])


@pytest.mark.parametrize(
    "mask",
    [
        X[:, 0, 0] > 10,
        X[:, :, 0] % 2 == 0,
        X > 30,
        np.array([False] * 3),
    ],
    ids=["rows", "two axes", "elements", "empty"],
)
def test_boolean_masks_select_elements(mask):
    x = tf.Variable(X)

    for key in (mask, tf.constant(mask)):
        with tf.GradientTape() as tape:
            y = x[key]
            z = y * y

        np.testing.assert_array_equal(y.numpy(), X[mask])
        expected = np.where(np.broadcast_to(mask.T, X.T.shape).T, 2 * X, 0.0)
        gradient = tf.convert_to_tensor(tape.gradient(z, x))
        np.testing.assert_array_equal(gradient.numpy(), expected)


def test_a_list_is_a_tuple_of_indices():
    assert float(tf.constant([[1.0, 2.0], [3.0, 4.0]])[[1, 0]]) == 3.0


@pytest.mark.parametrize(
    ("key", "error", "message"),
    [
        (3, errors.InvalidArgumentError, "slice index 3 of dimension 0 out of bounds"),
        (-4, errors.InvalidArgumentError, "out of bounds"),
        ((0, 0, 0, 0), errors.InvalidArgumentError, "Index out of range using input dim 3"),
        ((..., ...), errors.InvalidArgumentError, "Multiple ellipses"),
        (slice(None, None, 0), errors.InvalidArgumentError, r"strides\[0\] must be non-zero"),
        (1.0, TypeError, "valid indices, got 1.0"),
        (slice(0.5, None), TypeError, "valid indices, got 0.5"),
        ("a", TypeError, "valid indices, got 'a'"),
        (np.array([0, 1]), TypeError, "valid indices"),
        (tf.constant([0, 1]), TypeError, "valid indices"),
        (tf.constant(1.0), TypeError, "valid indices"),
        ((slice(None), tf.constant([True] * 4)), TypeError, "valid indices"),
        (tf.constant([True, False]), ValueError, "mask"),
        (tf.constant(True), ValueError, "mask"),
    ],
)
def test_invalid_keys_raise(key, error, message):
    with pytest.raises(error, match=message):
        tf.constant(X)[key]


def test_indexing_a_scalar():
    assert float(tf.constant(1.0)[...]) == 1.0
    assert tf.constant(1.0)[None].shape == (1,)
    with pytest.raises(errors.InvalidArgumentError):
        tf.constant(1.0)[0]


def test_indexing_a_string_tensor():
    assert tf.constant(["a", "b"])[1].numpy() == b"b"
