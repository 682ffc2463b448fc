"""Makes Keras use retrograde as its backend: the one file that knows how Keras picks it.

Keras 3.14 and 3.15 choose among five backends by name while they are imported. Ours is imported
in the place of the one called "numpy", and goes by its own name from then on. A release of Keras
that loads backends of other packages by name makes this file superfluous.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.util
import os
import random
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

from retrograde.train import _attribute_hooks as attribute_hooks

NAME = "retrograde"
_OURS = "retrograde.keras_backend"
_REPLACED = "keras.src.backend.numpy"
_VIEW = "keras._tf_keras.keras"  # what TensorFlow, too, shows as tf.keras

# What Keras imports from the backend that we replace: module, its name there, ours.
_CLASSES = (
    ("layer", "NumpyLayer", "RetrogradeLayer"),
    ("trainer", "NumpyTrainer", "RetrogradeTrainer"),
    ("export", "NumpyExportArchive", "RetrogradeExportArchive"),
)
_OUTSIDE_OPS = ("export", "layer", "random", "rnn", "trainer")

_view: ModuleType | None = None
_installing = False


def installed_keras() -> ModuleType | None:
    """Returns `tf.keras`, and imports Keras on retrograde if it is not imported yet."""
    global _view, _installing
    if _view is None and not _installing:
        _check()
        _installing = True
        try:
            _view = _import_keras()
        finally:
            _installing = False
    return _view


def _check() -> None:
    if sys.modules.get("keras") is not None:
        # It may be imported halfway, and not know its backend yet.
        config = sys.modules.get("keras.src.backend.config")
        backend = f" on the backend {config.backend()!r}" if config else ""
        raise ImportError(
            f"Keras was imported already{backend}, and cannot change it. Import retrograde.keras "
            "before keras, and before packages that import keras."
        )
    wanted = os.environ.get("KERAS_BACKEND") or NAME
    if wanted != NAME:
        raise ImportError(
            f"The environment variable KERAS_BACKEND asks for {wanted!r}; retrograde.keras is "
            f"Keras on retrograde. Unset it, or set it to {NAME!r}."
        )


def _import_keras() -> ModuleType:
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    before = set(sys.modules)
    try:
        with _environment("KERAS_BACKEND", "numpy"), _without("jax"), _same_random_numbers():
            importlib.import_module("keras")
            view = importlib.import_module(_VIEW)
            backend_utils = importlib.import_module("keras.src.utils.backend_utils")
            additions = importlib.import_module(f"{_OURS}.additions")
    except BaseException as error:
        sys.meta_path.remove(finder)
        for name in set(sys.modules) - before:
            if name == "keras" or name.startswith(("keras.", _OURS)):
                del sys.modules[name]
        if isinstance(error, ModuleNotFoundError) and error.name == "keras":
            raise ImportError(
                "retrograde.keras needs the package keras: pip install 'retrograde[keras]'."
            ) from None
        raise
    sys.modules["keras.src.backend.config"]._BACKEND = NAME
    _teach(backend_utils.DynamicBackend, sys.modules["keras.src.backend"])
    sys.modules["keras.src.saving.keras_saveable"].KerasSaveable.__setattr__ = _set_attribute
    seeds = sys.modules["keras.src.random.seed_generator"].SeedGenerator
    seeds._trackable_children = lambda self: {"state": self.state}
    _keep_64_bits(sys.modules["keras.src.backend.common.dtypes"])
    additions.make(view)
    return view


@contextlib.contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before


@contextlib.contextmanager
def _same_random_numbers() -> Iterator[None]:
    """A block behind which Python's random numbers go on as if it had drawn none.

    Keras draws some while it is imported. With TensorFlow that is before a program can have chosen
    its seed; here it is when the program first says `tf.keras`.
    """
    state = random.getstate()
    try:
        yield
    finally:
        random.setstate(state)


@contextlib.contextmanager
def _without(module: str) -> Iterator[None]:
    """A block in which `module` seems not to be installed, unless it is imported already.

    Keras imports jax where it can, for one callback, and that takes longer than all of Keras.
    """
    if module in sys.modules:
        yield
        return
    sys.modules[module] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[module]


def _set_attribute(self: Any, name: str, value: Any) -> None:
    """Gives a layer, optimizer or metric an attribute. Values of a checkpoint may wait for it."""
    object.__setattr__(self, name, value)
    attribute_hooks.notice(self)


def _teach(dynamic_backend: Any, backend: ModuleType) -> None:
    """Lets layers that work on several backends find ours by its name."""
    find, choose = dynamic_backend.__getattr__, dynamic_backend.set_backend

    def __getattr__(self: Any, name: str) -> Any:
        return getattr(backend, name) if self._backend == NAME else find(self, name)

    def set_backend(self: Any, backend: str) -> None:
        if backend == NAME:
            self._backend = backend
        else:
            choose(self, backend)

    dynamic_backend.__getattr__ = __getattr__
    dynamic_backend.set_backend = set_backend


_WIDE = {  # what Keras makes of 64 bits; what it is then, and what it comes from
    "int32": ("int64", {"int64"}),
    "uint32": ("uint64", {"uint64"}),
    "float32": ("float64", {"float64"}),
    "complex64": ("complex128", {"float64", "complex128"}),
}


def _keep_64_bits(dtypes: ModuleType) -> None:
    """Lets what has 64 bits keep them, as in Keras on TensorFlow; on others they become 32."""
    meet = dtypes._lattice_result_type

    def _lattice_result_type(*args: Any) -> str:
        found = meet(*args)
        wide, sources = _WIDE.get(found, (found, ()))
        return wide if any(dtypes.standardize_dtype(arg) in sources for arg in args) else found

    dtypes._lattice_result_type = _lattice_result_type


class _Finder(importlib.abc.MetaPathFinder):
    """Answers to the names of one package with the modules of another."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> Any:
        own = _own_name(fullname)
        return own and importlib.util.spec_from_loader(fullname, _Loader(own))


def _own_name(name: str) -> str | None:
    """The module that stands behind the name `name`, if it is one of ours."""
    if name == _REPLACED:
        return f"{_OURS}.backend"
    if name.startswith(f"{_REPLACED}."):
        part = name.removeprefix(f"{_REPLACED}.")
        return f"{_OURS}.{part}" if part in _OUTSIDE_OPS else f"{_OURS}.ops.{part}"
    if name.startswith("retrograde.keras."):
        first, *rest = name.split(".")[2:]
        module = getattr(_view, first, None)  # most are those of keras itself
        return ".".join([getattr(module, "__name__", f"{_VIEW}.{first}"), *rest])
    return None


class _Loader(importlib.abc.Loader):
    """Hands out a module that goes by another name, and leaves it as it is."""

    def __init__(self, name: str) -> None:
        self._name = name

    def create_module(self, spec: Any) -> ModuleType:
        module = importlib.import_module(self._name)
        self._spec = module.__spec__  # the import system is about to put another in its place
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec
        if self._name == f"{_OURS}.backend":
            module.__path__ = []  # Keras imports modules from it
        for part, name, ours in _CLASSES:
            if self._name == f"{_OURS}.{part}":
                setattr(module, name, getattr(module, ours))
