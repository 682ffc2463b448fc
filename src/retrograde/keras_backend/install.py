"""Installs retrograde as Keras's backend. No other file depends on how Keras selects a backend.

Keras 3.14 and 3.15 select one of five backends by name during import. This module makes Keras
import retrograde's backend instead of the one named "numpy" and then changes the name. It becomes
unnecessary once Keras can load backends from other packages.
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
TENSORFLOW = "tensorflow"  # the name of the backend in programs written for TensorFlow
_BACKEND_PACKAGE = "retrograde.keras_backend"
_REPLACED = "keras.src.backend.numpy"
_TF_KERAS = "keras._tf_keras.keras"  # the module that is tf.keras in TensorFlow

# Classes that Keras imports from the replaced backend: module, name there, retrograde's name.
_CLASSES = (
    ("layer", "NumpyLayer", "RetrogradeLayer"),
    ("trainer", "NumpyTrainer", "RetrogradeTrainer"),
    ("export", "NumpyExportArchive", "RetrogradeExportArchive"),
)
_NOT_IN_OPS = ("export", "layer", "random", "rnn", "trainer")

_tf_keras: ModuleType | None = None
_installing = False


def installed_keras() -> ModuleType | None:
    """Returns `tf.keras`. Imports Keras with the retrograde backend first if necessary."""
    global _tf_keras, _installing
    if _tf_keras is None and not _installing:
        _check_preconditions()
        _installing = True
        try:
            _tf_keras = _import_keras()
        finally:
            _installing = False
    return _tf_keras


def _check_preconditions() -> None:
    if sys.modules.get("keras") is not None:
        # If its import has not finished, the backend may be unknown.
        config = sys.modules.get("keras.src.backend.config")
        backend = f" with the backend {config.backend()!r}" if config else ""
        raise ImportError(
            f"Keras was already imported{backend} and cannot change its backend. Import "
            "retrograde.keras before keras and before packages that import keras."
        )
    requested = os.environ.get("KERAS_BACKEND") or NAME
    if requested == NAME:
        return
    if not replaces_tensorflow():
        raise ImportError(
            f"The environment variable KERAS_BACKEND is {requested!r}, but retrograde.keras uses "
            f"the backend {NAME!r}. Unset it or set it to {NAME!r}."
        )
    if requested != TENSORFLOW:
        raise ImportError(
            f"KERAS_BACKEND is {requested!r}, but in a program that runs on retrograde in place of "
            f"TensorFlow it must be {TENSORFLOW!r} or unset."
        )


def replaces_tensorflow() -> bool:
    """Returns whether `import tensorflow` imports retrograde in this process."""
    return any(getattr(finder, "replaces_tensorflow", False) for finder in sys.meta_path)


def public_backend_name() -> str:
    """Returns the backend name that programs see: "tensorflow" if retrograde replaces it."""
    return TENSORFLOW if replaces_tensorflow() else NAME


def _import_keras() -> ModuleType:
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    modules_before = set(sys.modules)
    try:
        with (
            _environment_variable("KERAS_BACKEND", "numpy"),
            _hide_module("jax"),
            _preserve_random_state(),
        ):
            importlib.import_module("keras")
            tf_keras = importlib.import_module(_TF_KERAS)
            backend_utils = importlib.import_module("keras.src.utils.backend_utils")
            keras_patches = importlib.import_module(f"{_BACKEND_PACKAGE}.keras_patches")
    except BaseException as error:
        sys.meta_path.remove(finder)
        for name in set(sys.modules) - modules_before:
            if name == "keras" or name.startswith(("keras.", _BACKEND_PACKAGE)):
                del sys.modules[name]
        if isinstance(error, ModuleNotFoundError) and error.name == "keras":
            raise ImportError(
                "retrograde.keras needs the package keras: pip install 'retrograde[keras]'."
            ) from None
        raise
    sys.modules["keras.src.backend.config"]._BACKEND = NAME
    _register_dynamic_backend(backend_utils.DynamicBackend, sys.modules["keras.src.backend"])
    sys.modules["keras.src.saving.keras_saveable"].KerasSaveable.__setattr__ = _set_attribute
    seeds = sys.modules["keras.src.random.seed_generator"].SeedGenerator
    seeds._trackable_children = lambda self: {"state": self.state}
    _keep_64_bits(sys.modules["keras.src.backend.common.dtypes"])
    keras_patches.patch_keras(tf_keras)
    return tf_keras


@contextlib.contextmanager
def _environment_variable(name: str, value: str) -> Iterator[None]:
    previous = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]
        if previous is not None:
            os.environ[name] = previous


@contextlib.contextmanager
def _preserve_random_state() -> Iterator[None]:
    """Restores the state of Python's random numbers when the block exits.

    Keras draws random numbers during import. In TensorFlow this happens before a program can set
    its seed; here it happens when the program first uses `tf.keras`.
    """
    state = random.getstate()
    try:
        yield
    finally:
        random.setstate(state)


@contextlib.contextmanager
def _hide_module(module: str) -> Iterator[None]:
    """Makes `module` unimportable within the block, unless it is already imported.

    Keras imports jax, if installed, for one callback. That takes longer than the rest of Keras.
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
    """Sets an attribute of a layer, optimizer or metric and runs pending checkpoint restores."""
    object.__setattr__(self, name, value)
    attribute_hooks.notify(self)


def _register_dynamic_backend(dynamic_backend: Any, backend: ModuleType) -> None:
    """Makes Keras's `DynamicBackend` accept retrograde's name."""
    original_getattr, original_set_backend = (
        dynamic_backend.__getattr__,
        dynamic_backend.set_backend,
    )

    def __getattr__(self: Any, name: str) -> Any:
        return getattr(backend, name) if self._backend == NAME else original_getattr(self, name)

    def set_backend(self: Any, backend: str) -> None:
        if backend == NAME:
            self._backend = backend
        else:
            original_set_backend(self, backend)

    dynamic_backend.__getattr__ = __getattr__
    dynamic_backend.set_backend = set_backend


# Keras's 32-bit result dtype -> 64-bit dtype, and the input dtypes that require it.
_WIDE = {
    "int32": ("int64", {"int64"}),
    "uint32": ("uint64", {"uint64"}),
    "float32": ("float64", {"float64"}),
    "complex64": ("complex128", {"float64", "complex128"}),
}


def _keep_64_bits(dtypes: ModuleType) -> None:
    """Keeps 64-bit dtypes in type promotion, as with the TensorFlow backend."""
    lattice_result_type = dtypes._lattice_result_type

    def _lattice_result_type(*args: Any) -> str:
        narrow = lattice_result_type(*args)
        wide, sources = _WIDE.get(narrow, (narrow, ()))
        return wide if any(dtypes.standardize_dtype(arg) in sources for arg in args) else narrow

    dtypes._lattice_result_type = _lattice_result_type


class _Finder(importlib.abc.MetaPathFinder):
    """Imports retrograde modules for the module names of the replaced backend."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> Any:
        module_name = _target_module(fullname)
        return module_name and importlib.util.spec_from_loader(fullname, _Loader(module_name))


def _target_module(name: str) -> str | None:
    """Returns the module to import for `name`, or `None` if it is not redirected."""
    if name == _REPLACED:
        return f"{_BACKEND_PACKAGE}.backend"
    if name.startswith(f"{_REPLACED}."):
        part = name.removeprefix(f"{_REPLACED}.")
        return (
            f"{_BACKEND_PACKAGE}.{part}"
            if part in _NOT_IN_OPS
            else f"{_BACKEND_PACKAGE}.ops.{part}"
        )
    if name.startswith("retrograde.keras."):
        first, *rest = name.split(".")[2:]
        module = getattr(_tf_keras, first, None)  # most are modules of keras
        return ".".join([getattr(module, "__name__", f"{_TF_KERAS}.{first}"), *rest])
    return None


class _Loader(importlib.abc.Loader):
    """Loads the module of another name and leaves its `__spec__` unchanged."""

    def __init__(self, name: str) -> None:
        self._name = name

    def create_module(self, spec: Any) -> ModuleType:
        module = importlib.import_module(self._name)
        self._spec = module.__spec__  # the import system replaces it before `exec_module`
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec
        if self._name == f"{_BACKEND_PACKAGE}.backend":
            module.__path__ = []  # Keras imports submodules of it
        for part, name, replacement in _CLASSES:
            if self._name == f"{_BACKEND_PACKAGE}.{part}":
                setattr(module, name, getattr(module, replacement))
