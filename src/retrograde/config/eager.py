"""Where and how functions run: settings of tf.config."""

from __future__ import annotations

from retrograde.values.settings import settings


def functions_run_eagerly() -> bool:
    """Whether functions were asked to run eagerly."""
    return settings["run_functions_eagerly"]


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Says whether functions should run eagerly, call by call."""
    settings["run_functions_eagerly"] = bool(run_eagerly)


experimental_functions_run_eagerly = functions_run_eagerly
experimental_run_functions_eagerly = run_functions_eagerly


def get_soft_device_placement() -> bool:
    """What `set_soft_device_placement` was told last."""
    return settings["soft_device_placement"]


def set_soft_device_placement(enabled: bool) -> None:
    """Remembers `enabled`. Operations run where their inputs are."""
    settings["soft_device_placement"] = bool(enabled)
