"""TensorSpec: what a tensor must look like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrograde.core import dtypes
from retrograde.core.conversion import held_by
from retrograde.core.dtypes import DType
from retrograde.core.shapes import TensorShape
from retrograde.core.tensor import Tensor


class TensorSpec:
    """A shape, of which parts may be open, and a dtype.

    >>> spec = tf.TensorSpec([None, 2], tf.float32)
    >>> spec, spec.is_compatible_with(tf.zeros([5, 2]))
    (TensorSpec(shape=(None, 2), dtype=tf.float32, name=None), True)
    """

    __slots__ = ("_dtype", "_name", "_shape")

    def __init__(self, shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> None:
        self._shape = TensorShape(shape)
        self._dtype = dtypes.as_dtype(dtype)
        self._name = name

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """The spec that only tensors like `tensor` fit."""
        held = held_by(tensor)
        if held is None:
            raise ValueError(f"`tensor` should be a tf.Tensor, but got type {type(tensor)}.")
        return cls(held.shape, held.dtype, name)

    @classmethod
    def from_spec(cls, spec: TensorSpec, name: str | None = None) -> TensorSpec:
        """A copy of `spec`, under another name if one is given."""
        return cls(spec.shape, spec.dtype, name or spec.name)

    @property
    def shape(self) -> TensorShape:
        """The shape, as far as it is fixed."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """The dtype."""
        return self._dtype

    @property
    def name(self) -> str | None:
        """The name, or `None`."""
        return self._name

    @property
    def value_type(self) -> type:
        """`tf.Tensor`."""
        return Tensor

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a tensor fits, or whether some tensor fits both this and another spec."""
        other = spec_or_value if isinstance(spec_or_value, TensorSpec) else held_by(spec_or_value)
        if other is None:
            return False
        return self._dtype is other.dtype and self._shape.is_compatible_with(other.shape)

    def is_subtype_of(self, other: Any) -> bool:
        """Whether every tensor that fits this spec fits `other`."""
        return (
            isinstance(other, TensorSpec)
            and self._dtype is other._dtype
            and _within(self._shape, other._shape)
        )

    def most_specific_compatible_type(self, other: TensorSpec) -> TensorSpec:
        """The narrowest spec that both fit."""
        result = self.most_specific_common_supertype([other])
        if result is None:
            raise ValueError(f"No TypeSpec is compatible with both {self} and {other}")
        return result

    def most_specific_common_supertype(self, others: Sequence[TensorSpec]) -> TensorSpec | None:
        """The narrowest spec that this and all `others` fit, or `None` if their dtypes differ."""
        shape = self._shape
        for other in others:
            if not isinstance(other, TensorSpec) or other._dtype is not self._dtype:
                return None
            shape = _around(shape, other._shape)
        names = {self._name, *(other._name for other in others)}
        return TensorSpec(shape, self._dtype, self._name if len(names) == 1 else None)

    def _identity(self) -> tuple:
        return self._shape, self._dtype, self._name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorSpec) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash((self._shape, self._dtype))

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self._shape}, dtype={self._dtype!r}, name={self._name!r})"

    def __reduce__(self) -> tuple:
        return TensorSpec, self._identity()


def _within(shape: TensorShape, wider: TensorShape) -> bool:
    if wider.rank is None:
        return True
    return shape.rank == wider.rank and all(
        w in (None, n) for n, w in zip(shape, wider, strict=True)
    )


def _around(a: TensorShape, b: TensorShape) -> TensorShape:
    """The narrowest shape that both fit."""
    if a.rank is None or a.rank != b.rank:
        return TensorShape(None)
    return TensorShape([n if n == m else None for n, m in zip(a, b, strict=True)])
