"""The kinds of statements that programs are written from, and tests of values.

A kind is a function. It gets the `Writer` and the name that its statement binds, and returns the
lines of the statement, or `None` if no value fits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from campaigns._programs.generator import Value

KINDS: list[Callable] = []


def weight(weight: int) -> Callable:
    """Returns a decorator that makes a kind of statement as frequent as `weight` others."""

    def add(kind: Callable) -> Callable:
        KINDS.extend([kind] * weight)
        return kind

    return add


def is_float(v: Value) -> bool:
    return v.dtype in ("float16", "bfloat16", "float32", "float64")


def is_wide(v: Value) -> bool:
    return v.dtype in ("float32", "float64")


def is_int(v: Value) -> bool:
    return v.dtype.startswith("int")


def is_complex(v: Value) -> bool:
    return v.dtype.startswith("complex")


def is_number(v: Value) -> bool:
    return v.dtype != "bool"
