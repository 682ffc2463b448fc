"""Basic string operations: formatting, length, case, substrings, joining and number parsing."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops.arguments import integer, integer_array
from retrograde.ops.conversion import as_tensor
from retrograde.ops.host_functions import host_function
from retrograde.ragged.operations import elementwise
from retrograde.ragged.tensor import RaggedTensor
from retrograde.strings._elementwise import (
    STRING,
    array_of,
    as_string_tensor,
    check_one_of,
    decode_utf8,
    encode_utf8,
    map_strings,
    scalar_string,
)
from retrograde.strings._numbers import parse_number
from retrograde.toplevel.printing import format_array
from retrograde.values import dtypes
from retrograde.values.arguments import expect
from retrograde.values.errors import OutOfRangeError, allocate, invalid

_INT32 = np.dtype(np.int32)
_UNITS = ("BYTE", "UTF8_CHAR")


@host_function
def as_string(
    input: Any,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: str | None = None,
) -> Any:
    """Converts numbers and booleans to strings, formatted as by C's `printf`.

    >>> tf.as_string([1.5, 2.25], precision=1).numpy()
    array([b'1.5', b'2.2'], dtype=object)
    """
    if isinstance(input, RaggedTensor):
        rest = (precision, scientific, shortest, width, fill)
        return input.with_flat_values(as_string(input.flat_values, *rest))
    x = as_tensor(input)
    write = _writer(x.dtype, precision, scientific, shortest, width, fill)
    array = np.asarray(x)
    results = [write(value).encode() for value in array.ravel().tolist()]
    return Tensor(array_of(results, STRING).reshape(array.shape))


def _writer(
    dtype: dtypes.DType, precision: int, scientific: bool, shortest: bool, width: int, fill: str
) -> Callable[[Any], str]:
    if scientific and shortest:
        raise invalid("as_string: scientific and shortest cannot both be True.")
    check_one_of(fill, ("", " ", "0", "+", "-"), "as_string: fill")
    inexact = dtype.is_floating or dtype.is_complex
    if not inexact and dtype is not dtypes.string and (precision >= 0 or scientific or shortest):
        raise invalid(
            "as_string: precision, scientific and shortest require a floating dtype. Received: "
            f"dtype {dtype.name}."
        )
    head = "%" + fill + (str(width) if width >= 0 else "")
    if dtype.is_bool:
        return lambda value: "true" if value else "false"
    if dtype is dtypes.string:
        return lambda value: (head + "s") % decode_utf8(value)
    if not inexact:
        return lambda value: (head + "d") % value
    digits = f".{precision}" if precision >= 0 else ""
    kind = digits + ("e" if scientific else "g" if shortest else "f")
    if dtype.is_complex:
        both = f"({head}{kind},{head}{kind})"
        return lambda value: both % (value.real, value.imag)
    return lambda value: (head + kind) % value


@host_function
def join(inputs: Any, separator: Any = "", name: str | None = None) -> Any:
    """Joins the corresponding strings of several tensors. Scalars are broadcast.

    >>> tf.strings.join([["a", "b"], ["c", "d"]], separator="-").numpy()
    array([b'a-c', b'b-d'], dtype=object)
    """
    sep = scalar_string(separator, "join: separator")
    inputs = allocate("join", list, inputs)
    if any(isinstance(x, RaggedTensor) for x in inputs):
        return elementwise(lambda *flat: join(flat, sep), *map(as_string_tensor, inputs))
    arrays = [np.asarray(as_string_tensor(x)) for x in inputs]
    shapes = {a.shape for a in arrays if a.ndim}
    if len(shapes) > 1:
        raise invalid(
            f"join: the shapes {sorted(shapes)} differ. Expected equal shapes or scalars."
        )
    if not arrays:
        return Tensor(np.array(b"", STRING))
    columns = [a.ravel().tolist() for a in np.broadcast_arrays(*arrays)]
    joined = [sep.join(row) for row in zip(*columns, strict=True)]
    return Tensor(array_of(joined, STRING).reshape(shapes.pop() if shapes else ()))


def length(input: Any, unit: str = "BYTE", name: str | None = None) -> Any:
    """Returns the number of bytes, or with `unit="UTF8_CHAR"` of UTF-8 characters.

    >>> tf.strings.length(["abc", ""]).numpy()
    array([3, 0], dtype=int32)
    """
    in_bytes = check_one_of(unit, _UNITS, "length: unit") == "BYTE"
    return map_strings(len if in_bytes else lambda s: len(decode_utf8(s)), input, _INT32)


def lower(input: Any, encoding: str = "", name: str | None = None) -> Any:
    """Converts to lowercase: ASCII letters, or with `encoding="utf-8"` all letters."""
    if check_one_of(encoding, ("", "utf-8"), "lower: encoding"):
        return map_strings(lambda s: s.decode(errors="replace").lower().encode(), input)
    return map_strings(bytes.lower, input)


def upper(input: Any, encoding: str = "", name: str | None = None) -> Any:
    """Converts to uppercase: ASCII letters, or with `encoding="utf-8"` all letters."""
    if check_one_of(encoding, ("", "utf-8"), "upper: encoding"):
        return map_strings(lambda s: s.decode(errors="replace").upper().encode(), input)
    return map_strings(bytes.upper, input)


def strip(input: Any, name: str | None = None) -> Any:
    """Removes leading and trailing whitespace."""
    return map_strings(bytes.strip, input)


@host_function
def substr(input: Any, pos: Any, len: Any, unit: str = "BYTE", name: str | None = None) -> Any:
    """Returns at most `len` bytes or characters from `pos`; a negative `pos` counts from the end.

    >>> tf.strings.substr(["hello", "world"], 1, 3).numpy()
    array([b'ell', b'orl'], dtype=object)
    """
    in_bytes = check_one_of(unit, _UNITS, "substr: unit") == "BYTE"
    starts, sizes = (integer_array(v, "substr", TypeError) for v in (pos, len))
    if starts.shape != sizes.shape:
        raise invalid(
            f"substr: pos and len should have the same shape. Received: {starts.shape} and "
            f"{sizes.shape}."
        )
    x = as_string_tensor(input)
    if isinstance(x, RaggedTensor):
        return x.with_flat_values(substr(x.flat_values, pos, len, unit))

    def cut(string: bytes, start: int, size: int) -> bytes:
        text = string if in_bytes else decode_utf8(string)
        if abs(start) > builtins.len(text) or (start < 0 > size and not in_bytes):
            raise invalid(f"substr: pos {start} is out of range for the string {string!r}.")
        rest = text[start:]
        part = rest[:size] if size >= 0 else rest if in_bytes else ""
        return part if in_bytes else encode_utf8(part)

    try:
        arrays = np.broadcast_arrays(np.asarray(x), starts, sizes)
    except ValueError:
        raise invalid(
            f"substr: the shapes {tuple(x.shape)} and {starts.shape} do not broadcast."
        ) from None
    columns = (a.ravel().tolist() for a in arrays)
    results = [cut(*row) for row in zip(*columns, strict=True)]
    return Tensor(array_of(results, STRING).reshape(arrays[0].shape))


_NUMBERS = ("float32", "float64", "int32", "int64", "uint32", "uint64")


def to_number(input: Any, out_type: Any = dtypes.float32, name: str | None = None) -> Any:
    """Parses numbers.

    >>> tf.strings.to_number(["1.5", "-2e3"]).numpy()
    array([ 1.5e+00, -2.0e+03], dtype=float32)
    """
    kind = dtypes.as_dtype(out_type)
    check_one_of(kind.name, _NUMBERS, "to_number: out_type")

    def number(string: bytes) -> Any:
        parsed = parse_number(string, kind)
        if parsed is None:
            raise invalid(f"to_number: {string!r} is not a number of dtype {kind.name}.")
        return parsed

    with np.errstate(over="ignore"):
        return map_strings(number, input, kind.numpy_dtype)


def format(
    template: str,
    inputs: Any,
    placeholder: str = "{}",
    summarize: int = 3,
    name: str | None = None,
) -> Tensor:
    """Replaces the placeholders of a template by the values of tensors.

    >>> tf.strings.format("{} of {}", (1, tf.range(9))).numpy()
    b'1 of [0 1 2 ... 6 7 8]'
    """
    expect(template, str, "format", "a template of type str")
    expect(placeholder, str, "format", "a placeholder of type str")
    if not placeholder:
        raise ValueError("format: the placeholder is empty.")
    values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    pieces = template.split(placeholder)
    if len(pieces) != len(values) + 1:
        raise ValueError(
            f"format: the template has {len(pieces) - 1} placeholders. Received: {len(values)} "
            "inputs."
        )
    texts = [_format_tensor(as_tensor(x), summarize) for x in values]
    result = pieces[0] + "".join(t + piece for t, piece in zip(texts, pieces[1:], strict=True))
    return Tensor(np.array(result.encode(), STRING))


def _format_tensor(x: Tensor, summarize: int) -> str:
    text = format_array(np.asarray(x), summarize)
    return f'"{text}"' if x.dtype is dtypes.string and not x.ndim else text


@host_function(dynamic_shapes=True)
def reduce_join(
    inputs: Any, axis: Any = None, keepdims: bool = False, separator: Any = "", name: Any = None
) -> Any:
    """Joins strings along one axis or several axes, in their order; `None` means all axes.

    >>> tf.strings.reduce_join([["a", "b"], ["c", "d"]], axis=1, separator=",").numpy()
    array([b'a,b', b'c,d'], dtype=object)
    """
    sep = scalar_string(separator, "reduce_join: separator")
    x = as_string_tensor(inputs)
    if isinstance(x, RaggedTensor):
        return _reduce_ragged(x, axis, keepdims, sep)
    array = np.asarray(x)
    axes = _axes(axis, array.ndim)
    kept = [i for i in range(array.ndim) if i not in axes]
    shape = tuple(array.shape[i] for i in kept)
    # The first axis in the list varies fastest.
    rows = array.transpose([*kept, *reversed(axes)])
    sizes = math.prod(shape), math.prod(array.shape[a] for a in axes)
    joined = [sep.join(row) for row in rows.reshape(sizes).tolist()]
    if keepdims:
        shape = tuple(1 if i in axes else n for i, n in enumerate(array.shape))
    return Tensor(array_of(joined, STRING).reshape(shape))


def _axes(axis: Any, ndim: int) -> list[int]:
    if axis is None:
        return list(reversed(range(ndim)))
    values = integer_array(axis, "reduce_join: axis").reshape(-1).tolist()
    for a in values:
        if not -ndim <= a < ndim:
            raise OutOfRangeError(
                None, None, f"reduce_join: axis {a} is out of range for {ndim} axes."
            )
    axes = [a % ndim for a in values]
    if len(set(axes)) < len(axes):
        raise invalid(f"reduce_join: an axis is repeated. Received: {values}.")
    return axes


def _reduce_ragged(x: RaggedTensor, axis: Any, keepdims: bool, sep: bytes) -> Any:
    """Joins the strings of a RaggedTensor of rank 2 along one axis, or of any rank along all."""
    rank = x.shape.rank
    axes = _axes(axis, rank)
    if len(axes) == rank:
        y = reduce_join(x.flat_values, separator=sep)
        return Tensor(y._array.reshape((1,) * rank)) if keepdims else y
    if rank != 2:
        raise ValueError(
            f"reduce_join: a RaggedTensor with {rank} axes can be joined only along all of them."
        )
    part = x._partition
    ids, count = part.rowids, part.nrows
    if axes == [0]:
        ids, count = part.positions, int(part.lengths.max(initial=0))
    y = unsorted_segment_join(x.values, ids, count, sep)
    return Tensor(np.expand_dims(y._array, axes[0])) if keepdims else y


@host_function(dynamic_shapes=True)
def unsorted_segment_join(
    inputs: Any, segment_ids: Any, num_segments: Any, separator: Any = "", name: str | None = None
) -> Tensor:
    """Joins the strings with the same segment id.

    >>> tf.strings.unsorted_segment_join(["a", "b", "c"], [1, 0, 1], 2, separator="-").numpy()
    array([b'b', b'a-c'], dtype=object)
    """
    sep = scalar_string(separator, "unsorted_segment_join: separator")
    array, ids = np.asarray(as_string_tensor(inputs)), integer_array(segment_ids, "segment_ids")
    count = integer(num_segments, "num_segments")
    if array.shape[: ids.ndim] != ids.shape:
        raise invalid(
            f"unsorted_segment_join: the shape {ids.shape} of segment_ids is not a prefix of the "
            f"shape {array.shape} of inputs."
        )
    if ids.size and not 0 <= ids.min() <= ids.max() < count:
        raise invalid(f"unsorted_segment_join: expected segment_ids in [0, {count}).")
    rest = array.shape[ids.ndim :]
    groups: list[list] = [[] for _ in range(count)]
    width = math.prod(rest)
    for i, row in zip(ids.ravel().tolist(), array.reshape(ids.size, width).tolist(), strict=True):
        groups[i].append(row)
    joined = [
        sep.join(column)
        for group in groups
        for column in (zip(*group, strict=True) if group else [()] * width)
    ]
    return Tensor(array_of(joined, STRING).reshape((count, *rest)))
