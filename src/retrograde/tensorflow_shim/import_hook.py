"""An import hook that makes `import tensorflow` import retrograde."""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from multiprocessing import spawn
from types import ModuleType
from typing import Any

from retrograde._api import missing
from retrograde._api.module_finders import ExistingModule, spec_of_keras


def install_as_tensorflow() -> None:
    """Makes `import tensorflow` import retrograde, in this process.

    Call it before anything imports TensorFlow, as in the first cell of a notebook:

        import retrograde
        retrograde.install_as_tensorflow()

        import tensorflow as tf
        from tensorflow.keras import layers

    `import keras` then imports Keras with the retrograde backend. `tensorflow.__version__` is the
    TensorFlow version whose API retrograde implements, because programs compare it. The hook is
    also installed in processes that `multiprocessing` starts from now on.
    """
    real = sys.modules.get("tensorflow")
    if real is not None and not isinstance(real, _TensorFlow):
        raise RuntimeError(
            f"TensorFlow {getattr(real, '__version__', '')} is already imported in this process, "
            "so retrograde cannot replace it. Call retrograde.install_as_tensorflow() in a new "
            "process, before anything imports tensorflow."
        )
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
        spawn.get_preparation_data = _preparation_data_with_hook


@contextlib.contextmanager
def retrograde_as_tensorflow() -> Iterator[None]:
    """Makes `import tensorflow` import retrograde inside a `with` block."""
    install_as_tensorflow()
    try:
        yield
    finally:
        sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, _Finder)]
        spawn.get_preparation_data = _preparation_data
        for name in [name for name in sys.modules if name.partition(".")[0] == "tensorflow"]:
            del sys.modules[name]


# A process that is not forked unpickles the preparation data of its parent, then imports the main
# module.
_preparation_data = spawn.get_preparation_data


def _preparation_data_with_hook(name: str) -> dict[str, Any]:
    """Adds an object that installs the hook when the new process unpickles it."""
    return {"retrograde": _InstallOnUnpickle(), **_preparation_data(name)}


class _InstallOnUnpickle:
    """Calls `install_as_tensorflow` when it is unpickled."""

    def __reduce__(self) -> tuple:
        return install_as_tensorflow, ()


class _TensorFlow(ModuleType):
    """The module `tensorflow`: all names of retrograde, with TensorFlow's version."""

    def __init__(self) -> None:
        retrograde = importlib.import_module("retrograde")
        super().__init__("tensorflow", retrograde.__doc__)
        self.__file__ = retrograde.__file__
        self.__path__: list[str] = []  # only `_Finder` finds submodules
        self.__all__ = [name for name in retrograde.__all__ if name != "__version__"]
        self.__version__ = retrograde.version.VERSION
        self.__git_version__ = retrograde.version.GIT_VERSION
        self.__compiler_version__ = retrograde.version.COMPILER_VERSION

    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module("retrograde"), name)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *self.__all__})


class _Finder(importlib.abc.MetaPathFinder):
    """Finds `tensorflow` and `keras`; raises for packages that require TensorFlow."""

    replaces_tensorflow = True

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        top, _, below = fullname.partition(".")
        if top in missing.PACKAGES:
            reason = missing.package_message(top)
            raise ModuleNotFoundError(f"No module named {fullname!r}. {reason}", name=fullname)
        if top == "tensorflow":
            return _spec(fullname, _module(fullname) if below else _TensorFlow())
        return spec_of_keras() if fullname == "keras" else None


def _spec(name: str, module: ModuleType) -> importlib.machinery.ModuleSpec | None:
    is_package = hasattr(module, "__path__")
    return importlib.util.spec_from_loader(name, ExistingModule(module), is_package=is_package)


def _module(fullname: str) -> ModuleType:
    """Returns the retrograde module for a public TensorFlow module."""
    value: Any = importlib.import_module("retrograde")
    path = "tf"
    for part in fullname.split(".")[1:]:
        path = f"{path}.{part}"
        value = getattr(value, part, None) if missing.is_module(path) else None
        if not isinstance(value, ModuleType):
            reason = missing.message_for(path)
            message = f"No module named {fullname!r}" + (f". {reason}" if reason else "")
            raise ModuleNotFoundError(message, name=fullname)
    return value
