"""Checks and formatting of arguments that are not tensors."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np

_shortened = reprlib.Repr()
_shortened.maxother = _shortened.maxstring = 100
brief = _shortened.repr  # for messages with long values


def shown(value: Any) -> str:
    """Returns `repr(value)`, or `brief(value)` if `value` is nested too deeply.

    If the text does not fit in memory, it is the type of the value.
    """
    try:
        return repr(value)
    except RecursionError:
        return brief(value)
    except MemoryError:
        return f"a {type(value).__name__}"


def as_text(value: Any) -> str:
    """Returns `str(value)`, or `brief(value)` if `value` is nested too deeply."""
    try:
        return str(value)
    except RecursionError:
        return brief(value)


def as_float(value: Any, name: str) -> float:
    """Returns `float(value)`. Raises `ValueError` if a Python integer is out of range."""
    try:
        return float(value)
    except OverflowError:
        raise ValueError(
            f"{name} is out of range for a Python float. Received: {brief(value)}."
        ) from None


def as_int(value: Any, name: str) -> int:
    """Returns `int(value)`. Raises `ValueError` if it is infinite or masked."""
    try:
        return int(value)
    except (OverflowError, np.ma.MaskError):
        raise ValueError(f"{name} must be finite. Received: {brief(value)}.") from None


def expect(value: Any, kind: type | tuple[type, ...], name: str, expected: str) -> Any:
    """Returns `value` if it is an instance of `kind`, and raises a `TypeError` otherwise.

    `name` names the function or the argument, and `expected` describes the type in words.
    """
    if not isinstance(value, kind):
        received = f"{brief(value)} of type {type(value).__name__}"
        raise TypeError(f"{name}: expected {expected}. Received: {received}.")
    return value
