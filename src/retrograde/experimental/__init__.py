"""tf.experimental: NumPy's functions on tensors."""

from __future__ import annotations

_LOADED_LATER = frozenset({"numpy"})  # namespaces that few programs use

__all__ = ["numpy"]


def __getattr__(name: str) -> object:
    if name not in _LOADED_LATER:
        raise AttributeError(f"module 'retrograde.experimental' has no attribute {name!r}")
    import importlib

    return importlib.import_module(f"retrograde.experimental.{name}")
