"""Evaluates Keras expressions and compares the results with those recorded from Keras on JAX.

`keras_results.json` maps expressions to the results of Keras on JAX. To add an expression, add it
with the result `null` and run this file with Keras and JAX installed:

    KERAS_BACKEND=jax python tests/data/keras_results.py
"""

from __future__ import annotations

import json
import math
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np

PATH = pathlib.Path(__file__).with_name("keras_results.json")


def evaluate(expression: str, keras: Any, gradients: Callable) -> Any:
    """Evaluates `expression`. Returns JSON data, or the class of the error.

    `gradients(f, xs)` returns `f(*xs)` and the gradients of its sum with respect to `xs`.
    """
    ops = keras.ops

    def spread(low, high, *shape):
        """Returns distinct numbers between `low` and `high` in irregular order."""
        n = math.prod(shape)
        order = np.arange(n) * 7 % n if n % 7 else np.arange(n) * 5 % n
        return (low + (high - low) * (order + 0.5) / n).reshape(shape).astype(np.float32)

    def grad(f, *xs):
        return gradients(f, [ops.convert_to_tensor(x) for x in xs])

    def dtype_of(x):
        return [dtype_of(v) for v in x] if isinstance(x, list | tuple) else str(_dtype(x))

    def t(values, dtype):
        return ops.cast(ops.convert_to_tensor(values), dtype)

    def _dtype(x):
        return keras.backend.standardize_dtype(x.dtype)

    def plain(x):
        if isinstance(x, list | tuple):
            return [plain(v) for v in x]
        if hasattr(x, "dtype"):
            array = np.asarray(ops.convert_to_numpy(x))
            return {"dtype": _dtype(x), "shape": list(array.shape), "value": _numbers(array)}
        return x

    known = {"ops": ops, "np": np, "grad": grad, "dtype_of": dtype_of, "t": t, "spread": spread}
    try:
        return plain(eval(expression, known))
    except Exception as error:
        return {"error": type(error).__name__}


def _numbers(array: np.ndarray) -> list:
    """Returns the flattened elements as JSON data."""
    flat = array.ravel()
    if array.dtype.kind == "c":
        flat = np.stack([flat.real, flat.imag], -1).ravel()
    if array.dtype.kind in "biu":
        return flat.tolist()
    return [repr(v) if not math.isfinite(v) else float(f"{v:.8g}") for v in map(float, flat)]


def is_close(actual: Any, expected: Any, rtol: float = 2e-5) -> bool:
    """Returns whether two results agree. Floats are compared with a tolerance for float32."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return actual.keys() == expected.keys() and all(
            is_close(actual[key], expected[key]) for key in expected
        )
    if isinstance(expected, list) and isinstance(actual, list):
        return len(actual) == len(expected) and all(map(is_close, actual, expected))
    if type(expected) is float and type(actual) is float:
        return abs(actual - expected) <= 2e-6 + rtol * abs(expected)
    return type(actual) is type(expected) and actual == expected


def write(results: dict[str, Any]) -> None:
    """Writes the results with one line for each expression."""
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in results.items()]
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _jax_value_and_gradients(f, xs):
    import jax

    y, vjp = jax.vjp(f, *xs)
    return [y, *vjp(jax.tree.map(jax.numpy.ones_like, y))]


if __name__ == "__main__":
    import keras

    assert keras.backend.backend() == "jax"
    write({e: evaluate(e, keras, _jax_value_and_gradients) for e in json.loads(PATH.read_text())})
