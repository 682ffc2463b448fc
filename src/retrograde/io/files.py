"""Reads, writes and globs files."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable
from retrograde.files.atomic import is_disk_full, replace_or_write
from retrograde.ops.conversion import as_tensor
from retrograde.values import dtypes
from retrograde.values.errors import (
    FailedPreconditionError,
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnknownError,
    invalid,
)

_STRING = dtypes.string.numpy_dtype


def read_file(filename: Any, name: str | None = None) -> Tensor:
    """Returns the content of a file as a string."""
    path = _path(filename, "read_file")
    try:
        with open(path, "rb") as file:
            return Tensor(np.array(file.read(), object))
    except OSError as error:
        raise to_tensorflow_error(error, path) from error


def write_file(filename: Any, contents: Any, name: str | None = None) -> None:
    """Writes a string to a file and creates missing parent directories.

    The file is replaced atomically: if the process is killed, the file contains either the old or
    the new content. If the disk is full, raises `ResourceExhaustedError` and leaves the old content
    in place.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tf.io.write_file(f"{folder}/new/hello.txt", "Hello")
    ...     tf.io.read_file(f"{folder}/new/hello.txt").numpy()
    b'Hello'
    """
    path, data = _path(filename, "write_file"), as_tensor(contents, _STRING)
    if data._spec.ndim:
        raise invalid(f"write_file: `contents` has shape {data._spec.shape}. Expected a scalar.")
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        replace_or_write(path, lambda output_path: _write(output_path, data.numpy()), flush=False)
    except OSError as error:
        raise to_tensorflow_error(error, path) from error


def _write(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)


def matching_files(pattern: Any, name: str | None = None) -> Tensor:
    """Returns the sorted names of the files that match one or several patterns.

    `*` and `?` do not match a slash.
    """
    patterns = np.ravel(np.asarray(as_tensor(pattern, _STRING)._array)).tolist()
    paths = sorted({path for pattern in patterns for path in glob_paths(pattern.decode())})
    names = np.empty(len(paths), object)
    names[:] = [path.encode() for path in paths]
    return Tensor(names)


def match_filenames_once(pattern: Any, name: str | None = None) -> Variable:
    """Returns a variable with the names of the files that currently match."""
    return Variable(matching_files(pattern), trainable=False, name=name)


def glob_paths(pattern: str) -> list[str]:
    """Returns the paths that match a pattern, including hidden files."""
    return glob.glob(pattern, include_hidden=True)


def _path(filename: Any, op_name: str) -> str:
    x = as_tensor(filename, _STRING)
    if x._spec.ndim:
        raise invalid(f"{op_name}: `filename` has shape {x._spec.shape}. Expected a scalar.")
    return x.numpy().decode()


_ERRORS = {
    FileNotFoundError: NotFoundError,
    PermissionError: PermissionDeniedError,
    IsADirectoryError: FailedPreconditionError,
    NotADirectoryError: FailedPreconditionError,
    FileExistsError: FailedPreconditionError,
}


@contextlib.contextmanager
def tensorflow_errors(path: str) -> Iterator[None]:
    """Converts `OSError`s to the classes in `tf.errors`."""
    try:
        yield
    except OSError as error:
        raise to_tensorflow_error(error, path) from error


def to_tensorflow_error(error: OSError, path: str) -> Exception:
    """Returns the TensorFlow error for an `OSError`."""
    if is_disk_full(error):
        return ResourceExhaustedError(None, None, f"{path}: {error.strerror}.")
    return _ERRORS.get(type(error), UnknownError)(None, None, f"{path}: {error.strerror}.")
