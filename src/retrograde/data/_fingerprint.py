"""Fingerprints of pipelines: a hash of their steps, data and function code."""

from __future__ import annotations

import functools
import hashlib
import types
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from retrograde.data._nodes import Node
from retrograde.data._seeds import Seeds
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.specs import TypeSpec


def fingerprint(node: Node) -> int:
    """Returns a 64-bit hash that is the same for equal pipelines, also in other processes."""
    hasher = hashlib.blake2b(digest_size=8)
    for part_bytes in _byte_parts(node, {}):
        hasher.update(len(part_bytes).to_bytes(8, "little") + part_bytes)
    return int.from_bytes(hasher.digest(), "little")


def _byte_parts(value: Any, seen: dict[int, Any]) -> Iterator[bytes]:
    """Yields the parts of a value as bytes. Objects seen before are not visited again."""
    yield type(value).__qualname__.encode()
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, type, TypeSpec)):
        yield repr(value).encode()
        return
    tensor = tensor_or_variable(value)
    if tensor is not None:
        value = np.asarray(tensor._array)
    if isinstance(value, (np.ndarray, np.generic, np.dtype)):
        yield from _array_words(value)
        return
    if id(value) in seen:
        yield str(list(seen).index(id(value))).encode()
        return
    seen[id(value)] = value  # keeps the object alive, so that its id is not reused
    for part in _parts(value):
        yield from _byte_parts(part, seen)


def _array_words(value: Any) -> Iterator[bytes]:
    if isinstance(value, np.dtype):
        yield value.name.encode()
        return
    yield f"{value.dtype} {value.shape}".encode()
    yield repr(value.tolist()).encode() if value.dtype.kind == "O" else value.tobytes()


def _parts(value: Any) -> list:
    if isinstance(value, Seeds):
        return [value.seed, value.reshuffle]
    if isinstance(value, types.ModuleType):  # functions refer to modules, whose name is enough
        return [value.__name__]
    if isinstance(value, Node):
        attributes = {k: v for k, v in vars(value).items() if k not in ("spec", "cached", "inputs")}
        return [*attributes.values(), *value.inputs]
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, types.MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, types.FunctionType):
        return [value.__code__, value.__defaults__, value.__kwdefaults__, *_closure_values(value)]
    if isinstance(value, types.CodeType):
        return [value.co_code, value.co_consts, value.co_names]
    if isinstance(value, Mapping):
        return [part for pair in value.items() for part in pair]
    if isinstance(value, (list, tuple, set, frozenset)):
        return sorted(value, key=repr) if isinstance(value, (set, frozenset)) else list(value)
    if hasattr(value, "_node"):  # a dataset that a function uses
        return [value._node]
    return [
        v for v in getattr(value, "__dict__", {}).values() if not callable(v) or _is_function(v)
    ]


def _closure_values(function: types.FunctionType) -> Iterator[Any]:
    """Yields the closure values of a function."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # empty cell
            continue


def _is_function(value: Any) -> bool:
    return isinstance(value, (types.FunctionType, types.MethodType, functools.partial))
