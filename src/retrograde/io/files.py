"""Whole files, read and written, and files that match a pattern."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable
from retrograde.files.atomic import is_full, replace_or_write
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
    """All that is in a file, as a string."""
    path = _path(filename, "read_file")
    try:
        with open(path, "rb") as file:
            return Tensor(np.array(file.read(), object))
    except OSError as error:
        raise as_tensorflow(error, path) from error


def write_file(filename: Any, contents: Any, name: str | None = None) -> None:
    """Writes a string to a file, and creates the folders on its path that are missing.

    The file is replaced as a whole: a process that is killed leaves the old or the new content.
    A full disk raises a `ResourceExhaustedError` and leaves the old content.

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
        replace_or_write(path, lambda name: _write(name, data.numpy()), flush=False)
    except OSError as error:
        raise as_tensorflow(error, path) from error


def _write(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)


def matching_files(pattern: Any, name: str | None = None) -> Tensor:
    """The names of the files that match a pattern, or one of several, in order.

    `*` and `?` do not match a slash.
    """
    patterns = np.ravel(np.asarray(as_tensor(pattern, _STRING)._array)).tolist()
    found = sorted({path for each in patterns for path in matching(each.decode())})
    names = np.empty(len(found), object)
    names[:] = [path.encode() for path in found]
    return Tensor(names)


def match_filenames_once(pattern: Any, name: str | None = None) -> Variable:
    """A variable with the names of the files that match when it is made."""
    return Variable(matching_files(pattern), trainable=False, name=name)


def matching(pattern: str) -> list[str]:
    """The paths that match a pattern; hidden ones do as well."""
    return glob.glob(pattern, include_hidden=True)


def _path(filename: Any, what: str) -> str:
    x = as_tensor(filename, _STRING)
    if x._spec.ndim:
        raise invalid(f"{what}: `filename` has shape {x._spec.shape}. Expected a scalar.")
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
    """Runs a block in which an error of the operating system is one of `tf.errors`."""
    try:
        yield
    except OSError as error:
        raise as_tensorflow(error, path) from error


def as_tensorflow(error: OSError, path: str) -> Exception:
    """TensorFlow's error for one of the operating system."""
    if is_full(error):
        return ResourceExhaustedError(None, None, f"{path}: {error.strerror}.")
    return _ERRORS.get(type(error), UnknownError)(None, None, f"{path}: {error.strerror}.")
