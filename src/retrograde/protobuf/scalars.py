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


def _integer(low: int, high: int) -> Callable[[Any, str], int]:
    def check(value: Any, field: str) -> int:
        if isinstance(value, bool | np.bool_):
            raise TypeError(f"Field {field}: Expected an int, got a boolean.")
        number = operator.index(value)
        if not low <= number <= high:
            raise ValueError(f"Value out of range: {number}")
        return number

    return check


def _boolean(value: Any, field: str) -> bool:
    return bool(operator.index(value))


def _double(value: Any, field: str) -> float:
    if isinstance(value, str | bytes):
        raise TypeError(f"must be real number, not {type(value).__name__}")
    return float(value)


def _float(value: Any, field: str) -> float:
    number = _double(value, field)
    with np.errstate(over="ignore"):
        return float(np.float32(number))


def _bytes(value: Any, field: str) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError(f"expected bytes, {type(value).__name__} found")
    return bytes(value)


def _text(value: Any, field: str) -> str:
    if isinstance(value, bytes):
        return value.decode()
    if not isinstance(value, str):
        raise TypeError(f"bad argument type for built-in operation: {type(value).__name__}")
    return value


def _varints(bits: int, signed: bool) -> Scalar:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    dtype = np.dtype(f"{'i' if signed else 'u'}{bits // 8}")

    def decode(number: int) -> int:
        number &= (1 << bits) - 1
        return number - (1 << bits) if signed and number >> bits - 1 else number

    def unpack(data: bytes) -> list:
        return wire.read_packed_varints(data).astype(dtype).tolist()

    return Scalar(
        wire.VARINT, 0, dtype, _integer(low, high), wire.varint, decode, wire.packed_varints, unpack
    )


def _fixed(wire_type: int, code: str, check: Callable) -> Scalar:
    form = struct.Struct("<" + code)

    def decode(data: bytes) -> float:
        return form.unpack(data)[0]

    def pack(values: Iterable) -> bytes:
        return np.asarray(list(values), "<" + code).tobytes()

    def unpack(data: bytes) -> list:
        return wire.read_packed(data, "<" + code).tolist()

    return Scalar(wire_type, 0.0, np.dtype(code), check, form.pack, decode, pack, unpack)


def _length_delimited(check: Callable, encode: Callable, decode: Callable, default: Any) -> Scalar:
    def with_length(value: Any) -> bytes:
        data = encode(value)
        return wire.varint(len(data)) + data

    def not_packed(_: Any) -> Any:
        raise TypeError("strings are not packed")

    return Scalar(wire.BYTES, default, None, check, with_length, decode, not_packed, not_packed)


SCALARS = {
    "int32": _varints(32, signed=True),
    "int64": _varints(64, signed=True),
    "uint32": _varints(32, signed=False),
    "uint64": _varints(64, signed=False),
    "bool": _varints(64, signed=False)._replace(
        default=False,
        dtype=np.dtype(bool),
        check=_boolean,
        decode=bool,
        unpack=lambda data: wire.read_packed_varints(data).astype(bool).tolist(),
    ),
    "fixed32": _fixed(wire.FIXED32, "I", _integer(0, (1 << 32) - 1))._replace(default=0),
    "float": _fixed(wire.FIXED32, "f", _float),
    "double": _fixed(wire.FIXED64, "d", _double),
    "bytes": _length_delimited(_bytes, bytes, bytes, b""),
    "string": _length_delimited(_text, str.encode, bytes.decode, ""),
}
SCALARS["enum"] = SCALARS["int32"]
