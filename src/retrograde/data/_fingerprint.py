"""A number that tells pipelines apart: by their steps, data, and the code of their functions."""

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
    """64 bits, the same for pipelines that are made in the same way, in other processes too."""
    total = hashlib.blake2b(digest_size=8)
    for word in _words(node, {}):
        total.update(len(word).to_bytes(8, "little") + word)
    return int.from_bytes(total.digest(), "little")


def _words(value: Any, seen: dict[int, Any]) -> Iterator[bytes]:
    """All that makes up a value, as bytes. What was met before is not gone through again."""
    yield type(value).__qualname__.encode()
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, type, TypeSpec)):
        yield repr(value).encode()
        return
    held = tensor_or_variable(value)
    if held is not None:
        value = np.asarray(held._array)
    if isinstance(value, (np.ndarray, np.generic, np.dtype)):
        yield from _array_words(value)
        return
    if id(value) in seen:
        yield str(list(seen).index(id(value))).encode()
        return
    seen[id(value)] = value  # which keeps it, and its id, for as long as this goes on
    for part in _parts(value):
        yield from _words(part, seen)


def _array_words(value: Any) -> Iterator[bytes]:
    if isinstance(value, np.dtype):
        yield value.name.encode()
        return
    yield f"{value.dtype} {value.shape}".encode()
    yield repr(value.tolist()).encode() if value.dtype.kind == "O" else value.tobytes()


def _parts(value: Any) -> list:
    if isinstance(value, Seeds):
        return [value.seed, value.anew]
    if isinstance(value, types.ModuleType):  # a name that a function refers to, not its content
        return [value.__name__]
    if isinstance(value, Node):
        described = {k: v for k, v in vars(value).items() if k not in ("spec", "kept", "inputs")}
        return [*described.values(), *value.inputs]
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, types.MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, types.FunctionType):
        return [value.__code__, value.__defaults__, value.__kwdefaults__, *_contents(value)]
    if isinstance(value, types.CodeType):
        return [value.co_code, value.co_consts, value.co_names]
    if isinstance(value, Mapping):
        return [part for pair in value.items() for part in pair]
    if isinstance(value, (list, tuple, set, frozenset)):
        return sorted(value, key=repr) if isinstance(value, (set, frozenset)) else list(value)
    if hasattr(value, "_node"):  # a dataset that a function refers to
        return [value._node]
    return [v for v in getattr(value, "__dict__", {}).values() if not callable(v) or _is_plain(v)]


def _contents(function: types.FunctionType) -> Iterator[Any]:
    """What a function refers to in the scopes around it."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # nothing yet
            continue


def _is_plain(value: Any) -> bool:
    return isinstance(value, (types.FunctionType, types.MethodType, functools.partial))
