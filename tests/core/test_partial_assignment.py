"""Tests updates of parts of a variable: slice assignment and scatter methods."""

import pickle

import numpy as np
import pytest

import retrograde as tf
from retrograde.values import errors

# Slice assignment


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        (slice(1, None), [8.0, 9.0], [1.0, 8.0, 9.0]),
        (1, 8.0, [1.0, 8.0, 3.0]),
        (slice(1, None), 8.0, [1.0, 8.0, 8.0]),
        (slice(None, None, -1), [7.0, 8.0, 9.0], [9.0, 8.0, 7.0]),
        ((None, slice(0, 2)), [[8.0, 9.0]], [8.0, 9.0, 3.0]),
        (slice(1, 1), 8.0, [1.0, 2.0, 3.0]),
        (slice(-4, None, -1), 8.0, [1.0, 2.0, 3.0]),
        (..., np.array([7, 8, 9]), [7.0, 8.0, 9.0]),
        (tf.constant(0), tf.constant(5.0), [5.0, 2.0, 3.0]),
    ],
)
def test_slice_assignment(key, value, expected):
    v = tf.Variable([1.0, 2.0, 3.0])
    before = v.value()

    assert v[key].assign(value) is v

    assert v.numpy().tolist() == expected
    assert before.numpy().tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("key", [..., (), None, (None, ...)])
def test_slice_assignment_to_a_scalar_variable(key):
    v = tf.Variable(1.0)
    before = v.value()

    assert v[key].assign(tf.constant(5.0)) is v

    assert (float(v), v.shape, float(v.assign_add(1.0))) == (5.0, (), 6.0)
    assert float(before) == 1.0


def test_slice_assignment_to_columns():
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])

    v[:, 0].assign([8.0, 9.0])
    v[..., tf.newaxis, 1].assign([[6.0], [7.0]])

    assert v.numpy().tolist() == [[8.0, 6.0], [9.0, 7.0]]


def test_assigning_to_a_slice_does_not_change_the_slice():
    v = tf.Variable([1.0, 2.0, 3.0])
    part = v[1:]

    part.assign([8.0, 9.0])

    assert isinstance(part, tf.Tensor)
    assert part.numpy().tolist() == [2.0, 3.0]
    assert (part + 1.0).numpy().tolist() == [3.0, 4.0]
    assert repr(part) == repr(tf.constant([2.0, 3.0]))
    assert pickle.loads(pickle.dumps(part)).numpy().tolist() == [2.0, 3.0]


def test_slices_are_differentiable():
    v = tf.Variable([1.0, 2.0, 3.0])

    with tf.GradientTape() as tape:
        y = v[1:] * v[:2]

    assert tape.gradient(y, v).numpy().tolist() == [2.0, 4.0, 2.0]


def test_invalid_slice_assignments_raise():
    v = tf.Variable([1.0, 2.0, 3.0])

    with pytest.raises(errors.InvalidArgumentError, match="cannot broadcast"):
        v[1:].assign([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="requested dtype"):
        v[1:].assign(tf.constant([1, 2]))
    with pytest.raises(AttributeError):
        v[v > 1.5].assign([1.0, 2.0])
    with pytest.raises(TypeError, match="item assignment"):
        v[0] = 1.0

    assert v.numpy().tolist() == [1.0, 2.0, 3.0]


# Scatter methods


def slices(values, indices):
    return tf.IndexedSlices(tf.constant(values), tf.constant(indices))


SCATTERS = [
    ("scatter_add", [12.0, 2.0, 103.0]),
    ("scatter_sub", [-10.0, 2.0, -97.0]),
    ("scatter_mul", [10.0, 2.0, 300.0]),
    ("scatter_div", [0.1, 2.0, 0.03]),
    ("scatter_min", [1.0, 2.0, 3.0]),
    ("scatter_max", [10.0, 2.0, 100.0]),
    ("scatter_update", [10.0, 2.0, 100.0]),
]


@pytest.mark.parametrize(("method", "expected"), SCATTERS, ids=[name for name, _ in SCATTERS])
def test_scatter_with_repeated_indices(method, expected):
    v = tf.Variable([1.0, 2.0, 3.0])
    before = v.value()

    assert getattr(v, method)(slices([1.0, 10.0, 100.0], [0, 0, 2])) is v

    np.testing.assert_allclose(v.numpy(), expected, rtol=1e-6)
    assert before.numpy().tolist() == [1.0, 2.0, 3.0]


def test_scatter_rows():
    v = tf.Variable(tf.zeros([3, 2]))

    v.scatter_add(slices([[1.0, 2.0], [3.0, 4.0]], [2, 0]))
    v.scatter_add(slices([[[1.0, 1.0]]], [[2]]))
    v.scatter_update(slices([7.0, 8.0], 1))
    v.scatter_update(tf.IndexedSlices(5.0, [0]))

    assert v.numpy().tolist() == [[5.0, 5.0], [7.0, 8.0], [2.0, 3.0]]


def test_scatter_div_of_integers_truncates():
    v = tf.Variable([7, -7, 5])

    v.scatter_div(slices([2, 2, -1], [0, 1, 1]))

    assert v.numpy().tolist() == [3, 3, 5]


def test_batch_scatter_update():
    v = tf.Variable(tf.zeros([2, 3]))

    v.batch_scatter_update(slices([[8.0, 7.0], [9.0, 6.0]], [[1, 0], [0, 2]]))
    assert v.numpy().tolist() == [[7.0, 8.0, 0.0], [9.0, 0.0, 6.0]]

    deep = tf.Variable(tf.zeros([2, 2, 3]))
    deep.batch_scatter_update(slices([[[8.0, 8.0, 8.0]], [[9.0, 9.0, 9.0]]], [[1], [0]]))
    assert deep.numpy()[:, :, 0].tolist() == [[0.0, 8.0], [9.0, 0.0]]

    flat = tf.Variable([1.0, 2.0, 3.0])
    assert flat.batch_scatter_update(slices([8.0], [1])) is flat
    assert flat.numpy().tolist() == [1.0, 8.0, 3.0]


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("scatter_nd_add", [12.0, 2.0, 103.0]),
        ("scatter_nd_sub", [-10.0, 2.0, -97.0]),
        ("scatter_nd_update", [10.0, 2.0, 100.0]),
        ("scatter_nd_max", [10.0, 2.0, 100.0]),
        ("scatter_nd_min", [1.0, 2.0, 3.0]),
    ],
)
def test_scatter_nd_with_repeated_indices(method, expected):
    v = tf.Variable([1.0, 2.0, 3.0])

    assert getattr(v, method)([[0], [0], [2]], [1.0, 10.0, 100.0]) is v

    assert v.numpy().tolist() == expected


def test_scatter_nd_of_elements_and_rows():
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])

    v.scatter_nd_add([[0, 1], [1, 0]], [1.0, 10.0])
    v.scatter_nd_add([[1]], [[100.0, 100.0]])

    assert v.numpy().tolist() == [[1.0, 3.0], [113.0, 104.0]]


@pytest.mark.parametrize(
    ("update", "error", "message"),
    [
        (lambda v: v.scatter_add(slices([[1.0, 1.0]], [2])), errors.InvalidArgumentError, "= 2 is"),
        (lambda v: v.scatter_add(slices([[1.0, 1.0]], [-1])), errors.InvalidArgumentError, "= -1"),
        (
            lambda v: v.scatter_update(slices([[1.0, 1.0], [1.0, 1.0]], [0, 5])),
            errors.InvalidArgumentError,
            r"not in \[0, 2\)",
        ),
        (lambda v: v.scatter_add(slices([1.0], [1])), errors.InvalidArgumentError, "do not fit"),
        (
            lambda v: v.scatter_add(slices([[1.0, 1.0]], [1.0])),
            errors.InvalidArgumentError,
            "integ",
        ),
        (lambda v: v.scatter_add(slices([[1, 1]], [1])), ValueError, "requested dtype"),
        (lambda v: v.scatter_add(tf.constant([1.0])), TypeError, "must be a `tf.IndexedSlices`"),
        (
            lambda v: v.batch_scatter_update(slices([[8.0], [9.0]], [[2], [0]])),
            errors.InvalidArgumentError,
            r"not in \[0, 2\)",
        ),
        (
            lambda v: v.scatter_nd_add([[0, 2]], [1.0]),
            errors.InvalidArgumentError,
            r"not in \[0, 2\)",
        ),
        (lambda v: v.scatter_nd_add([[1]], [1.0]), errors.InvalidArgumentError, "do not fit"),
        (
            lambda v: v.scatter_nd_add([[0, 0, 0]], [1.0]),
            errors.InvalidArgumentError,
            "not valid for",
        ),
    ],
)
def test_a_failed_scatter_does_not_change_the_variable(update, error, message):
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])

    with pytest.raises(error, match=message):
        update(v)

    assert v.numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert v.assign_add([[1.0, 1.0], [1.0, 1.0]]).numpy().tolist() == [[2.0, 3.0], [4.0, 5.0]]


@pytest.mark.parametrize("dtype", [tf.int32, tf.float32])
def test_scatter_div_by_zero_raises(dtype):
    v = tf.Variable([1, 2, 3], dtype=dtype)

    with pytest.raises(errors.InvalidArgumentError, match="contain 0"):
        v.scatter_div(slices(tf.constant([2, 0], dtype), [0, 2]))

    assert v.numpy().tolist() == [1, 2, 3]


@pytest.mark.parametrize("method", ["scatter_min", "scatter_max"])
def test_scatter_min_and_max_of_complex_numbers_raise(method):
    v = tf.Variable([1j, 2j])
    message = rf"^{method}: expected a real dtype\. Received: complex128\.$"

    with pytest.raises(errors.InvalidArgumentError, match=message):
        getattr(v, method)(slices(tf.constant([3j]), [0]))

    assert v.numpy().tolist() == [1j, 2j]


def test_scatter_to_a_scalar_variable_raises():
    with pytest.raises(errors.InvalidArgumentError, match="is a scalar, so it has no rows"):
        tf.Variable(1.0).scatter_add(slices([2.0], [0]))
