"""The functions and types of tf.compat."""

from __future__ import annotations

import contextlib
import datetime
import numbers
import os
from typing import Any

import numpy as np

import retrograde
from retrograde.values.arguments import as_text as text_of
from retrograde.values.arguments import shown
from retrograde.values.shapes import TensorShape, normalize_axis

v2 = retrograde

bytes_or_text_types = (bytes, str)
integral_types = (numbers.Integral, np.integer)
real_types = (numbers.Real, np.integer, np.floating)
complex_types = (numbers.Complex, np.number)


def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """Converts text to bytes."""
    if isinstance(bytes_or_text, bytes | bytearray):
        return bytes(bytes_or_text)
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    raise TypeError(f"Expected binary or unicode string, got {shown(bytes_or_text)}")


def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """Converts bytes to text."""
    return as_bytes(bytes_or_text, encoding).decode(encoding)


as_str = as_text


def as_str_any(value: Any, encoding: str = "utf-8") -> str:
    """Converts bytes to text, and other values with `str`."""
    return as_text(value, encoding) if isinstance(value, bytes) else text_of(value)


def path_to_str(path: Any) -> Any:
    """Converts a path to text; other values are returned unchanged."""
    return as_text(os.fspath(path)) if isinstance(path, os.PathLike) else path


def dimension_value(dimension: int | None) -> int | None:
    """Returns the dimension unchanged: an integer or `None`."""
    return dimension


def dimension_at_index(shape: Any, index: int) -> int | None:
    """Returns one dimension of a shape."""
    shape = TensorShape(shape)
    if shape.rank is None:
        return None
    return shape[normalize_axis(index, shape.rank, "dimension_at_index")]


def forward_compatible(year: int, month: int, day: int) -> bool:
    """Returns whether this date has passed."""
    try:
        return datetime.date.today() > datetime.date(year, month, day)
    except OverflowError:
        raise ValueError(
            f"year {text_of(year)}, month {text_of(month)}, day {text_of(day)} is not a date."
        ) from None


def forward_compatibility_horizon(year: int, month: int, day: int) -> Any:
    """Returns a context manager that does nothing: behavior does not depend on the date."""
    return contextlib.nullcontext()
