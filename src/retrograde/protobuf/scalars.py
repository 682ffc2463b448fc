"""The scalar types of protocol buffers: checks of Python values, encoding and decoding."""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from retrograde.protobuf import wire


class Scalar(NamedTuple):
    """A scalar type. `check(value, field)` converts a Python value or raises an error."""

    wire_type: int
    default: Any
    dtype: Any  # of `numpy.array(repeated field)`
    check: Callable[[Any, str], Any]
    encode: Callable[[Any], bytes]
    decode: Callable[[Any], Any]
    pack: Callable[[Iterable], bytes]
    unpack: Callable[[bytes], list]


def _integer_check(low: int, high: int) -> Callable[[Any, str], int]:
    def check(value: Any, field: str) -> int:
        if isinstance(value, bool | np.bool_):
            raise TypeError(f"Field {field}: Expected an int, got a boolean.")
        number = operator.index(value)
        if not low <= number <= high:
            raise ValueError(f"Value out of range: {number}")
        return number

    return check


def _check_bool(value: Any, field: str) -> bool:
    return bool(operator.index(value))


def _check_double(value: Any, field: str) -> float:
    if isinstance(value, str | bytes):
        raise TypeError(f"must be real number, not {type(value).__name__}")
    return float(value)


def _check_float(value: Any, field: str) -> float:
    number = _check_double(value, field)
    with np.errstate(over="ignore"):
        return float(np.float32(number))


def _check_bytes(value: Any, field: str) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError(f"expected bytes, {type(value).__name__} found")
    return bytes(value)


def _check_text(value: Any, field: str) -> str:
    if isinstance(value, bytes):
        return value.decode()
    if not isinstance(value, str):
        raise TypeError(f"bad argument type for built-in operation: {type(value).__name__}")
    return value


def _varint_type(bits: int, signed: bool) -> Scalar:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    dtype = np.dtype(f"{'i' if signed else 'u'}{bits // 8}")

    def decode(number: int) -> int:
        number &= (1 << bits) - 1
        return number - (1 << bits) if signed and number >> bits - 1 else number

    def unpack(data: bytes) -> list:
        return wire.read_packed_varints(data).astype(dtype).tolist()

    return Scalar(
        wire.VARINT,
        0,
        dtype,
        _integer_check(low, high),
        wire.encode_varint,
        decode,
        wire.encode_packed_varints,
        unpack,
    )


def _fixed_size_type(wire_type: int, code: str, check: Callable) -> Scalar:
    form = struct.Struct("<" + code)

    def decode(data: bytes) -> float:
        return form.unpack(data)[0]

    def pack(values: Iterable) -> bytes:
        return np.asarray(list(values), "<" + code).tobytes()

    def unpack(data: bytes) -> list:
        return wire.read_packed(data, "<" + code).tolist()

    return Scalar(wire_type, 0.0, np.dtype(code), check, form.pack, decode, pack, unpack)


def _length_delimited_type(
    check: Callable, encode: Callable, decode: Callable, default: Any
) -> Scalar:
    def encode_with_length(value: Any) -> bytes:
        data = encode(value)
        return wire.encode_varint(len(data)) + data

    def refuse_packed(_: Any) -> Any:
        raise TypeError("strings are not packed")

    return Scalar(
        wire.BYTES, default, None, check, encode_with_length, decode, refuse_packed, refuse_packed
    )


SCALARS = {
    "int32": _varint_type(32, signed=True),
    "int64": _varint_type(64, signed=True),
    "uint32": _varint_type(32, signed=False),
    "uint64": _varint_type(64, signed=False),
    "bool": _varint_type(64, signed=False)._replace(
        default=False,
        dtype=np.dtype(bool),
        check=_check_bool,
        decode=bool,
        unpack=lambda data: wire.read_packed_varints(data).astype(bool).tolist(),
    ),
    "fixed32": _fixed_size_type(wire.FIXED32, "I", _integer_check(0, (1 << 32) - 1))._replace(
        default=0
    ),
    "float": _fixed_size_type(wire.FIXED32, "f", _check_float),
    "double": _fixed_size_type(wire.FIXED64, "d", _check_double),
    "bytes": _length_delimited_type(_check_bytes, bytes, bytes, b""),
    "string": _length_delimited_type(_check_text, str.encode, bytes.decode, ""),
}
SCALARS["enum"] = SCALARS["int32"]
