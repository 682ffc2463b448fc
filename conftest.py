"""Configures pytest: doctests in Markdown pages, with `tf` and `np` in scope."""

import doctest
import functools
import inspect
import os
import pathlib
import re

import hypothesis
import numpy as np
import pytest

import retrograde

# Keras reads and writes its settings here instead of in the user's home directory.
os.environ["KERAS_HOME"] = str(pathlib.Path(__file__).parent / ".pytest_cache" / "keras")

# Tests do not use executables of earlier runs.
os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"

# A slow machine must not fail tests.
hypothesis.settings.register_profile("without_deadline", deadline=None)
hypothesis.settings.load_profile("without_deadline")

FENCE = re.compile(r"^```.*$", re.MULTILINE)


class FencedParser(doctest.DocTestParser):
    """Parses doctests in Markdown. Without it, a closing fence would be part of the output."""

    def parse(self, string, name="<string>"):
        return super().parse(FENCE.sub("", string), name)


# pytest uses this name for text files and has no option for another parser.
doctest.DocTestParser = FencedParser


@pytest.fixture(autouse=True, scope="session")
def names_in_examples(doctest_namespace):
    doctest_namespace["tf"] = retrograde
    doctest_namespace["np"] = np


# These tests are about NumPy: its memory, its flags, its errors, and code that is generated for it.
# They run on the host even if RETROGRADE_DEVICE names another device.
ON_HOST = (
    "tests/core/test_backward.py::test_large_cotangents_are_summed_in_place",
    "tests/core/test_indexed_slices.py::test_indices_out_of_bounds_raise",
    "tests/core/test_out_of_memory.py",
    "tests/core/test_ownership.py::test_a_training_step_updates_in_place",
    "tests/core/test_ownership.py::test_an_unshared_variable_is_updated_in_place",
    "tests/core/test_ownership.py::test_an_update_copies_a_shared_array_only_once",
    "tests/core/test_ownership.py::test_updates_are_in_place_after_the_tape_is_freed",
    "tests/core/test_tensor.py::test_device_has_the_format_of_tensorflow",
    "tests/core/test_variable.py::test_a_signal_handler_can_read_a_variable_during_an_update",
    "tests/core/test_variable.py::test_defaults",
    "tests/core/test_variable.py::test_sparse_reads",
    "tests/program/test_auto_compilation.py",
)


@pytest.fixture(autouse=True)
def on_host(request):
    if request.node.nodeid.startswith(ON_HOST):
        with retrograde.device("CPU:0"):
            yield
    else:
        yield


# Markers. `pytest -m "not slow and not keras"` leaves tests out; CONTRIBUTING.md lists the markers.

SLOW = (
    "tests/benchmarks",
    "tests/campaigns",
    "tests/diagnose/test_memory_leaks.py",
    "tests/docs/test_site.py",
    "tests/examples",
    "tests/files/test_atomic.py",
    "tests/keras",
    "tests/namespaces/test_bad_calls.py",
    "tests/namespaces/test_bad_input.py",
    "tests/namespaces/test_saved_model_fuzz.py",
    "tests/ops/test_jacobians.py",
    "tests/parity",
    "tests/program/test_every_call.py",
    "tests/programs",
    "tests/typing/test_programs.py",
)
NEEDS_JAX = re.compile(r"jax|xla|oracle|jit_compile|experimental_compile", re.IGNORECASE)
NEEDS_KERAS = re.compile(r"keras", re.IGNORECASE)
STARTS_PROCESSES = re.compile(r"subprocess|multiprocessing|run_script|os\.fork")


def pytest_collection_modifyitems(items):
    """Marks tests by their path, their source, their parameters and their fixtures."""
    for item in items:
        for name in marks_of(item):
            item.add_marker(name)


def marks_of(item):
    """Returns the names of the markers of a test."""
    path = item.nodeid.partition("::")[0]
    text = "\n".join([item.name, *getattr(item, "fixturenames", ()), source_of(item)])
    if NEEDS_JAX.search(text):
        yield "xla"
    if path.startswith("tests/keras/") or NEEDS_KERAS.search(text):
        yield "keras"
    if path.startswith(SLOW) or STARTS_PROCESSES.search(text):
        yield "slow"


def source_of(item):
    """Returns the source of a test function; of a doctest, its text."""
    if isinstance(item, pytest.Function):
        return source_of_function(inspect.unwrap(item.function))
    return getattr(getattr(item, "dtest", None), "docstring", None) or ""


@functools.cache
def source_of_function(function):
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return ""


@pytest.fixture
def numpy_behavior():
    """Enables NumPy behavior, which is global, for one test."""
    saved = {cls: dict(vars(cls)) for cls in (retrograde.Tensor, retrograde.Variable)}
    functions = retrograde.experimental.numpy
    functions.experimental_enable_numpy_behavior()
    yield functions.experimental_enable_numpy_behavior
    functions.dtypes.prefer_float32(False)
    for cls, attributes in saved.items():
        for name, value in dict(vars(cls)).items():
            if name not in attributes:
                delattr(cls, name)
            elif value is not attributes[name]:
                setattr(cls, name, attributes[name])
