"""Assertions about the shapes and dtypes of tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops.conversion import as_tensor
from retrograde.values import dtypes
from retrograde.values.arguments import as_text, shown
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.dtypes import DType
from retrograde.values.errors import to_list


def is_numeric_tensor(tensor: Any) -> bool:
    """Returns whether `tensor` is a Tensor with a numeric dtype.

    >>> tf.debugging.is_numeric_tensor(tf.constant(1)), tf.debugging.is_numeric_tensor(1)
    (True, False)
    """
    return isinstance(tensor, Tensor) and tensor._spec.dtype in dtypes.NUMERIC


# Dtypes


def assert_type(tensor: Any, tf_type: Any, message: str | None = None, name: Any = None) -> None:
    """Raises `TypeError` unless `tensor` has the dtype `tf_type`."""
    expected, dtype = dtypes.as_dtype(tf_type), as_tensor(tensor).dtype
    if dtype is not expected:
        raise TypeError(_add_prefix(message, f"tensor must be of type {expected!r}; got {dtype!r}"))


def assert_integer(x: Any, message: str | None = None, name: Any = None) -> None:
    """Raises `TypeError` unless `x` has an integer dtype."""
    dtype = as_tensor(x).dtype
    if not dtype.is_integer:
        text = f'Expected "x" to be integer type.  Found: tensor of dtype {dtype!r}'
        raise TypeError(_add_prefix(message, text))


def assert_same_float_dtype(tensors: Any = None, dtype: Any = None) -> DType:
    """Returns the common float dtype of `tensors` and `dtype`.

    Raises `ValueError` if there is none. Without arguments, returns float32.

    >>> tf.debugging.assert_same_float_dtype([tf.constant(1.0), tf.constant([2.0])])
    tf.float32
    """
    expected = None if dtype is None else dtypes.as_dtype(dtype)
    for tensor in to_list("assert_same_float_dtype", tensors or ()):
        tensor_dtype = as_tensor(tensor).dtype
        if expected is None:
            expected = tensor_dtype
        if tensor_dtype is not expected:
            origin = "`dtype`" if dtype is not None else "the dtype of the first tensor"
            raise ValueError(
                f"assert_same_float_dtype: {tensor!s} has dtype {tensor_dtype!r}. Expected "
                f"{origin}, {expected!r}."
            )
    expected = expected or dtypes.float32
    if not expected.is_floating:
        raise ValueError(f"Expected floating point type, got {expected!r}.")
    return expected


def assert_proper_iterable(values: Any) -> None:
    """Raises `TypeError` unless `values` is iterable and not a tensor, array or string."""
    if isinstance(values, (Tensor, np.ndarray, str, bytes)):
        raise TypeError(
            f'Expected argument "values" to be a "proper" iterable.  Found: {type(values)}'
        )
    if not hasattr(values, "__iter__"):
        raise TypeError(f'Expected argument "values" to be iterable.  Found: {type(values)}')


# Ranks


def assert_rank(x: Any, rank: Any, message: str | None = None, name: Any = None) -> None:
    """Raises `ValueError` unless `x` has this rank.

    >>> tf.debugging.assert_rank(tf.ones([2, 3]), 2)
    """
    expected = _rank(rank)
    _check_rank(x, _rank_of(x) == expected, f"{expected}", message)


def assert_rank_at_least(x: Any, rank: Any, message: str | None = None, name: Any = None) -> None:
    """Raises `ValueError` unless `x` has at least this rank."""
    expected = _rank(rank)
    _check_rank(x, _rank_of(x) >= expected, f"at least {expected}", message)


def assert_rank_in(
    x: Any, ranks: Iterable[Any], message: str | None = None, name: Any = None
) -> None:
    """Raises `ValueError` unless the rank of `x` is one of `ranks`."""
    expected = tuple(_rank(rank) for rank in to_list("assert_rank_in", ranks))
    _check_rank(x, _rank_of(x) in expected, f"in {expected}", message)


def assert_scalar(tensor: Any, message: str | None = None, name: Any = None) -> None:
    """Raises `ValueError` unless `tensor` is a scalar."""
    if _rank_of(tensor):
        text = f"Expected scalar shape, saw shape: {_shape(tensor)}."
        raise ValueError(_add_prefix(message, text))


def _check_rank(x: Any, holds: bool, expected: str, message: str | None) -> None:
    if not holds:
        shape = _shape(x)
        text = f"Tensor must have rank {expected}.  Received rank {len(shape)}, shape {shape}"
        raise ValueError(_add_prefix(message, text))


def _rank(value: Any) -> int:
    tensor = as_tensor(value)
    assert_type(tensor, dtypes.int32)
    if tensor.ndim:
        raise ValueError(f"Rank must be a scalar. Received: {shown(value)}.")
    return int(tensor)


def _shape(x: Any) -> tuple[int, ...]:
    """Returns the shape of `x` without reading its value."""
    tensor = tensor_or_variable(x)
    return (as_tensor(x) if tensor is None else tensor)._spec.shape


def _rank_of(x: Any) -> int:
    return len(_shape(x))


def _add_prefix(message: str | None, text: str) -> str:
    return f"{as_text(message)}.  {text}" if message else text


# Shapes

_ANY = (None, ".")  # one axis of any size
_REST = ("...", "*")  # any number of axes


def assert_shapes(
    shapes: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: Any = None,
) -> None:
    """Raises `ValueError` unless tensors have the specified shapes.

    `shapes` pairs tensors with symbolic shapes. An entry of a symbolic shape is a size, a symbol
    that must have the same size everywhere, or `None` for any size. "..." or "*" as the first entry
    stands for any number of axes. A string is a symbolic shape of single characters. A scalar
    counts as a tensor of shape `(1,)`.

    >>> x, y = tf.ones([2, 3]), tf.ones([3])
    >>> tf.debugging.assert_shapes([(x, ("batch", "features")), (y, ("features",))])
    """
    known: dict[Any, tuple[int, str]] = {}
    for pair in to_list("assert_shapes", shapes.items() if isinstance(shapes, dict) else shapes):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise ValueError(
                "assert_shapes: expected pairs of a tensor and a symbolic shape. Received: "
                f"{shown(pair)}."
            )
        _check_shape(*pair, known, message)


def _check_shape(
    tensor: Any, entries: Any, known: dict[Any, tuple[int, str]], message: str | None
) -> None:
    """Checks one tensor. `known` maps symbols to their size and the origin of the size."""
    description = f"shape={_shape(tensor)} dtype={_dtype(tensor).name}"
    symbols, open_ended = _symbols(entries, description, message)
    if open_ended:
        assert_rank_at_least(tensor, len(symbols), message)
    elif len(symbols) < 2:
        assert_rank_in(tensor, (0, 1), message)
        symbols = symbols or [1]
    else:
        assert_rank(tensor, len(symbols), message)
    sizes = _shape(tensor) or (1,)
    start = -len(symbols) if open_ended else 0
    for axis, symbol in enumerate(symbols, start):
        if symbol in _ANY:
            continue
        size, origin = known.get(symbol, (symbol, "Specified explicitly"))
        if not isinstance(size, int):
            known[symbol] = sizes[axis], f"Specified by tensor {description} dimension {axis}"
        elif sizes[axis] != size:
            text = (
                f"{origin}.  Tensor {description} dimension {axis} must have size {size}.  "
                f"Received size {sizes[axis]}, shape {_shape(tensor)}"
            )
            raise ValueError(_add_prefix(message, text))


def _symbols(entries: Any, description: str, message: str | None) -> tuple[list, bool]:
    """Returns the entries of a symbolic shape, and whether it begins with "..." or "*"."""
    if not isinstance(entries, Iterable) or isinstance(entries, Tensor):
        text = (
            f"Tensor {description}.  Specified shape must be an iterable. "
            f"Received: {shown(entries)}"
        )
        raise ValueError(_add_prefix(message, text))
    entries = to_list("assert_shapes", entries)
    symbols = [int(e) if isinstance(e, str) and e.isdecimal() else e for e in entries]
    for index, symbol in enumerate(symbols):
        if isinstance(symbol, Tensor):
            text = f"Tensor {description}.  Expected sizes and letters. Received: {shown(symbol)}"
            raise ValueError(_add_prefix(message, text))
        if index and symbol in _REST:
            text = (
                f"Tensor {description} specified shape index {index}.  Symbol `...` or `*` for any "
                "number of axes is only allowed as the first entry"
            )
            raise ValueError(_add_prefix(message, text))
    open_ended = bool(symbols) and symbols[0] in _REST
    return symbols[open_ended:], open_ended


def _dtype(x: Any) -> DType:
    tensor = tensor_or_variable(x)
    return as_tensor(x).dtype if tensor is None else tensor.dtype
