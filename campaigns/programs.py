"""Runs random programs eagerly, replayed, fused and compiled, and compares the results.

A trial generates a program, runs it eagerly, and runs it again in other modes:

- "replay": functions are traced and replayed with NumPy;
- "fused": eager, with lazy evaluation of arrays of any size;
- "fused replay": functions are replayed, and elementwise calls on arrays of any size are fused;
- "xla": functions are compiled, for one seed in `_COMPILED`;
- "tensorflow": eager, in the interpreter in the environment variable `CAMPAIGN_TENSORFLOW`.

The results of the first three modes must be bit-for-bit identical to the eager results. The others
must agree within a tolerance, which is larger for ill-conditioned results.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

import retrograde as tf
from campaigns._programs import runner
from campaigns._programs.comparison import adapt_zeros, difference, tolerance_of
from campaigns._programs.generator import generate, is_comparable_with_tensorflow
from campaigns._programs.runner import Outcome
from campaigns._programs.shrinker import shrink
from campaigns._programs.tensorflow_process import Process
from retrograde.core import apply
from retrograde.fusion import blocks, fused_loops, grouping, lazy_calls
from retrograde.ops import _sums
from retrograde.program import (
    inline_kernels,
    loop_rerolling,
    numpy_codegen,
    sum_of_slices,
    xla_loops,
)

SHORT = 240

_COMPILED = 20  # one program in 20 is compiled
_SECONDS = 20.0  # limit for shrinking a failing program

# A tape around a function sums in a different order than a tape that records all its operations.
_SAME_ORDER = frozenset({"y", "jvp"})

# A replay folds parts of complex constants. Cotangents of a `py_function` are summed in a different
# order. A fused loop writes C-contiguous arrays. Eager calls keep the axis order of a transpose or
# a sort, which determines the order of sums.
_REORDERED = {
    "replay": re.compile("complex|py_function"),
    "fused replay": re.compile("complex|py_function|transpose|einsum|sort"),
}


def trial(seed: int) -> str | None:
    """Runs one program in all modes. Returns a difference with a minimal program, if any."""
    compiles = seed % _COMPILED == 0
    source = generate(seed, small=compiles)
    modes = ["fused", "replay" if seed % 3 else "fused replay"]
    if compiles:
        modes.append("xla")
    if os.environ.get("CAMPAIGN_TENSORFLOW") and is_comparable_with_tensorflow(source):
        modes.append("tensorflow")
    expected: dict[str, Outcome] = {}
    for mode in modes:
        reference = _reference(mode)
        if reference not in expected:
            expected[reference] = _run(source, reference)
        if _difference(source, mode, expected[reference]) is not None:
            return _report(source, mode)
    return None


def _reference(mode: str) -> str:
    """Returns the mode to compare with. Sums of large and small arrays use different orders."""
    return "eager, as if large" if mode.startswith("fused") else "eager"


def _difference(source: str, mode: str, expected: Outcome | None = None) -> str | None:
    """Describes the difference between a mode and eager execution, if any."""
    if expected is None:
        expected = _run(source, _reference(mode))
    actual = _run(source, mode)
    if mode == "tensorflow":
        if _is_missing_in_tensorflow(actual.error):
            return None
        actual = adapt_zeros(actual, expected)
    problem = difference(expected, actual)
    if problem is None or mode == "fused":
        return problem
    replayed = mode.endswith("replay")
    tolerance = tolerance_of(source, same_kernels=replayed)
    exact = _SAME_ORDER if replayed and not _REORDERED[mode].search(source) else frozenset()
    if difference(expected, actual, tolerance, None, exact) is None:
        return None
    noise = _run(source, _reference(mode), _nearby())
    return difference(expected, actual, tolerance, noise, exact)


def _is_missing_in_tensorflow(error: BaseException | None) -> bool:
    """Returns whether TensorFlow has no derivative, or does not accept `IndexedSlices`."""
    names = ("NotImplementedError", "LookupError", "AttributeError")
    return any(name in f"{type(error).__name__}: {error}" for name in (*names, "IndexedSlices"))


def _nearby() -> Callable[[np.ndarray], np.ndarray]:
    """Returns a function that perturbs the last digits of data."""
    generator = np.random.default_rng(0)

    def perturb(x: np.ndarray) -> np.ndarray:
        factor = 1 + 4 * ml_dtypes.finfo(x.dtype).eps * generator.uniform(-1.0, 1.0, x.shape)
        return (x * factor).astype(x.dtype)

    return perturb


def _run(source: str, mode: str, change: Callable | None = None) -> Outcome:
    if mode == "tensorflow":
        return _tensorflow().run(source)
    functions = {"replay": tf.function, "fused replay": tf.function, "xla": _compile}
    settings = dict(_FUSED) if mode.startswith("fused") else {}
    if mode == "xla":
        settings |= _REROLLED
    if _reference(mode) != "eager" or mode == "eager, as if large":
        settings |= _SUMS_OF_MANY
    with warnings.catch_warnings(), _set(settings):
        warnings.simplefilter("error")
        copies_immediately = mode.startswith("eager")
        return runner.run(source, tf, functions.get(mode, _run_eagerly), copies_immediately, change)


def _run_eagerly(f: Callable) -> Callable:
    return f


def _compile(f: Callable) -> Callable:
    return tf.function(f, jit_compile=True)


# All arrays with more than one element are evaluated lazily and in blocks.
_FUSED = {
    (apply, "LARGE_ARRAY_SIZE"): 2,
    (grouping, "LARGE_ARRAY_SIZE"): 2,
    (numpy_codegen, "LARGE_ARRAY_SIZE"): 2,
    (lazy_calls, "MIN_DEFERRED_SIZE"): 2,
    (lazy_calls, "MIN_DEFERRED_SIZE_IF_CHEAP"): 2,
    (blocks, "MIN_THREADED_SIZE_IF_COSTLY"): 2,
    (blocks, "MIN_THREADED_SIZE_IF_CHEAP"): 2,
    (blocks, "UFUNC_BLOCK_SIZE"): 256,
    (blocks, "BLOCK_SIZE"): 64,
    (fused_loops, "MIN_FUSED_THREADED_WORK"): 2000,
    (fused_loops, "FUSED_BLOCK_SIZE"): 200,
    (grouping, "FUSED_BLOCK_SIZE"): 200,
}


# Short loops are re-rolled when XLA compiles them.
_REROLLED = {
    (loop_rerolling, "MIN_LOOP_ITERATIONS"): 3,
    (loop_rerolling, "MIN_LOOP_CALLS"): 6,
    (sum_of_slices, "MIN_LOOP_ROWS"): 2,
    (xla_loops, "MIN_LOOP_ROWS"): 2,
}


def _no_product(*_: Any) -> None:
    """Replaces `as_product`, so that sums are not computed as products with ones."""


_SUMS_OF_MANY = {(_sums, "as_product"): _no_product, (inline_kernels, "as_product"): _no_product}


@contextlib.contextmanager
def _set(settings: dict[tuple[Any, str], Any]) -> Iterator[None]:
    """Sets attributes of modules during a `with` block."""
    before = {setting: getattr(*setting) for setting in settings}
    try:
        for (module, name), value in settings.items():
            setattr(module, name, value)
        yield
    finally:
        for (module, name), value in before.items():
            setattr(module, name, value)


@functools.cache
def _tensorflow() -> Process:
    return Process(os.environ["CAMPAIGN_TENSORFLOW"])


def _report(source: str, mode: str) -> str:
    source = shrink(source, lambda text: _difference(text, mode) is not None, _SECONDS)
    functions = {"xla": "lambda f: tf.function(f, jit_compile=True)", "fused": "lambda f: f"}
    preamble = runner.PREAMBLE.replace("{function}", functions.get(mode, "tf.function"))
    return f"eager and {mode} differ: {_difference(source, mode)}\n\n{preamble}\n{source}"
