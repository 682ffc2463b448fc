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
    csv_format = CsvFormat(
        record_defaults, field_delim, use_quote_delim, na_value, select_cols, "decode_csv"
    )
    records = strings.ravel().tolist()
    rows = [csv_format.parse(record, f"record {i}") for i, record in enumerate(records)]
    columns = []
    for i, default in enumerate(csv_format.defaults):
        array = np.empty(len(rows), default.dtype)
        array[:] = [row[i] for row in rows]
        columns.append(Tensor(array.reshape(strings.shape)))
    return columns


class CsvFormat:
    """Parses records of one format. Errors start with `label`, the operation that parses."""

    def __init__(
        self,
        record_defaults: Sequence[Any],
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Sequence[int] | None = None,
        label: str = "CsvDataset",
        exclude_cols: Sequence[int] | None = None,
    ) -> None:
        self.label = label
        self.quotes = use_quote_delim
        self.delimiter = expect(field_delim, str, label, "a field_delim of type str").encode()
        self.missing = expect(na_value, str, label, "an na_value of type str").encode()
        if len(self.delimiter) != 1:
            raise invalid(
                f"{label}: field_delim is {shown(field_delim)}. Expected one ASCII character."
            )
        self.defaults = [np.asarray(as_tensor(default)._array) for default in record_defaults]
        for default in self.defaults:
            if default.ndim > 1 or default.size > 1:
                raise invalid(
                    f"{label}: each of `record_defaults` must be a scalar or a vector with at most "
                    f"one element. Received: a default of shape {default.shape}."
                )
        count = len(self.defaults)
        self.columns, self.width = list(range(count)), count
        if select_cols is not None and exclude_cols is not None:
            raise invalid(f"{label}: expected `select_cols` or `exclude_cols`. Received both.")
        if select_cols is not None:
            self.columns, self.width = list(select_cols), None
        elif exclude_cols is not None:
            self.width = count + len(exclude_cols)
            self.columns = [i for i in range(self.width) if i not in exclude_cols]
        increase = self.columns == sorted(set(self.columns)) and min(self.columns, default=0) >= 0
        if len(self.columns) != count or not increase:
            raise (ValueError if label == "decode_csv" else invalid)(
                f"{label}: `select_cols` must increase, with one column for each of "
                f"`record_defaults`. Received: {shown(self.columns)} for {count} defaults."
            )

    def parse(self, record: bytes, where: str) -> list[Any]:
        """Returns a value for each selected column of a record. Errors say `where` it is."""
        fields = self._fields(record, where)
        if self.width is not None and len(fields) != self.width:
            raise invalid(
                f"{self.label}: {where} has {len(fields)} fields. Expected {self.width}, one for "
                "each of `record_defaults`."
            )
        if self.width is None and len(fields) <= max(self.columns, default=-1):
            raise invalid(
                f"{self.label}: {where} has {len(fields)} fields. Expected more than "
                f"{max(self.columns)}, the last of `select_cols`."
            )
        pairs = zip(self.columns, self.defaults, strict=True)
        return [self._value(fields[column], column, default, where) for column, default in pairs]

    def _fields(self, record: bytes, where: str) -> list[bytes]:
        """Splits a record, by TensorFlow's rules for quotes and line breaks."""
        if self.label != "decode_csv" and not record:
            return [b""]
        special = rb'["\r\n]' if self.quotes else rb"[\r\n]"
        if not re.search(special, record):
            return record.split(self.delimiter) if record else []
        fields, position = [], 0
        while position < len(record):
            if record[position] in b"\r\n":
                position += 1
                continue
            if self.quotes and record[position] == ord('"'):
                field, position = self._parse_quoted(record, position + 1, where)
            else:
                field = record[position:].partition(self.delimiter)[0]
                position += len(field) + 1
                if re.search(special, field):
                    reason = "has a quote or line break in an unquoted field"
                    raise self._malformed_record(where, reason)
            fields.append(field)
        return [*fields, b""] if record.endswith(self.delimiter) else fields

    def _parse_quoted(self, record: bytes, position: int, where: str) -> tuple[bytes, int]:
        """Returns the quoted field that starts at `position`, and the start of the next field."""
        parts = []
        while True:
            end = record.find(b'"', position)
            if end < 0:
                raise self._malformed_record(where, "has an unterminated quoted field")
            parts.append(record[position:end])
            next_char = record[end + 1 : end + 2]
            if not next_char or next_char == self.delimiter:
                return b"".join(parts), end + 2
            if next_char != b'"':
                raise self._malformed_record(where, "has an unescaped quote in a quoted field")
            parts.append(b'"')
            position = end + 2

    def _malformed_record(self, where: str, reason: str) -> InvalidArgumentError:
        return invalid(
            f"{self.label}: {where} {reason}. Expected quotes around the whole field, and "
            "two for each quote in it."
        )

    def _value(self, field: bytes, column: int, default: np.ndarray, where: str) -> Any:
        if not field or field == self.missing:
            if default.size:
                return default.ravel()[0]
            raise invalid(f"{self.label}: field {column} is required, but missing in {where}.")
        if default.dtype == dtypes.string.numpy_dtype:
            return field
        value = parse_number(field, dtypes.of(default.dtype))
        if value is None:
            text = field if len(field) < 100 else field[:100] + b"..."
            raise invalid(
                f"{self.label}: field {column} of {where} is {text.decode('latin-1')!r}. "
                f"Expected a value of {default.dtype.name}."
            )
        with np.errstate(over="ignore"):
            return default.dtype.type(value)
