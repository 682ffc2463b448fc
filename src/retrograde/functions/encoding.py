"""Python values as JSON can hold them, and back."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from retrograde.core import dtypes
from retrograde.core.spec import TensorSpec
from retrograde.functions.concrete import VariableSpec

_OPS = "retrograde.ops."


def encoded(value: Any, what: str) -> Any:
    """A Python value as JSON can hold it; `what` it belongs to, for the error if it cannot be."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, complex):
        return {"complex": [value.real.hex(), value.imag.hex()]}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, slice):
        return {"slice": [encoded(part, what) for part in (value.start, value.stop, value.step)]}
    if isinstance(value, np.dtype):
        return {"numpy dtype": dtypes.of(value).name}
    if isinstance(value, dtypes.DType):
        return {"dtype": value.name}
    if isinstance(value, np.generic):
        return {"number": encoded(value.item(), what), "dtype": dtypes.of(value.dtype).name}
    if isinstance(value, TensorSpec):
        shape = None if value.shape.rank is None else value.shape.as_list()
        return {"spec": [shape, value.dtype.name, value.name]}
    if isinstance(value, VariableSpec):
        return {"variable": [value.place, value.shape, value.dtype, value.trainable]}
    if hasattr(value, "_fields") and type(value).__module__.startswith(_OPS):
        name = f"{type(value).__module__}.{type(value).__name__}"
        return {"named tuple": [encoded(part, what) for part in value], "type": name}
    if type(value) in (list, tuple):
        return {type(value).__name__: [encoded(part, what) for part in value]}
    if type(value) is dict:
        pairs = [[encoded(k, what), encoded(v, what)] for k, v in value.items()]
        return {"dict": pairs}
    raise ValueError(
        f"{what} cannot be saved: it contains {value!r} of type {type(value).__name__!r}. Expected "
        "numbers, strings, tensors, and lists, tuples and dicts of these."
    )


def decoded(data: Any) -> Any:
    """The Python value that `encoded` wrote down."""
    if not isinstance(data, dict):
        return data
    kind = next(iter(data))
    value = data[kind]
    match kind:
        case "float":
            return float.fromhex(value)
        case "complex":
            return complex(*map(float.fromhex, value))
        case "bytes":
            return bytes.fromhex(value)
        case "slice":
            return slice(*map(decoded, value))
        case "numpy dtype":
            return dtypes.as_dtype(value).numpy_dtype
        case "dtype":
            return dtypes.as_dtype(value)
        case "number":
            return dtypes.as_dtype(data["dtype"]).numpy_dtype.type(decoded(value))
        case "spec":
            return TensorSpec(*value)
        case "variable":
            return VariableSpec(*value)
        case "list":
            return [decoded(part) for part in value]
        case "tuple":
            return tuple([decoded(part) for part in value])
        case "named tuple":
            return _named_tuple(data["type"])(*map(decoded, value))
        case "dict":
            return {decoded(k): decoded(v) for k, v in value}
    raise ValueError(f"A saved model contains an unknown value: {kind!r}.")


def _named_tuple(name: str) -> type:
    """A class of tuples that operations use for their attributes; no other class will do."""
    module, _, last = name.rpartition(".")
    found = getattr(sys.modules.get(module), last, None) if module.startswith(_OPS) else None
    if not (isinstance(found, type) and issubclass(found, tuple)):
        raise ValueError(f"A saved model contains an unknown kind of attribute: {name!r}.")
    return found
