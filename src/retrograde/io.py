"""tf.io: files, and images in them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from retrograde.core import dtypes
from retrograde.core.errors import (
    FailedPreconditionError,
    NotFoundError,
    PermissionDeniedError,
    UnknownError,
    invalid,
)
from retrograde.core.tensor import Tensor
from retrograde.image.codecs import (
    decode_bmp,
    decode_gif,
    decode_image,
    decode_png,
    encode_png,
)
from retrograde.image.jpeg import (
    decode_and_crop_jpeg,
    decode_jpeg,
    encode_jpeg,
    extract_jpeg_shape,
    is_jpeg,
)
from retrograde.ops.conversion import as_tensor

__all__ = [
    "decode_and_crop_jpeg",
    "decode_bmp",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "encode_jpeg",
    "encode_png",
    "extract_jpeg_shape",
    "is_jpeg",
    "read_file",
    "write_file",
]

_STRING = dtypes.string.numpy_dtype


def read_file(filename: Any, name: str | None = None) -> Tensor:
    """All that is in a file, as a string."""
    path = _path(filename, "read_file")
    try:
        with open(path, "rb") as file:
            return Tensor(np.array(file.read(), object))
    except OSError as error:
        raise _as_tensorflow(error, path) from error


def write_file(filename: Any, contents: Any, name: str | None = None) -> None:
    """Writes a string to a file; folders that are missing on its way are made.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tf.io.write_file(f"{folder}/new/hello.txt", "Hello")
    ...     tf.io.read_file(f"{folder}/new/hello.txt").numpy()
    b'Hello'
    """
    path, data = _path(filename, "write_file"), as_tensor(contents, _STRING)
    if data._array.ndim:
        raise invalid(f"write_file: `contents` has shape {data._array.shape}. Expected a scalar.")
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "wb") as file:
            file.write(data.numpy())
    except OSError as error:
        raise _as_tensorflow(error, path) from error


def _path(filename: Any, what: str) -> str:
    x = as_tensor(filename, _STRING)
    if x._array.ndim:
        raise invalid(f"{what}: `filename` has shape {x._array.shape}. Expected a scalar.")
    return x.numpy().decode()


_ERRORS = {
    FileNotFoundError: NotFoundError,
    PermissionError: PermissionDeniedError,
    IsADirectoryError: FailedPreconditionError,
    NotADirectoryError: FailedPreconditionError,
    FileExistsError: FailedPreconditionError,
}


def _as_tensorflow(error: OSError, path: str) -> Exception:
    return _ERRORS.get(type(error), UnknownError)(None, None, f"{path}: {error.strerror}.")
