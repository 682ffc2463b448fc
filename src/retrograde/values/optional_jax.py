"""JAX, which is an optional dependency, is imported on first use."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def required_jax() -> Any:
    """Imports and returns `jax`. Raises an error that says how to install it."""
    # Importing JAX draws from NumPy's global random state.
    state = None if "jax" in sys.modules else np.random.get_state()
    try:
        import jax
    except ImportError:
        raise ImportError(
            "function(jit_compile=True) compiles with XLA, which requires JAX. Install it with: "
            "pip install 'retrograde[xla]'."
        ) from None
    if state is not None:
        np.random.set_state(state)
    return jax


def gather_from_processes(array: Any) -> np.ndarray:
    """Returns all of a JAX array whose parts are in several processes. All of them must call it."""
    from jax.experimental import multihost_utils

    return multihost_utils.process_allgather(array, tiled=True)
