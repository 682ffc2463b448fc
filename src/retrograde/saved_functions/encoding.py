"""Encodes Python values as JSON, and decodes untrusted JSON."""

from __future__ import annotations

import functools
import math
import sys
from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograde.program.concrete_function import VariableSpec
from retrograde.values import dtypes, nest
from retrograde.values.arguments import shown
from retrograde.values.specs import TensorSpec

_OPS = "retrograde.ops."
_MAX_AXES = 64  # NumPy's limit
_MAX_ELEMENTS = 1 << 48


def encode(value: Any, owner: str) -> Any:
    """Converts a Python value to JSON types. `owner` appears in error messages."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, complex):
        return {"complex": [value.real.hex(), value.imag.hex()]}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, slice):
        return {"slice": [encode(part, owner) for part in (value.start, value.stop, value.step)]}
    if isinstance(value, np.dtype):
        return {"numpy dtype": dtypes.of(value).name}
    if isinstance(value, dtypes.DType):
        return {"dtype": value.name}
    if isinstance(value, np.generic):
        return {"number": encode(value.item(), owner), "dtype": dtypes.of(value.dtype).name}
    if isinstance(value, TensorSpec):
        shape = None if value.shape.rank is None else value.shape.as_list()
        return {"spec": [shape, value.dtype.name, value.name]}
    if isinstance(value, VariableSpec):
        return {"variable": [value.index, value.shape, value.dtype, value.trainable]}
    if hasattr(value, "_fields") and type(value).__module__.startswith(_OPS):
        name = f"{type(value).__module__}.{type(value).__name__}"
        return {"named tuple": [encode(part, owner) for part in value], "type": name}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        parts = [encode(part, owner) for part in value]
        return {"fields": parts, "type": type(value).__name__, "names": list(value._fields)}
    if type(value) in (list, tuple):
        return {type(value).__name__: [encode(part, owner) for part in value]}
    if type(value) is dict:
        pairs = [[encode(k, owner), encode(v, owner)] for k, v in value.items()]
        return {"dict": pairs}
    raise ValueError(
        f"{owner} cannot be saved: it contains {shown(value)} of type {type(value).__name__!r}. "
        "Expected numbers, strings, tensors, and lists, tuples and dicts of these."
    )


def decode(data: Any) -> Any:
    """Returns the Python value that was passed to `encode`. Corrupt data raises an error."""
    if not isinstance(data, dict):
        if isinstance(data, (list, float)):
            raise TypeError(f"expected an encoded value, found {shown(data)}")
        return data
    kind = next(iter(data), None)
    value: Any = data.get(kind)
    match kind:
        case "float":
            return float.fromhex(value)
        case "complex":
            return complex(*map(float.fromhex, value))
        case "bytes":
            return bytes.fromhex(value)
        case "slice":
            return slice(*map(decode, value))
        case "numpy dtype":
            return dtype_of(value)
        case "dtype":
            return dtypes.of(dtype_of(value))
        case "number":
            return dtype_of(data["dtype"]).type(decode(value))
        case "spec":
            shape, dtype, name = value
            sizes = None if shape is None else [None if n is None else integer(n) for n in shape]
            return TensorSpec(sizes, dtype_of(dtype), None if name is None else text(name))
        case "variable":
            index, shape, dtype, trainable = value
            dtype_of(dtype)
            return VariableSpec(integer(index), list(shape_of(shape)), dtype, boolean(trainable))
        case "list":
            return [decode(part) for part in value]
        case "tuple":
            return tuple([decode(part) for part in value])
        case "named tuple":
            return _named_tuple(text(data["type"]))(*map(decode, value))
        case "fields":
            return named_tuple_class(text(data["type"]), tuple(data["names"]))(*map(decode, value))
        case "dict":
            return {decode(k): decode(v) for k, v in value}
    raise ValueError(f"A saved model contains an unknown value: {shown(kind)}.")


def _named_tuple(name: str) -> type:
    """Returns a named tuple class of `ops`, which attributes may contain. Rejects others."""
    module, _, last = name.rpartition(".")
    cls = getattr(sys.modules.get(module), last, None) if module.startswith(_OPS) else None
    if not (isinstance(cls, type) and issubclass(cls, tuple)):
        raise ValueError(f"A saved model contains an attribute of an unknown type: {name!r}.")
    return cls


@functools.cache
def named_tuple_class(name: str, fields: tuple[str, ...]) -> Any:
    """Returns a class for the named tuples of users, whose own class a file does not contain."""
    if not all(isinstance(part, str) and part.isidentifier() for part in (name, *fields)):
        raise ValueError(f"a saved model contains a named tuple with fields {shown(fields)}")
    return namedtuple(name, fields)


def contains_named_tuple(value: Any) -> bool:
    """Returns whether a structure contains named tuples."""
    if not nest.is_nested(value):
        return False
    return hasattr(value, "_fields") or any(map(contains_named_tuple, nest.children(value)))


def with_saved_named_tuples(value: Any) -> Any:
    """Replaces the named tuples in a structure by ones of `named_tuple_class`."""
    if not nest.is_nested(value):
        return value
    children = [with_saved_named_tuples(child) for child in nest.children(value)]
    if hasattr(value, "_fields"):
        return named_tuple_class(type(value).__name__, tuple(value._fields))(*children)
    return nest.rebuild(value, children)


# Leaves of an untrusted file


def integer(value: Any) -> int:
    """Returns `value`, which must be a non-negative integer."""
    if type(value) is not int or value < 0:
        raise TypeError(f"expected a non-negative integer, found {shown(value)}")
    return value


def boolean(value: Any) -> bool:
    """Returns `value`, which must be a bool."""
    if type(value) is not bool:
        raise TypeError(f"expected true or false, found {shown(value)}")
    return value


def text(value: Any) -> str:
    """Returns `value`, which must be a string."""
    if type(value) is not str:
        raise TypeError(f"expected a string, found {shown(value)}")
    return value


def dtype_of(value: Any) -> np.dtype:
    """Returns the dtype that has `value` as its name."""
    return dtypes.as_dtype(text(value)).numpy_dtype


def shape_of(value: Any) -> tuple[int, ...]:
    """Returns a list of sizes as a shape that an array can have."""
    if type(value) is not list:
        raise TypeError(f"expected a list of sizes, found {shown(value)}")
    shape = tuple([integer(size) for size in value])
    if len(shape) > _MAX_AXES or math.prod(shape) > _MAX_ELEMENTS:
        raise ValueError(f"no array has the shape {shape}")
    return shape


def item(values: Sequence, index: Any) -> Any:
    """Returns the item of `values` at a non-negative `index`."""
    return values[integer(index)]
