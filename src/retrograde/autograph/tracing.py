"""Functions of tf.autograph, which have nothing to convert."""

from __future__ import annotations

from typing import Any

from retrograde.values.arguments import as_text


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """Does nothing: there is no conversion to report on."""


def trace(*args: Any) -> None:
    """Prints its arguments, each time that it runs."""
    print(*map(as_text, args))
