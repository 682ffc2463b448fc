"""Initializers: the keys and values of static tables."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.io.files import to_tensorflow_error
from retrograde.ops.conversion import as_tensor
from retrograde.strings._elementwise import STRING, array_of
from retrograde.strings._numbers import parse_number
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.dtypes import DType
from retrograde.values.errors import NotFoundError, OutOfRangeError, invalid


class TextFileIndex:
    """The columns of a text file that `tf.lookup.TextFileInitializer` can read.

    >>> tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
    (-2, -1)
    """

    WHOLE_LINE = -2
    LINE_NUMBER = -1


class TableInitializerBase:
    """The base class of initializers."""

    def __init__(self, key_dtype: Any, value_dtype: Any) -> None:
        self._key_dtype = dtypes.as_dtype(key_dtype)
        self._value_dtype = dtypes.as_dtype(value_dtype)

    @property
    def key_dtype(self) -> DType:
        """The dtype of keys."""
        return self._key_dtype

    @property
    def value_dtype(self) -> DType:
        """The dtype of values."""
        return self._value_dtype

    def initialize(self, table: Any) -> None:
        """Adds the keys and values to a table."""
        keys, values = self._keys_and_values()
        table._initialize(keys, values)

    def _keys_and_values(self) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError


class KeyValueTensorInitializer(TableInitializerBase):
    """The keys and values of a table as two vectors.

    >>> words = tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2])
    >>> tf.lookup.StaticHashTable(words, default_value=0).lookup(tf.constant(["b", "c"])).numpy()
    array([2, 0], dtype=int32)
    """

    def __init__(
        self,
        keys: Any,
        values: Any,
        key_dtype: Any = None,
        value_dtype: Any = None,
        name: str | None = None,
    ) -> None:
        self._keys = _as_vector(keys, key_dtype)
        self._values = _as_vector(values, value_dtype)
        super().__init__(self._keys.dtype, self._values.dtype)

    def _keys_and_values(self) -> tuple[np.ndarray, np.ndarray]:
        return np.asarray(self._keys), np.asarray(self._values)


def _as_vector(values: Any, dtype: Any) -> Tensor:
    return as_tensor(values, None if dtype is None else dtypes.as_dtype(dtype).numpy_dtype)


class TextFileInitializer(TableInitializerBase):
    """The keys and values of a table, read from the lines of a text file.

    `key_index` and `value_index` are the numbers of columns, `tf.lookup.TextFileIndex.WHOLE_LINE`
    or `LINE_NUMBER`. `value_index_offset` is added to line numbers.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
    ...     _ = file.write("apple\\nbanana\\n")
    ...     file.flush()
    ...     index = tf.lookup.TextFileIndex
    ...     words = tf.lookup.TextFileInitializer(
    ...         file.name, tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
    ...     )
    ...     table = tf.lookup.StaticHashTable(words, default_value=-1)
    >>> table.lookup(tf.constant(["banana", "cherry"])).numpy()
    array([ 1, -1])
    """

    def __init__(
        self,
        filename: Any,
        key_dtype: Any,
        key_index: int,
        value_dtype: Any,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
        value_index_offset: int = 0,
    ) -> None:
        super().__init__(key_dtype, value_dtype)
        if isinstance(filename, Tensor):
            if filename.dtype != dtypes.string or filename.ndim:
                raise ValueError(
                    f"`filename` must be one string. Received: {shown(filename)} for "
                    "TextFileInitializer."
                )
            filename = filename.numpy().decode()
        if not filename:
            raise ValueError(f"`filename` argument required for TextFileInitializer: {filename!r}")
        if key_index < -2 or value_index < -2:
            raise ValueError(
                f"Invalid key_index {key_index} or value_index {value_index}. Expected the number "
                "of a column, or an attribute of tf.lookup.TextFileIndex."
            )
        if key_index == value_index:
            raise ValueError(
                f"Key index and value index must be different. Received: {key_index} for both."
            )
        if vocab_size is not None and vocab_size <= 0:
            raise ValueError(f"Invalid vocab_size {shown(vocab_size)}, should be > 0")
        for column, index, dtype in (
            ("Key", key_index, self._key_dtype),
            ("Value", value_index, self._value_dtype),
        ):
            _check_index(column, index, dtype)
        self._filename = os.fspath(filename)
        self._indices = key_index, value_index
        self._vocab_size, self._delimiter = vocab_size, delimiter
        self._offset = value_index_offset

    def _keys_and_values(self) -> tuple[np.ndarray, np.ndarray]:
        lines = self._lines()
        if not lines:
            raise OutOfRangeError(None, None, f"{self._filename} has no lines.")
        if b"" in lines:
            raise invalid(f"Invalid content in {self._filename}: line {lines.index(b'')} is empty.")
        if self._vocab_size is not None:
            if len(lines) < self._vocab_size:
                raise invalid(
                    f"Invalid vocab_size in {self._filename}: expected {self._vocab_size} but got "
                    f"{len(lines)}"
                )
            lines = lines[: self._vocab_size]
        key_index, value_index = self._indices
        keys = self._column(lines, key_index, self._key_dtype)
        return keys, self._column(lines, value_index, self._value_dtype)

    def _lines(self) -> list[bytes]:
        try:
            with open(self._filename, "rb") as file:
                return [line.removesuffix(b"\n").removesuffix(b"\r") for line in file]
        except FileNotFoundError:
            message = f"{self._filename}; No such file or directory"
            raise NotFoundError(None, None, message) from None
        except OSError as error:
            raise to_tensorflow_error(error, self._filename) from error

    def _column(self, lines: list[bytes], index: int, dtype: DType) -> np.ndarray:
        if index == TextFileIndex.LINE_NUMBER:
            return np.arange(self._offset, self._offset + len(lines), dtype=np.int64)
        if index == TextFileIndex.WHOLE_LINE:
            return array_of(lines, STRING)
        rows = [line.split(self._delimiter.encode()) for line in lines]
        values = []
        for number, row in enumerate(rows):
            if len(row) <= max(self._indices):
                raise invalid(
                    f"Invalid number of columns in {self._filename} line {number} "
                    f"({lines[number].decode(errors='replace')}): expected at least "
                    f"{max(self._indices) + 1}, got {len(row)}"
                )
            values.append(self._parse(row[index], dtype, number))
        return array_of(values, dtype.numpy_dtype)

    def _parse(self, field: bytes, dtype: DType, number: int) -> Any:
        value = field if dtype == dtypes.string else parse_number(field, dtype)
        if value is None:
            raise invalid(
                f"Field {field.decode(errors='replace')} in line {number} is not a valid "
                f"{dtype.name}."
            )
        return value


def _check_index(column: str, index: int, dtype: DType) -> None:
    if index == TextFileIndex.LINE_NUMBER and dtype != dtypes.int64:
        raise ValueError(
            f"{column} index for line number requires dtype int64. Received: {dtype!r}."
        )
    if index == TextFileIndex.WHOLE_LINE and dtype not in (dtypes.string, dtypes.int64):
        raise ValueError(
            f"{column} index for whole line requires string or integer dtype. Received: {dtype!r}."
        )
