"""Evaluates a call in a library: its value, gradients and second derivatives."""

from __future__ import annotations

import base64
import contextlib
import functools
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from parity.calls import Call


def find(tf: Any, name: str) -> Any:
    """Returns the object that has the TensorFlow name `name` in the library `tf`, or `None`."""
    return functools.reduce(
        lambda parent, part: getattr(parent, part, None), name.split(".")[1:], tf
    )


def evaluate(tf: Any, call: Call, seed: int) -> dict:
    """Evaluates a call and returns its fields, extended by the results, as JSON values.

    `value` lists the leaves of the result. `gradient` lists the gradients with respect to the
    sources, for random upstream gradients. `second` lists the gradients of the sum of the squares
    of these gradients. If a stage raises an exception, `error` lists the stage, the class and the
    message.
    """
    record = call._asdict()
    if find(tf, call.function) is None:
        return record | {"missing": True}
    if not call.expression:
        return record
    # The seed excludes the precision, so that all precisions get the same values.
    seed_key = f"{call.function} {call.expression}"
    rng = np.random.default_rng([seed, zlib.crc32(seed_key.encode())])
    sources = Sources(tf, rng, call.precision)
    with tf.GradientTape() as outer, tf.GradientTape() as inner:
        sources.tapes = (outer, inner)
        with _recording_error(record, "value"):
            names = {"f": find(tf, call.function), "S": sources, "tf": tf, "np": np}
            parts = leaves(tf, eval(call.expression, names))
            record["value"] = [to_json(part) for part in parts]
        if "error" in record or not sources.created:
            return record | {"sources": [to_json(x) for x in sources.created]}
        with _recording_error(record, "gradient"):
            gradients = _gradients(tf, inner, parts, sources.created, rng)
            record["gradient"] = [to_json(g) for g in gradients]
            squares = [_sum_of_squares(tf, g) for g in gradients if g is not None]
    record["sources"] = [to_json(x) for x in sources.created]
    if "error" not in record and squares:
        with _recording_error(record, "second"):
            second = outer.gradient(squares, sources.created)
            record["second"] = [to_json(_dense(tf, g)) for g in second]
    return record


@contextlib.contextmanager
def _recording_error(record: dict, stage: str) -> Any:
    """Stores an exception and its stage in `record`."""
    try:
        yield
    except Exception as error:
        record["error"] = [stage, type(error).__name__, str(error)[:300]]


class Sources:
    """Creates the sources of a call. The tapes watch them, and `created` lists them.

    `S(2, 3)` returns a tensor of that shape with random values between `lo` and `hi`. The values
    are the same in all precisions. `kind` selects another tensor:

    - "sq": a well-conditioned square matrix with distinct eigenvalues,
    - "spd": a symmetric positive definite matrix,
    - "cspd": the same with a complex dtype,
    - "tri": a lower triangular matrix,
    - "tridiag": the three diagonals of a diagonally dominant matrix,
    - "c": a complex tensor whose real and imaginary parts are sources.
    """

    def __init__(self, tf: Any, rng: np.random.Generator, precision: str) -> None:
        self.tf = tf
        self.rng = rng
        self.precision = precision
        self.tapes = ()
        self.created = []

    def __call__(self, *shape: int, lo: float = 0.2, hi: float = 0.8, kind: str = "") -> Any:
        if kind == "c":
            return self.tf.complex(self(*shape, lo=lo, hi=hi), self(*shape, lo=lo, hi=hi))
        if kind == "cspd":
            x = self(*shape, kind="spd")
            return self.tf.complex(x, self.tf.zeros_like(x))
        x = self.rng.uniform(lo, hi, shape)
        if kind:
            x = _KINDS[kind](x)
        source = self.tf.cast(x.astype(np.float32), self.precision)
        for tape in self.tapes:
            tape.watch(source)
        self.created.append(source)
        return source


def _distinct_diagonal(x: np.ndarray) -> np.ndarray:
    return np.diag(np.arange(1.0, x.shape[-1] + 1))


_KINDS: dict[str, Callable] = {
    "sq": lambda x: x + _distinct_diagonal(x),
    "spd": lambda x: x @ x.swapaxes(-1, -2) + _distinct_diagonal(x),
    "tridiag": lambda x: x + np.array([[0.0], [2.0], [0.0]]),
    "tri": lambda x: np.tril(x) + np.eye(x.shape[-1]),
}


def leaves(tf: Any, value: Any) -> list:
    """Returns the tensors and Python values in a structure or a composite tensor."""
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in leaves(tf, value[key])]
    if isinstance(value, list | tuple):
        return [leaf for part in value for leaf in leaves(tf, part)]
    for kind, parts in _COMPOSITES.items():
        if isinstance(value, getattr(tf, kind, ())):
            return [leaf for part in parts for leaf in leaves(tf, getattr(value, part))]
    if isinstance(value, tf.TensorShape):
        return [value.as_list()]
    return [] if value is None else [value]


_COMPOSITES = {
    "SparseTensor": ("indices", "values", "dense_shape"),
    "RaggedTensor": ("flat_values", "nested_row_splits"),
    "IndexedSlices": ("values", "indices"),
}


def _gradients(tf: Any, tape: Any, parts: list, sources: list, rng: np.random.Generator) -> list:
    """Computes gradients with random upstream gradients; equal ones would hide errors."""
    targets = [y for y in parts if hasattr(y, "numpy") and _is_inexact(y.dtype)]
    weights = [tf.cast(_random_like(y, rng), y.dtype) for y in targets]
    return [_dense(tf, g) for g in tape.gradient(targets, sources, output_gradients=weights)]


def _is_inexact(dtype: Any) -> bool:
    return dtype.is_floating or dtype.is_complex


def _random_like(y: Any, rng: np.random.Generator) -> np.ndarray:
    weights = rng.uniform(0.5, 1.5, y.shape)
    if not y.dtype.is_complex:
        return weights.astype(np.float32)
    return (weights + 1j * rng.uniform(-1, 1, y.shape)).astype(np.complex64)


def _dense(tf: Any, g: Any) -> Any:
    return None if g is None else tf.convert_to_tensor(g)


def _sum_of_squares(tf: Any, g: Any) -> Any:
    return tf.reduce_sum(tf.math.real(g * tf.math.conj(g)))


def to_json(x: Any) -> Any:
    """Converts a tensor to JSON values without loss; returns Python values unchanged."""
    if x is None or isinstance(x, bool | int | float | str | list):
        return x
    if not hasattr(x, "numpy"):
        return type(x).__name__
    array = np.asarray(x.numpy())
    if array.dtype.kind == "O":
        values = [str(v) for v in array.reshape(-1)]
        return {"dtype": "string", "shape": list(array.shape), "values": values}
    if array.dtype.name == "bfloat16":
        array = array.astype(np.float32)
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {
        "dtype": x.dtype.name,
        "shape": list(array.shape),
        "stored": array.dtype.str,
        "data": data,
    }


def from_json(leaf: dict) -> np.ndarray:
    """Returns the array that `to_json` converted."""
    data = np.frombuffer(base64.b64decode(leaf["data"]), leaf["stored"])
    return data.reshape(leaf["shape"])
