"""Dtypes: names, properties, limits and aliases."""

import copy
import pickle

import ml_dtypes
import numpy as np
import pytest

import retrograde as tf
from retrograde.values import dtypes

# name, NumPy type, enum value in TensorFlow, bytes
TABLE = [
    ("float16", np.float16, 19, 2),
    ("bfloat16", ml_dtypes.bfloat16, 14, 2),
    ("float32", np.float32, 1, 4),
    ("float64", np.float64, 2, 8),
    ("complex64", np.complex64, 8, 8),
    ("complex128", np.complex128, 18, 16),
    ("int8", np.int8, 6, 1),
    ("int16", np.int16, 5, 2),
    ("int32", np.int32, 3, 4),
    ("int64", np.int64, 9, 8),
    ("uint8", np.uint8, 4, 1),
    ("uint16", np.uint16, 17, 2),
    ("uint32", np.uint32, 22, 4),
    ("uint64", np.uint64, 23, 8),
    ("bool", np.bool_, 10, 1),
    ("string", object, 7, 0),
]
FLOATS = {"float16", "bfloat16", "float32", "float64"}
COMPLEXES = {"complex64", "complex128"}
UNSIGNED = {"uint8", "uint16", "uint32", "uint64"}
INTEGERS = {"int8", "int16", "int32", "int64"} | UNSIGNED

every_dtype = pytest.mark.parametrize(
    ("name", "numpy_type", "number", "size"), TABLE, ids=[row[0] for row in TABLE]
)


def test_the_table_is_complete():
    assert {d.name for d in dtypes.ALL} == {row[0] for row in TABLE}


@every_dtype
def test_properties(name, numpy_type, number, size):
    dtype = getattr(tf, name)

    assert isinstance(dtype, tf.DType)
    assert dtype.name == name
    assert dtype.as_numpy_dtype is numpy_type
    assert dtype.as_datatype_enum == number
    assert dtype.size == size
    assert dtype.base_dtype is dtype
    assert dtype.is_numpy_compatible
    assert dtype.is_floating is (name in FLOATS)
    assert dtype.is_complex is (name in COMPLEXES)
    assert dtype.is_integer is (name in INTEGERS)
    assert dtype.is_unsigned is (name in UNSIGNED)
    assert dtype.is_bool is (name == "bool")
    assert dtype.is_numeric is (name in FLOATS | COMPLEXES | INTEGERS)


@every_dtype
def test_ways_to_specify_a_dtype(name, numpy_type, number, size):  # noqa: ARG001
    dtype = getattr(tf, name)

    for alias in (name, numpy_type, np.dtype(numpy_type), dtype):
        assert tf.as_dtype(alias) is dtype
        assert dtype == alias
        assert (dtype != alias) is False
        assert dtype.is_compatible_with(alias)


@every_dtype
def test_text_hash_and_copies(name, numpy_type, number, size):  # noqa: ARG001
    dtype = getattr(tf, name)

    assert repr(dtype) == f"tf.{name}"
    assert str(dtype) == f"<dtype: '{name}'>"
    assert hash(dtype) == hash(np.dtype(numpy_type))
    assert {dtype: "found"}[dtype] == "found"
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert copy.deepcopy(dtype) is dtype


def test_dtypes_work_with_numpy():
    assert np.dtype("float32") == tf.float32
    assert np.zeros(2, tf.float32.as_numpy_dtype).dtype == np.float32


@pytest.mark.parametrize(
    ("alias", "dtype"),
    [
        (float, tf.float32),
        (int, tf.int32),
        (bool, tf.bool),
        ("half", tf.float16),
        ("double", tf.float64),
        ("float", tf.float32),
        (np.dtype("S3"), tf.string),
        (np.dtype("U3"), tf.string),
        (np.dtype(">f4"), tf.float32),
    ],
)
def test_aliases(alias, dtype):
    assert tf.as_dtype(alias) is dtype


def test_alternative_names():
    assert tf.half is tf.float16
    assert tf.double is tf.float64


@pytest.mark.parametrize(
    "wrong", ["foo", "complex64,,", None, [1], np.dtype("datetime64"), 3.5, np.longdouble]
)
def test_values_that_are_not_dtypes(wrong):
    with pytest.raises(TypeError, match=r"Cannot convert .* to a dtype"):
        tf.as_dtype(wrong)
    assert tf.float32 != wrong


def test_different_dtypes_differ():
    assert len(set(dtypes.ALL)) == len(dtypes.ALL)
    assert tf.float32 != tf.float64
    assert tf.float32 != "float64"
    assert not tf.float32.is_compatible_with(tf.float64)


def test_the_dtype_of_the_real_part():
    assert tf.complex64.real_dtype is tf.float32
    assert tf.complex128.real_dtype is tf.float64
    assert tf.int32.real_dtype is tf.int32


@pytest.mark.parametrize("name", sorted(INTEGERS))
def test_limits_of_integers(name):
    info = np.iinfo(name)

    assert (getattr(tf, name).min, getattr(tf, name).max) == (info.min, info.max)
    assert getattr(tf, name).limits == (0, info.max)


@pytest.mark.parametrize("name", sorted(FLOATS))
def test_limits_of_floats_have_the_same_dtype(name):
    dtype = getattr(tf, name)
    info = ml_dtypes.finfo(dtype.as_numpy_dtype)

    assert (dtype.min, dtype.max) == (info.min, info.max)
    assert tf.constant(dtype.max).dtype is dtype
    assert dtype.limits == (0, 1)


@pytest.mark.parametrize("dtype", [tf.bool, tf.string, tf.complex64], ids=str)
def test_dtypes_without_limits(dtype):
    with pytest.raises(TypeError, match=f"{dtype.name} has no max value"):
        _ = dtype.max


# Dtypes that no tensor can have

NAMES_ONLY = [
    ("qint8", 11, 1, np.int8),
    ("quint8", 12, 1, np.uint8),
    ("qint32", 13, 4, np.int32),
    ("qint16", 15, 2, np.int16),
    ("quint16", 16, 2, np.uint16),
    ("resource", 20, 0, None),
    ("variant", 21, 0, None),
]
every_name = pytest.mark.parametrize(
    ("name", "number", "size", "level"), NAMES_ONLY, ids=[row[0] for row in NAMES_ONLY]
)


@every_name
def test_dtypes_without_tensors_have_names_and_properties(name, number, size, level):
    dtype = getattr(tf, name)

    assert dtype is getattr(tf.dtypes, name) is tf.as_dtype(name)
    assert (repr(dtype), str(dtype)) == (f"tf.{name}", f"<dtype: {name!r}>")
    assert (dtype.as_datatype_enum, dtype.size) == (number, size)
    assert dtype == name
    assert dtype != tf.int8
    assert dtype in {tf.as_dtype(name)}
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert dtype.base_dtype is dtype.real_dtype is dtype
    flags = ("floating", "complex", "integer", "bool", "unsigned")
    assert not any(getattr(dtype, f"is_{flag}") for flag in flags)
    quantized = level is not None
    assert dtype.is_quantized is dtype.is_numeric is dtype.is_numpy_compatible is quantized
    assert (dtype in tf.dtypes.QUANTIZED_DTYPES) is quantized
    assert repr(tf.TensorSpec([2], dtype)) == f"TensorSpec(shape=(2,), dtype=tf.{name}, name=None)"


@every_name
def test_dtypes_without_tensors_raise_on_use(name, number, size, level):  # noqa: ARG001
    message = f"{name}: tensors of this dtype are not supported."
    if level is not None:
        message += f" Use {np.dtype(level).name} instead."
    for make in (
        lambda: tf.constant(1, name),
        lambda: tf.cast([1.0], name),
        lambda: tf.zeros([2], name),
        lambda: tf.Variable([1], dtype=name),
    ):
        with pytest.raises(TypeError) as caught:
            make()
        assert str(caught.value) == message


def test_quantized_dtypes_are_structured_numpy_dtypes():
    assert tf.qint8.as_numpy_dtype == np.dtype([("qint8", np.int8)])
    with pytest.raises(TypeError, match="resource: tensors of this dtype are not supported"):
        tf.resource.as_numpy_dtype  # noqa: B018
    with pytest.raises(TypeError, match="qint8 has no max value"):
        tf.qint8.max  # noqa: B018
