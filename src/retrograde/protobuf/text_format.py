"""The text format of messages, as `str` and `print` show them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

_ESCAPES = {9: "\\t", 10: "\\n", 13: "\\r", 34: '\\"', 39: "\\'", 92: "\\\\"}


def to_text(message: Any) -> str:
    """Returns the fields of a message, one on each line."""
    return "".join(f"{line}\n" for line in _format_fields(message))


def _format_fields(message: Any) -> Iterator[str]:
    for field, value in message.ListFields():
        if field.is_map:
            for key, item in value.items():
                yield f"{field.name} {{"
                yield f"  key: {_quote(key.encode())}"
                yield from _format_nested("value", item, "  ")
                yield "}"
        else:
            for item in value if field.repeated else [value]:
                if field.is_message:
                    yield from _format_nested(field.name, item, "")
                else:
                    yield f"{field.name}: {_format_scalar(item, field)}"


def _format_nested(name: str, message: Any, indent: str) -> Iterator[str]:
    yield f"{indent}{name} {{"
    for line in _format_fields(message):
        yield f"{indent}  {line}"
    yield f"{indent}}}"


def _format_scalar(value: Any, field: Any) -> str:
    if isinstance(value, str | bytes):
        return _quote(value.encode() if isinstance(value, str) else value)
    if isinstance(value, bool):
        return str(value).lower()
    if field.enum_names is not None:
        return field.enum_names.get(value, str(value))
    return _format_float(value, field.kind) if isinstance(value, float) else str(value)


def _format_float(value: float, kind: str) -> str:
    """Formats a number like `%g` in C. Uses all digits only if fewer are not exact."""
    if not math.isfinite(value):
        return str(value)
    digits, max_digits = (6, 9) if kind == "float" else (15, 17)
    text = f"{value:.{digits}g}"
    exact = float(np.float32(text)) == value if kind == "float" else float(text) == value
    return text if exact else f"{value:.{max_digits}g}"


def _quote(data: bytes) -> str:
    parts = (
        _ESCAPES.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in data
    )
    return f'"{"".join(parts)}"'
