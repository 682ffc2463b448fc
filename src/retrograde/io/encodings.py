"""Encoding and decoding of strings of bytes."""

from __future__ import annotations

import base64
import re
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.io._compressed import WINDOWS, decompress
from retrograde.ops.arguments import integer
from retrograde.ops.host_functions import host_function
from retrograde.protobuf import wire
from retrograde.strings._elementwise import as_string_tensor, map_strings
from retrograde.toplevel.creation import convert_to_tensor
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.errors import invalid

_BASE64 = re.compile(rb"[A-Za-z0-9_-]*={0,2}\Z")


def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Any:
    """Encodes strings in URL-safe base64, with "-" and "_".

    >>> tf.io.encode_base64("hello").numpy()
    b'aGVsbG8'
    """

    def encode(value: bytes) -> bytes:
        data = base64.urlsafe_b64encode(value)
        return data if pad else data.rstrip(b"=")

    return map_strings(encode, input)


def decode_base64(input: Any, name: str | None = None) -> Any:
    """Decodes URL-safe base64 strings."""

    def decode(value: bytes) -> bytes:
        if not _BASE64.match(value) or len(value.rstrip(b"=")) % 4 == 1:
            raise invalid(
                f"decode_base64: {value!r} is not URL-safe base64, which has '-' and '_'."
            )
        unpadded = value.rstrip(b"=")
        return base64.urlsafe_b64decode(unpadded + b"=" * (-len(unpadded) % 4))

    return map_strings(decode, input)


def decode_compressed(bytes: Any, compression_type: str = "", name: str | None = None) -> Any:
    """Decompresses strings of zlib ("ZLIB") or gzip ("GZIP") data; "" means uncompressed."""
    if not compression_type:
        return as_string_tensor(bytes)
    if compression_type not in WINDOWS:
        raise invalid(
            f"decode_compressed: compression_type is {shown(compression_type)}. Expected 'ZLIB', "
            "'GZIP' or ''."
        )
    op_name = "decode_compressed"
    return map_strings(lambda value: decompress(value, compression_type, op_name), bytes)


@host_function(dynamic_shapes=True)
def decode_raw(
    input_bytes: Any,
    out_type: Any,
    little_endian: bool = True,
    fixed_length: Any = None,
    name: str | None = None,
) -> Tensor:
    """Reinterprets the bytes of strings as numbers along a new last axis.

    Strings are truncated or zero-padded to `fixed_length` bytes. Without it, all strings must have
    the same length.

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
    for index, value in enumerate(values):
        if len(value) != length:
            raise invalid(
                f"decode_raw: string {index} has {len(value)} bytes, but string 0 has {length}. "
                "All strings must have the same length unless fixed_length is given."
            )
    if length % dtype.itemsize:
        raise invalid(
            f"decode_raw: the strings have {length} bytes. Expected a multiple of "
            f"{dtype.itemsize}, the size of {dtype.name}."
        )
    numbers = _numbers_from_bytes(b"".join(values), dtype)
    if not little_endian:
        numbers = numbers.byteswap()
    return Tensor(numbers.reshape(*strings.shape, length // dtype.itemsize))


def _numbers_from_bytes(data: bytes, dtype: np.dtype) -> np.ndarray:
    """Reinterprets bytes as numbers. For bool, any nonzero byte is true."""
    if dtype == np.bool_:
        return np.frombuffer(data, np.uint8) != 0
    return np.frombuffer(data, dtype).copy()


# Serialized tensors are TensorProto protocol buffers: field 1 is the dtype, field 2 the shape,
# field 4 the elements, and field 8 a string element.


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
    """Serializes a tensor to TensorFlow's format.

    >>> serialized = tf.io.serialize_tensor([1.5, 2.5])
    >>> tf.io.parse_tensor(serialized, tf.float32).numpy()
    array([1.5, 2.5], dtype=float32)
    """
    x = convert_to_tensor(tensor)
    array = np.asarray(x._array)
    dims = b"".join(
        wire.encode_bytes_field(2, wire.encode_varint_field(1, size) if size else b"")
        for size in array.shape
    )
    data = wire.encode_varint_field(1, x.dtype.as_datatype_enum) + wire.encode_bytes_field(2, dims)
    if x.dtype == dtypes.string:
        data += b"".join(wire.encode_bytes_field(8, value) for value in array.ravel().tolist())
    elif array.size:
        data += wire.encode_bytes_field(4, array.tobytes())
    return Tensor(np.array(data, object))


@host_function(dynamic_shapes=True)
def parse_tensor(serialized: Any, out_type: Any, name: str | None = None) -> Tensor:
    """Parses a tensor that was serialized here or in TensorFlow."""
    data = as_string_tensor(serialized).numpy()
    dtype = dtypes.as_dtype(out_type)
    try:
        dtype_number, shape, content, strings = _parse_tensor_proto(data)
        actual_dtype = _DTYPES[dtype_number]
        array = _elements(actual_dtype, content, strings).reshape(shape)
    except (IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise invalid("parse_tensor: the input is not a serialized tensor.") from error
    if actual_dtype != dtype:
        raise invalid(
            f"parse_tensor: the tensor has dtype {actual_dtype.name}, but out_type is {dtype.name}."
        )
    return Tensor(array)


def _parse_tensor_proto(data: bytes) -> tuple[int, list[int], bytes, list[bytes]]:
    dtype_number, shape, content, strings = 0, [], b"", []
    for field, _, value, _, _ in wire.read_fields(data):
        if field == 1:
            dtype_number = value
        elif field == 2:
            shape = [
                _read_size(dim) for number, _, dim, _, _ in wire.read_fields(value) if number == 2
            ]
        elif field == 4:
            content = value
        elif field == 8:
            strings.append(value)
        else:
            raise ValueError(f"field {field}")
    return dtype_number, shape, content, strings


def _read_size(dim: bytes) -> int:
    return next((value for number, _, value, _, _ in wire.read_fields(dim) if number == 1), 0)


def _elements(dtype: Any, content: bytes, strings: list[bytes]) -> np.ndarray:
    if dtype == dtypes.string:
        array = np.empty(len(strings), object)
        array[:] = strings
        return array
    if dtype == dtypes.bool_ and content.strip(b"\0\1"):
        raise ValueError("a bool is neither 0 nor 1")
    return _numbers_from_bytes(content, dtype.numpy_dtype)
