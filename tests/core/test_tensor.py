"""Tests Tensor: attributes, conversion to NumPy and Python, printing, copying and pickling."""

import copy
import io
import operator
import pickle
import sys

import ml_dtypes
import numpy as np
import pytest

import retrograde as tf
from retrograde.core.tensor import Tensor

# Attributes


def test_dtype_shape_and_rank():
    x = tf.constant([[1.0, 2.0, 3.0]])

    assert x.dtype is tf.float32
    assert x.shape == (1, 3)
    assert isinstance(x.shape, tf.TensorShape)
    assert x.get_shape() == x.shape
    assert x.ndim == 2
    assert tf.constant(1).ndim == 0


def test_device_has_the_format_of_tensorflow():
    assert tf.constant(1.0).device == "/job:localhost/replica:0/task:0/device:CPU:0"


def test_set_shape_only_checks_the_shape():
    x = tf.constant([1.0, 2.0])

    x.set_shape([None])

    assert x.shape == (2,)
    with pytest.raises(ValueError, match="not compatible"):
        x.set_shape([3])


@pytest.mark.parametrize("name", ["op", "graph", "name"])
def test_graph_attributes_are_undefined(name):
    with pytest.raises(AttributeError, match=f"Tensor.{name} is undefined when eager execution"):
        getattr(tf.constant(1.0), name)


@pytest.mark.parametrize(
    ("name", "replacement"),
    [
        ("T", "tf.transpose"),
        ("reshape", "tf.reshape"),
        ("astype", "tf.cast"),
        ("sum", "reduce_sum"),
    ],
)
def test_errors_for_numpy_attributes_name_the_replacement(name, replacement):
    with pytest.raises(AttributeError, match=replacement):
        getattr(tf.constant(1.0), name)


def test_unknown_attributes_cannot_be_read_or_set():
    x = tf.constant(1.0)

    assert not hasattr(x, "foo")
    with pytest.raises(AttributeError):
        x.foo = 1


def test_variables_are_not_instances_of_tensor():
    assert isinstance(tf.constant(1.0), tf.Tensor)
    assert not isinstance(tf.Variable(1.0), tf.Tensor)
    assert tf.is_tensor(tf.constant(1.0))
    assert tf.is_tensor(tf.Variable(1.0))
    assert not tf.is_tensor(np.ones(2))


# Conversion to NumPy


def test_numpy_returns_a_writable_copy():
    x = tf.constant([1.0, 2.0])

    array = x.numpy()
    array[0] = 9.0

    assert x.numpy().tolist() == [1.0, 2.0]
    assert not np.shares_memory(array, np.asarray(x))


@pytest.mark.parametrize(
    ("value", "expected_type"),
    [
        (1.0, np.float32),
        (1, np.int32),
        (True, np.bool_),
        (1j, np.complex128),
        ("a", bytes),
        (tf.constant([1.0, 2.0])[0], np.float32),
        (tf.constant(1.0) + 1.0, np.float32),
    ],
)
def test_numpy_of_a_scalar_tensor_is_a_numpy_scalar(value, expected_type):
    assert type(tf.constant(value).numpy()) is expected_type


def test_asarray_returns_a_read_only_view():
    x = tf.constant([1.0, 2.0])

    view = np.asarray(x)

    assert np.shares_memory(view, np.asarray(x))
    assert not view.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 9.0


def test_asarray_of_a_view_is_read_only():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])

    for y in (x[0], tf.transpose(x), tf.reshape(x, [4])):
        assert not np.asarray(y).flags.writeable


def test_np_array_copies():
    x = tf.constant([1.0, 2.0])

    copied = np.array(x, copy=True)
    copied[0] = 9.0

    assert x.numpy().tolist() == [1.0, 2.0]
    assert np.array(x).flags.writeable


def test_asarray_converts_the_dtype():
    x = tf.constant([1.5, 2.5])

    assert np.asarray(x, np.float64).dtype == np.float64
    assert np.asarray(x, np.int32).tolist() == [1, 2]
    assert np.shares_memory(np.asarray(x, np.float32), np.asarray(x))
    with pytest.raises(ValueError, match=r"view|avoid copy"):  # from retrograde or from NumPy
        np.asarray(x, np.float64, copy=False)


def test_dlpack_shares_memory_and_is_read_only():
    x = tf.constant([1.0, 2.0])

    array = np.from_dlpack(x)

    assert np.shares_memory(array, np.asarray(x))
    assert not array.flags.writeable
    assert np.from_dlpack(tf.constant(3.0)) == 3.0


def test_dlpack_copies_for_consumers_without_read_only_support():
    class LegacyProducer:
        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack__(self, **_):
            return self.tensor.__dlpack__()

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()

    x = tf.constant([1.0, 2.0])

    assert not np.shares_memory(np.from_dlpack(LegacyProducer(x)), np.asarray(x))


def test_bytes():
    assert bytes(tf.constant([1, 2])) == np.array([1, 2], np.int32).tobytes()


if sys.version_info >= (3, 12):  # older versions have no __buffer__ method

    def test_buffer_is_read_only():
        x = tf.constant([1.0, 2.0])

        buffer = memoryview(x)

        assert buffer.readonly
        assert np.shares_memory(np.asarray(buffer), np.asarray(x))


@pytest.mark.parametrize(
    "f",
    [
        np.sin,
        np.sum,
        lambda x: np.add(x, 1),
        lambda x: np.concatenate([x, x]),
        lambda x: np.dot(x, x),
        lambda x: np.add(np.ones(2, np.float32), x),
    ],
)
def test_numpy_functions_return_numpy_values(f):
    result = f(tf.constant([1.0, 2.0]))

    assert isinstance(result, (np.ndarray, np.generic))
    np.testing.assert_array_equal(result, f(np.array([1.0, 2.0], np.float32)))


def test_numpy_arrays_can_be_assigned_from_tensors():
    array = np.zeros(2, np.float32)

    array[0] = tf.constant(3.0)
    array[1:] = tf.constant([2.0])

    assert array.tolist() == [3.0, 2.0]


def test_numpy_arrays_can_be_indexed_with_tensors():
    array = np.arange(3)

    assert array[tf.constant(1)] == 1
    assert array[tf.constant([2, 0])].tolist() == [2, 0]
    assert array[tf.constant([True, False, True])].tolist() == [0, 2]


# Conversion to Python


def test_len_is_the_size_of_the_first_axis():
    assert len(tf.constant([[1.0, 2.0]])) == 1
    with pytest.raises(TypeError, match="Scalar tensor has no `len"):
        len(tf.constant(1.0))


def test_iteration_yields_tensors():
    rows = list(tf.constant([[1, 2], [3, 4]]))

    assert all(isinstance(row, tf.Tensor) for row in rows)
    assert [row.numpy().tolist() for row in rows] == [[1, 2], [3, 4]]
    with pytest.raises(TypeError, match="Cannot iterate over a scalar tensor"):
        iter(tf.constant(1.0))


def test_iteration_is_differentiable():
    x = tf.constant([1.0, 2.0])

    with tf.GradientTape() as tape:
        tape.watch(x)
        first, second = x
        y = first * second

    assert tape.gradient(y, x).numpy().tolist() == [2.0, 1.0]


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.0, False), (2, True), ([[1.0]], True), ([], False), ("", False), ("a", True)],
)
def test_bool(value, expected):
    assert bool(tf.constant(value)) is expected


def test_bool_of_multiple_elements_raises():
    with pytest.raises(ValueError, match=r"shape \(2,\) is ambiguous"):
        bool(tf.constant([1.0, 2.0]))


def test_conversion_to_python_numbers():
    assert int(tf.constant(3.7)) == 3
    assert float(tf.constant(2)) == 2.0
    assert complex(tf.constant(1 + 2j)) == 1 + 2j
    assert operator.index(tf.constant(3, tf.int64)) == 3
    assert type(operator.index(tf.constant(3))) is int
    assert list(range(tf.constant(2))) == [0, 1]
    assert int(tf.constant("12")) == 12


@pytest.mark.parametrize("convert", [int, float, complex])
def test_only_scalars_convert_to_python_numbers(convert):
    with pytest.raises(TypeError, match=r"Received: shape \(1,\)"):
        convert(tf.constant([2.5]))


@pytest.mark.parametrize("value", [3.0, True, [3], 1j])
def test_only_integer_scalars_convert_to_an_index(value):
    with pytest.raises(TypeError):
        operator.index(tf.constant(value))


def test_format():
    assert f"{tf.constant(1.5):.3f}" == "1.500"
    assert f"{tf.constant(7):03d}" == "007"
    assert f"{tf.constant(1.5)}" == "1.5"
    assert f"{tf.constant([1.5])}" == "[1.5]"
    assert f"{tf.constant(True)}" == "True"
    with pytest.raises(TypeError):
        f"{tf.constant([1.5]):.3f}"


# Printing, with exactly the text of TensorFlow 2.21

REPRS = [
    (lambda: tf.constant(1.0), "<tf.Tensor: shape=(), dtype=float32, numpy=1.0>"),
    (lambda: tf.constant(0.1), "<tf.Tensor: shape=(), dtype=float32, numpy=0.10000000149011612>"),
    (lambda: tf.constant(1), "<tf.Tensor: shape=(), dtype=int32, numpy=1>"),
    (lambda: tf.constant(True), "<tf.Tensor: shape=(), dtype=bool, numpy=True>"),
    (lambda: tf.constant("abc"), "<tf.Tensor: shape=(), dtype=string, numpy=b'abc'>"),
    (lambda: tf.constant(1 + 2j), "<tf.Tensor: shape=(), dtype=complex128, numpy=(1+2j)>"),
    (
        lambda: tf.constant(0.1, tf.bfloat16),
        "<tf.Tensor: shape=(), dtype=bfloat16, numpy=0.10009765625>",
    ),
    (
        lambda: tf.constant([1.5, 2.5], tf.bfloat16),
        "<tf.Tensor: shape=(2,), dtype=bfloat16, numpy=array([1.5, 2.5], dtype=bfloat16)>",
    ),
    (
        lambda: tf.constant([[1.0, 2.0], [3.0, 4.0]]),
        "<tf.Tensor: shape=(2, 2), dtype=float32, numpy=\n"
        "array([[1., 2.],\n       [3., 4.]], dtype=float32)>",
    ),
    (
        lambda: tf.constant([[True, False]]),
        "<tf.Tensor: shape=(1, 2), dtype=bool, numpy=array([[ True, False]])>",
    ),
    (
        lambda: tf.constant(["a", "b"]),
        "<tf.Tensor: shape=(2,), dtype=string, numpy=array([b'a', b'b'], dtype=object)>",
    ),
    (
        lambda: tf.constant([[]]),
        "<tf.Tensor: shape=(1, 0), dtype=float32, numpy=array([], shape=(1, 0), dtype=float32)>",
    ),
    (
        lambda: tf.constant([1 + 2j]),
        "<tf.Tensor: shape=(1,), dtype=complex128, numpy=array([1.+2.j])>",
    ),
]


@pytest.mark.parametrize(("make", "expected"), REPRS, ids=[expected for _, expected in REPRS])
def test_repr(make, expected):
    assert repr(make()) == expected


STRS = [
    (lambda: tf.constant(0.1), "tf.Tensor(0.1, shape=(), dtype=float32)"),
    (lambda: tf.constant("abc"), "tf.Tensor(b'abc', shape=(), dtype=string)"),
    (lambda: tf.constant(True), "tf.Tensor(True, shape=(), dtype=bool)"),
    (lambda: tf.constant(1 + 2j), "tf.Tensor((1+2j), shape=(), dtype=complex128)"),
    (lambda: tf.constant([1.0, 2.0]), "tf.Tensor([1. 2.], shape=(2,), dtype=float32)"),
    (lambda: tf.constant([], tf.int32), "tf.Tensor([], shape=(0,), dtype=int32)"),
    (
        lambda: tf.constant([[1, 2], [3, 4]]),
        "tf.Tensor(\n[[1 2]\n [3 4]], shape=(2, 2), dtype=int32)",
    ),
    (lambda: tf.constant(1.5, tf.bfloat16), "tf.Tensor(1.5, shape=(), dtype=bfloat16)"),
]


@pytest.mark.parametrize(("make", "expected"), STRS, ids=[expected for _, expected in STRS])
def test_str(make, expected):
    assert str(make()) == expected


# Identity, copying and pickling


def test_tensors_are_unhashable():
    with pytest.raises(TypeError) as raised:
        hash(tf.constant(1.0))

    assert str(raised.value) == "Tensor is unhashable. Instead, use tensor.ref() as the key."


def test_references_compare_by_identity():
    x, other = tf.constant(1.0), tf.constant(1.0)

    assert x.ref() == x.ref()
    assert x.ref() != other.ref()
    assert {x.ref(): "found"}[x.ref()] == "found"
    assert x.ref().deref() is x
    assert repr(x.ref()) == f"<Reference wrapping {x!r}>"
    with pytest.raises(TypeError, match="Cannot compare a reference"):
        assert x.ref() == x


def test_copying_returns_the_same_tensor():
    x = tf.constant([1.0, 2.0])

    assert copy.copy(x) is x
    assert copy.deepcopy(x) is x
    assert copy.deepcopy({"a": [x]})["a"][0] is x


@pytest.mark.parametrize(
    "x",
    [
        tf.constant([[1.0, 2.0]]),
        tf.constant(3),
        tf.constant("a"),
        tf.constant([1.5], tf.bfloat16),
        tf.constant(1.5, tf.bfloat16),
        tf.constant([1.0, 2.0, 3.0])[::2],
    ],
    ids=str,
)
def test_pickling_keeps_dtype_shape_and_values(x):
    loaded = pickle.loads(pickle.dumps(x))

    assert type(loaded) is Tensor
    assert loaded.dtype is x.dtype
    assert loaded.shape == x.shape
    assert repr(loaded) == repr(x)


def test_an_unpickled_tensor_is_not_connected_to_the_original():
    x = tf.constant(2.0)

    with tf.GradientTape() as tape:
        loaded = pickle.loads(pickle.dumps(x))
        tape.watch(x)
        y = loaded * loaded

    assert tape.gradient(y, x) is None


def test_tensors_are_immutable():
    x = tf.constant([1.0, 2.0])

    with pytest.raises(TypeError, match="item assignment"):
        x[0] = 3.0
    with pytest.raises(TypeError, match="item deletion"):
        del x[0]
    y = x
    y += 1.0
    assert x.numpy().tolist() == [1.0, 2.0]
    assert y.numpy().tolist() == [2.0, 3.0]


def test_np_save_accepts_tensors():
    file = io.BytesIO()

    np.save(file, tf.constant([1.0, 2.0]))

    file.seek(0)
    assert np.load(file).tolist() == [1.0, 2.0]


def test_bfloat16_arrays_have_the_dtype_of_ml_dtypes():
    assert tf.constant([1.5], tf.bfloat16).numpy().dtype == ml_dtypes.bfloat16


def test_large_tensors_are_not_printed_in_full():
    x = tf.zeros([2] * 20)

    assert repr(x) == (
        f"<tf.Tensor: shape={(2,) * 20}, dtype=float32, numpy=[... 1048576 elements ...]>"
    )
    assert str(x) == (f"tf.Tensor([... 1048576 elements ...], shape={(2,) * 20}, dtype=float32)")
