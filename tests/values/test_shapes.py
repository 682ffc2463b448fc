"""TensorShape, axis normalization and broadcasting."""

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import retrograde as tf
from retrograde.values import errors
from retrograde.values.shapes import broadcast, normalize_axes, normalize_axis

Shape = tf.TensorShape


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([1, 2], "(1, 2)"),
        ((1,), "(1,)"),
        ([], "()"),
        ([None, 2], "(None, 2)"),
        (None, "<unknown>"),
        (3, "(3,)"),
        (Shape([4]), "(4,)"),
        (np.array([1, 2]), "(1, 2)"),
        (tf.constant([1, 2]), "(1, 2)"),
        ([np.int64(1), tf.constant(2)], "(1, 2)"),
    ],
)
def test_values_that_are_shapes(value, text):
    assert str(Shape(value)) == text


def test_repr():
    assert repr(Shape([1, None])) == "TensorShape([1, None])"
    assert repr(Shape(None)) == "TensorShape(None)"


@pytest.mark.parametrize("wrong", [[-1], [1.5], "ab", ["a"], object()])
def test_invalid_shapes_raise(wrong):
    with pytest.raises((TypeError, ValueError)):
        Shape(wrong)


def test_a_shape_is_like_a_tuple():
    shape = Shape([2, None, 3])

    assert (shape.rank, shape.ndims, len(shape)) == (3, 3, 3)
    assert list(shape) == [2, None, 3]
    assert tuple(shape) == (2, None, 3)
    assert shape.as_list() == shape.dims == [2, None, 3]
    assert (shape[0], shape[1], shape[-1]) == (2, None, 3)
    assert shape[1:] == Shape([None, 3])
    assert isinstance(shape[:1], Shape)
    assert list(reversed(shape)) == [3, None, 2]
    assert 2 in shape
    assert 5 not in shape
    with pytest.raises(IndexError):
        shape[3]


def test_a_fully_defined_shape_works_with_numpy():
    assert np.zeros(Shape([2, 3])).shape == (2, 3)
    assert np.zeros(6).reshape(Shape([2, 3])).shape == (2, 3)
    assert math.prod(Shape([2, 3])) == 6


def test_a_shape_of_unknown_rank():
    shape = Shape(None)

    assert shape.rank is shape.ndims is shape.dims is shape[0] is None
    assert not shape
    assert shape[1:] == Shape(None)
    assert shape[:2] == Shape([None, None])
    assert shape[1:3] == Shape([None, None])
    assert shape[-1:] == Shape(None)
    for f in (len, list, Shape.as_list):
        with pytest.raises(ValueError, match="unknown"):
            f(shape)


def test_bool_is_whether_the_rank_is_known():
    assert Shape([])
    assert Shape([0])
    assert not Shape(None)


def test_equality_with_convertible_values():
    shape = Shape([1, 2])

    assert shape == [1, 2]
    assert shape == (1, 2)
    assert (1, 2) == shape  # noqa: SIM300
    assert shape == Shape((1, 2))
    assert shape != [1, 3]
    assert shape != [1]
    assert shape != "ab"
    assert shape != object()
    assert Shape([None]) == Shape([None])
    assert Shape(None) == Shape(None)
    assert Shape([1]) == 1


def test_hash_and_copies():
    shape = Shape([None, 2])

    assert hash(shape) == hash(Shape([None, 2]))
    assert pickle.loads(pickle.dumps(shape)) == shape
    assert copy.deepcopy(shape) == copy.copy(shape) == shape


def test_concatenation():
    one, two = Shape([1]), [2]

    assert one + two == Shape([1, 2])
    assert two + one == (2, 1)
    assert tuple(two) + one == (2, 1)
    assert Shape([1]).concatenate(2) == [1, 2]
    assert Shape([1]) + Shape(None) == Shape(None)
    with pytest.raises(TypeError):
        Shape([1]) * 2


def test_number_of_elements():
    assert Shape([2, 3]).num_elements() == 6
    assert Shape([]).num_elements() == 1
    assert Shape([2, None]).num_elements() is None
    assert Shape(None).num_elements() is None


@pytest.mark.parametrize(
    ("other", "compatible"),
    [
        ([2, 3], True),
        ((2, 5), True),
        ([3, 3], False),
        ([None, None], True),
        ([2], False),
        (None, True),
    ],
)
def test_compatibility(other, compatible):
    shape = Shape([2, None])

    assert shape.is_compatible_with(other) is compatible
    assert Shape(other).is_compatible_with(shape) is compatible
    if compatible:
        shape.assert_is_compatible_with(other)
    else:
        with pytest.raises(ValueError, match="are incompatible"):
            shape.assert_is_compatible_with(other)


def test_merging():
    assert Shape([2, None]).merge_with([None, 3]) == [2, 3]
    assert Shape(None).merge_with([2]) == [2]
    assert Shape([2]).merge_with(None) == [2]
    with pytest.raises(ValueError, match=r"Shapes \(2, None\) and \(3, 3\) are incompatible"):
        Shape([2, None]).merge_with([3, 3])


def test_most_specific_compatible_shape():
    shape = Shape([2, 3])

    assert shape.most_specific_compatible_shape([2, 4]) == Shape([2, None])
    assert shape.most_specific_compatible_shape([2, 3]) == shape
    assert shape.most_specific_compatible_shape([2]) == Shape(None)
    assert Shape(None).most_specific_compatible_shape(shape) == Shape(None)


def test_rank_checks():
    shape = Shape([2, 3])

    assert shape.with_rank(2) == shape.with_rank_at_least(2) == shape.with_rank_at_most(2) == shape
    assert Shape(None).with_rank(2) == Shape([None, None])
    for check in (
        lambda: shape.with_rank(3),
        lambda: shape.with_rank_at_least(3),
        lambda: shape.with_rank_at_most(1),
        lambda: shape.assert_has_rank(1),
    ):
        with pytest.raises(ValueError, match=r"Shape \(2, 3\) must have rank"):
            check()
    with pytest.raises(ValueError, match="must have the same rank"):
        shape.assert_same_rank([2])
    shape.assert_same_rank([5, 5])
    shape.assert_has_rank(2)


def test_is_fully_defined():
    assert Shape([2]).is_fully_defined()
    assert not Shape([None]).is_fully_defined()
    assert not Shape(None).is_fully_defined()
    Shape([2]).assert_is_fully_defined()
    with pytest.raises(ValueError, match=r"Shape \(2, None\) is not fully defined"):
        Shape([2, None]).assert_is_fully_defined()


# Axes


def test_axis_normalization():
    assert normalize_axis(-1, 3, "f") == 2
    assert normalize_axis(np.int64(1), 3, "f") == 1
    assert normalize_axis(tf.constant(1), 3, "f") == 1
    assert normalize_axes(None, 3, "f") == (0, 1, 2)
    assert normalize_axes([-1, 0], 3, "f") == (0, 2)
    assert normalize_axes(tf.constant([1, 0]), 3, "f") == (0, 1)
    assert normalize_axes(np.array(1), 3, "f") == (1,)
    assert normalize_axes([], 3, "f") == ()


@pytest.mark.parametrize("axis", [3, -4])
def test_axes_out_of_range(axis):
    with pytest.raises(errors.InvalidArgumentError, match=f"f: axis {axis} is out of range"):
        normalize_axes(axis, 3, "f")


def test_repeated_axes():
    with pytest.raises(errors.InvalidArgumentError, match="an axis is repeated"):
        normalize_axes([1, -2], 3, "f")


# Broadcasting


@settings(deadline=None)
@given(hnp.mutually_broadcastable_shapes(num_shapes=3, min_side=0))
def test_broadcast_agrees_with_numpy(shapes):
    assert broadcast(*shapes.input_shapes) == shapes.result_shape


@settings(deadline=None)
@given(st.lists(hnp.array_shapes(min_dims=0, min_side=0, max_side=3), max_size=3))
def test_broadcast_of_any_shapes(shapes):
    try:
        expected = np.broadcast_shapes(*shapes)
    except ValueError:
        expected = None

    assert broadcast(*shapes) == expected
