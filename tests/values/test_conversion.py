"""Conversion of Python and NumPy values: dtypes, shapes, copies and errors."""

import array
import collections
import enum
import re

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import retrograde as tf
from retrograde.values.conversion import as_array, tensor_or_variable

Point = collections.namedtuple("Point", "x y")


def brief(value):
    """Returns the id of a case, which is the same in every process."""
    return re.sub(r" at 0x\w+", "", repr(value))[:40]


class Celsius(float):
    """A subclass of float."""


class Level(enum.IntEnum):
    LOW = 3


class Pair:
    """An object with `__array__`."""

    def __array__(self, dtype=None, copy=None):
        return np.array([1.0, 2.0], dtype)


# The dtype and the values of constants in TensorFlow 2.21

CONSTANTS = [
    (1, tf.int32, 1),
    (1.5, tf.float32, 1.5),
    (True, tf.bool, True),
    (1j, tf.complex128, 1j),
    ("é", tf.string, "é".encode()),
    (b"\xff", tf.string, b"\xff"),
    (2**31 - 1, tf.int32, 2**31 - 1),
    (2**31, tf.int64, 2**31),
    (-(2**31) - 1, tf.int64, -(2**31) - 1),
    ([2**31, 1], tf.int64, [2**31, 1]),
    (float("inf"), tf.float32, float("inf")),
    ([float("-inf"), 1], tf.float32, [float("-inf"), 1.0]),
    ([1, 2.5], tf.float32, [1.0, 2.5]),
    ([2.5, 1], tf.float32, [2.5, 1.0]),
    ([1, True], tf.int32, [1, 1]),
    ([1.0, True], tf.float32, [1.0, 1.0]),
    ([1j, 1.0], tf.complex128, [1j, 1.0]),
    (["a", b"b"], tf.string, [b"a", b"b"]),
    ([], tf.float32, []),
    ([[], []], tf.float32, [[], []]),
    (range(3), tf.int32, [0, 1, 2]),
    ([range(2), (3, 4)], tf.int32, [[0, 1], [3, 4]]),
    (((1, 2), [3, 4]), tf.int32, [[1, 2], [3, 4]]),
    ([[[1]], [[2]]], tf.int32, [[[1]], [[2]]]),
    (Point(1.0, 2.0), tf.float32, [1.0, 2.0]),
    (collections.deque([1, 2]), tf.int32, [1, 2]),
    (array.array("f", [1.0, 2.0]), tf.float32, [1.0, 2.0]),
    (bytearray(b"ab"), tf.int32, [97, 98]),
    (Celsius(1.5), tf.float32, 1.5),
    ([Celsius(1.5), 2], tf.float32, [1.5, 2.0]),
    (Level.LOW, tf.int32, 3),
    ([Level.LOW, 2**40], tf.int64, [3, 2**40]),
    # NumPy values keep their dtype,
    (np.float64(1.5), tf.float64, 1.5),
    (np.int64(1), tf.int64, 1),
    (np.uint64(2**63), tf.uint64, 2**63),
    (np.bool_(True), tf.bool, True),
    (np.float16(1.5), tf.float16, 1.5),
    (ml_dtypes.bfloat16(1.5), tf.bfloat16, 1.5),
    (np.array([1, 2]), tf.int64, [1, 2]),
    (np.array([1.0, 2.0], ">f4"), tf.float32, [1.0, 2.0]),
    (np.array([[1.0, 2.0], [3.0, 4.0]]).T, tf.float64, [[1.0, 3.0], [2.0, 4.0]]),
    (np.arange(6.0)[::-2], tf.float64, [5.0, 3.0, 1.0]),
    (np.str_("a"), tf.string, b"a"),
    (np.array(["a", "bc"]), tf.string, [b"a", b"bc"]),
    (np.array([b"a", b"bc"]), tf.string, [b"a", b"bc"]),
    (np.array(["a", "bc"], object), tf.string, [b"a", b"bc"]),
    (Pair(), tf.float64, [1.0, 2.0]),
    # but in lists they are treated like Python numbers: only the first float determines a dtype.
    ([np.int64(1), 2], tf.int32, [1, 2]),
    ([np.uint8(200)], tf.int32, [200]),
    ([np.int64(2**40)], tf.int64, [2**40]),
    ([np.float64(1.5), 2], tf.float64, [1.5, 2.0]),
    ([1, np.float64(1.5)], tf.float32, [1.0, 1.5]),
    ([1.0, np.float64(1.5)], tf.float32, [1.0, 1.5]),
    ([np.float32(1.5), np.float64(2.0)], tf.float32, [1.5, 2.0]),
    ([np.float64(2.0), np.float32(1.5)], tf.float64, [2.0, 1.5]),
    ([np.float16(1.0)], tf.float16, [1.0]),
    ([np.int32(1), np.float32(2.5)], tf.float32, [1.0, 2.5]),
    ([np.int64(1), 2.5], tf.float32, [1.0, 2.5]),
    ([np.bool_(True), False], tf.bool, [True, False]),
    ([np.complex64(1j)], tf.complex128, [1j]),
    ([np.array([1, 2]), np.array([3, 4])], tf.int32, [[1, 2], [3, 4]]),
    ([np.array([1]), np.array([1.5])], tf.float32, [[1.0], [1.5]]),
    ([np.array([1.5]), np.array([1])], tf.float64, [[1.5], [1.0]]),
    ([np.array([1.0, 2.0]), [3, 4]], tf.float64, [[1.0, 2.0], [3.0, 4.0]]),
    ([[3, 4], np.array([1.0, 2.0])], tf.float32, [[3.0, 4.0], [1.0, 2.0]]),
    ([np.array(1.5), 1.0], tf.float64, [1.5, 1.0]),
    ([np.str_("a"), "b"], tf.string, [b"a", b"b"]),
    ([np.array(["a"])], tf.string, [[b"a"]]),
]


@pytest.mark.parametrize(("value", "dtype", "expected"), CONSTANTS, ids=brief)
def test_constants(value, dtype, expected):
    for make in (tf.constant, tf.convert_to_tensor):
        x = make(value)

        assert x.dtype is dtype
        assert x.shape == np.shape(expected)
        assert x.numpy().tolist() == expected if x.ndim else x.numpy() == expected


WITH_DTYPE = [
    (1, tf.float32, 1.0),
    (1.5, tf.complex64, 1.5),
    (1, tf.complex64, 1.0),
    (True, tf.float32, 1.0),
    ([True, False], tf.int32, [1, 0]),
    (300, tf.uint8, 44),
    ([300], tf.uint8, [44]),
    (-1, tf.uint8, 255),
    (-1, tf.uint64, 2**64 - 1),
    (2**31, tf.int32, -(2**31)),
    (2**63, tf.uint64, 2**63),
    ([2**63, 1], tf.uint64, [2**63, 1]),
    (1e40, tf.float64, 1e40),
    (1e40, tf.float32, float("inf")),
    (0.1, tf.float64, 0.1),
    ([0.1], tf.float64, [0.1]),
    (2**70, tf.float64, 2.0**70),
    ([1, 2], tf.bfloat16, [1.0, 2.0]),
    ([], tf.int32, []),
    (np.array([1.5, 2.0]), tf.int32, [1, 2]),
    (np.array([1, 2]), tf.float32, [1.0, 2.0]),
    (np.array([300]), tf.uint8, [44]),
    (np.array([True]), tf.float32, [1.0]),
    (np.float64(1e40), tf.float32, float("inf")),
    ([np.int64(1), 2], tf.float32, [1.0, 2.0]),
    ([np.array([0.1]), [0.1]], tf.float64, [[0.1], [0.1]]),
    (Pair(), tf.float32, [1.0, 2.0]),
    ("a", tf.string, b"a"),
]


@pytest.mark.parametrize(("value", "dtype", "expected"), WITH_DTYPE, ids=brief)
def test_constants_with_a_dtype(value, dtype, expected):
    x = tf.convert_to_tensor(value, dtype)

    assert x.dtype is dtype
    assert x.numpy().tolist() == expected if x.ndim else x.numpy() == expected


def test_ways_to_specify_a_dtype():
    for dtype in (tf.float64, "float64", np.float64, np.dtype("float64")):
        assert tf.constant(1, dtype).dtype is tf.float64
    assert tf.constant(1, float).dtype is tf.float32


# Errors

INVALID = [
    (2**63, None, ValueError, "out of range for int64"),
    ([2**63], None, ValueError, "out of range for int64"),
    (2**64, tf.uint64, ValueError, "out of range for uint64"),
    (10**400, tf.float32, ValueError, "out of range for float32"),
    (1e40, None, ValueError, "1e\\+40 is out of range for float32"),
    ([1.0, 1e40], None, ValueError, "1e\\+40 is out of range for float32"),
    ([float("nan"), 1e40], None, ValueError, "1e\\+40 is out of range for float32"),
    (1.5, tf.int32, TypeError, "Cannot convert 1.5 to a tensor of dtype int32"),
    ([1, 1.5], tf.int32, TypeError, "Cannot convert"),
    ([np.float64(1.5)], tf.int32, TypeError, "Cannot convert"),
    ([np.array([1.5])], tf.int32, TypeError, "Cannot convert"),
    (1, tf.bool, TypeError, "Cannot convert 1 to a tensor of dtype bool"),
    (1j, tf.float32, TypeError, "Cannot convert"),
    (np.array([1j]), tf.float32, TypeError, "Cannot convert"),
    ("1", tf.float32, TypeError, "Cannot convert '1' to a tensor of dtype float32"),
    (1, tf.string, TypeError, "Cannot convert 1 to a tensor of dtype string"),
    (np.array([1.0]), tf.string, (TypeError, ValueError), "string"),
    ([True, 1], None, ValueError, "mixed types"),
    ([True, np.float32(1.0)], None, ValueError, "mixed types"),
    ([1, "a"], None, ValueError, "mixed types"),
    (["a", 1.0], None, ValueError, "mixed types"),
    ([1, np.str_("a")], None, ValueError, "mixed types"),
    ([[1], [2, 3]], None, ValueError, "non-rectangular"),
    ([[1, 2], 3], None, ValueError, "non-rectangular"),
    ([1, [2]], None, ValueError, "non-rectangular"),
    ([[1], []], None, ValueError, "non-rectangular"),
    ([np.array([1, 2]), np.array([3])], None, ValueError, "non-rectangular"),
    ([np.array([1.5]), 1.0], None, ValueError, "non-rectangular"),
    (None, None, ValueError, r"Attempt to convert a value \(None\)"),
    ([None], None, ValueError, r"Attempt to convert a value \(None\)"),
    ([1, None], None, ValueError, "None"),
    ({}, None, ValueError, "Attempt to convert a value"),
    ({"a": 1}, None, ValueError, "Attempt to convert a value"),
    ({1, 2}, None, ValueError, "Attempt to convert a value"),
    (object(), None, ValueError, "Attempt to convert a value"),
    (iter([1]), None, ValueError, "Attempt to convert a value"),
    (float, None, ValueError, "Attempt to convert a value"),
    (tf.float32, None, ValueError, "Attempt to convert a dtype"),
    (np.longdouble(1.0), None, ValueError, "longdouble|float128|float64"),
    (np.datetime64("2020-01-01"), None, ValueError, "datetime64"),
    (tf.TensorShape([None]), None, ValueError, "not fully defined"),
]


@pytest.mark.parametrize(
    ("value", "dtype", "error", "message"), INVALID, ids=[brief(row[0]) for row in INVALID]
)
def test_values_that_cannot_be_converted(value, dtype, error, message):
    with pytest.raises(error, match=message):
        tf.convert_to_tensor(value, dtype)


def test_an_unknown_dtype_raises():
    with pytest.raises(TypeError, match="Cannot convert 'foo' to a dtype"):
        tf.constant(1, "foo")


# Copies


def test_later_writes_to_a_numpy_array_do_not_change_tensors():
    source = np.array([1.0, 2.0], np.float32)
    tensors = [tf.constant(source), tf.convert_to_tensor(source), tf.Variable(source)]
    tensors += [tf.constant([source, source])[0], tf.constant(1.0) * source]

    source[:] = 9.0

    for x in tensors:
        assert x.numpy().tolist() == [1.0, 2.0]


def test_arrays_of_tensors_are_contiguous():
    source = np.arange(6.0).reshape(2, 3)

    for value in (source.T, source[:, ::2], np.asfortranarray(source)):
        assert np.asarray(tf.constant(value)).flags.c_contiguous


# Tensors and variables


def test_a_tensor_converts_to_itself_and_is_never_cast():
    x = tf.constant(1.0)

    assert tf.convert_to_tensor(x) is x
    with pytest.raises(ValueError, match="Tensor conversion requested dtype float64"):
        tf.convert_to_tensor(x, tf.float64)
    with pytest.raises(ValueError, match="Tensor conversion requested dtype float64"):
        tf.convert_to_tensor(tf.Variable(1.0), tf.float64)


def test_a_converted_variable_does_not_change_with_the_variable():
    v = tf.Variable([1.0])

    x = tf.convert_to_tensor(v)
    v.assign([2.0])

    assert isinstance(x, tf.Tensor)
    assert x.numpy().tolist() == [1.0]


def test_lists_of_tensors_are_stacked_and_differentiable():
    x, v = tf.constant(2.0), tf.Variable(3.0)

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.convert_to_tensor([[x, 1], [v, x]])
        z = y * y

    assert y.dtype is tf.float32
    assert y.numpy().tolist() == [[2.0, 1.0], [3.0, 2.0]]
    assert [float(g) for g in tape.gradient(z, [x, v])] == [8.0, 6.0]


def test_a_tensor_in_a_list_determines_the_dtype():
    assert tf.convert_to_tensor([1, tf.constant(2, tf.int64)]).dtype is tf.int64
    assert tf.convert_to_tensor([1, tf.constant(2.0, tf.bfloat16)]).dtype is tf.bfloat16
    assert tf.Variable([1, tf.constant(2, tf.int64)]).dtype is tf.int64


def test_shapes_convert_to_int32():
    x = tf.convert_to_tensor(tf.TensorShape([1, 2]))

    assert x.dtype is tf.int32
    assert x.numpy().tolist() == [1, 2]
    assert tf.convert_to_tensor(tf.TensorShape([1, 2]), tf.int64).dtype is tf.int64
    assert tf.convert_to_tensor(tf.TensorShape([])).shape == (0,)


# Hints


@pytest.mark.parametrize(
    ("value", "hint", "dtype"),
    [
        (1, tf.float32, tf.float32),
        (1.5, tf.int32, tf.float32),
        ([1, 2], tf.float64, tf.float64),
        ([1.0], tf.bfloat16, tf.bfloat16),
        ([1, 2], tf.bool, tf.int32),
        ("a", tf.float32, tf.string),
        (np.array([1, 2]), tf.float64, tf.float64),
        (np.array([1.5]), tf.int32, tf.int32),
        ([np.int64(1)], tf.float32, tf.float32),
        (tf.constant(1.0), tf.float64, tf.float32),
    ],
)
def test_a_hint_is_used_if_the_value_fits(value, hint, dtype):
    assert tf.convert_to_tensor(value, dtype_hint=hint).dtype is dtype


# Objects that wrap a tensor or a variable


class Wrapper:
    def __init__(self, inner):
        self.inner = inner

    def __retrograde_tensor__(self):
        return self.inner


def test_a_wrapper_is_replaced_by_its_tensor_or_variable():
    x, v = tf.constant([1.0, 2.0]), tf.Variable([3.0, 4.0])

    assert tensor_or_variable(Wrapper(x)) is x
    assert tensor_or_variable(Wrapper(v)) is v
    assert tensor_or_variable(Wrapper(Wrapper(v))) is v
    assert tensor_or_variable(3.0) is None
    assert tensor_or_variable(np.ones(2)) is None
    assert (tf.constant([1.0, 1.0]) + Wrapper(x)).numpy().tolist() == [2.0, 3.0]
    assert tf.reduce_sum(Wrapper(v)).numpy() == 7.0
    assert tf.convert_to_tensor([Wrapper(x), Wrapper(v)]).numpy().tolist() == [
        [1.0, 2.0],
        [3.0, 4.0],
    ]
    assert tf.Variable(Wrapper(x)).numpy().tolist() == [1.0, 2.0]


def test_a_wrapper_of_a_variable_on_tapes():
    v = Wrapper(tf.Variable(3.0))

    with tf.GradientTape() as tape:
        y = tf.square(v) * v

    assert float(tape.gradient(y, v)) == 27.0
    assert tape.watched_variables() == (v.inner,)


def test_a_wrapper_of_a_tensor_on_tapes():
    x = Wrapper(tf.constant(3.0))

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.square(x)

    assert float(tape.gradient(y, x)) == 6.0


# Property tests

numbers = st.one_of(
    st.floats(width=32, allow_nan=False), st.integers(-(2**31), 2**31 - 1), st.booleans()
)


@st.composite
def nested_lists(draw):
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=4, max_side=3, min_side=1))
    kind = draw(st.sampled_from([st.integers(-(2**31), 2**31 - 1), st.booleans(), numbers]))
    flat = draw(st.lists(kind, min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
    return np.array(flat, object).reshape(shape).tolist()


@settings(deadline=None)
@given(nested_lists())
def test_nested_lists_agree_with_numpy(value):
    flat = np.array(value, object).ravel().tolist()
    if type(flat[0]) is bool and not all(type(v) is bool for v in flat):
        with pytest.raises(ValueError, match="mixed types"):
            tf.constant(value)
        return

    expected = np.array(value)
    narrow = {"b": np.bool_, "i": np.int32, "f": np.float32}[expected.dtype.kind]

    actual = as_array(value)

    assert actual.dtype == narrow
    np.testing.assert_array_equal(actual, expected.astype(narrow))


@settings(deadline=None)
@given(
    hnp.arrays(
        hnp.scalar_dtypes().filter(lambda d: d.kind in "biufc" and d.itemsize <= 8),
        hnp.array_shapes(min_dims=0, min_side=0),
    )
)
def test_numpy_arrays_keep_shape_dtype_and_values(value):
    actual = tf.constant(value).numpy()

    assert actual.dtype == value.dtype.newbyteorder("=")
    assert actual.shape == value.shape
    np.testing.assert_array_equal(actual, value)


class Subclass(np.ndarray):
    pass


@pytest.mark.parametrize(
    "value",
    [np.ma.masked_array([1.0, 2.0], True), np.ones(2).view(Subclass)],
    ids=["masked", "sub"],
)
def test_subclasses_of_arrays_become_plain_arrays(value):
    x = tf.constant(value)

    assert type(x._array) is np.ndarray
    np.testing.assert_array_equal(x, np.asarray(value))
