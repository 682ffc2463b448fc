"""Implements tf.print for tensors and nested structures."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from retrograde.core.host_callbacks import Host, perform
from retrograde.core.recorders import escape, thread
from retrograde.core.tensor import Tensor
from retrograde.ragged.tensor import RaggedTensor
from retrograde.sparse.tensor import SparseTensor
from retrograde.values import nest
from retrograde.values.arguments import as_text, brief
from retrograde.values.conversion import tensor_or_variable

_FEW = 3  # elements to show at either end of an axis


def print(*inputs: Any, **kwargs: Any) -> None:
    """Prints tensors, structures of tensors, and anything else.

    Keywords: `output_stream`, which is `sys.stderr` by default, or another object with a `write`
    method, a function such as `logging.info`, or "file://" and a path to append to; `summarize`,
    how many elements to show at either end of an axis, -1 for all; `sep` and `end` as in Python.

    >>> import sys
    >>> tf.print("x:", tf.range(8), {"a": tf.constant([1.0, 0.5])}, output_stream=sys.stdout)
    x: [0 1 2 ... 5 6 7] {'a': [1 0.5]}
    """
    stream = kwargs.pop("output_stream", None)
    summarize = kwargs.pop("summarize", None)
    sep, end = kwargs.pop("sep", " "), kwargs.pop("end", "\n")
    kwargs.pop("name", None)
    if kwargs:
        raise ValueError(f"Unrecognized keyword arguments for tf.print: {as_text(kwargs)}")
    few = _FEW if summarize is None else summarize

    def write(*values: Any) -> tuple:
        given = nest.pack(list(inputs), iter(values), expand_composites=True)
        words = [x if isinstance(x, str) else _words(x, few) for x in given]
        _write(sep.join(words) + end, sys.stderr if stream is None else stream)
        return ()

    leaves = list(nest.leaves(list(inputs), expand_composites=True))
    if thread.recorders.recording is None:
        write(*leaves)
    else:  # so that a function prints in every call
        held = [tensor_or_variable(leaf) for leaf in leaves]
        tensors = tuple([x._read() for x in held if x is not None])

        def write_again(*arrays: Any) -> tuple:
            given = iter(map(Tensor, arrays))
            pairs = zip(leaves, held, strict=True)
            return write(*[leaf if x is None else next(given) for leaf, x in pairs])

        perform(Host("print", write_again, pure=False, outputs=True), tensors)


def _write(text: str, stream: Any) -> None:
    if hasattr(stream, "write"):
        stream.write(text)
    elif callable(stream):
        stream(text)
    elif isinstance(stream, str) and stream.startswith("file://"):
        with open(stream.removeprefix("file://"), "a") as file:
            file.write(text)
    else:
        raise ValueError(
            f"Unsupported output stream, logging level, or file: {brief(stream)}. Expected an "
            "object with a `write` method, a function, or 'file://' and a path."
        )


def _words(value: Any, few: int) -> str:
    """A value as it stands in a structure: strings in quotes, tensors by their elements."""
    held = tensor_or_variable(value)
    if held is not None:
        tensor = held._read()
        escape(tensor, "print")
        return elements_of(np.asarray(tensor._array), few)
    if isinstance(value, SparseTensor):
        parts = (value.indices, value.values, value.dense_shape)
        indices, values, shape = (_words(part, few) for part in parts)
        return f"SparseTensor(indices={indices}, values={values}, shape={shape})"
    if isinstance(value, RaggedTensor):
        return _ragged(value.to_list(), few)
    if not nest.is_nested(value):
        return repr(value)
    if isinstance(value, Mapping):
        pairs = zip(sorted(value), nest.children(value), strict=True)
        return "{" + ", ".join(f"{key!r}: {_words(child, few)}" for key, child in pairs) + "}"
    words = [_words(child, few) for child in value]
    if hasattr(value, "_fields"):
        named = map("{}={}".format, value._fields, words)
        return f"{type(value).__name__}({', '.join(named)})"
    if isinstance(value, tuple):
        return f"({', '.join(words)}{',' if len(words) == 1 else ''})"
    return f"[{', '.join(words)}]"


def _ragged(rows: Any, few: int) -> str:
    """Rows of different lengths; floats with six digits behind the point, as TensorFlow has it."""
    if not isinstance(rows, list):
        shown = rows.decode(errors="replace") if isinstance(rows, bytes) else rows
        return f"{rows:f}" if isinstance(rows, float) else repr(shown)
    if few < 0 or len(rows) <= 2 * few:
        return f"[{', '.join(_ragged(row, few) for row in rows)}]"
    ends = [_ragged(row, few) for row in (*rows[:few], *rows[len(rows) - few :])]
    return f"[{', '.join([*ends[:few], '...', *ends[few:]])}]"


def elements_of(array: np.ndarray, few: int) -> str:
    """The elements of an array in words, `few` of them at either end of each axis; -1 for all."""
    if not array.ndim:
        value = array.item() if array.dtype == object else array[()]
        return value.decode(errors="replace") if isinstance(value, bytes) else _number(value)
    return _axis(array, few, depth=1)


def _axis(array: np.ndarray, few: int, depth: int) -> str:
    """The elements along the first axis; those in the middle left out if they are many."""
    whole = few < 0 or len(array) <= 2 * few
    ends = array if whole else [*array[:few], *array[len(array) - few :]]
    shown = [_axis(row, few, depth + 1) if array.ndim > 1 else _element(row) for row in ends]
    if not whole:
        shown.insert(few, "...")
    between = " " if array.ndim == 1 else "\n" * (array.ndim - 1) + " " * depth
    return f"[{between.join(shown)}]"


def _element(value: Any) -> str:
    return f'"{value.decode(errors="replace")}"' if isinstance(value, bytes) else _number(value)


def _number(value: Any) -> str:
    """A number in as few digits as tell it apart, of two choices."""
    dtype = value.dtype
    if dtype.kind in "iub":
        return str(int(value))
    if dtype.kind == "c":
        return str(complex(value))
    wide, few, all_digits = (np.float64, 15, 17) if dtype == np.float64 else (np.float32, 6, 9)
    number = float(value)
    text = f"{number:.{few}g}"
    return text if wide(float(text)) == wide(value) else f"{number:.{all_digits}g}"
