"""Calls of Keras functions, written as expressions, and what Keras on JAX answered to them.

`keras_answers.json` maps each expression to its answer. To add a call, add its expression with the
answer `null`, and run this file with a Python that has Keras and JAX:

    KERAS_BACKEND=jax python tests/data/keras_answers.py
"""

from __future__ import annotations

import json
import math
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np

PATH = pathlib.Path(__file__).with_name("keras_answers.json")


def answer(expression: str, keras: Any, gradients: Callable) -> Any:
    """What `expression` gives on Keras's backend, as plain data; of an error, its class.

    `gradients(f, xs)` returns `f(*xs)`, and the gradients of its sum by all of `xs`.
    """
    ops = keras.ops

    def spread(low, high, *shape):
        """Numbers between two others, none of them twice, in no obvious order."""
        n = math.prod(shape)
        places = np.arange(n) * 7 % n if n % 7 else np.arange(n) * 5 % n
        return (low + (high - low) * (places + 0.5) / n).reshape(shape).astype(np.float32)

    def grad(f, *xs):
        return gradients(f, [ops.convert_to_tensor(x) for x in xs])

    def kind(x):
        return [kind(v) for v in x] if isinstance(x, list | tuple) else str(_dtype(x))

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

    known = {"ops": ops, "np": np, "grad": grad, "kind": kind, "t": t, "spread": spread}
    try:
        return plain(eval(expression, known))
    except Exception as error:
        return {"error": type(error).__name__}


def _numbers(array: np.ndarray) -> list:
    """The elements, laid flat, as JSON can hold them."""
    flat = array.ravel()
    if array.dtype.kind == "c":
        flat = np.stack([flat.real, flat.imag], -1).ravel()
    if array.dtype.kind in "biu":
        return flat.tolist()
    return [repr(v) if not math.isfinite(v) else float(f"{v:.8g}") for v in map(float, flat)]


def same(actual: Any, expected: Any, rtol: float = 2e-5) -> bool:
    """Whether two answers agree; floats to the precision of float32."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return actual.keys() == expected.keys() and all(
            same(actual[key], expected[key]) for key in expected
        )
    if isinstance(expected, list) and isinstance(actual, list):
        return len(actual) == len(expected) and all(map(same, actual, expected))
    if type(expected) is float and type(actual) is float:
        return abs(actual - expected) <= 2e-6 + rtol * abs(expected)
    return type(actual) is type(expected) and actual == expected


def write(answers: dict[str, Any]) -> None:
    """One line for each call."""
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in answers.items()]
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _by_jax(f, xs):
    import jax

    y, vjp = jax.vjp(f, *xs)
    return [y, *vjp(jax.tree.map(jax.numpy.ones_like, y))]


if __name__ == "__main__":
    import keras

    assert keras.backend.backend() == "jax"
    write({e: answer(e, keras, _by_jax) for e in json.loads(PATH.read_text())})
