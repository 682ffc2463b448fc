"""Datasets of lines or records in files."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import numpy as np

from retrograde.core.tensor import Tensor, wrap
from retrograde.data import _nodes
from retrograde.data.dataset import Dataset
from retrograde.io._compressed import WINDOWS, DecompressedFile
from retrograde.io.files import to_tensorflow_error
from retrograde.ops.arguments import integer
from retrograde.ops.conversion import as_tensor
from retrograde.records.files import read_records
from retrograde.values import dtypes
from retrograde.values.arguments import expect, shown
from retrograde.values.errors import NotFoundError, invalid
from retrograde.values.specs import TensorSpec

_STRING = TensorSpec([], dtypes.string)


class TextLineDataset(Dataset):
    """The lines of text files, without line endings.

    `filenames` is a name, or a tensor or dataset of names. `compression_type` is "GZIP", "ZLIB" or
    empty. `num_parallel_reads` files are read ahead of time and interleaved; without it, files are
    read sequentially.
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: str | None = None,
        buffer_size: Any = None,
        num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:
        read = lambda path: _lines(open_file(path, compression_type))  # noqa: E731
        super().__init__(read_files(filenames, read, num_parallel_reads, "TextLine"))


class FixedLengthRecordDataset(Dataset):
    """The records of `record_bytes` bytes in files, between a header and a footer.

    `TextLineDataset` describes the other arguments.
    """

    def __init__(
        self,
        filenames: Any,
        record_bytes: Any,
        header_bytes: Any = None,
        footer_bytes: Any = None,
        buffer_size: Any = None,
        compression_type: str | None = None,
        num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:
        size = integer(record_bytes, "record_bytes", TypeError)
        _nodes.check_positive(size, "record_bytes")
        header, footer = (
            0 if value is None else integer(value, argument, TypeError)
            for value, argument in ((header_bytes, "header_bytes"), (footer_bytes, "footer_bytes"))
        )
        read = lambda path: _records(  # noqa: E731
            path, compression_type, size, header, footer
        )
        super().__init__(read_files(filenames, read, num_parallel_reads, "FixedLengthRecord"))


class TFRecordDataset(Dataset):
    """The records of TFRecord files, as strings.

    `TextLineDataset` describes the arguments. A corrupt record raises `tf.errors.DataLossError`.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     with tf.io.TFRecordWriter(file.name, "GZIP") as writer:
    ...         writer.write(b"hello")
    ...     list(tf.data.TFRecordDataset(file.name, "GZIP").as_numpy_iterator())
    [b'hello']
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: str | None = None,
        buffer_size: Any = None,
        num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:
        def read(path: str) -> Iterator[bytes]:
            return read_records(open_file(path, compression_type), path)

        super().__init__(read_files(filenames, read, num_parallel_reads, "TFRecord"))


def read_files(
    filenames: Any, read: Callable[[str], Iterator[bytes]], parallel: Any, name: str
) -> _nodes.Node:
    """Returns a node with all byte strings that `read` yields for the files."""

    def read_strings(path: str) -> Iterator[Tensor]:
        return (wrap(np.asarray(part, object)) for part in read(path))

    return read_elements(filenames, read_strings, parallel, name, _STRING)


def read_elements(
    filenames: Any, read: Callable[[str], Iterator[Any]], parallel: Any, name: str, spec: Any
) -> _nodes.Node:
    """Returns a node with all elements that `read` yields for the files."""
    if isinstance(filenames, Dataset):
        files = filenames
        if not files._node.spec_needs_call and getattr(files.element_spec, "dtype", None) != (
            dtypes.string
        ):
            raise TypeError(
                "The `filenames` argument must contain `tf.string` elements. Got a dataset of "
                f"elements {files.element_spec!r}."
            )
        if not files._node.spec_needs_call and files.element_spec.shape.rank not in (0, None):
            raise TypeError(
                "The `filenames` argument must contain `tf.string` scalars. Got a dataset of "
                f"elements {files.element_spec!r}."
            )
    else:
        files = Dataset.from_tensor_slices(np.atleast_1d(file_names(filenames)))

    def read_file(path: Tensor) -> Dataset:
        text = expect(path.numpy(), bytes, name, "file names of dtype tf.string")
        make = lambda _run: read(text.decode())  # noqa: E731
        return Dataset(_nodes.FunctionSource(make, spec, _nodes.UNKNOWN_CARDINALITY, name))

    if parallel is None:
        node = files.flat_map(read_file)._node
    else:
        node = files.interleave(read_file, parallel, num_parallel_calls=parallel)._node
    node.name, node.compute_spec, node.spec_needs_call = name, lambda: spec, False
    node.reads_files = True
    return node


def file_names(filenames: Any) -> np.ndarray:
    if isinstance(filenames, os.PathLike):
        filenames = os.fspath(filenames)
    elif isinstance(filenames, (list, tuple)):
        filenames = [os.fspath(x) if isinstance(x, os.PathLike) else x for x in filenames]
    empty = isinstance(filenames, (list, tuple)) and not np.size(filenames)
    tensor = as_tensor(filenames, dtypes.string.numpy_dtype if empty else None)
    if tensor.dtype != dtypes.string:
        raise TypeError(
            "The `filenames` argument must contain `tf.string` elements. Got "
            f"`{tensor.dtype!r}` elements."
        )
    return np.asarray(tensor._array).reshape(-1)


def open_file(path: str, compression: str | None) -> BinaryIO:
    if compression and compression not in WINDOWS:
        raise invalid(
            f"Unsupported compression_type: {shown(compression)}. Expected 'GZIP', 'ZLIB', '' "
            "or None."
        )
    try:
        file = open(path, "rb")  # noqa: SIM115 (the reader closes it)
    except FileNotFoundError:
        raise NotFoundError(None, None, f"{path}; No such file or directory") from None
    except OSError as error:
        raise to_tensorflow_error(error, path) from None
    if not compression:
        return file
    return io.BufferedReader(DecompressedFile(file, compression, f"Cannot read {path}"))


def _lines(file: BinaryIO) -> Iterator[bytes]:
    with file:
        for line in file:
            yield line.removesuffix(b"\n").removesuffix(b"\r")


def _records(
    path: str, compression: str | None, size: int, header: int, footer: int
) -> Iterator[bytes]:
    length = _length(path, compression) - header - footer
    with open_file(path, compression) as file:
        if length < 0 or length % size:
            raise invalid(
                f"Excluding the header ({header} bytes) and footer ({footer} bytes), input file "
                f'"{path}" has body length {length} bytes, which is not an exact multiple of the '
                f"record length ({size} bytes)."
            )
        file.read(header)
        for _ in range(length // size):
            yield file.read(size)


def _length(path: str, compression: str | None) -> int:
    """Returns the size of the content in bytes. This reads all of a compressed file."""
    with open_file(path, compression) as file:
        if not compression:
            return file.seek(0, io.SEEK_END)
        return sum(map(len, iter(lambda: file.read(1 << 18), b"")))
