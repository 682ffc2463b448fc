"""The promotion modes "safe" and "all". Expected dtypes are results of TensorFlow 2.21."""

import numpy as np
import pytest

import retrograde as tf
from tests.namespaces.helpers import assert_raises

NAMES = {
    "b1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "f16": "float16",
    "bf16": "bfloat16", "f32": "float32", "f64": "float64", "c64": "complex64",
    "c128": "complex128", "-": "TypeError",
}  # fmt: skip

# The dtype of the sum of each pair of dtypes, in the order above.
SUMS = {
    "safe": """
        b1   i8   i16  i32  i64  u8   u16  u32  u64  f16  bf16 f32  f64  c64  c128
        i8   i8   i16  i32  i64  -    -    -    -    f16  bf16 f32  f64  c64  c128
        i16  i16  i16  i32  i64  i16  -    -    -    -    -    f32  f64  c64  c128
        i32  i32  i32  i32  i64  i32  i32  -    -    -    -    -    f64  -    c128
        i64  i64  i64  i64  i64  i64  i64  i64  -    -    -    -    -    -    -
        u8   -    i16  i32  i64  u8   u16  u32  u64  f16  bf16 f32  f64  c64  c128
        u16  -    -    i32  i64  u16  u16  u32  u64  -    -    f32  f64  c64  c128
        u32  -    -    -    i64  u32  u32  u32  u64  -    -    -    f64  -    c128
        u64  -    -    -    -    u64  u64  u64  u64  -    -    -    -    -    -
        f16  f16  -    -    -    f16  -    -    -    f16  -    f32  f64  c64  c128
        bf16 bf16 -    -    -    bf16 -    -    -    -    bf16 f32  f64  c64  c128
        f32  f32  f32  -    -    f32  f32  -    -    f32  f32  f32  f64  c64  c128
        f64  f64  f64  f64  -    f64  f64  f64  -    f64  f64  f64  f64  -    c128
        c64  c64  c64  -    -    c64  c64  -    -    c64  c64  c64  -    c64  c128
        c128 c128 c128 c128 -    c128 c128 c128 -    c128 c128 c128 c128 c128 c128
    """,
    "all": """
        b1   i8   i16  i32  i64  u8   u16  u32  u64  f16  bf16 f32  f64  c64  c128
        i8   i8   i16  i32  i64  i16  i32  i64  f64  f16  bf16 f32  f64  c64  c128
        i16  i16  i16  i32  i64  i16  i32  i64  f64  f16  bf16 f32  f64  c64  c128
        i32  i32  i32  i32  i64  i32  i32  i64  f64  f16  bf16 f32  f64  c64  c128
        i64  i64  i64  i64  i64  i64  i64  i64  f64  f16  bf16 f32  f64  c64  c128
        u8   i16  i16  i32  i64  u8   u16  u32  u64  f16  bf16 f32  f64  c64  c128
        u16  i32  i32  i32  i64  u16  u16  u32  u64  f16  bf16 f32  f64  c64  c128
        u32  i64  i64  i64  i64  u32  u32  u32  u64  f16  bf16 f32  f64  c64  c128
        u64  f64  f64  f64  f64  u64  u64  u64  u64  f16  bf16 f32  f64  c64  c128
        f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  f32  f32  f64  c64  c128
        bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 f32  bf16 f32  f64  c64  c128
        f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f64  c64  c128
        f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  c128 c128
        c64  c64  c64  c64  c64  c64  c64  c64  c64  c64  c64  c64  c128 c64  c128
        c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128
    """,
}

# The dtypes of a tensor plus 1, plus 1.5 and plus 1j.
NUMBERS = {
    "safe": {
        "i8": "i8 - c128", "i64": "i64 - -", "u8": "u8 - c128", "f16": "f16 f16 -",
        "f32": "f32 f32 -", "f64": "f64 f64 c128", "c64": "c64 c64 c64",
    },
    "all": {
        "i8": "i8 f64 c128", "i64": "i64 f64 c128", "u8": "u8 f64 c128", "f16": "f16 f16 c64",
        "f32": "f32 f32 c64", "f64": "f64 f64 c128", "c64": "c64 c64 c64",
    },
}  # fmt: skip


def sum_dtype(x, y):
    try:
        return (x + y).dtype.name
    except TypeError:
        return "TypeError"


@pytest.mark.parametrize("mode", SUMS)
def test_sums_of_tensors(mode, numpy_behavior):
    numpy_behavior(dtype_conversion_mode=mode)
    names = list(NAMES.values())[:-1]
    rows = [row.split() for row in SUMS[mode].strip().splitlines()]
    for first, row in zip(names, rows, strict=True):
        for second, expected in zip(names, row, strict=True):
            if (first, second) != ("bool", "bool"):  # booleans cannot be added
                actual = sum_dtype(tf.zeros([], first), tf.zeros([], second))
                assert actual == NAMES[expected], (first, second)


@pytest.mark.parametrize("mode", NUMBERS)
def test_python_numbers_take_the_dtype_of_the_tensor(mode, numpy_behavior):
    numpy_behavior(dtype_conversion_mode=mode)
    for name, expected in NUMBERS[mode].items():
        x = tf.zeros([], NAMES[name])
        actual = [sum_dtype(x, number) for number in (1, 1.5, 1j)]
        assert actual == [NAMES[part] for part in expected.split()], name
        assert sum_dtype(1, x) == NAMES[expected.split()[0]]


@pytest.mark.parametrize("mode", SUMS)
def test_arrays_variables_and_values(mode, numpy_behavior):
    numpy_behavior(dtype_conversion_mode=mode)
    assert (tf.constant(1.0) + np.float64(1)).dtype == tf.float64
    assert (tf.Variable(1, dtype=tf.int8) + tf.constant(1.5, tf.bfloat16)).dtype == tf.bfloat16
    quotient = tf.constant(1, tf.int32) / tf.constant(2, tf.int64)
    assert (quotient.dtype, float(quotient)) == (tf.float64, 0.5)
    assert (tf.constant("a") + tf.constant("b")).numpy() == b"ab"


def test_the_mode_safe_says_what_to_use_instead(numpy_behavior):
    numpy_behavior(dtype_conversion_mode="safe")
    assert_raises(
        lambda: tf.constant(1) + tf.constant(1.5),
        TypeError,
        "The promotion mode 'safe' does not convert int32 and float32 to one dtype, because values "
        "could change. Use tf.cast, or the mode 'all'.",
    )
