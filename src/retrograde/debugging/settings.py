"""Switches that TensorFlow has for its logs and tracebacks."""

from __future__ import annotations

_settings = {"log_device_placement": False, "traceback_filtering": True}


def get_log_device_placement() -> bool:
    """What `set_log_device_placement` was told last."""
    return _settings["log_device_placement"]


def set_log_device_placement(enabled: bool) -> None:
    """Remembers `enabled`. There is nothing to log: operations run where their inputs are."""
    _settings["log_device_placement"] = bool(enabled)


def is_traceback_filtering_enabled() -> bool:
    """Whether tracebacks were asked to be filtered; they are short, and shown whole."""
    return _settings["traceback_filtering"]


def enable_traceback_filtering() -> None:
    """Remembers that tracebacks are to be filtered; they are short, and shown whole."""
    _settings["traceback_filtering"] = True


def disable_traceback_filtering() -> None:
    """Remembers that tracebacks are not to be filtered, which they never are."""
    _settings["traceback_filtering"] = False
