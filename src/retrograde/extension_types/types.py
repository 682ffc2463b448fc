"""ExtensionType: classes of tensors that users define with annotated fields."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import sys
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from retrograde.core.tensor import Tensor
from retrograde.extension_types import fields as fd
from retrograde.extension_types.fields import MISSING, Field
from retrograde.extension_types.specs import ExtensionTypeSpec, make_spec_class
from retrograde.math.arithmetic import equal
from retrograde.math.reductions import reduce_all
from retrograde.values.arguments import expect
from retrograde.values.composites import CompositeTensor
from retrograde.values.holder import Holder

_RESERVED = ("Spec", "__validate__", "as_dict")


class ExtensionType(CompositeTensor):
    """Base class of types that consist of tensors and other values, in annotated fields.

    A constructor with a parameter for each field is added, unless the class defines one. It
    converts the fields to their types, and then calls `__validate__` if the class has it. A field
    can be a `tf.Tensor`, a `tf.RaggedTensor` or `tf.SparseTensor`, another ExtensionType, a
    `tf.TensorShape`, a `tf.DType`, a Python number, string or bool, a `tuple[T, ...]`, a
    `Mapping[K, V]` or a union of these. Values are immutable. The nested class `Spec` describes
    them.

    Functions, tapes, datasets, `tf.nest` with `expand_composites`, `tf.cond` and `tf.while_loop`
    accept values of the type. `tf.experimental.dispatch_for_api` defines operations on them. If the
    class has a method `__tf_tensor__(dtype, name)`, operations use the tensor that it returns.

    >>> class Interval(tf.experimental.ExtensionType):
    ...     start: tf.Tensor
    ...     end: tf.Tensor
    ...
    ...     def length(self):
    ...         return self.end - self.start
    >>> @tf.function
    ... def widen(interval):
    ...     return Interval(interval.start - 1.0, interval.end + 1.0)
    >>> widen(Interval(2.0, 5.0)).length().numpy()
    np.float32(5.0)
    """

    Spec: ClassVar[type[ExtensionTypeSpec]]

    _is_tensor = False
    _differentiable = "Use the tensors in its fields."
    _instead = (
        "Pass one of its tensors, or define the operation with tf.experimental.dispatch_for_api."
    )
    __hash__ = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in inspect.get_annotations(cls):
            if name in _RESERVED or name.startswith("_tf_extension_type"):
                raise ValueError(
                    f"The field annotations for {cls.__name__} are invalid. Field {name!r} is "
                    "reserved."
                )
        cls._field_cache = None
        frame = sys._getframe(1)  # the scope of the class statement, for annotations as strings
        cls._scope = {**frame.f_globals, **frame.f_locals, cls.__name__: cls}
        with contextlib.suppress(NameError):  # an annotation names a class that is defined later
            cls._fields()
        constructor = cls.__dict__.get("__init__")
        if constructor is None and getattr(cls.__init__, "is_default", True):
            constructor = _default_constructor
        if constructor is not None:
            cls.__init__ = _finish_after(constructor)
        cls.Spec = make_spec_class(cls)

    @classmethod
    def _fields(cls) -> tuple[Field, ...]:
        """Returns the fields of this class and its bases, in order of definition."""
        if cls._field_cache is None:
            hints: dict[str, Any] = {}
            for base in reversed(cls.__mro__[1:]):
                if issubclass(base, ExtensionType) and base is not ExtensionType:
                    hints |= {field.name: field.annotation for field in base._fields()}
            hints |= _resolve(inspect.get_annotations(cls), cls._scope)
            cls._field_cache = tuple(
                [_make_field(cls, name, annotation) for name, annotation in hints.items()]
            )
            cls._scope = {}  # annotations are resolved
        return cls._field_cache

    def __setattr__(self, name: str, value: Any) -> None:
        if "_constructing" not in self.__dict__:
            raise _immutable(name)
        self.__dict__[name] = value

    def __delattr__(self, name: str) -> None:
        raise _immutable(name)

    def _field_values(self) -> dict[str, Any]:
        return {field.name: self.__dict__[field.name] for field in self._fields()}

    def __repr__(self) -> str:
        parts = [f"{name}={value!r}" for name, value in self._field_values().items()]
        return f"{type(self).__name__}({', '.join(parts)})"

    def __eq__(self, other: object) -> Any:
        if type(other) is not type(self) or self._type_spec != other._type_spec:
            return False
        pairs = zip(self._components(), other._components(), strict=True)
        return reduce_all([reduce_all(equal(x, y)) for x, y in pairs] or [True])

    def __ne__(self, other: object) -> Any:
        result = self == other
        return ~result if isinstance(result, Tensor) else not result

    # The interface of CompositeTensor

    def _leaves(self) -> Iterator[Any]:
        for value in self._field_values().values():
            yield from fd.leaves(value)

    def _components(self) -> tuple[Tensor, ...]:
        components: list[Tensor] = []
        for leaf in self._leaves():
            components += [leaf] if isinstance(leaf, Tensor) else leaf._components()
        return tuple(components)

    def _with_components(self, components: Iterator[Any]) -> ExtensionType:
        def replacement(leaf: Any) -> Any:
            return (
                next(components) if isinstance(leaf, Tensor) else leaf._with_components(components)
            )

        values = self._field_values()
        return self._from_fields({k: fd.map_leaves(replacement, v) for k, v in values.items()})

    @classmethod
    def _from_fields(cls, values: dict[str, Any]) -> Any:
        """Creates a value without a call to the constructor."""
        result = object.__new__(cls)
        result.__dict__.update(values)
        return result

    def _watched(self) -> tuple[Tensor, ...]:
        return self._components()

    def _stack(self, values: Sequence[Any]) -> Any:
        return _batching().stack_values(values)

    def _rows(self) -> Iterator[Any]:
        return _batching().split_values(self)

    def _row_counts(self) -> set[int]:
        return _batching().row_counts(self)

    def _static_key(self) -> Any:
        return self._type_spec

    def __tf_tracing_type__(self, _context: Any) -> Any:
        return self._type_spec

    @property
    def _type_spec(self) -> ExtensionTypeSpec:
        values = self._field_values().items()
        return self.Spec._from_fields(
            {name: fd.map_leaves(fd.spec_of_leaf, value) for name, value in values}
        )

    def _handler(self, operation: Any) -> Callable | None:
        from retrograde.extension_types.dispatch import handler_of  # this module is below it

        return handler_of(operation)


def _batching() -> Any:
    """Imports the module that splits and stacks values. It imports this one."""
    return importlib.import_module("retrograde.extension_types.batching")


def _reflected(name: str) -> Callable:
    """Returns an operator method for a tensor on the left, which calls a function of `tf.math`."""

    def method(self: ExtensionType, other: Any) -> Any:
        if not isinstance(other, Holder):
            return NotImplemented
        return getattr(importlib.import_module("retrograde.math"), name)(other, self)

    return method


for _operator, _name in {
    "radd": "add",
    "rsub": "subtract",
    "rmul": "multiply",
    "rtruediv": "truediv",
    "rfloordiv": "floordiv",
    "rmod": "floormod",
    "rpow": "pow",
}.items():
    setattr(ExtensionType, f"__{_operator}__", _reflected(_name))


def _immutable(name: str) -> AttributeError:
    return AttributeError(
        f"Cannot mutate attribute `{name}` outside the custom constructor of ExtensionType."
    )


def _resolve(annotations: dict[str, Any], scope: dict[str, Any]) -> dict[str, Any]:
    """Evaluates annotations that are strings or contain strings."""
    if not any(isinstance(a, str) or typing.get_args(a) for a in annotations.values()):
        return annotations
    holder = type("Annotations", (), {"__annotations__": annotations})
    return typing.get_type_hints(holder, globalns=scope)


def _make_field(cls: type, name: str, annotation: Any) -> Field:
    fd.check_annotation(annotation, name)
    default = getattr(cls, name, MISSING)
    if default is not MISSING and default is not None:
        default = fd.convert(default, annotation, f"default value for {name}")
    return Field(name, annotation, default)


def _signature(cls: type[ExtensionType]) -> inspect.Signature:
    """Returns the signature of the default constructor.

    A required field after one with a default can only be passed by keyword.
    """
    parameters = []
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    for field in cls._fields():
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        if field.default is MISSING and any(p.default is not p.empty for p in parameters):
            kind = inspect.Parameter.KEYWORD_ONLY
        parameters.append(inspect.Parameter(field.name, kind, default=default))
    return inspect.Signature(parameters)


def _default_constructor(self: ExtensionType, *args: Any, **kwargs: Any) -> None:
    bound = _signature(type(self)).bind(*args, **kwargs)
    bound.apply_defaults()
    self.__dict__.update(bound.arguments)


def _finish_after(constructor: Callable) -> Callable:
    """Returns a constructor that converts and checks all fields at its end."""

    @functools.wraps(constructor)
    def __init__(self: ExtensionType, *args: Any, **kwargs: Any) -> None:
        if "_constructing" in self.__dict__:  # a subclass calls the constructor of its base
            constructor(self, *args, **kwargs)
            return
        self.__dict__["_constructing"] = True
        constructor(self, *args, **kwargs)
        _finish(self)

    __init__.is_default = constructor is _default_constructor
    return __init__


def _finish(self: ExtensionType) -> None:
    values = self.__dict__
    missing = []
    for field in self._fields():
        if field.name not in values and field.default is MISSING:
            missing.append(field.name)
        elif values.get(field.name, field.default) is None and field.default is None:
            values[field.name] = None
        else:
            value = values.get(field.name, field.default)
            values[field.name] = fd.convert(value, field.annotation, field.name)
    if missing:
        raise ValueError(f"Missing required fields: {set(missing)}")
    del values["_constructing"]
    extra = values.keys() - {field.name for field in self._fields()}
    if extra:
        raise ValueError(f"Got unexpected fields: {extra}")
    if hasattr(self, "__validate__"):
        self.__validate__()


def as_dict(value: ExtensionType) -> dict[str, Any]:
    """Returns the fields of an ExtensionType as a dict.

    >>> class Point(tf.experimental.ExtensionType):
    ...     x: tf.Tensor
    ...     label: str
    >>> sorted(tf.experimental.extension_type.as_dict(Point(1.0, "a")))
    ['label', 'x']
    """
    expect(value, ExtensionType, "as_dict", "an ExtensionType")
    return value._field_values()
