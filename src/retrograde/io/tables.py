"""Rows of values with commas between them."""

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
    """Strings with fields as columns: a tensor for each field, in the shape of `records`.

    The dtype of a column is that of its default, which is taken where a field is empty or
    `na_value`; a field whose default is empty has to be there.

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
    """Returns the fields of record `number`, by TensorFlow's rules for quotes and line ends."""
    if not re.search(rb'["\r\n]' if quotes else rb"[\r\n]", record):
        return record.split(delimiter) if record else []
    fields, place = [], 0
    while place < len(record):
        if record[place] in b"\r\n":
            place += 1
            continue
        if quotes and record[place] == ord('"'):
            field, place = _quoted(record, place + 1, delimiter, number)
        else:
            field = record[place:].partition(delimiter)[0]
            place += len(field) + 1
            if re.search(rb'["\r\n]' if quotes else rb"[\r\n]", field):
                raise _malformed(number, "has a quote or a line end in a field without quotes")
        fields.append(field)
    return [*fields, b""] if record.endswith(delimiter) else fields


def _quoted(record: bytes, place: int, delimiter: bytes, number: int) -> tuple[bytes, int]:
    """Returns a field that begins at `place`, after its quote, and where the next one begins."""
    parts = []
    while True:
        end = record.find(b'"', place)
        if end < 0:
            raise _malformed(number, "has a field without a quote at its end")
        parts.append(record[place:end])
        following = record[end + 1 : end + 2]
        if not following or following == delimiter:
            return b"".join(parts), end + 2
        if following != b'"':
            raise _malformed(number, "has a single quote inside a field with quotes")
        parts.append(b'"')
        place = end + 2


def _malformed(number: int, problem: str) -> InvalidArgumentError:
    return invalid(
        f"decode_csv: record {number} {problem}. Expected quotes around the whole field, and two "
        "for each quote in it."
    )


def _column(
    fields: list[bytes], column: int, default: np.ndarray, missing: bytes, shape: tuple[int, ...]
) -> Tensor:
    array = np.empty(len(fields), default.dtype)
    for place, field in enumerate(fields):
        if field and field != missing:
            array[place] = _value(field, column, place, default.dtype)
        elif default.size:
            array[place] = default.ravel()[0]
        else:
            raise invalid(f"decode_csv: field {column} is required, and missing in record {place}.")
    return Tensor(array.reshape(shape))


def _value(field: bytes, column: int, place: int, dtype: np.dtype) -> Any:
    if dtype == dtypes.string.numpy_dtype:
        return field
    found = parse_number(field, dtypes.of(dtype))
    if found is None:
        word = field if len(field) < 100 else field[:100] + b"..."
        raise invalid(
            f"decode_csv: field {column} of record {place} is {word.decode('latin-1')!r}. Expected "
            f"a value of {dtype.name}."
        )
    with np.errstate(over="ignore"):
        return dtype.type(found)
