"""Evaluates expressions and compares the results with those recorded from TensorFlow.

Each `*_results.json` file maps expressions to TensorFlow's results. To add an expression, add it
with the result `null` and run this file with TensorFlow installed:

    python tests/data/recorded_results.py tests/data/array_results.json

The results in `numpy_behavior_results.json` are recorded after
`experimental_enable_numpy_behavior`.
"""

from __future__ import annotations

import hashlib
import json
import math
import pathlib
import struct
import sys
import tempfile
from typing import Any

import numpy as np


def evaluate(expression: str, tf: Any) -> Any:
    """Evaluates `expression` with the library `tf`. Returns JSON data or the error class."""

    def grad(f, *xs):
        xs = [tf.constant(x) for x in xs]
        with tf.GradientTape() as tape:
            tape.watch(xs)
            y = f(*xs)
        return [y, tape.gradient(y, xs)]

    def integers(*shape):
        """Returns small integers in irregular order, as float32."""
        return (np.arange(math.prod(shape)) * 5 % 7 - 3.0).reshape(shape).astype(np.float32)

    def feature(values):
        """Returns a feature of integers, floats or bytes, or an empty feature."""
        names = {int: "int64_list", float: "float_list", bytes: "bytes_list"}
        message = tf.train.Feature()
        if values:
            getattr(message, names[type(values[0])]).value.extend(values)
        return message

    def text_file(text):
        """Writes a text file and returns its path."""
        digest = hashlib.sha256(text.encode()).hexdigest()
        path = pathlib.Path(tempfile.gettempdir()) / f"answer-{digest[:16]}.txt"
        path.write_bytes(text.encode())
        return str(path)

    def wav(samples):
        """Returns 16-bit samples in [-1, 1] as a WAV file."""
        data = np.round(np.array(samples) * 32767).astype("<i2")
        channels = data.shape[1]
        parts = (16, 1, channels, 8000, 16000 * channels, 2 * channels, 16)
        header = b"fmt " + struct.pack("<IHHIIHH", *parts)
        chunks = b"WAVE" + header + b"data" + struct.pack("<I", data.nbytes) + data.tobytes()
        return b"RIFF" + struct.pack("<I", len(chunks)) + chunks

    def example(**features):
        """Returns a serialized `Example`."""
        message = tf.train.Example(features=tf.train.Features())
        for name, values in features.items():
            message.features.feature[name].CopyFrom(feature(values))
        return message.SerializeToString()

    def sequence_example(context, **lists):
        """Returns a serialized `SequenceExample`."""
        message = tf.train.SequenceExample()
        for name, values in context.items():
            message.context.feature[name].CopyFrom(feature(values))
        for name, steps in lists.items():
            features = message.feature_lists.feature_list[name].feature
            features.extend([feature(values) for values in steps])
        return message.SerializeToString()

    try:
        known = {
            "tf": tf,
            "tnp": tf.experimental.numpy,
            "np": np,
            "grad": grad,
            "integers": integers,
            "text_file": text_file,
            "wav": wav,
            "example": example,
            "sequence_example": sequence_example,
        }
        return _plain(eval(expression, known), tf)
    except Exception as error:
        return {"error": type(error).__name__}


def _plain(x: Any, tf: Any) -> Any:
    if isinstance(x, tf.IndexedSlices):
        return {"slices": [_plain(part, tf) for part in (x.values, x.indices, x.dense_shape)]}
    if isinstance(x, tf.SparseTensor):
        return {"sparse": [_plain(part, tf) for part in (x.indices, x.values, x.dense_shape)]}
    if isinstance(x, tf.RaggedTensor):
        return {
            "ragged": _numbers(x.to_list()),
            "dtype": x.dtype.name,
            "shape": list(x.shape),
            "splits": x.row_splits.dtype.name,
        }
    if isinstance(x, list | tuple):
        return [_plain(v, tf) for v in x]
    if isinstance(x, dict):
        return {key: _plain(v, tf) for key, v in x.items()}
    if isinstance(x, np.ndarray):
        return {"numpy": _numbers(x.tolist()), "dtype": x.dtype.name}
    if hasattr(x, "numpy"):
        array = np.asarray(x.numpy())
        if array.dtype.name == "bfloat16":
            array = array.astype(np.float32)
        return {
            "dtype": x.dtype.name,
            "shape": list(x.shape),
            "value": _numbers(array.tolist()),
        }
    return x if x is None or isinstance(x, bool | int | float | str) else repr(x)


def _numbers(x: Any) -> Any:
    """Converts complex numbers, bytes and non-finite numbers in lists to JSON data."""
    if isinstance(x, list):
        return [_numbers(v) for v in x]
    if isinstance(x, complex):
        return {"re": _numbers(x.real), "im": _numbers(x.imag)}
    if isinstance(x, float) and not math.isfinite(x):
        return repr(x)
    return x.decode() if isinstance(x, bytes) else x


def is_close(actual: Any, expected: Any) -> bool:
    """Returns whether two results agree. Floats are compared with a tolerance for float32."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return actual.keys() == expected.keys() and all(
            is_close(actual[key], expected[key]) for key in expected
        )
    if isinstance(expected, list) and isinstance(actual, list):
        return len(actual) == len(expected) and all(map(is_close, actual, expected))
    if type(expected) is float and type(actual) is float:
        return abs(actual - expected) <= 1e-7 + 1e-6 * abs(expected)
    return type(actual) is type(expected) and actual == expected


def write(path: pathlib.Path, results: dict[str, Any]) -> None:
    """Writes a file of results with one line for each expression."""
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in results.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    import tensorflow

    path = pathlib.Path(sys.argv[1])
    if path.name == "numpy_behavior_results.json":
        tensorflow.experimental.numpy.experimental_enable_numpy_behavior()
    write(path, {e: evaluate(e, tensorflow) for e in json.loads(path.read_text())})
