"""TypeSpec and TensorSpec: descriptions of the values a function accepts."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, Self, TypeGuard

from retrograde.values import dtypes
from retrograde.values.arguments import as_text, expect
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.dtypes import DType
from retrograde.values.errors import to_list
from retrograde.values.shapes import TensorShape


class TypeSpec(abc.ABC):
    """Describes a tensor, or a value made of tensors.

    The parts of a spec, such as partially known shapes and dtypes, are listed by `_serialize()`.
    Two specs of one class are compared part by part.

    >>> isinstance(tf.TensorSpec([2]), tf.TypeSpec)
    True
    """

    __slots__ = ()

    @property
    @abc.abstractmethod
    def value_type(self) -> type:
        """The class of the values that this spec describes."""

    @abc.abstractmethod
    def _serialize(self) -> tuple:
        """Returns the constructor arguments of this spec."""

    def _comparison_key(self) -> tuple:
        """Returns the parts to compare with another spec."""
        return self._serialize()

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Returns whether a value fits, or whether some value fits both this and another spec."""
        other = spec_or_value if isinstance(spec_or_value, TypeSpec) else spec_of(spec_or_value)
        return self._is_like(other) and _agree(self._comparison_key(), other._comparison_key())

    def is_subtype_of(self, other: Any) -> bool:
        """Returns whether every value that fits this spec fits `other`."""
        return self._is_like(other) and _is_subtype(self._comparison_key(), other._comparison_key())

    def most_specific_compatible_type(self, other: TypeSpec) -> TypeSpec:
        """Returns the most specific spec that both are subtypes of."""
        result = self.most_specific_common_supertype([other])
        if result is None:
            raise ValueError(f"No TypeSpec is compatible with both {self} and {as_text(other)}")
        return result

    def most_specific_common_supertype(self, others: Sequence[TypeSpec]) -> TypeSpec | None:
        """Returns the most specific spec that all are subtypes of, or `None` if there is none."""
        parts = self._serialize()
        for other in others:
            if not self._is_like(other):
                return None
            parts = _common_supertype(parts, other._serialize())
            if parts is _NOTHING:
                return None
        return type(self)(*parts)

    def _is_like(self, other: Any) -> TypeGuard[Self]:
        return type(other) is type(self)

    def __eq__(self, other: object) -> bool:
        return self._is_like(other) and self._serialize() == other._serialize()

    def __hash__(self) -> int:
        return hash((type(self), self._serialize()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._serialize()))})"

    def __reduce__(self) -> tuple:
        return type(self), self._serialize()


class TensorSpec(TypeSpec):
    """A shape with possibly unknown dimensions, and a dtype.

    >>> spec = tf.TensorSpec([None, 2], tf.float32)
    >>> spec, spec.is_compatible_with(tf.zeros([5, 2]))
    (TensorSpec(shape=(None, 2), dtype=tf.float32, name=None), True)
    """

    __slots__ = ("_dtype", "_name", "_shape")
    _tensor_class: type  # set where Tensor is defined

    def __init__(self, shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> None:
        self._shape = TensorShape(shape)
        self._dtype = dtypes.as_dtype(dtype)
        self._name = name

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """Returns the spec of `tensor`, with its full shape."""
        x = tensor_or_variable(tensor)
        if x is None:
            raise ValueError(f"`tensor` should be a tf.Tensor, but got type {type(tensor)}.")
        return cls(x.shape, x.dtype, name)

    @classmethod
    def from_spec(cls, spec: TensorSpec, name: str | None = None) -> TensorSpec:
        """Returns a copy of `spec`, optionally with another name."""
        expect(spec, TensorSpec, "from_spec", "a tf.TensorSpec")
        return cls(spec.shape, spec.dtype, name or spec.name)

    @property
    def shape(self) -> TensorShape:
        """The shape; unknown dimensions are `None`."""
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
        return self._tensor_class

    def most_specific_common_supertype(self, others: Sequence[TypeSpec]) -> TensorSpec | None:
        """Returns the most specific common supertype, or `None` if the dtypes differ."""
        specs: Any = to_list("most_specific_common_supertype", others)
        same_class = all(map(self._is_like, specs))
        unnamed = [TensorSpec(s.shape, s.dtype) if same_class else s for s in (self, *specs)]
        supertype: Any = TypeSpec.most_specific_common_supertype(unnamed[0], unnamed[1:])
        if supertype is None:
            return None
        same_name = all(other._name == self._name for other in specs)
        return TensorSpec(supertype._shape, supertype._dtype, self._name if same_name else None)

    def _comparison_key(self) -> tuple:
        return self._shape, self._dtype

    def _serialize(self) -> tuple:
        return self._shape, self._dtype, self._name

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self._shape}, dtype={self._dtype!r}, name={self._name!r})"


def spec_of(value: Any) -> TypeSpec | None:
    """Returns the spec of a tensor or composite tensor; `None` for other values."""
    if hasattr(value, "_type_spec"):
        return value._type_spec
    return None if tensor_or_variable(value) is None else TensorSpec.from_tensor(value)


# Parts of specs, and tuples of parts


def _agree(a: Any, b: Any) -> bool:
    """Returns whether some value fits both."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_agree, a, b))
    if isinstance(a, (TensorShape, TypeSpec)) and b is not None:
        return a.is_compatible_with(b)
    return a == b


def _is_subtype(a: Any, b: Any) -> bool:
    """Returns whether every value that fits `a` fits `b`."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_is_subtype, a, b))
    if isinstance(a, TypeSpec):
        return a.is_subtype_of(b)
    if isinstance(a, TensorShape) and isinstance(b, TensorShape):
        return b.rank is None or (a.rank == b.rank and all(map(_size_is_subtype, a, b)))
    return a == b


def _size_is_subtype(size: int | None, wider: int | None) -> bool:
    return wider in (None, size)


_NOTHING = object()


def _common_supertype(a: Any, b: Any) -> Any:
    """Returns the most specific common supertype, or `_NOTHING`."""
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        parts = tuple(map(_common_supertype, a, b))
        if _NOTHING in parts:
            return _NOTHING
        return type(a)(*parts) if hasattr(a, "_fields") else parts
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        parts = tuple(_common_supertype(a[key], b[key]) for key in a)
        return _NOTHING if _NOTHING in parts else dict(zip(a, parts, strict=True))
    if isinstance(a, TypeSpec) and isinstance(b, TypeSpec):
        return a.most_specific_common_supertype([b]) or _NOTHING
    if isinstance(a, TensorShape) and isinstance(b, TensorShape):
        return a.most_specific_compatible_shape(b)
    return a if a == b else _NOTHING
