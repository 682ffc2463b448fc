"""Finds `keras` with the retrograde backend, for programs that import retrograde first."""

from __future__ import annotations

import importlib
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_NAME = "retrograde"
_DEFAULT = "tensorflow"  # Keras's default backend


class KerasFinder:
    """Finds `keras` with the retrograde backend, unless another backend is selected.

    Keras's default backend is TensorFlow. If TensorFlow is installed, the default applies.
    """

    @staticmethod
    def find_spec(name: str, *_path_and_target: object) -> ModuleSpec | None:
        """Returns the spec of Keras, or `None` for the other finders."""
        if name != "keras" or not _selects_retrograde():
            return None
        return spec_of_keras()


def spec_of_keras() -> ModuleSpec | None:
    """Imports Keras with the retrograde backend. Returns its spec, or `None` while importing."""
    if "retrograde.keras" in sys.modules:  # it imports `keras`
        return None
    importlib.import_module("retrograde.keras")
    loader: Any = ExistingModule(sys.modules["keras"])  # `importlib.abc` would have to be imported
    return ModuleSpec("keras", loader, is_package=True)


def _selects_retrograde() -> bool:
    selected = os.environ.get("KERAS_BACKEND") or _backend_in_settings()
    if selected != _DEFAULT:
        return selected == _NAME
    return "tensorflow" not in sys.modules and not PathFinder.find_spec("tensorflow")


def _backend_in_settings() -> str:
    """Returns the backend in Keras's settings file, which Keras writes with the default."""
    import json  # not at the top: `import retrograde` does not need it

    folder = os.environ.get("KERAS_HOME") or os.path.join(os.path.expanduser("~"), ".keras")
    try:
        with open(os.path.join(folder, "keras.json"), encoding="utf-8") as file:
            return json.load(file).get("backend", _DEFAULT)
    except (OSError, ValueError, AttributeError):
        return _DEFAULT


class ExistingModule:
    """A loader that returns an existing module unchanged."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def create_module(self, spec: ModuleSpec) -> None:
        """Returns `None`: the import system creates a module, which `exec_module` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        """Puts the existing module in the place of `module`."""
        sys.modules[module.__name__] = self._module
