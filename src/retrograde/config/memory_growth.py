"""Memory growth: JAX allocates the memory of GPUs when it is needed, or most of it at the start."""

from __future__ import annotations

import os
import sys

from retrograde.config.accelerators import restart_jax

_VARIABLE = "XLA_PYTHON_CLIENT_PREALLOCATE"


def get() -> bool:
    """Returns whether memory is allocated when it is needed."""
    return os.environ.get(_VARIABLE, "true").lower() in ("false", "0")


def set(enable: bool) -> None:
    """Sets whether memory is allocated when it is needed."""
    if enable == get():
        return
    if "jax" in sys.modules and not restart_jax():
        raise RuntimeError("Physical devices cannot be modified after being initialized")
    os.environ[_VARIABLE] = str(not enable).lower()
