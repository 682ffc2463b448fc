"""Modules named like TensorFlow's internal ones, whose attributes are public names of a library.

The library is the one that the variable `SUITE_LIBRARY` names: retrograde, or tensorflow for the
comparison. Test files import `suite.python` in place of `tensorflow.python`, so that the real
internal modules are not used, even by TensorFlow.
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import re
import sys
import types
from pathlib import Path

from tensorflow_suite.absent import Absent, NotApplicable, loading

tf = importlib.import_module(os.environ["SUITE_LIBRARY"])
TESTS = Path(os.environ["SUITE_TESTS"])
MODULES: dict[str, dict] = json.loads(Path(os.environ["SUITE_NAMES"]).read_text())
INTERNALS: dict[str, dict] = {}  # by hand; see internals.py

# Support code of the tests, which runs from its source like the tests
FROM_SOURCE = {
    "framework.combinations",
    "framework.test_combinations",
    "data.kernel_tests.checkpoint_test_base",
    "data.kernel_tests.test_base",
    "data.kernel_tests.tf_record_test_base",
    "kernel_tests.linalg.linear_operator_test_util",
    "kernel_tests.nn_ops.fft_ops_test_util",
    "kernel_tests.random.util",
    "kernel_tests.signal.test_util",
    "ops.linalg.linear_operator_test_util",
    "ops.numpy_ops.tests.np_wrapper",
    "ops.parallel_for.test_util",
    "ops.ragged.dynamic_ragged_shape_test_util",
    "ops.ragged.ragged_test_util",
}

# Public names that need graphs or TensorFlow 1
GRAPH_NAMES = ("Graph", "compat.v1", "raw_ops", "Operation", "__internal__", "graph_util")
GRAPH_NAMES += ("tpu", "lite", "autograph.to_graph", "autograph.to_code")

# Parameters of TensorFlow 1 with their new names, and parameters without an effect on results
RENAMED = {
    "a": "input",
    "concat_dim": "axis",
    "dim": "axis",
    "dimension": "axis",
    "expand_dims": "axis",
    "filter": "filters",
    "input": "value",
    "input_tensor": "input",
    "keep_dims": "keepdims",
    "preferred_dtype": "dtype_hint",
    "rate": "dilations",
    "reduction_indices": "axis",
    "seq_dim": "seq_axis",
    "batch_dim": "batch_axis",
    "split_dim": "axis",
    "squeeze_dims": "axis",
    "tensor": "input",
    "value": "input",
    "x": "input",
}
DROPPED = {"back_prop", "collections", "name", "parallel_iterations", "partitioner", "swap_memory"}
DROPPED |= {"_sentinel", "use_cudnn_on_gpu", "use_locking", "use_resource", "validate_indices"}


def public(*names):
    """Returns the first of the public names that the library has, or an `Absent`."""
    for name in names:
        if name.startswith(GRAPH_NAMES):
            return Absent(f"tf.{name}", "of graph mode")
        try:
            return functools.reduce(getattr, name.split("."), tf)
        except AttributeError:
            continue
    return Absent(f"tf.{names[0]}", "public")


def from_v1(name, v1, v2):
    """Returns the function `name`, to be called with its arguments of TensorFlow 1."""
    target = public(name)
    if isinstance(target, (Absent, type)) or not callable(target) or not v1 or not v2:
        return target

    @functools.wraps(target)
    def call(*arguments, **keywords):
        given = dict(zip(v1, arguments, strict=False)) | keywords
        passed = {}
        for key, value in given.items():
            if key in v2:
                passed[key] = value
            elif RENAMED.get(key) in v2 and RENAMED[key] not in given:
                passed[RENAMED[key]] = value
            elif key not in DROPPED and value is not None:
                raise NotApplicable(f"not applicable: argument {key} of tf.compat.v1.{name}")
        return target(**passed)

    return call


def resolve(module, attribute):
    """Returns what stands for `attribute` of an internal `module`."""
    if attribute in INTERNALS.get(module, {}):
        return INTERNALS[module][attribute]
    full = f"tensorflow.python.{module}.{attribute}".replace("..", ".")
    entry = MODULES.get(full.rpartition(".")[0], {}).get(attribute)
    if entry is None:
        is_module = full in MODULES or _short(full) in FROM_SOURCE or _short(full) in INTERNALS
        if (
            is_module
            or (TESTS / full.removeprefix("tensorflow.python.").replace(".", "/")).is_dir()
        ):
            return importlib.import_module(_shimmed(full))
        return Absent(full)
    kind, *rest = entry
    if kind == "public":
        return public(*rest)
    if kind == "v1":
        return from_v1(*rest)
    if kind == "module":
        return importlib.import_module(_shimmed(*rest))
    if kind == "constant":
        return rest[0]
    return Absent(rest[0], "a raw operation" if kind == "raw" else "of TensorFlow 1")


def _short(name):
    return name.removeprefix("tensorflow.python.").removeprefix("suite.python.")


def _shimmed(name):
    return name.replace("tensorflow.", "suite.", 1)


def translated(text):
    """Returns the source of a test file that imports the modules of this file."""
    text = text.replace("iterator._next_internal", "iterator.get_next")
    # Variables are initialized when they are created.
    text = re.sub(r"(?<![\w.])(?!self\.|tf\.)[\w.]+\.initializer\b(?!\s*[=(])", "None", text)
    text = re.sub(r"\btensorflow\.(python|core|compiler|lite|tsl)\b", r"suite.\1", text)
    start = re.compile(r"^(\s*)import tensorflow(?:\.compat\.v2)? as tf\b", re.MULTILINE)
    return start.sub(r"\1from suite import tf", text)


def execute(path, namespace):
    """Executes the translated source of a file."""
    with loading():
        source = translated(Path(path).read_text(encoding="utf8"))
        exec(compile(source, str(path), "exec"), namespace)


class InternalModule(types.ModuleType):
    """A module whose attributes are resolved when they are used."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        value = tf if self.__name__ == "suite" and name == "tf" else self._resolve(name)
        self.__dict__[name] = value
        return value

    def _resolve(self, name):
        if self.__name__ == "suite.python":
            return resolve("", name)
        if not self.__name__.startswith("suite.python."):
            return Absent(f"{self.__name__}.{name}")
        return resolve(_short(self.__name__), name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports `suite` and everything below it."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "suite":
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = InternalModule(spec.name)
        module.__path__ = []
        return None if _short(spec.name) in FROM_SOURCE else module

    def exec_module(self, module):
        name = _short(module.__name__)
        if name in FROM_SOURCE:
            execute(TESTS / f"{name.replace('.', '/')}.py", module.__dict__)


def install():
    """Makes `suite` importable."""
    sys.meta_path.insert(0, Finder())
