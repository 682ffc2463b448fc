"""TensorShape, axis normalization and broadcasting of shapes."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable, Iterator
from typing import Any

from retrograde.values.arguments import as_text, shown
from retrograde.values.errors import invalid
from retrograde.values.sizes import Size

_MAX_AXES = 254  # as in TensorFlow


def _dimension(value: Any) -> int | None:
    if value is None or type(value) is Size:
        return value
    size = operator.index(value)
    if size < 0:
        raise ValueError(f"A dimension must be at least 0. Received: {size}.")
    return size


class TensorShape:
    """The shape of a tensor: like a tuple, with `None` for an unknown dimension.

    `TensorShape(None)` is a shape of unknown rank. Tensors always have fully defined shapes.
    Partially known shapes appear in `TensorSpec` and in variables that can change their shape.

    >>> shape = tf.constant([[1.0, 2.0]]).shape
    >>> shape, shape.rank, shape == (1, 2), shape[1]
    (TensorShape([1, 2]), 2, True, 2)
    """

    __slots__ = ("_dims",)

    _dims: tuple[int | None, ...] | None

    def __init__(self, dims: Any) -> None:
        if type(dims) is tuple:
            self._dims = tuple(map(_dimension, dims))
        elif isinstance(dims, TensorShape):
            self._dims = dims._dims
        elif dims is None:
            self._dims = None
        elif isinstance(dims, Iterable):
            first = tuple(itertools.islice(dims, _MAX_AXES + 1))  # it may be infinite
            if len(first) > _MAX_AXES:
                raise ValueError(
                    f"TensorShape: expected at most {_MAX_AXES} dimensions. Received: "
                    f"{as_text(dims)}."
                )
            self._dims = tuple(map(_dimension, first))
        else:
            self._dims = (_dimension(dims),)

    @property
    def rank(self) -> int | None:
        """The number of axes, or `None` if unknown."""
        return None if self._dims is None else len(self._dims)

    ndims = rank

    @property
    def dims(self) -> list[int | None] | None:
        """The dimensions as a list, or `None` if the rank is unknown."""
        return None if self._dims is None else list(self._dims)

    def as_list(self) -> list[int | None]:
        """Returns the dimensions as a list. Raises `ValueError` if the rank is unknown."""
        return list(self._known_dims())

    def num_elements(self) -> int | None:
        """Returns the product of the dimensions, or `None` if one is unknown."""
        dims: Any = self._dims
        return math.prod(dims) if self.is_fully_defined() else None

    def is_fully_defined(self) -> bool:
        """Returns whether the rank and all dimensions are known."""
        return self._dims is not None and None not in self._dims

    def is_compatible_with(self, other: Any) -> bool:
        """Returns whether some fully defined shape fits both this shape and `other`."""
        other = TensorShape(other)
        if self._dims is None or other._dims is None:
            return True
        return len(self._dims) == len(other._dims) and all(
            a is None or b is None or a == b for a, b in zip(self._dims, other._dims, strict=True)
        )

    def merge_with(self, other: Any) -> TensorShape:
        """Combines the known dimensions of both. Raises `ValueError` if they are incompatible."""
        other = TensorShape(other)
        self.assert_is_compatible_with(other)
        if self._dims is None or other._dims is None:
            return other if self._dims is None else self
        pairs = zip(self._dims, other._dims, strict=True)
        return TensorShape([b if a is None else a for a, b in pairs])

    def concatenate(self, other: Any) -> TensorShape:
        """Returns this shape followed by the dimensions of `other`."""
        other = TensorShape(other)
        if self._dims is None or other._dims is None:
            return TensorShape(None)
        return TensorShape(self._dims + other._dims)

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        """Returns the shape with the dimensions on which both agree."""
        dims, others = self._dims, TensorShape(other)._dims
        if dims is None or others is None or len(dims) != len(others):
            return TensorShape(None)
        pairs = zip(dims, others, strict=True)
        return TensorShape([a if a == b else None for a, b in pairs])

    def with_rank(self, rank: int) -> TensorShape:
        """Returns this shape. Raises `ValueError` if its rank is not `rank`."""
        if self.rank not in (None, rank):
            raise ValueError(f"Shape {self} must have rank {as_text(rank)}")
        if self.rank is not None:
            return self
        if rank > _MAX_AXES:
            raise ValueError(f"Expected a rank of at most {_MAX_AXES}. Received: {as_text(rank)}.")
        return TensorShape([None] * rank)

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """Returns this shape. Raises `ValueError` if its rank is less than `rank`."""
        if self.rank is not None and self.rank < rank:
            raise ValueError(f"Shape {self} must have rank at least {as_text(rank)}")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """Returns this shape. Raises `ValueError` if its rank is greater than `rank`."""
        if self.rank is not None and self.rank > rank:
            raise ValueError(f"Shape {self} must have rank at most {as_text(rank)}")
        return self

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raises `ValueError` if `other` cannot be the same shape."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {TensorShape(other)} are incompatible")

    def assert_same_rank(self, other: Any) -> None:
        """Raises `ValueError` if `other` has a different rank."""
        other = TensorShape(other)
        if None not in (self.rank, other.rank) and self.rank != other.rank:
            raise ValueError(f"Shapes {self} and {other} must have the same rank")

    def assert_has_rank(self, rank: int) -> None:
        """Raises `ValueError` if the rank is not `rank`."""
        if self.rank not in (None, rank):
            raise ValueError(f"Shape {self} must have rank {as_text(rank)}")

    def assert_is_fully_defined(self) -> None:
        """Raises `ValueError` if a dimension is not known."""
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def _known_dims(self) -> tuple[int | None, ...]:
        if self._dims is None:
            raise ValueError("The rank of this TensorShape is unknown, so it has no dimensions.")
        return self._dims

    def __iter__(self) -> Iterator[int | None]:
        return iter(self._known_dims())

    def __len__(self) -> int:
        return len(self._known_dims())

    def __getitem__(self, key: Any) -> Any:
        if self._dims is not None:
            return TensorShape(self._dims[key]) if isinstance(key, slice) else self._dims[key]
        return _unknown_part(key) if isinstance(key, slice) else None

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return TensorShape(other).concatenate(self)

    def __bool__(self) -> bool:
        return self._dims is not None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TensorShape):
            return self._dims == other._dims
        try:
            return self._dims == TensorShape(other)._dims
        except (TypeError, ValueError):
            return False

    def __hash__(self) -> int:
        return hash(self._dims)

    def __repr__(self) -> str:
        return f"TensorShape({None if self._dims is None else list(self._dims)})"

    def __str__(self) -> str:
        return "<unknown>" if self._dims is None else str(self._dims)

    def __reduce__(self) -> tuple:
        return TensorShape, (self._dims,)


def _unknown_part(key: slice) -> TensorShape:
    """Returns the slice `key` of a shape of unknown rank."""
    start, stop = key.start or 0, key.stop
    if stop is None or start < 0 or stop < 0:
        return TensorShape(None)
    return TensorShape([None] * max(0, stop - start))


def normalize_axis(axis: Any, ndim: int, op_name: str, make_error: Any = invalid) -> int:
    """Returns `axis` in the range from 0 to `ndim` - 1. `make_error` creates the error."""
    try:
        position = operator.index(axis)
    except TypeError:
        raise TypeError(f"{op_name}: axis must be an integer. Received: {shown(axis)}.") from None
    if not -ndim <= position < ndim:
        raise make_error(
            f"{op_name}: axis {position} is out of range for a tensor of rank {ndim}. "
            f"Expected {-ndim} <= axis < {ndim}."
        )
    return position % ndim


def normalize_axes(axis: Any, ndim: int, op_name: str) -> tuple[int, ...]:
    """Returns the sorted axes of `axis`: `None` for all, one integer, or several."""
    if axis is None:
        return tuple(range(ndim))
    if getattr(axis, "ndim", None) == 0 or not isinstance(axis, Iterable):
        return (normalize_axis(axis, ndim, op_name),)
    axes = sorted(normalize_axis(a, ndim, op_name) for a in axis)
    if len(set(axes)) != len(axes):
        raise invalid(
            f"{op_name}: an axis is repeated in {shown(list(axis))}. Expected distinct axes."
        )
    return tuple(axes)


def broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    """Returns the shape that `shapes` broadcast to, or `None` if they are incompatible."""
    ndim = max(map(len, shapes), default=0)
    result = [1] * ndim
    for shape in shapes:
        for i, size in enumerate(shape, ndim - len(shape)):
            if size != 1:
                if result[i] not in (1, size):
                    return None
                result[i] = size
    return tuple(result)
