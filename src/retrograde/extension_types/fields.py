"""The fields of an ExtensionType: annotations, and the conversion of values and specs."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from retrograde.core.tensor import Tensor
from retrograde.ops.conversion import as_tensor
from retrograde.values.composites import CompositeTensor
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.dtypes import DType, as_dtype
from retrograde.values.shapes import TensorShape
from retrograde.values.specs import TensorSpec, TypeSpec

MISSING = object()  # the default of a required field

_PLAIN = (bool, int, float, str, bytes, type(None))


class Field(NamedTuple):
    """A field of an ExtensionType."""

    name: str
    annotation: Any
    default: Any


class ImmutableDict(Mapping):
    """A read-only dict, the value of a field that is annotated as a Mapping."""

    def __init__(self, items: Any = ()) -> None:
        self._items = dict(items)

    def __getitem__(self, key: Any) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"ImmutableDict({self._items})"


def check_annotation(annotation: Any, name: str) -> None:
    """Raises `TypeError` if fields cannot have this type."""
    kind, inner = _parse(annotation)
    if kind is Mapping:
        if len(inner) != 2 or inner[0] not in _PLAIN:
            raise TypeError(f"In field {name!r}: expected Mapping[K, V] with plain keys.")
        inner = inner[1:]
    elif kind not in (tuple, typing.Union):
        inner = ()
        if not (isinstance(kind, type) and (kind in _CONVERSIONS or _is_composite(kind))):
            text = f"'{kind.__name__}'" if isinstance(kind, type) else str(annotation)
            text = "'Any'" if annotation is Any else text
            raise TypeError(f"In field {name!r}: Unsupported type annotation {text}")
    for part in inner:
        if part is not Ellipsis:
            check_annotation(part, name)


def _parse(annotation: Any) -> tuple[Any, tuple]:
    """Returns the class of an annotation, and the annotations in its brackets."""
    origin = typing.get_origin(annotation)
    if annotation is None:
        return type(None), ()
    if origin is types.UnionType:
        origin = typing.Union
    return (annotation, ()) if origin is None else (origin, typing.get_args(annotation))


def _is_composite(kind: type) -> bool:
    return issubclass(kind, CompositeTensor) and kind is not CompositeTensor


def convert(value: Any, annotation: Any, path: str, as_spec: bool = False) -> Any:
    """Converts the value of a field to its annotated type. Raises `TypeError` if it does not fit.

    With `as_spec`, `value` contains specs in place of tensors.
    """
    kind, inner = _parse(annotation)
    if kind is tuple:
        return _convert_tuple(value, inner, path, as_spec)
    if kind is Mapping:
        if not isinstance(value, Mapping):
            raise _unexpected(path, "a mapping", value)
        entries = {
            convert(key, inner[0], f"{path}.keys[{key!r}]"): convert(
                part, inner[1], f"{path}[{key!r}]", as_spec
            )
            for key, part in value.items()
        }
        return ImmutableDict(entries)
    if kind is typing.Union:
        return _convert_union(value, inner, path, as_spec)
    if as_spec and (kind is Tensor or _is_composite(kind)):
        wanted = isinstance(value, TypeSpec) and issubclass(value.value_type, kind)
        if not wanted:
            raise _unexpected(path, f"a TypeSpec of {kind.__name__}", value)
        return value
    if kind in _CONVERSIONS:
        return _CONVERSIONS[kind](value, kind, path)
    return _expect_instance(value, kind, path)


def _convert_tuple(value: Any, inner: tuple, path: str, as_spec: bool) -> tuple:
    if not isinstance(value, (tuple, list)):
        raise _unexpected(path, "a tuple", value)
    if len(inner) == 2 and inner[1] is Ellipsis:
        inner = (inner[0],) * len(value)
    if len(inner) != len(value):
        raise TypeError(f"{path}: expected a tuple of {len(inner)} values, got {len(value)}")
    pairs = enumerate(zip(value, inner, strict=True))
    return tuple([convert(part, kind, f"{path}[{i}]", as_spec) for i, (part, kind) in pairs])


def _convert_union(value: Any, inner: tuple, path: str, as_spec: bool) -> Any:
    """Tries the types that need no conversion first."""
    exact = [kind for kind in inner if isinstance(kind, type) and isinstance(value, kind)]
    for kind in (*exact, *inner):
        try:
            return convert(value, kind, path, as_spec)
        except TypeError:
            continue
    names = [getattr(kind, "__name__", str(kind)) for kind in inner]
    raise _unexpected(path, f"one of {', '.join(names)}", value)


def _expect_instance(value: Any, kind: type, path: str) -> Any:
    if not isinstance(value, kind):
        raise _unexpected(path, f"'{kind.__name__}'", value)
    return value


def _as_tensor(value: Any, _kind: type, path: str) -> Tensor:
    holder = tensor_or_variable(value)
    if holder is not None:
        return holder._read()
    try:
        return as_tensor(value)
    except (TypeError, ValueError):
        raise _unexpected(path, "a Tensor", value) from None


def _as_shape(value: Any, _kind: type, path: str) -> TensorShape:
    try:
        return TensorShape(value)
    except (TypeError, ValueError):
        raise _unexpected(path, "a TensorShape", value) from None


def _as_dtype(value: Any, _kind: type, path: str) -> DType:
    try:
        return as_dtype(value)
    except (TypeError, ValueError):
        raise _unexpected(path, "a DType", value) from None


def _unexpected(path: str, expected: str, value: Any) -> TypeError:
    return TypeError(f"{path}: expected {expected}, got {type(value).__name__!r}")


_CONVERSIONS: dict[type, Callable[[Any, type, str], Any]] = {
    Tensor: _as_tensor,
    TensorShape: _as_shape,
    DType: _as_dtype,
    **dict.fromkeys(_PLAIN, _expect_instance),
}


# Values of fields are tensors, composite tensors, tuples and mappings of them, and plain values


def leaves(value: Any) -> Iterator[Any]:
    """Yields the tensors, composite tensors or specs in the value of a field."""
    if isinstance(value, tuple):
        for part in value:
            yield from leaves(part)
    elif isinstance(value, ImmutableDict):
        for key in sorted(value):
            yield from leaves(value[key])
    elif isinstance(value, (Tensor, CompositeTensor, TypeSpec)):
        yield value


def map_leaves(f: Callable, value: Any) -> Any:
    """Replaces the tensors, composite tensors or specs in the value of a field by `f(leaf)`."""
    if isinstance(value, tuple):
        return tuple([map_leaves(f, part) for part in value])
    if isinstance(value, ImmutableDict):
        mapped = {key: map_leaves(f, value[key]) for key in sorted(value)}
        return ImmutableDict({key: mapped[key] for key in value})
    return f(value) if isinstance(value, (Tensor, CompositeTensor, TypeSpec)) else value


def spec_of_leaf(leaf: Any) -> TypeSpec:
    """Returns the spec of a tensor or composite tensor."""
    return TensorSpec.from_tensor(leaf) if isinstance(leaf, Tensor) else leaf._type_spec


def comparison_key(value: Any) -> Any:
    """Returns the value of a field in a form that can be hashed."""
    if isinstance(value, tuple):
        return tuple(map(comparison_key, value))
    if isinstance(value, ImmutableDict):
        return tuple([(key, comparison_key(value[key])) for key in sorted(value)])
    if isinstance(value, TypeSpec):
        return value
    return type(value).__name__, value
