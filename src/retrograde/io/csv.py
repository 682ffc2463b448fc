"""Decoding of CSV records."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops.conversion import as_tensor
from retrograde.ops.host_functions import host_function
from retrograde.strings._elementwise import as_string_tensor
from retrograde.strings._numbers import parse_number
from retrograde.values import dtypes
from retrograde.values.arguments import expect, shown
from retrograde.values.errors import InvalidArgumentError, invalid


@host_function
def decode_csv(
    records: Any,
    record_defaults: Sequence[Any],
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """Decodes CSV records to a tensor for each column, in the shape of `records`.

    The default of a column determines its dtype and replaces fields that are empty or `na_value`.
    A column with an empty default is required.

    >>> numbers, words = tf.io.decode_csv(["1,a", "2,"], [[0], ["?"]])
    >>> numbers.numpy(), words.numpy()
    (array([1, 2], dtype=int32), array([b'a', b'?'], dtype=object))
    """
    strings = np.asarray(as_string_tensor(records)._array)
    delimiter = expect(field_delim, str, "decode_csv", "a field_delim of type str").encode()
    missing = expect(na_value, str, "decode_csv", "an na_value of type str").encode()
    if len(delimiter) != 1:
        raise invalid(
            f"decode_csv: field_delim is {shown(field_delim)}. Expected one ASCII character."
        )
    records = enumerate(strings.ravel().tolist())
    rows = [_fields(record, delimiter, use_quote_delim, number) for number, record in records]
    defaults = [np.asarray(as_tensor(default)._array) for default in record_defaults]
    columns = range(len(defaults)) if select_cols is None else select_cols
    if len(columns) != len(defaults) or list(columns) != sorted(set(columns)):
        raise ValueError(
            "decode_csv: `select_cols` must increase, with one column for each of "
            f"`record_defaults`. Received: {shown(list(columns))} for {len(defaults)} defaults."
        )
    for number, row in enumerate(rows):
        if select_cols is None and len(row) != len(defaults):
            raise invalid(
                f"decode_csv: record {number} has {len(row)} fields. Expected {len(defaults)}, "
                "one for each of `record_defaults`."
            )
        if select_cols is not None and len(row) <= max(columns, default=-1):
            raise invalid(
                f"decode_csv: record {number} has {len(row)} fields. Expected more than "
                f"{max(columns)}, the last of `select_cols`."
            )
    return [
        _column([row[column] for row in rows], column, default, missing, strings.shape)
        for column, default in zip(columns, defaults, strict=True)
    ]


def _fields(record: bytes, delimiter: bytes, quotes: bool, number: int) -> list[bytes]:
    """Returns the fields of record `number`, by TensorFlow's rules for quotes and line breaks."""
    if not re.search(rb'["\r\n]' if quotes else rb"[\r\n]", record):
        return record.split(delimiter) if record else []
    fields, position = [], 0
    while position < len(record):
        if record[position] in b"\r\n":
            position += 1
            continue
        if quotes and record[position] == ord('"'):
            field, position = _parse_quoted(record, position + 1, delimiter, number)
        else:
            field = record[position:].partition(delimiter)[0]
            position += len(field) + 1
            if re.search(rb'["\r\n]' if quotes else rb"[\r\n]", field):
                raise _malformed_record(number, "has a quote or line break in an unquoted field")
        fields.append(field)
    return [*fields, b""] if record.endswith(delimiter) else fields


def _parse_quoted(record: bytes, position: int, delimiter: bytes, number: int) -> tuple[bytes, int]:
    """Returns the quoted field that starts at `position`, and the start of the next field."""
    parts = []
    while True:
        end = record.find(b'"', position)
        if end < 0:
            raise _malformed_record(number, "has an unterminated quoted field")
        parts.append(record[position:end])
        next_char = record[end + 1 : end + 2]
        if not next_char or next_char == delimiter:
            return b"".join(parts), end + 2
        if next_char != b'"':
            raise _malformed_record(number, "has an unescaped quote in a quoted field")
        parts.append(b'"')
        position = end + 2


def _malformed_record(number: int, reason: str) -> InvalidArgumentError:
    return invalid(
        f"decode_csv: record {number} {reason}. Expected quotes around the whole field, and two "
        "for each quote in it."
    )


def _column(
    fields: list[bytes], column: int, default: np.ndarray, missing: bytes, shape: tuple[int, ...]
) -> Tensor:
    array = np.empty(len(fields), default.dtype)
    for record_number, field in enumerate(fields):
        if field and field != missing:
            array[record_number] = _value(field, column, record_number, default.dtype)
        elif default.size:
            array[record_number] = default.ravel()[0]
        else:
            raise invalid(
                f"decode_csv: field {column} is required, but missing in record {record_number}."
            )
    return Tensor(array.reshape(shape))


def _value(field: bytes, column: int, record_number: int, dtype: np.dtype) -> Any:
    if dtype == dtypes.string.numpy_dtype:
        return field
    value = parse_number(field, dtypes.of(dtype))
    if value is None:
        text = field if len(field) < 100 else field[:100] + b"..."
        raise invalid(
            f"decode_csv: field {column} of record {record_number} is {text.decode('latin-1')!r}. "
            f"Expected a value of {dtype.name}."
        )
    with np.errstate(over="ignore"):
        return dtype.type(value)
