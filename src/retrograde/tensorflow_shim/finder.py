"""`tensorflow`, and every public module in it, as names of what is here."""

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


def install_as_tensorflow() -> None:
    """Lets `import tensorflow` mean retrograde from here on, in this process only.

    Call it before anything imports TensorFlow, as in the first cell of a notebook:

        import retrograde
        retrograde.install_as_tensorflow()

        import tensorflow as tf
        from tensorflow.keras import layers

    `keras` is then Keras on retrograde. `tensorflow.__version__` is the version of TensorFlow that
    retrograde follows, because programs compare it. In processes that `multiprocessing` starts from
    here on, it is the same.
    """
    real = sys.modules.get("tensorflow")
    if real is not None and not isinstance(real, _TensorFlow):
        raise RuntimeError(
            f"TensorFlow {getattr(real, '__version__', '')} is imported in this process already, "
            "and retrograde does not replace it while programs hold parts of it. Call "
            "retrograde.install_as_tensorflow() in a new process, before anything imports "
            "tensorflow."
        )
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
        spawn.get_preparation_data = _with_stand_in


@contextlib.contextmanager
def standing_in() -> Iterator[None]:
    """A block in which `import tensorflow` means retrograde."""
    install_as_tensorflow()
    try:
        yield
    finally:
        sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, _Finder)]
        spawn.get_preparation_data = _preparation_data
        for name in [name for name in sys.modules if name.partition(".")[0] == "tensorflow"]:
            del sys.modules[name]


# A process that is not forked imports the program anew, after it has read what its parent prepared.
_preparation_data = spawn.get_preparation_data


def _with_stand_in(name: str) -> dict[str, Any]:
    """What a new process is given: with it comes something that installs the stand-in when read."""
    return {"retrograde": _Installing(), **_preparation_data(name)}


class _Installing:
    """Pickled, it is a call of `install_as_tensorflow`."""

    def __reduce__(self) -> tuple:
        return install_as_tensorflow, ()


class _TensorFlow(ModuleType):
    """`tensorflow` itself: all names of retrograde, and TensorFlow's version."""

    def __init__(self) -> None:
        retrograde = importlib.import_module("retrograde")
        super().__init__("tensorflow", retrograde.__doc__)
        self.__file__ = retrograde.__file__
        self.__path__: list[str] = []  # modules in it are found by the finder alone
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
    """Answers to `tensorflow` and `keras`, and speaks for packages that need TensorFlow's own."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        top, _, below = fullname.partition(".")
        if top in missing.PACKAGES:
            words = missing.package_message(top)
            raise ModuleNotFoundError(f"No module named {fullname!r}. {words}", name=fullname)
        if top == "tensorflow":
            return _spec(fullname, _module(fullname) if below else _TensorFlow())
        if fullname == "keras" and "retrograde.keras" not in sys.modules:
            importlib.import_module("retrograde.keras")  # it comes back here, and imports Keras
            return _spec(fullname, sys.modules["keras"])
        return None


def _spec(name: str, module: ModuleType) -> importlib.machinery.ModuleSpec | None:
    is_package = hasattr(module, "__path__")
    return importlib.util.spec_from_loader(name, _Loader(module), is_package=is_package)


def _module(fullname: str) -> ModuleType:
    """The module of ours that a public name of TensorFlow's means."""
    value: Any = importlib.import_module("retrograde")
    path = "tf"
    for part in fullname.split(".")[1:]:
        path = f"{path}.{part}"
        value = getattr(value, part, None) if missing.is_module(path) else None
        if not isinstance(value, ModuleType):
            said = missing.message_for(path)
            message = f"No module named {fullname!r}" + (f". {said}" if said else "")
            raise ModuleNotFoundError(message, name=fullname)
    return value


class _Loader(importlib.abc.Loader):
    """Hands out a module that is there already, and leaves it as it is."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        """None: the import system makes an empty module, which is replaced at once."""

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = self._module
