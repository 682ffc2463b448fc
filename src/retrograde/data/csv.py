"""Datasets of CSV files: CsvDataset, and make_csv_dataset, which infers names and dtypes."""

from __future__ import annotations

import csv
import glob
import io
import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np

from retrograde.core.tensor import Tensor, wrap
from retrograde.data._nodes import AUTOTUNE
from retrograde.data.dataset import Dataset
from retrograde.data.readers import file_names, open_file, read_elements
from retrograde.io.csv import CsvFormat
from retrograde.ops.conversion import as_tensor
from retrograde.strings._numbers import parse_number
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.dtypes import DType
from retrograde.values.errors import invalid
from retrograde.values.specs import TensorSpec

_COLUMN_DTYPES = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64, dtypes.string)


class CsvDataset(Dataset):
    """The records of CSV files, as tuples of scalars.

    `record_defaults` has a value or a dtype for each column. A value determines the dtype and
    replaces empty fields; a dtype makes the column required. With `header`, the first line of each
    file is skipped. `select_cols` or `exclude_cols` choose columns. `tf.data.TextLineDataset`
    describes `filenames` and `compression_type`, and `tf.io.decode_csv` the other arguments.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w+") as file:
    ...     _ = file.write("name,age\\nAda,36\\nAlan,\\n")
    ...     file.flush()
    ...     data = tf.data.experimental.CsvDataset(file.name, [tf.string, [0]], header=True)
    ...     [(name.numpy(), int(age)) for name, age in data]
    [(b'Ada', 36), (b'Alan', 0)]
    """

    def __init__(
        self,
        filenames: Any,
        record_defaults: Sequence[Any],
        compression_type: str | None = None,
        buffer_size: Any = None,
        header: bool = False,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Sequence[int] | None = None,
        exclude_cols: Sequence[int] | None = None,
    ) -> None:
        defaults = [_as_default(default) for default in record_defaults]
        if not defaults:
            raise invalid("CsvDataset: expected at least one column in `record_defaults`.")
        options = (field_delim, use_quote_delim, na_value, select_cols)
        csv_format = CsvFormat(defaults, *options, "CsvDataset", exclude_cols)

        def read(path: str) -> Iterator[tuple[Tensor, ...]]:
            def parse(numbered: tuple[int, bytes]) -> tuple[Tensor, ...]:
                number, record = numbered
                values = csv_format.parse(record, f"record {number} of {path}")
                return tuple([wrap(_as_scalar(value)) for value in values])

            records = _records(open_file(path, compression_type), use_quote_delim)
            # Unlike a generator, `map` continues after an error, as `ignore_errors` requires.
            return map(parse, itertools.islice(enumerate(records), int(header), None))

        specs = tuple([TensorSpec([], default.dtype) for default in defaults])
        super().__init__(read_elements(filenames, read, None, "CSV", specs))


def _as_default(default: Any) -> Tensor:
    """Returns the default of a column as a tensor; it is empty if the column is required."""
    if isinstance(default, (DType, type, np.dtype)) and dtypes.as_dtype(default) in _COLUMN_DTYPES:
        return Tensor(np.empty(0, dtypes.as_dtype(default).numpy_dtype))
    return as_tensor(default)


def _as_scalar(value: Any) -> Any:
    return np.asarray(value, object) if isinstance(value, bytes) else value


def _records(file: BinaryIO, quotes: bool) -> Iterator[bytes]:
    """Yields the records of a file without line endings. Quoted fields may contain line breaks."""
    with io.TextIOWrapper(file, "latin-1", newline="") as lines:  # splits at CR, LF and CRLF
        for line in lines:
            while quotes and line.count('"') % 2 and (rest := next(lines, "")):
                line += rest
            yield line.removesuffix("\n").removesuffix("\r").encode("latin-1")


def make_csv_dataset(
    file_pattern: Any,
    batch_size: Any,
    column_names: Sequence[str] | None = None,
    column_defaults: Sequence[Any] | None = None,
    label_name: str | None = None,
    select_columns: Sequence[Any] | None = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: Any = 10000,
    shuffle_seed: Any = None,
    prefetch_buffer_size: Any = None,
    num_parallel_reads: Any = None,
    sloppy: bool = False,
    num_rows_for_inference: int | None = 100,
    compression_type: str | None = None,
    ignore_errors: bool = False,
    encoding: str = "utf-8",
) -> Dataset:
    """Creates a dataset of batches of CSV records, as dicts with a tensor for each column.

    The names of columns are read from the first line, and their dtypes are inferred from the first
    `num_rows_for_inference` records (all if `None`): int32, int64, float32, float64 or string. An
    empty field becomes 0 or an empty string. `column_names` and `column_defaults` replace both,
    and `select_columns` has the names or indices of the columns to read. With a `label_name`,
    elements are pairs of the features and the label. Without `num_epochs`, the dataset repeats
    forever.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w+") as file:
    ...     _ = file.write("age,fare,survived\\n22,7.25,0\\n38,71.28,1\\n")
    ...     file.flush()
    ...     data = tf.data.experimental.make_csv_dataset(
    ...         file.name, 2, label_name="survived", num_epochs=1, shuffle=False
    ...     )
    ...     [(features, label)] = data
    >>> features["age"].numpy(), features["fare"].numpy(), label.numpy()
    (array([22, 38], dtype=int32), array([ 7.25, 71.28], dtype=float32), array([0, 1], dtype=int32))
    """
    paths = _matching_files(file_pattern)

    def rows(path: str) -> Iterator[list[str]]:
        text = io.TextIOWrapper(open_file(path, compression_type), encoding, newline="")
        quoting = csv.QUOTE_MINIMAL if use_quote_delim else csv.QUOTE_NONE
        with text:
            yield from csv.reader(text, delimiter=field_delim, quoting=quoting)

    if column_names is None:
        if not header:
            raise ValueError("Expected `column_names` or `header` arguments. Neither is provided.")
        column_names = _common_header(paths, rows)
    names = list(column_names)
    if len(set(names)) < len(names):
        repeated = {name for name in names if names.count(name) > 1}
        raise ValueError(
            "Either `column_names` argument or CSV header row contains duplicate column names: "
            f"{shown(repeated)}."
        )
    columns = None if select_columns is None else _column_indices(select_columns, names)
    if column_defaults is None:
        sample = itertools.chain.from_iterable(
            itertools.islice(rows(path), int(header), None) for path in paths
        )
        sample = itertools.islice(sample, num_rows_for_inference)
        column_defaults = _infer_defaults(sample, len(names), na_value, columns, header)
    names = names if columns is None else [names[i] for i in columns]
    if label_name is not None and label_name not in names:
        raise ValueError(
            f"`label_name` provided must be one of the columns: {names}. Received: {label_name}."
        )
    options = (field_delim, use_quote_delim, na_value, columns)

    def read(path: Any) -> Dataset:
        dataset = CsvDataset(path, column_defaults, compression_type, None, header, *options)
        return dataset.ignore_errors() if ignore_errors else dataset

    def as_features(*values: Tensor) -> Any:
        features = OrderedDict(zip(names, values, strict=True))
        return features if label_name is None else (features, features.pop(label_name))

    files = Dataset.from_tensor_slices(np.array(paths, object))
    if shuffle:
        files = files.shuffle(len(paths), shuffle_seed)
    reads = num_parallel_reads
    dataset = files.interleave(read, reads or 1, num_parallel_calls=reads)
    if shuffle:
        dataset = dataset.shuffle(shuffle_buffer_size, shuffle_seed)
    dataset = dataset if num_epochs == 1 else dataset.repeat(num_epochs)
    dataset = dataset.batch(batch_size, drop_remainder=num_epochs is None).map(as_features)
    return dataset.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


def _matching_files(file_pattern: Any) -> list[str]:
    patterns = [name.decode() for name in file_names(file_pattern).tolist()]
    if not patterns:
        raise ValueError("Argument `file_pattern` should not be empty.")
    paths = sorted({path for pattern in patterns for path in glob.glob(pattern)})
    if not paths:
        raise ValueError(f"No files match `file_pattern` {', '.join(patterns)}.")
    return paths


def _common_header(paths: list[str], rows: Callable[[str], Iterator[list[str]]]) -> list[str]:
    names, *others = [next(rows(path), []) for path in paths]
    for path, other in zip(paths[1:], others, strict=True):
        if other != names:
            raise ValueError(
                "All input CSV files should have the same column names in the header row. File "
                f"{path} has the columns {other}. Expected {names}, as in {paths[0]}."
            )
    return names


def _column_indices(select_columns: Sequence[Any], names: list[str]) -> list[int]:
    """Returns the sorted indices of columns that are selected by name or index."""
    indices = []
    for column in select_columns:
        if isinstance(column, str) and column not in names:
            raise ValueError(
                f"Column {column!r} in `select_columns` is not one of the columns {names}."
            )
        index = names.index(column) if isinstance(column, str) else column
        if not 0 <= index < len(names):
            raise ValueError(
                f"Column index {index} in `select_columns` is out of range. Expected an index from "
                f"0 to {len(names) - 1}."
            )
        indices.append(index)
    if len(set(indices)) < len(indices):
        raise ValueError(
            f"`select_columns` contains duplicate columns. Received: {shown(list(select_columns))}."
        )
    return sorted(indices)


def _infer_defaults(
    rows: Iterator[list[str]], width: int, na_value: str, columns: list[int] | None, header: bool
) -> list[Tensor]:
    """Returns a zero or an empty string for each column, of the dtype that fits all `rows`."""
    columns = list(range(width)) if columns is None else columns
    kinds: list[int | None] = [None] * len(columns)  # indices of `_COLUMN_DTYPES`
    for number, row in enumerate(rows, 1 + header):
        if len(row) != width:
            raise ValueError(
                f"Problem inferring types: CSV row {number} has {len(row)} number of fields. "
                f"Expected: {width}."
            )
        for i, column in enumerate(columns):
            if row[column] not in ("", na_value):
                kinds[i] = _kind_of(row[column], kinds[i] or 0)
    inferred = [_COLUMN_DTYPES[-1 if kind is None else kind] for kind in kinds]
    return [
        Tensor(np.array([b"" if dtype is dtypes.string else 0], dtype.numpy_dtype))
        for dtype in inferred
    ]


def _kind_of(field: str, first: int) -> int:
    """Returns the index of the first column dtype, from `first` on, that can represent `field`."""
    for kind in range(first, len(_COLUMN_DTYPES) - 1):
        dtype = _COLUMN_DTYPES[kind]
        value = parse_number(field.encode(), dtype)
        if value is not None and (
            dtype.is_integer or np.isnan(value) or abs(value) <= float(dtype.max)
        ):
            return kind
    return len(_COLUMN_DTYPES) - 1
