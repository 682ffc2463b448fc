"""tf.io: encodings. Expected bytes were produced by TensorFlow."""

import gzip
import zlib

import ml_dtypes
import numpy as np
import pytest

import retrograde as tf
from retrograde.io import _compressed
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


@pytest.mark.parametrize(("array", "serialized"), SERIALIZED, ids=lambda v: str(v)[:20])
def test_serialized_tensors_match_tensorflow(array, serialized):
    tensor = tf.constant(array)

    assert tf.io.serialize_tensor(tensor).numpy() == serialized
    parsed = tf.io.parse_tensor(serialized, tensor.dtype)
    assert parsed.dtype == tensor.dtype
    np.testing.assert_array_equal(parsed, array)


def test_serialize_long_tensors():
    x = np.arange(1000.0)
    np.testing.assert_array_equal(tf.io.parse_tensor(tf.io.serialize_tensor(x), tf.float64), x)


def test_parse_tensor_errors():
    assert_raises(
        lambda: tf.io.parse_tensor(tf.io.serialize_tensor(1.0), tf.int32),
        tf.errors.InvalidArgumentError,
        "parse_tensor: the tensor has dtype float32, but out_type is int32.",
    )
    cut = tf.io.serialize_tensor([1.0, 2.0]).numpy()[:-1]
    for serialized in (b"nonsense", cut, b"\x08\x01\x12\x00\x99\x01\x00"):
        assert_raises(
            lambda serialized=serialized: tf.io.parse_tensor(serialized, tf.float32),
            tf.errors.InvalidArgumentError,
            "parse_tensor: the input is not a serialized tensor.",
        )


def test_base64():
    assert tf.io.encode_base64(["hello", "a?>~~"]).numpy().tolist() == [b"aGVsbG8", b"YT8-fn4"]
    assert tf.io.encode_base64("hello", pad=True).numpy() == b"aGVsbG8="
    assert tf.io.decode_base64(["aGVsbG8", "aGVsbG8="]).numpy().tolist() == [b"hello"] * 2
    for wrong in ("a$", "a=b", "a"):
        assert_raises(
            lambda wrong=wrong: tf.io.decode_base64(wrong),
            tf.errors.InvalidArgumentError,
            f"decode_base64: {wrong.encode()!r} is not URL-safe base64, which has '-' and '_'.",
        )


def test_decode_compressed():
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


def test_gzip_with_several_members():
    parts = gzip.compress(b"a") + gzip.compress(b"") + gzip.compress(b"b" * 10**6)

    for padding in (b"", bytes(1000)):
        data = tf.io.decode_compressed(parts + padding, "GZIP").numpy()
        assert data == b"a" + b"b" * 10**6
    assert tf.io.decode_compressed(zlib.compress(b"a") + b"ignored", "ZLIB").numpy() == b"a"
    for kind in ("GZIP", "ZLIB"):
        assert tf.io.decode_compressed(b"", kind).numpy() == b""


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_truncated_and_corrupt_streams_raise(kind):
    data = (gzip if kind == "GZIP" else zlib).compress(bytes(range(256)) * 50)

    for end in range(1, len(data)):
        with pytest.raises(tf.errors.DataLossError):
            tf.io.decode_compressed(data[:end], kind)
    with pytest.raises(tf.errors.DataLossError, match="incorrect data check"):
        position = -8 if kind == "GZIP" else -4
        tf.io.decode_compressed(data[:position] + b"abcd" + data[position + 4 or None :], kind)
    with pytest.raises(tf.errors.DataLossError, match="the compressed data is truncated"):
        tf.io.decode_compressed(data[:-1], kind)


def test_out_of_memory_raises_resource_exhausted(monkeypatch):
    def no_memory(*_):
        raise MemoryError

    monkeypatch.setattr(_compressed, "decompress_chunks", no_memory)
    assert_raises(
        lambda: tf.io.decode_compressed(b"abc", "ZLIB"),
        tf.errors.ResourceExhaustedError,
        "decode_compressed: not enough memory to decompress 3 bytes of ZLIB data.",
    )


@pytest.mark.parametrize("length", [-1, 0, 3])
def test_decode_raw_invalid_fixed_length(length):
    assert_raises(
        lambda: tf.io.decode_raw(b"abcd", tf.int16, fixed_length=length),
        tf.errors.InvalidArgumentError,
        f"decode_raw: fixed_length is {length}. Expected a positive multiple of 2, the size of "
        "int16.",
    )


def test_decode_raw_bool():
    y = tf.io.decode_raw(b"\0\1\2\xff", tf.bool)

    assert y.numpy().view(np.uint8).tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize(
    "data",
    [
        b"\x80" * 10**6,
        b"\x08\x01\x12\x0d\x12\x0b\x08" + b"\xff" * 9 + b'\x01"\x08' + bytes(8),  # size -1
        b"\x08\x01\x12\x0c\x12\x0a\x08" + b"\xff" * 8 + b'\x3f"\x08' + bytes(8),  # 2 ** 62
        b'\x08\x0a\x12\x04\x12\x02\x08\x01"\x01\x02',  # a bool that is 2
    ],
)
def test_parse_tensor_of_corrupt_bytes_raises(data):
    for dtype in (tf.float32, tf.bool):
        assert_raises(
            lambda dtype=dtype: tf.io.parse_tensor(data, dtype),
            tf.errors.InvalidArgumentError,
            "parse_tensor: the input is not a serialized tensor.",
        )


def test_decode_raw():
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
        "decode_raw: string 1 has 1 bytes, but string 0 has 2. All strings must have the same "
        "length unless fixed_length is given.",
    )


def test_decode_csv():
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
            "decode_csv: field 1 is required, but missing in record 0.",
        ),
    ],
)
def test_decode_csv_errors(record, options, message):
    call = lambda: tf.io.decode_csv(record, **options)  # noqa: E731
    assert_raises(call, tf.errors.InvalidArgumentError, message)


QUOTES = "Expected quotes around the whole field, and two for each quote in it."


@pytest.mark.parametrize(
    ("record", "fields"),
    [
        ('"a""b",c', [b'a"b', b"c"]),
        ('"",b', [b"?", b"b"]),
        ('"a",', [b"a", b"?"]),
        (",", [b"?", b"?"]),
        ("\n\ra,b", [b"a", b"b"]),
        ('"a\nb",c', [b"a\nb", b"c"]),
        ('"a,b",' + "x" * 200_000, [b"a,b", b"x" * 200_000]),
        ('a"b,c', "has a quote or line break in an unquoted field"),
        (' "a",b', "has a quote or line break in an unquoted field"),
        ("a\nb,c", "has a quote or line break in an unquoted field"),
        ("a,b\r\n", "has a quote or line break in an unquoted field"),
        ('"a"b,c', "has an unescaped quote in a quoted field"),
        ('"a,b', "has an unterminated quoted field"),
        ('"a""', "has an unterminated quoted field"),
        ('"', "has an unterminated quoted field"),
    ],
)
def test_decode_csv_quotes_and_line_breaks(record, fields):
    """Compares with the results and errors of TensorFlow 2.21."""
    call = lambda: tf.io.decode_csv(record, [["?"], ["?"]])  # noqa: E731
    if isinstance(fields, list):
        assert [field.numpy() for field in call()] == fields
    else:
        message = f"decode_csv: record 0 {fields}. {QUOTES}"
        assert_raises(call, tf.errors.InvalidArgumentError, message)


def test_decode_csv_without_quoting():
    fields = tf.io.decode_csv('a"b,"c', [[""], [""]], use_quote_delim=False)

    assert [field.numpy() for field in fields] == [b'a"b', b'"c']


@pytest.mark.parametrize("delimiter", ["", ",,", "é"])
def test_decode_csv_invalid_delimiters(delimiter):
    assert_raises(
        lambda: tf.io.decode_csv("a", [[""]], field_delim=delimiter),
        tf.errors.InvalidArgumentError,
        f"decode_csv: field_delim is {delimiter!r}. Expected one ASCII character.",
    )


def test_decode_csv_number_formats():
    floats = tf.io.decode_csv(["0x10", "1e999", "-0x1p99999", " 1. "], [[0.0]])[0]
    assert floats.numpy().tolist() == [16, np.inf, -np.inf, 1]
    for wrong in ("1_0", "0x", "9" * 5000, "1e3"):
        quoted = wrong if len(wrong) < 100 else wrong[:100] + "..."
        assert_raises(
            lambda wrong=wrong: tf.io.decode_csv(wrong, [[0]]),
            tf.errors.InvalidArgumentError,
            f"decode_csv: field 0 of record 0 is {quoted!r}. Expected a value of int32.",
        )
    assert tf.strings.to_number("0" * 5000 + "7", tf.int32).numpy() == 7
