"""ExtensionTypeSpec: the fields of an ExtensionType, with specs in place of tensors."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from retrograde.extension_types import fields as fd
from retrograde.program.concrete_function import dummy_array, with_dummy_tensors
from retrograde.values.specs import TypeSpec


class ExtensionTypeSpec(TypeSpec):
    """Base class of the nested `Spec` classes of ExtensionTypes.

    Its constructor has a parameter for each field, unless the nested class defines another one.

    >>> class Point(tf.experimental.ExtensionType):
    ...     x: tf.Tensor
    >>> Point.Spec(tf.TensorSpec([None])).is_compatible_with(Point([1.0, 2.0]))
    True
    """

    _extension_type: ClassVar[Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if type(self) is ExtensionTypeSpec:
            raise TypeError(
                "ExtensionTypeSpec is a base class. Use the Spec class of an ExtensionType."
            )
        names = [field.name for field in self._extension_type._fields()]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        signature = inspect.Signature([inspect.Parameter(name, kind) for name in names])
        self.__dict__.update(signature.bind(*args, **kwargs).arguments)
        self._convert_fields()

    def _convert_fields(self) -> None:
        for field in self._extension_type._fields():
            value = self.__dict__[field.name]
            if value is not None or field.default is not None:
                value = fd.convert(value, field.annotation, field.name, as_spec=True)
            self.__dict__[field.name] = value

    @classmethod
    def _from_fields(cls, values: dict[str, Any]) -> Any:
        """Creates a spec without a call to the constructor."""
        spec = object.__new__(cls)
        spec.__dict__.update(values)
        return spec

    @property
    def value_type(self) -> type:
        """The ExtensionType."""
        return self._extension_type

    def _field_values(self) -> dict[str, Any]:
        return {field.name: self.__dict__[field.name] for field in self._extension_type._fields()}

    def _leaves(self) -> Iterator[TypeSpec]:
        for value in self._field_values().values():
            yield from fd.leaves(value)

    def _map_leaves(self, f: Callable) -> dict[str, Any]:
        """Returns the fields with `f(spec)` in place of each spec."""
        return {name: fd.map_leaves(f, value) for name, value in self._field_values().items()}

    def _value(self, f: Callable) -> Any:
        """Returns a value of the type, with `f(spec)` in place of each spec."""
        return self._extension_type._from_fields(self._map_leaves(f))

    def _static_parts(self) -> tuple:
        return tuple([fd.comparison_key(x) for x in self._map_leaves(lambda _: None).values()])

    def _serialize(self) -> tuple:
        return self._static_parts(), tuple(self._leaves())

    def most_specific_common_supertype(self, others: Sequence[TypeSpec]) -> Any:
        """Returns the most specific common supertype, or `None` if there is none."""
        columns = [list(self._leaves())]
        for other in others:
            if not self._is_like(other) or self._static_parts() != other._static_parts():
                return None
            columns.append(list(other._leaves()))
        rows = zip(*columns, strict=True)
        specs = [first.most_specific_common_supertype(rest) for first, *rest in rows]
        if None in specs:
            return None
        remaining = iter(specs)
        return self._from_fields(self._map_leaves(lambda _: next(remaining)))

    def __repr__(self) -> str:
        def shown(value: Any) -> str:
            return repr(dict(value) if isinstance(value, fd.ImmutableDict) else value)

        parts = [f"{name}={shown(value)}" for name, value in self._field_values().items()]
        return f"{type(self).__name__}({', '.join(parts)})"

    def __reduce__(self) -> tuple:
        return _restore_spec, (self._extension_type, self._field_values())

    # Dummy values, with which functions are traced

    def _dummy(self) -> Any:
        return self._value(lambda leaf: with_dummy_tensors(leaf, dummy_array))

    def _sample(self, sample_index: int) -> Any:
        from retrograde.data._elements import sample_leaf  # loaded only for datasets

        return self._value(lambda leaf: sample_leaf(leaf, sample_index))

    # Batches

    def _encoder(self) -> Any:
        encoder = getattr(self._extension_type, "__batch_encoder__", None)
        if encoder is None:
            raise TypeError(
                f"Values of type {self._extension_type.__name__} cannot be batched or split. "
                "Derive the class from tf.experimental.BatchableExtensionType."
            )
        return encoder

    def _batch(self, batch_size: int | None) -> Any:
        return self._encoder().batch(self, batch_size)

    def _unbatch(self) -> Any:
        return self._encoder().unbatch(self)

    @property
    def _map_fn(self) -> Callable:
        from retrograde.extension_types.batching import map_fn  # it imports this module

        return map_fn


def _restore_spec(extension_type: Any, values: dict[str, Any]) -> ExtensionTypeSpec:
    return extension_type.Spec._from_fields(values)


def make_spec_class(extension_type: Any) -> type[ExtensionTypeSpec]:
    """Returns the nested class `Spec` of an ExtensionType, with the methods that it defines."""
    own = extension_type.__dict__.get("Spec")
    bases = (ExtensionTypeSpec,) if own is None else (own, ExtensionTypeSpec)
    members: dict[str, Any] = {
        "_extension_type": extension_type,
        "__module__": extension_type.__module__,
    }
    if own is not None and "__init__" in own.__dict__:
        members["__init__"] = _convert_after(own.__init__)
    return type(f"{extension_type.__name__}.Spec", bases, members)


def _convert_after(constructor: Callable) -> Callable:
    @functools.wraps(constructor)
    def __init__(self: ExtensionTypeSpec, *args: Any, **kwargs: Any) -> None:
        constructor(self, *args, **kwargs)
        self._convert_fields()

    return __init__
