"""Random programs: eager, replayed, fused and compiled runs of each have to agree.

A trial writes a program, runs it eagerly, and runs it again in other ways:

- "replay": functions are recorded and replayed with NumPy;
- "fused": eager, with lazy evaluation of arrays of any size;
- "fused replay": functions are replayed, and elementwise calls on arrays of any size are fused;
- "xla": functions are compiled, for one seed in `_COMPILED`;
- "tensorflow": eager, in the interpreter that the environment variable `CAMPAIGN_TENSORFLOW`
  names.

Results of the first three have to be bit-for-bit those of the eager run. The others have to agree
within a tolerance, which is larger for results that change much when the data change little.
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
from campaigns._programs import running
from campaigns._programs.comparing import adapted, difference, tolerance_of
from campaigns._programs.running import Outcome
from campaigns._programs.shrinking import shrink
from campaigns._programs.tensorflow_process import Process
from campaigns._programs.writing import is_for_tensorflow, write
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

_COMPILED = 20  # one program in so many is compiled
_SECONDS = 20.0  # to shrink a failing program

# A tape around a function adds up in another order than one that records all its operations.
_SAME_ORDER = frozenset({"y", "jvp"})

# A replay folds the parts of complex constants. Cotangents that reach a `py_function` are added up
# in another order. A fused loop writes C-contiguous arrays, while eager calls keep the order of
# axes that a transpose or a sort has left; sums add up in that order.
_REORDERED = {
    "replay": re.compile("complex|py_function"),
    "fused replay": re.compile("complex|py_function|transpose|einsum|sort"),
}


def trial(seed: int) -> str | None:
    """Runs one program in all ways, and returns how they differ with a minimal program."""
    compiles = seed % _COMPILED == 0
    source = write(seed, small=compiles)
    ways = ["fused", "replay" if seed % 3 else "fused replay"]
    if compiles:
        ways.append("xla")
    if os.environ.get("CAMPAIGN_TENSORFLOW") and is_for_tensorflow(source):
        ways.append("tensorflow")
    expected: dict[str, Outcome] = {}
    for way in ways:
        reference = _reference(way)
        if reference not in expected:
            expected[reference] = _run(source, reference)
        if _difference(source, way, expected[reference]) is not None:
            return _reported(source, way)
    return None


def _reference(way: str) -> str:
    """The way to compare with: sums of large arrays have another order than those of small ones."""
    return "eager, as if large" if way.startswith("fused") else "eager"


def _difference(source: str, way: str, expected: Outcome | None = None) -> str | None:
    """Describes what a program does in another way than eagerly."""
    if expected is None:
        expected = _run(source, _reference(way))
    found = _run(source, way)
    if way == "tensorflow":
        if _is_missing_in_tensorflow(found.error):
            return None
        found = adapted(found, expected)
    problem = difference(expected, found)
    if problem is None or way == "fused":
        return problem
    replayed = way.endswith("replay")
    tolerance = tolerance_of(source, same_kernels=replayed)
    exact = _SAME_ORDER if replayed and not _REORDERED[way].search(source) else frozenset()
    if difference(expected, found, tolerance, None, exact) is None:
        return None
    noise = _run(source, _reference(way), _nearby())
    return difference(expected, found, tolerance, noise, exact)


def _is_missing_in_tensorflow(error: BaseException | None) -> bool:
    """Whether TensorFlow has no derivative, or does not accept rows where it accepts a tensor."""
    names = ("NotImplementedError", "LookupError", "AttributeError")
    return any(name in f"{type(error).__name__}: {error}" for name in (*names, "IndexedSlices"))


def _nearby() -> Callable[[np.ndarray], np.ndarray]:
    """Returns a change of data in the last digits."""
    generator = np.random.default_rng(0)

    def changed(x: np.ndarray) -> np.ndarray:
        factor = 1 + 4 * ml_dtypes.finfo(x.dtype).eps * generator.uniform(-1.0, 1.0, x.shape)
        return (x * factor).astype(x.dtype)

    return changed


def _run(source: str, way: str, change: Callable | None = None) -> Outcome:
    if way == "tensorflow":
        return _tensorflow().run(source)
    functions = {"replay": tf.function, "fused replay": tf.function, "xla": _compiled}
    settings = dict(_FUSED) if way.startswith("fused") else {}
    if way == "xla":
        settings |= _REROLLED
    if _reference(way) != "eager" or way == "eager, as if large":
        settings |= _SUMS_OF_MANY
    with warnings.catch_warnings(), _set(settings):
        warnings.simplefilter("error")
        copies_at_once = way.startswith("eager")
        return running.run(source, tf, functions.get(way, _as_it_is), copies_at_once, change)


def _as_it_is(f: Callable) -> Callable:
    return f


def _compiled(f: Callable) -> Callable:
    return tf.function(f, jit_compile=True)


# All arrays but single elements are evaluated lazily and in blocks.
_FUSED = {
    (apply, "MANY"): 2,
    (grouping, "MANY"): 2,
    (numpy_codegen, "MANY"): 2,
    (lazy_calls, "LEAST"): 2,
    (lazy_calls, "_BEGIN"): 2,
    (blocks, "LARGE"): 2,
    (blocks, "HUGE"): 2,
    (blocks, "LONG"): 256,
    (blocks, "BLOCK"): 64,
    (fused_loops, "_WORTH_A_THREAD"): 2000,
    (fused_loops, "BLOCK"): 200,
    (grouping, "BLOCK"): 200,
}


# Short loops are re-rolled when XLA compiles them.
_REROLLED = {
    (loop_rerolling, "_FEWEST_ITERATIONS"): 3,
    (loop_rerolling, "_FEWEST_CALLS"): 6,
    (sum_of_slices, "_FEWEST_ROWS"): 2,
    (xla_loops, "_MANY_ROWS"): 2,
}


def _no_product(*_: Any) -> None:
    """Stands for `as_product`: sums are not computed as products with ones."""


_SUMS_OF_MANY = {(_sums, "as_product"): _no_product, (inline_kernels, "as_product"): _no_product}


@contextlib.contextmanager
def _set(settings: dict[tuple[Any, str], Any]) -> Iterator[None]:
    """A block in which attributes of modules have other values."""
    before = {place: getattr(*place) for place in settings}
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


def _reported(source: str, way: str) -> str:
    source = shrink(source, lambda text: _difference(text, way) is not None, _SECONDS)
    functions = {"xla": "lambda f: tf.function(f, jit_compile=True)", "fused": "lambda f: f"}
    preamble = running.PREAMBLE.replace("{function}", functions.get(way, "tf.function"))
    return f"eager and {way} differ: {_difference(source, way)}\n\n{preamble}\n{source}"
