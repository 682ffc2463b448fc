"""Settings of tf.config for eager execution and device placement."""

from __future__ import annotations

from retrograde.values import settings as _settings
from retrograde.values.settings import settings


def functions_run_eagerly() -> bool:
    """Returns whether functions run eagerly."""
    return settings["run_functions_eagerly"]


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Sets whether functions run eagerly, without tracing."""
    _settings.run_functions_eagerly(run_eagerly)


experimental_functions_run_eagerly = functions_run_eagerly
experimental_run_functions_eagerly = run_functions_eagerly


def get_soft_device_placement() -> bool:
    """Returns the value set by `set_soft_device_placement`."""
    return settings["soft_device_placement"]


def set_soft_device_placement(enabled: bool) -> None:
    """Stores `enabled`. Operations run where their inputs are."""
    settings["soft_device_placement"] = bool(enabled)
