"""tf.io: bytes as text, as numbers, as tensors and as tables. The bytes are TensorFlow's."""

import gzip
import zlib

import ml_dtypes
import numpy as np
import pytest

import retrograde as tf
from tests.namespaces.helpers import assert_raises

SERIALIZED = [
    (
        np.float32([[1.5, 2], [3, 4]]),
        b'\x08\x01\x12\x08\x12\x02\x08\x02\x12\x02\x08\x02"\x10\x00\x00\xc0?\x00\x00\x00@\x00\x00@@'
        b"\x00\x00\x80@",
    ),
    (np.int32(3), b'\x08\x03\x12\x00"\x04\x03\x00\x00\x00'),
    (np.array([True, False]), b'\x08\n\x12\x04\x12\x02\x08\x02"\x02\x01\x00'),
    (
        np.array([1 + 2j]),
        b'\x08\x12\x12\x04\x12\x02\x08\x01"\x10\x00\x00\x00\x00\x00\x00\xf0?'
        b"\x00\x00\x00\x00\x00\x00\x00@",
    ),
    (np.zeros([0, 3], np.float16), b"\x08\x13\x12\x06\x12\x00\x12\x02\x08\x03"),
    (np.array(1, ml_dtypes.bfloat16), b'\x08\x0e\x12\x00"\x02\x80?'),
    (np.array([b"a", b"bc"], object), b"\x08\x07\x12\x04\x12\x02\x08\x02B\x01aB\x02bc"),
]


@pytest.mark.parametrize(("array", "written"), SERIALIZED, ids=lambda v: str(v)[:20])
def test_tensors_are_written_as_tensorflow_writes_them(array, written):
    tensor = tf.constant(array)

    assert tf.io.serialize_tensor(tensor).numpy() == written
    back = tf.io.parse_tensor(written, tensor.dtype)
    assert back.dtype == tensor.dtype
    np.testing.assert_array_equal(back, array)


def test_long_tensors_come_back():
    x = np.arange(1000.0)
    np.testing.assert_array_equal(tf.io.parse_tensor(tf.io.serialize_tensor(x), tf.float64), x)


def test_what_is_no_tensor_is_refused():
    assert_raises(
        lambda: tf.io.parse_tensor(tf.io.serialize_tensor(1.0), tf.int32),
        tf.errors.InvalidArgumentError,
        "parse_tensor: the tensor has dtype float32, out_type is int32. Expected the same.",
    )
    cut = tf.io.serialize_tensor([1.0, 2.0]).numpy()[:-1]
    for written in (b"nonsense", cut, b"\x08\x01\x12\x00\x99\x01\x00"):
        assert_raises(
            lambda written=written: tf.io.parse_tensor(written, tf.float32),
            tf.errors.InvalidArgumentError,
            "parse_tensor: these bytes are not those of a tensor.",
        )


def test_base64():
    assert tf.io.encode_base64(["hello", "a?>~~"]).numpy().tolist() == [b"aGVsbG8", b"YT8-fn4"]
    assert tf.io.encode_base64("hello", pad=True).numpy() == b"aGVsbG8="
    assert tf.io.decode_base64(["aGVsbG8", "aGVsbG8="]).numpy().tolist() == [b"hello"] * 2
    for wrong in ("a$", "a=b", "a"):
        assert_raises(
            lambda wrong=wrong: tf.io.decode_base64(wrong),
            tf.errors.InvalidArgumentError,
            f"decode_base64: {wrong.encode()!r} is not base64 for the web, without + and /.",
        )


def test_compressed_strings():
    text = b"some text" * 9
    assert tf.io.decode_compressed(zlib.compress(text), "ZLIB").numpy() == text
    assert tf.io.decode_compressed([gzip.compress(text)], "GZIP").numpy().tolist() == [text]
    assert tf.io.decode_compressed(text).numpy() == text
    assert_raises(
        lambda: tf.io.decode_compressed(text, "LZ"),
        tf.errors.InvalidArgumentError,
        "decode_compressed: compression_type is 'LZ'. Expected 'ZLIB', 'GZIP' or ''.",
    )
    assert_raises(
        lambda: tf.io.decode_compressed(b"abc", "ZLIB"),
        tf.errors.DataLossError,
        "decode_compressed: Error -3 while decompressing data: incorrect header check",
    )


def test_raw_bytes_are_numbers():
    two = tf.io.decode_raw([b"\x01\x02\x03\x04"], tf.int16)
    assert two.numpy().tolist() == [[513, 1027]]
    assert tf.io.decode_raw(b"\x01\x02", tf.int16, little_endian=False).numpy().tolist() == [258]
    fixed = tf.io.decode_raw([b"abc", b"d"], tf.uint8, fixed_length=2)
    assert fixed.numpy().tolist() == [[97, 98], [100, 0]]
    assert_raises(
        lambda: tf.io.decode_raw(b"abc", tf.int16),
        tf.errors.InvalidArgumentError,
        "decode_raw: the strings have 3 bytes. Expected a multiple of 2, the size of int16.",
    )
    assert_raises(
        lambda: tf.io.decode_raw([b"ab", b"a"], tf.uint8),
        tf.errors.InvalidArgumentError,
        "decode_raw: string 1 has 1 bytes, string 0 has 2. Expected strings of one length, or a "
        "fixed_length.",
    )


def test_columns_of_a_table():
    numbers, words, floats = tf.io.decode_csv(["1,a,2.5", '2,"b,c",', "3,,4"], [[0], ["z"], [1.5]])

    assert numbers.dtype == tf.int32
    assert numbers.numpy().tolist() == [1, 2, 3]
    assert words.numpy().tolist() == [b"a", b"b,c", b"z"]
    assert floats.dtype == tf.float32
    assert floats.numpy().tolist() == [2.5, 1.5, 4.0]
    required = tf.constant([], tf.int64)
    columns = tf.io.decode_csv([["1 2"], ["3 4"]], [required, [0.0]], field_delim=" ")
    assert [c.numpy().tolist() for c in columns] == [[[1], [3]], [[2.0], [4.0]]]
    assert [int(c) for c in tf.io.decode_csv("1,NA", [[0], [7]], na_value="NA")] == [1, 7]
    chosen = tf.io.decode_csv("1,2,3", [[0], [""]], select_cols=[0, 2])
    assert [c.numpy() for c in chosen] == [1, b"3"]


@pytest.mark.parametrize(
    ("record", "options", "message"),
    [
        (
            "1,2",
            {"record_defaults": [[0]]},
            "decode_csv: record 0 has 2 fields. Expected 1, one for each of `record_defaults`.",
        ),
        (
            "1,2",
            {"record_defaults": [[0]], "select_cols": [2]},
            "decode_csv: record 0 has 2 fields. Expected more than 2, the last of `select_cols`.",
        ),
        (
            "1,b",
            {"record_defaults": [[0], [0]]},
            "decode_csv: field 1 of record 0 is 'b'. Expected a value of int32.",
        ),
        (
            "1,",
            {"record_defaults": [[0], []]},
            "decode_csv: field 1 is required, and missing in record 0.",
        ),
    ],
)
def test_tables_that_do_not_fit(record, options, message):
    call = lambda: tf.io.decode_csv(record, **options)  # noqa: E731
    assert_raises(call, tf.errors.InvalidArgumentError, message)
