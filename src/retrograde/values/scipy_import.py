"""Imports SciPy modules on first use."""

from __future__ import annotations

import functools
import importlib
from types import ModuleType


@functools.cache
def import_scipy(name: str, user: str) -> ModuleType:
    """Imports the module `scipy.<name>`, which `user` needs.

    If SciPy is missing, the `ModuleNotFoundError` says how to install it.
    """
    try:
        importlib.import_module("scipy")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"{user} needs SciPy, which is not installed. Install it with: pip install scipy",
            name="scipy",
        ) from None
    return importlib.import_module(f"scipy.{name}")
