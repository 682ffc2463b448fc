"""Assertions about shapes and dtypes, which are known before any value."""

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
    """Whether `tensor` is a Tensor of numbers.

    >>> tf.debugging.is_numeric_tensor(tf.constant(1)), tf.debugging.is_numeric_tensor(1)
    (True, False)
    """
    return isinstance(tensor, Tensor) and tensor._spec.dtype in dtypes.NUMERIC


# The dtype


def assert_type(tensor: Any, tf_type: Any, message: str | None = None, name: Any = None) -> None:
    """Raises `TypeError` unless `tensor` has the dtype `tf_type`."""
    wanted, found = dtypes.as_dtype(tf_type), as_tensor(tensor).dtype
    if found is not wanted:
        raise TypeError(_with(message, f"tensor must be of type {wanted!r}; got {found!r}"))


def assert_integer(x: Any, message: str | None = None, name: Any = None) -> None:
    """Raises `TypeError` unless `x` has an integer dtype."""
    found = as_tensor(x).dtype
    if not found.is_integer:
        words = f'Expected "x" to be integer type.  Found: tensor of dtype {found!r}'
        raise TypeError(_with(message, words))


def assert_same_float_dtype(tensors: Any = None, dtype: Any = None) -> DType:
    """The one float dtype of all `tensors`, and of `dtype` if it is given; else a `ValueError`.

    Without either it is float32.

    >>> tf.debugging.assert_same_float_dtype([tf.constant(1.0), tf.constant([2.0])])
    tf.float32
    """
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    for tensor in to_list("assert_same_float_dtype", tensors or ()):
        found = as_tensor(tensor).dtype
        if wanted is None:
            wanted = found
        if found is not wanted:
            raise ValueError(
                f"assert_same_float_dtype: {tensor!s} has dtype {found!r}. Expected {wanted!r}, as "
                f"{'`dtype` says' if dtype is not None else 'the first tensor has'}."
            )
    wanted = wanted or dtypes.float32
    if not wanted.is_floating:
        raise ValueError(f"Expected floating point type, got {wanted!r}.")
    return wanted


def assert_proper_iterable(values: Any) -> None:
    """Raises `TypeError` unless `values` can be gone through, and is no tensor, array or string."""
    if isinstance(values, (Tensor, np.ndarray, str, bytes)):
        raise TypeError(
            f'Expected argument "values" to be a "proper" iterable.  Found: {type(values)}'
        )
    if not hasattr(values, "__iter__"):
        raise TypeError(f'Expected argument "values" to be iterable.  Found: {type(values)}')


# The number of axes


def assert_rank(x: Any, rank: Any, message: str | None = None, name: Any = None) -> None:
    """Raises `ValueError` unless `x` has `rank` axes.

    >>> tf.debugging.assert_rank(tf.ones([2, 3]), 2)
    """
    wanted = _rank(rank)
    _check_rank(x, _axes(x) == wanted, f"{wanted}", message)


def assert_rank_at_least(x: Any, rank: Any, message: str | None = None, name: Any = None) -> None:
    """Raises `ValueError` unless `x` has `rank` axes or more."""
    wanted = _rank(rank)
    _check_rank(x, _axes(x) >= wanted, f"at least {wanted}", message)


def assert_rank_in(
    x: Any, ranks: Iterable[Any], message: str | None = None, name: Any = None
) -> None:
    """Raises `ValueError` unless the number of axes of `x` is one of `ranks`."""
    wanted = tuple(_rank(rank) for rank in to_list("assert_rank_in", ranks))
    _check_rank(x, _axes(x) in wanted, f"in {wanted}", message)


def assert_scalar(tensor: Any, message: str | None = None, name: Any = None) -> None:
    """Raises `ValueError` unless `tensor` has no axes."""
    if _axes(tensor):
        words = f"Expected scalar shape, saw shape: {_shape(tensor)}."
        raise ValueError(_with(message, words))


def _check_rank(x: Any, holds: bool, wanted: str, message: str | None) -> None:
    if not holds:
        words = f"Tensor must have rank {wanted}.  Received rank {_axes(x)}, shape {_shape(x)}"
        raise ValueError(_with(message, words))


def _rank(value: Any) -> int:
    tensor = as_tensor(value)
    assert_type(tensor, dtypes.int32)
    if tensor.ndim:
        raise ValueError(f"Rank must be a scalar. Received: {shown(value)}.")
    return int(tensor)


def _shape(x: Any) -> tuple[int, ...]:
    """The shape of `x`; that is no use of its value."""
    held = tensor_or_variable(x)
    return (as_tensor(x) if held is None else held)._spec.shape


def _axes(x: Any) -> int:
    return len(_shape(x))


def _with(message: str | None, words: str) -> str:
    return f"{as_text(message)}.  {words}" if message else words


# Shapes that fit each other

_ANY = (None, ".")  # one axis of any size
_REST = ("...", "*")  # any number of axes


def assert_shapes(
    shapes: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: Any = None,
) -> None:
    """Raises `ValueError` unless tensors have shapes that fit a description.

    `shapes` pairs tensors with descriptions: one entry for each axis, which is a size, or a letter
    that stands for the same size wherever it appears, or `None` for any size. "..." or "*" as the
    first entry stands for any number of axes. A string is a description of single characters. A
    tensor without axes counts as one of a single axis of size 1.

    >>> x, y = tf.ones([2, 3]), tf.ones([3])
    >>> tf.debugging.assert_shapes([(x, ("batch", "features")), (y, ("features",))])
    """
    known: dict[Any, tuple[int, str]] = {}
    for pair in to_list("assert_shapes", shapes.items() if isinstance(shapes, dict) else shapes):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise ValueError(
                "assert_shapes: expected pairs of a tensor and a description. Received: "
                f"{shown(pair)}."
            )
        _check_shape(*pair, known, message)


def _check_shape(
    tensor: Any, entries: Any, known: dict[Any, tuple[int, str]], message: str | None
) -> None:
    """Checks one tensor. `known` maps letters to the size they stand for, and who said so."""
    described = f"shape={_shape(tensor)} dtype={_dtype(tensor).name}"
    symbols, open_ended = _symbols(entries, described, message)
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
        wanted, source = known.get(symbol, (symbol, "Specified explicitly"))
        if not isinstance(wanted, int):
            known[symbol] = sizes[axis], f"Specified by tensor {described} dimension {axis}"
        elif sizes[axis] != wanted:
            words = (
                f"{source}.  Tensor {described} dimension {axis} must have size {wanted}.  "
                f"Received size {sizes[axis]}, shape {_shape(tensor)}"
            )
            raise ValueError(_with(message, words))


def _symbols(entries: Any, described: str, message: str | None) -> tuple[list, bool]:
    """The entries of a description, and whether any number of axes may come before them."""
    if not isinstance(entries, Iterable) or isinstance(entries, Tensor):
        words = (
            f"Tensor {described}.  Specified shape must be an iterable. Received: {shown(entries)}"
        )
        raise ValueError(_with(message, words))
    entries = to_list("assert_shapes", entries)
    symbols = [int(e) if isinstance(e, str) and e.isdecimal() else e for e in entries]
    for place, symbol in enumerate(symbols):
        if isinstance(symbol, Tensor):
            words = f"Tensor {described}.  Expected sizes and letters. Received: {shown(symbol)}"
            raise ValueError(_with(message, words))
        if place and symbol in _REST:
            words = (
                f"Tensor {described} specified shape index {place}.  Symbol `...` or `*` for any "
                "number of axes is only allowed as the first entry"
            )
            raise ValueError(_with(message, words))
    open_ended = bool(symbols) and symbols[0] in _REST
    return symbols[open_ended:], open_ended


def _dtype(x: Any) -> DType:
    held = tensor_or_variable(x)
    return as_tensor(x).dtype if held is None else held.dtype
