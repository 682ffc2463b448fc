"""Implements tf.print for tensors and nested structures."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from retrograde.core.recorders import escape, thread
from retrograde.core.tensor import Tensor
from retrograde.ops.host_callbacks import HostCallback, call_host
from retrograde.ragged.tensor import RaggedTensor
from retrograde.sparse.tensor import SparseTensor
from retrograde.values import nest
from retrograde.values.arguments import as_text, brief
from retrograde.values.conversion import tensor_or_variable

_DEFAULT_SUMMARIZE = 3  # elements to show at each end of an axis


def print(*inputs: Any, **kwargs: Any) -> None:
    """Prints tensors, structures of tensors, and other values.

    Keyword arguments:

    - `output_stream`: `sys.stderr` by default, another object with a `write` method, a function
      such as `logging.info`, or "file://" and a path to append to
    - `summarize`: how many elements to show at each end of an axis; -1 shows all
    - `sep` and `end`: as in Python

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
    summarize = _DEFAULT_SUMMARIZE if summarize is None else summarize

    def write(*values: Any) -> tuple:
        structure = nest.pack(list(inputs), iter(values), expand_composites=True)
        texts = [x if isinstance(x, str) else _format(x, summarize) for x in structure]
        _write(sep.join(texts) + end, sys.stderr if stream is None else stream)
        return ()

    leaves = list(nest.leaves(list(inputs), expand_composites=True))
    if thread.recorders.tracer is None:
        write(*leaves)
    else:  # a traced function prints in every call
        sources = [tensor_or_variable(leaf) for leaf in leaves]
        tensors = tuple([x._read() for x in sources if x is not None])

        def write_again(*arrays: Any) -> tuple:
            tensors_now = iter(map(Tensor, arrays))
            pairs = zip(leaves, sources, strict=True)
            return write(*[leaf if x is None else next(tensors_now) for leaf, x in pairs])

        call_host(HostCallback("print", write_again, pure=False, outputs=True), tensors)


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


def _format(value: Any, summarize: int) -> str:
    """Formats a value inside a structure: strings in quotes, tensors by their elements."""
    x = tensor_or_variable(value)
    if x is not None:
        tensor = x._read()
        escape(tensor, "print")
        return format_array(np.asarray(tensor._array), summarize)
    if isinstance(value, SparseTensor):
        parts = (value.indices, value.values, value.dense_shape)
        indices, values, shape = (_format(part, summarize) for part in parts)
        return f"'SparseTensor(indices={indices}, values={values}, shape={shape})'"
    if isinstance(value, RaggedTensor):
        return _format_ragged(value.to_list(), summarize)
    if not nest.is_nested(value):
        return repr(value)
    if isinstance(value, Mapping):
        pairs = zip(sorted(value), nest.children(value), strict=True)
        return (
            "{" + ", ".join(f"{key!r}: {_format(child, summarize)}" for key, child in pairs) + "}"
        )
    texts = [_format(child, summarize) for child in value]
    if hasattr(value, "_fields"):
        named = map("{}={}".format, value._fields, texts)
        return f"{type(value).__name__}({', '.join(named)})"
    if isinstance(value, tuple):
        return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"
    return f"[{', '.join(texts)}]"


def _format_ragged(rows: Any, summarize: int) -> str:
    """Formats rows of different lengths; floats have six decimals, as in TensorFlow."""
    if not isinstance(rows, list):
        return _format_ragged_value(rows)
    if summarize < 0 or len(rows) <= 2 * summarize:
        return f"[{', '.join(_format_ragged(row, summarize) for row in rows)}]"
    ends = [
        _format_ragged(row, summarize)
        for row in (*rows[:summarize], *rows[len(rows) - summarize :])
    ]
    return f"[{', '.join([*ends[:summarize], '...', *ends[summarize:]])}]"


def _format_ragged_value(value: Any) -> str:
    if isinstance(value, bytes):
        escaped = value.decode(errors="replace").replace("\\", r"\\").replace("'", r"\'")
        return f"'{escaped}'"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, complex):
        return f"({value.real:f},{value.imag:f})"
    return f"{value:f}" if isinstance(value, float) else repr(value)


def format_array(array: np.ndarray, summarize: int) -> str:
    """Formats an array, with `summarize` elements at each end of each axis; -1 shows all."""
    if not array.ndim:
        value = array.item() if array.dtype == object else array[()]
        return value.decode(errors="replace") if isinstance(value, bytes) else _format_number(value)
    return _format_axis(array, summarize, depth=1)


def _format_axis(array: np.ndarray, summarize: int, depth: int) -> str:
    """Formats the elements along the first axis; omits those in the middle if there are many."""
    show_all = summarize < 0 or len(array) <= 2 * summarize
    ends = array if show_all else [*array[:summarize], *array[len(array) - summarize :]]
    shown = [
        _format_axis(row, summarize, depth + 1) if array.ndim > 1 else _format_element(row)
        for row in ends
    ]
    if not show_all:
        shown.insert(summarize, "...")
    between = " " if array.ndim == 1 else "\n" * (array.ndim - 1) + " " * depth
    return f"[{between.join(shown)}]"


def _format_element(value: Any) -> str:
    return (
        f'"{value.decode(errors="replace")}"' if isinstance(value, bytes) else _format_number(value)
    )


def _format_number(value: Any) -> str:
    """Formats a number with the fewer of two digit counts that preserves its value."""
    dtype = value.dtype
    if dtype.kind in "iub":
        return str(int(value))
    if dtype.kind == "c":
        return str(complex(value))
    wide, few_digits, all_digits = (
        (np.float64, 15, 17) if dtype == np.float64 else (np.float32, 6, 9)
    )
    number = float(value)
    text = f"{number:.{few_digits}g}"
    return text if wide(float(text)) == wide(value) else f"{number:.{all_digits}g}"
