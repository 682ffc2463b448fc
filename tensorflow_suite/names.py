"""Finds the public name of each internal name that TensorFlow's tests import.

`python -m tensorflow_suite.names TESTS FILE` runs with the real TensorFlow. It writes JSON that
describes, for each internal module, how to find its attributes. An attribute is one of

    ["public", name, ...]           the names in TensorFlow 2, the shortest first
    ["v1", name, v1, v2]            a function of TensorFlow 1 with a successor of the same name;
                                    `v1` and `v2` are the parameters of the two
    ["only v1", name], ["raw", name]
    ["module", name]                another internal module
    ["constant", value]
    null                            internal
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import sys
import types
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

IMPORT = re.compile(r"^\s*from (tensorflow\.python[\w.]*) import (\w+)", re.MULTILINE)
TEST_FILES = ("_test.py", "test_base.py", "test_util.py", "_lib.py", "_base.py")

# Modules whose names are not looked up: they start services, or have no public names.
IGNORED = re.compile(
    r"\.(tpu|tools|debug|compiler|keras|lite|client|autograph|grappler|profiler|test_ops"
    r"|distribute\.(?!distribute_lib|mirrored|one_device|reduce_util))\b"
)

# Below `tf`, these are not walked.
UNWALKED = {"compat", "raw_ops", "keras", "tools", "python", "core", "lite", "tsl", "compiler"}
ALIASES = {"tensorflow.nest", "tensorflow.experimental"}  # public modules without "_api.v2"
CONSTANTS = (bool, int, float, str, type(None))


class PublicNames:
    """The public names of TensorFlow 2 and of `tf.compat.v1`, by name and by identity."""

    def __init__(self, tf):
        self.objects: dict[str, object] = {}
        self.names: dict[int, list[str]] = {}
        self.v1_names: dict[int, list[str]] = {}
        self._walk(tf, "")
        for name in sorted(dir(tf.compat)):
            if isinstance(getattr(tf.compat, name), types.FunctionType):
                self._add(f"compat.{name}", getattr(tf.compat, name))
        self._walk_v1(tf.compat.v1, "")

    def _walk(self, module, prefix):
        for name, value in _members(module, UNWALKED if not prefix else ()):
            if not isinstance(value, types.ModuleType):
                self._add(prefix + name, value)
            elif "_api.v2" in value.__name__ or value.__name__ in ALIASES:
                self._walk(value, f"{prefix}{name}.")

    def _add(self, name, value):
        self.objects[name] = value
        if isinstance(value, (*CONSTANTS, bytes, tuple)):
            return
        names = self.names.setdefault(id(value), [])
        names.append(name)
        names.sort(key=_length)

    def _walk_v1(self, module, prefix):
        for name, value in _members(module, UNWALKED if not prefix else ()):
            if isinstance(value, types.ModuleType):
                if "_api.v2.compat.v1" in value.__name__:
                    self._walk_v1(value, f"{prefix}{name}.")
            elif callable(value):
                self.v1_names.setdefault(id(value), []).append(prefix + name)

    def entry(self, value):
        """Describes how to find `value` by public names; `None` if it is internal."""
        if isinstance(value, types.ModuleType):
            return ["module", value.__name__] if value.__name__.startswith("tensorflow.") else None
        if isinstance(value, CONSTANTS):
            return ["constant", value]
        exported = _exported(value, "_tf_api_names")
        names = [*self.names.get(id(value), ()), *exported]
        names = [name for name in names if name in self.objects and name[:7] != "raw_ops"]
        if names:
            return ["public", *names]
        v1_names = [*_exported(value, "_tf_api_names_v1"), *self.v1_names.get(id(value), ())]
        v1_names = sorted(
            (name for name in v1_names if not name.startswith("raw_ops")),
            key=_length,
        )
        for name in v1_names:
            if name in self.objects:
                return ["v1", name, _parameters(value), _parameters(self.objects[name])]
        if v1_names:
            return ["only v1", v1_names[0]]
        raw = [name for name in exported if name.startswith("raw_ops")]
        return ["raw", raw[0]] if raw else None


def _members(module, ignored):
    """Yields the public attributes of `module`. Some raise an exception when they are read."""
    for name in sorted(dir(module)):
        if name.startswith("_") or name in ignored:
            continue
        try:
            value = getattr(module, name)
            str(getattr(value, "__name__", ""))
        except Exception:
            continue
        yield name, value


def _length(name):
    return name.count("."), len(name)


def _exported(value, key):
    """Returns the names under which `value` is exported."""
    from tensorflow.python.util import tf_decorator

    candidates = (value, tf_decorator.unwrap(value)[1]) if callable(value) else ()
    for candidate in candidates:
        names = getattr(candidate, "__dict__", {}).get(key)
        if names:
            return names
    return ()


def _parameters(function):
    """Returns the names of the parameters of a function or class, or `None` if unknown."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [p.name for p in parameters if p.kind in kinds]


def imported_modules(tests: Path) -> list[str]:
    """Returns the internal modules that the test files may import."""
    modules = set()
    for path in tests.rglob("*.py"):
        if path.name.endswith(TEST_FILES):
            for module, attribute in IMPORT.findall(path.read_text(encoding="utf8")):
                modules |= {module, f"{module}.{attribute}"}
    return sorted(name for name in modules if not IGNORED.search(name))


def module_entries(tests: Path) -> dict[str, dict]:
    """Returns the entries of all attributes of the modules that the test files import."""
    import tensorflow as tf

    names = PublicNames(tf)
    modules = {}
    for name in imported_modules(tests):
        try:
            module = importlib.import_module(name)
        except BaseException:  # an attribute instead of a module, or a module that exits
            continue
        modules[name] = {
            attribute: names.entry(getattr(module, attribute))
            for attribute in dir(module)
            if not attribute.startswith("__")
        }
    return modules


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(module_entries(Path(sys.argv[1]))))
