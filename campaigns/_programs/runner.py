"""Runs the source of a program, with retrograde or TensorFlow as `tf`.

This module imports neither: a process that has only one of them can use it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

# The definitions that a printed program needs.
PREAMBLE = '''\
import numpy as np
import retrograde as tf  # or tensorflow

function = {function}

def numbers(seed, shape, dtype):
    """Returns a tensor of benign random values."""
    generator = np.random.default_rng(seed)
    if dtype == "bool":
        return tf.constant(generator.random(shape) < 0.5)
    if dtype.startswith("int"):
        return tf.constant(generator.integers(-4, 5, shape), dtype)
    x = generator.uniform(-2.0, 2.0, shape)
    if dtype.startswith("complex"):
        x = x + 1j * generator.uniform(-2.0, 2.0, shape)
    return tf.cast(tf.constant(x), dtype)

def special_numbers(seed, shape, dtype):
    """Returns a tensor in which some values are zero, infinite, huge or NaN."""
    generator = np.random.default_rng(seed)
    x = generator.uniform(-2.0, 2.0, shape)
    special = generator.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, 1e-30, 1.0], shape)
    return tf.cast(tf.constant(np.where(generator.random(shape) < 0.3, special, x)), dtype)

def total(structure):
    """Returns a weighted sum of all inexact elements."""
    parts = [tf.zeros([], tf.float64)]
    for y in tf.nest.flatten(structure):
        if not (y.dtype.is_floating or y.dtype.is_complex):
            continue
        weights = tf.constant(np.cos(np.arange(np.prod(y.shape))).reshape(y.shape))
        if y.dtype.is_complex:
            y = tf.math.real(y) + 0.7 * tf.math.imag(y)
        parts.append(tf.reduce_sum(tf.cast(y, tf.float64) * weights))
    return tf.add_n(parts)

def keep(label, structure):
    """Stores results."""
    for y in tf.nest.flatten(structure):
        print(label, None if y is None else np.asarray(tf.convert_to_tensor(y)))
'''


class Result(NamedTuple):
    """A result: its label, its dtype, and its value or `None`."""

    label: str
    dtype: str
    value: np.ndarray | None


class Outcome(NamedTuple):
    """The results of a program, and the exception that ended it."""

    results: list[Result]
    error: BaseException | None


def run(
    source: str,
    tf: Any,
    function: Callable,
    copies_immediately: bool = True,
    change: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Outcome:
    """Executes `source`, with `function` as the decorator of its functions.

    If `copies_immediately` is false, results are copied after the program has ended, to check that
    later operations do not change them. `change` is applied to all floating-point data.
    """
    tensors: list[tuple[str, Any]] = []
    results: list[Result] = []

    def keep(label: str, structure: Any) -> None:
        for y in tf.nest.flatten(structure):
            y = y if y is None else tf.convert_to_tensor(y)
            if copies_immediately:
                results.append(_copy_result(label, y))
            else:
                tensors.append((label, y))

    namespace = {"tf": tf, "np": np} | helpers(tf)
    if change is not None:
        namespace["numbers"] = _perturb_numbers(tf, namespace["numbers"], change)
    namespace |= {"function": function, "keep": keep}
    error = None
    try:
        exec(compile_program(source), namespace)
    except Exception as raised:
        error = raised
    results += [_copy_result(label, y) for label, y in tensors]
    return Outcome(results, error)


@functools.lru_cache(maxsize=16)
def compile_program(source: str) -> CodeType:
    """Compiles a program, once for all modes."""
    return compile(source, "<program>", "exec")


@functools.cache
def helpers(tf: Any) -> dict[str, Any]:
    """Returns the functions of the preamble for this library."""
    scope: dict[str, Any] = {"tf": tf, "np": np}
    exec(PREAMBLE[PREAMBLE.index("def numbers") :], scope)
    return {
        "numbers": _cache_numbers(tf, scope["numbers"]),
        "special_numbers": _cache_numbers(tf, scope["special_numbers"]),
        "total": scope["total"],
    }


def _cache_numbers(tf: Any, numbers: Callable) -> Callable:
    """Returns a function that caches the data and creates a new tensor for each call."""
    cached = functools.lru_cache(maxsize=64)(numbers)
    return lambda *args: tf.identity(cached(*args))


def _perturb_numbers(tf: Any, numbers: Callable, change: Callable) -> Callable:
    def changed_numbers(seed: int, shape: tuple, dtype: str) -> Any:
        x = numbers(seed, shape, dtype)
        if not (x.dtype.is_floating or x.dtype.is_complex):
            return x
        return tf.constant(change(np.asarray(x)), x.dtype)

    return changed_numbers


def _copy_result(label: str, y: Any) -> Result:
    if y is None:
        return Result(label, "None", None)
    return Result(label, y.dtype.name, np.array(y.numpy()))
