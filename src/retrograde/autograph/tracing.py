"""Functions of tf.autograph."""

from __future__ import annotations

from typing import Any

from retrograde.values.arguments import as_text


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """Does nothing: there is no conversion to report on."""


def trace(*args: Any) -> None:
    """Prints its arguments."""
    print(*map(as_text, args))
