"""Selects the device of operations when the package is imported."""

from __future__ import annotations

import importlib.util
import os

VARIABLE = "RETROGRADE_DEVICE"
_PLUGINS = ("jax_plugins", "libtpu")  # installed by JAX's extras for GPUs and TPUs


def select_default_device() -> None:
    """Selects an accelerator if JAX could find one, or the device that `VARIABLE` names."""
    if os.environ.get(VARIABLE) or any(importlib.util.find_spec(name) for name in _PLUGINS):
        from retrograde.config import accelerators

        accelerators.select_default_device()
