"""Rows of values with commas between them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograde.core import dtypes
from retrograde.core.errors import invalid
from retrograde.core.hosting import hosted
from retrograde.core.tensor import Tensor
from retrograde.ops.conversion import as_tensor
from retrograde.strings._mapping import strings_of


@hosted
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
    strings = np.asarray(strings_of(records)._array)
    rows = _rows(strings.ravel().tolist(), field_delim, use_quote_delim)
    defaults = [np.asarray(as_tensor(default)._array) for default in record_defaults]
    columns = range(len(defaults)) if select_cols is None else select_cols
    if len(columns) != len(defaults) or list(columns) != sorted(set(columns)):
        raise ValueError(
            "decode_csv: `select_cols` must increase, with one column for each of "
            f"`record_defaults`. Received: {list(columns)} for {len(defaults)} defaults."
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
        _column([row[column] for row in rows], column, default, na_value, strings.shape)
        for column, default in zip(columns, defaults, strict=True)
    ]


def _rows(records: list[bytes], delimiter: str, quotes: bool) -> list[list[str]]:
    # Latin-1 keeps every byte as it is.
    quoting = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
    lines = (record.decode("latin-1") for record in records)
    return [next(csv.reader([line], delimiter=delimiter, quoting=quoting), [""]) for line in lines]


def _column(
    fields: list[str], column: int, default: np.ndarray, na_value: str, shape: tuple[int, ...]
) -> Tensor:
    array = np.empty(len(fields), default.dtype)
    for place, field in enumerate(fields):
        if field and field != na_value:
            array[place] = _value(field, column, place, default.dtype)
        elif default.size:
            array[place] = default.ravel()[0]
        else:
            raise invalid(f"decode_csv: field {column} is required, and missing in record {place}.")
    return Tensor(array.reshape(shape))


def _value(field: str, column: int, place: int, dtype: np.dtype) -> Any:
    if dtype == dtypes.string.numpy_dtype:
        return field.encode("latin-1")
    try:
        return np.dtype(dtype).type(int(field) if dtype.kind in "iu" else float(field))
    except (ValueError, OverflowError) as error:
        raise invalid(
            f"decode_csv: field {column} of record {place} is {field!r}. Expected a value of "
            f"{dtype.name}."
        ) from error
