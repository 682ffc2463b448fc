"""tf.config.optimizer: settings of TensorFlow's graph optimizer, stored without effect."""

from __future__ import annotations

from typing import Any

from retrograde._api.lazy import from_all
from retrograde.values.settings import settings

__all__ = ["get_experimental_options", "get_jit", "set_experimental_options", "set_jit"]

__getattr__, __dir__ = from_all(__name__)


def get_jit() -> str:
    """Returns the value set by `set_jit`: "autoclustering" or ""."""
    return settings["jit"]


def set_jit(enabled: bool | str) -> None:
    """Stores `enabled`. A function is compiled only if its `jit_compile` is true."""
    settings["jit"] = "autoclustering" if enabled in (True, "autoclustering") else ""


def get_experimental_options() -> dict[str, Any]:
    """Returns the options set by `set_experimental_options`."""
    return dict(settings["optimizer_options"])


def set_experimental_options(options: dict[str, Any]) -> None:
    """Stores options, in addition to earlier ones."""
    settings["optimizer_options"] |= options
