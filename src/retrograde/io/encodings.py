"""Bytes as text, as numbers and as tensors."""

from __future__ import annotations

import base64
import re
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.io._compressed import WINDOWS, decompressed
from retrograde.ops.arguments import integer
from retrograde.ops.host_functions import host_function
from retrograde.strings._elementwise import as_string_tensor, map_strings
from retrograde.toplevel.creation import convert_to_tensor
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.errors import invalid

_BASE64 = re.compile(rb"[A-Za-z0-9_-]*={0,2}\Z")


def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Any:
    """Strings of any bytes as letters, digits, "-" and "_".

    >>> tf.io.encode_base64("hello").numpy()
    b'aGVsbG8'
    """

    def encoded(value: bytes) -> bytes:
        written = base64.urlsafe_b64encode(value)
        return written if pad else written.rstrip(b"=")

    return map_strings(encoded, input)


def decode_base64(input: Any, name: str | None = None) -> Any:
    """What `encode_base64` encoded."""

    def decoded(value: bytes) -> bytes:
        if not _BASE64.match(value) or len(value.rstrip(b"=")) % 4 == 1:
            raise invalid(f"decode_base64: {value!r} is not base64 for the web, without + and /.")
        bare = value.rstrip(b"=")
        return base64.urlsafe_b64decode(bare + b"=" * (-len(bare) % 4))

    return map_strings(decoded, input)


def decode_compressed(bytes: Any, compression_type: str = "", name: str | None = None) -> Any:
    """What was compressed by zlib ("ZLIB") or gzip ("GZIP"); "" stands for no compression."""
    if not compression_type:
        return as_string_tensor(bytes)
    if compression_type not in WINDOWS:
        raise invalid(
            f"decode_compressed: compression_type is {shown(compression_type)}. Expected 'ZLIB', "
            "'GZIP' or ''."
        )
    what = "decode_compressed"
    return map_strings(lambda value: decompressed(value, compression_type, what), bytes)


@host_function(dynamic_shapes=True)
def decode_raw(
    input_bytes: Any,
    out_type: Any,
    little_endian: bool = True,
    fixed_length: Any = None,
    name: str | None = None,
) -> Tensor:
    """Strings as the numbers whose bytes they are, along a new last axis.

    With `fixed_length`, strings are cut or filled up with zeros to so many bytes; else all have to
    be of one length.

    >>> tf.io.decode_raw(b"\\x01\\x00\\x02\\x00", tf.int16).numpy()
    array([1, 2], dtype=int16)
    """
    strings = np.asarray(as_string_tensor(input_bytes)._array)
    dtype = dtypes.as_dtype(out_type).numpy_dtype
    values = strings.ravel().tolist()
    if fixed_length is not None:
        fixed_length = integer(fixed_length, "fixed_length", TypeError)
        if fixed_length <= 0 or fixed_length % dtype.itemsize:
            raise invalid(
                f"decode_raw: fixed_length is {fixed_length}. Expected a positive multiple of "
                f"{dtype.itemsize}, the size of {dtype.name}."
            )
        values = [value[:fixed_length].ljust(fixed_length, b"\0") for value in values]
    length = len(values[0]) if values else 0
    for place, value in enumerate(values):
        if len(value) != length:
            raise invalid(
                f"decode_raw: string {place} has {len(value)} bytes, string 0 has {length}. "
                "Expected strings of one length, or a fixed_length."
            )
    if length % dtype.itemsize:
        raise invalid(
            f"decode_raw: the strings have {length} bytes. Expected a multiple of "
            f"{dtype.itemsize}, the size of {dtype.name}."
        )
    numbers = _numbers(b"".join(values), dtype)
    if not little_endian:
        numbers = numbers.byteswap()
    return Tensor(numbers.reshape(*strings.shape, length // dtype.itemsize))


def _numbers(data: bytes, dtype: np.dtype) -> np.ndarray:
    """Returns the numbers whose bytes `data` are. Any byte but 0 is true: `bool` has no others."""
    if dtype == np.bool_:
        return np.frombuffer(data, np.uint8) != 0
    return np.frombuffer(data, dtype).copy()


# A tensor as bytes, in the protocol buffer that TensorFlow calls TensorProto: field 1 is the dtype,
# field 2 the shape, field 4 the elements, field 8 each of its strings.


_DTYPES = {
    dtype.as_datatype_enum: dtype
    for dtype in (
        dtypes.bfloat16,
        dtypes.bool_,
        dtypes.complex64,
        dtypes.complex128,
        dtypes.float16,
        dtypes.float32,
        dtypes.float64,
        dtypes.int8,
        dtypes.int16,
        dtypes.int32,
        dtypes.int64,
        dtypes.string,
        dtypes.uint8,
        dtypes.uint16,
        dtypes.uint32,
        dtypes.uint64,
    )
}


@host_function
def serialize_tensor(tensor: Any, name: str | None = None) -> Tensor:
    """A tensor as a string of bytes, as TensorFlow writes it.

    >>> written = tf.io.serialize_tensor([1.5, 2.5])
    >>> tf.io.parse_tensor(written, tf.float32).numpy()
    array([1.5, 2.5], dtype=float32)
    """
    x = convert_to_tensor(tensor)
    array = np.asarray(x._array)
    dims = b"".join(_field(2, _number(1, size) if size else b"") for size in array.shape)
    written = _number(1, x.dtype.as_datatype_enum) + _field(2, dims)
    if x.dtype == dtypes.string:
        written += b"".join(_field(8, value) for value in array.ravel().tolist())
    elif array.size:
        written += _field(4, array.tobytes())
    return Tensor(np.array(written, object))


@host_function(dynamic_shapes=True)
def parse_tensor(serialized: Any, out_type: Any, name: str | None = None) -> Tensor:
    """What `serialize_tensor` wrote, here or in TensorFlow."""
    written = as_string_tensor(serialized).numpy()
    wanted = dtypes.as_dtype(out_type)
    try:
        number, shape, content, strings = _parts(written)
        found = _DTYPES[number]
        array = _elements(found, content, strings).reshape(shape)
    except (IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise invalid("parse_tensor: these bytes are not those of a tensor.") from error
    if found != wanted:
        raise invalid(
            f"parse_tensor: the tensor has dtype {found.name}, out_type is {wanted.name}. Expected "
            "the same."
        )
    return Tensor(array)


def _parts(written: bytes) -> tuple[int, list[int], bytes, list[bytes]]:
    number, shape, content, strings = 0, [], b"", []
    for field, value in _fields(written):
        if field == 1:
            number = value
        elif field == 2:
            shape = [dict(_fields(dim)).get(1, 0) for kind, dim in _fields(value) if kind == 2]
        elif field == 4:
            content = value
        elif field == 8:
            strings.append(value)
        else:
            raise ValueError(f"field {field}")
    return number, shape, content, strings


def _elements(dtype: Any, content: bytes, strings: list[bytes]) -> np.ndarray:
    if dtype == dtypes.string:
        array = np.empty(len(strings), object)
        array[:] = strings
        return array
    if dtype == dtypes.bool_ and content.strip(b"\0\1"):
        raise ValueError("a bool is neither 0 nor 1")
    return _numbers(content, dtype.numpy_dtype)


def _varint(number: int) -> bytes:
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*written, number])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _field(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _fields(written: bytes) -> list[tuple[int, Any]]:
    """Numbers and strings of bytes, with their fields."""
    found: list[tuple[int, Any]] = []
    place = 0
    while place < len(written):
        tag, place = _read_varint(written, place)
        value, place = _read_varint(written, place)
        if tag & 7 == 2:
            if place + value > len(written):
                raise ValueError("cut off")
            value, place = written[place : place + value], place + value
        elif tag & 7:
            raise ValueError(f"kind {tag & 7}")
        found.append((tag >> 3, value))
    return found


def _read_varint(written: bytes, place: int) -> tuple[int, int]:
    number, shift = 0, 0
    while written[place] & 0x80:
        if shift > 56:
            raise ValueError("a number has more than 10 bytes")
        number |= (written[place] & 0x7F) << shift
        shift += 7
        place += 1
    return number | written[place] << shift, place + 1
