"""tf.autograph: nothing is rewritten, so there is nothing to keep from being rewritten."""

from __future__ import annotations

from typing import Any

from retrograde._api.lazy import speaking
from retrograde.autograph import experimental
from retrograde.values.arguments import as_text

__all__ = ["experimental", "set_verbosity", "trace"]

__getattr__ = speaking(__name__)


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """Does nothing: there is no conversion to report on."""


def trace(*args: Any) -> None:
    """Prints its arguments, each time that it runs."""
    print(*map(as_text, args))
