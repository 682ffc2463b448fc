"""tf.config.optimizer: settings for the optimizer of graphs. They are remembered."""

from __future__ import annotations

from typing import Any

from retrograde._api.lazy import from_all
from retrograde.values.settings import settings

__all__ = ["get_experimental_options", "get_jit", "set_experimental_options", "set_jit"]

__getattr__, __dir__ = from_all(__name__)


def get_jit() -> str:
    """What `set_jit` was told last: "autoclustering", or nothing."""
    return settings["jit"]


def set_jit(enabled: bool | str) -> None:
    """Remembers whether graphs should be compiled. A function is, if its `jit_compile` says so."""
    settings["jit"] = "autoclustering" if enabled in (True, "autoclustering") else ""


def get_experimental_options() -> dict[str, Any]:
    """The options that were set."""
    return dict(settings["optimizer_options"])


def set_experimental_options(options: dict[str, Any]) -> None:
    """Remembers options, beside those that were set before."""
    settings["optimizer_options"] |= options
