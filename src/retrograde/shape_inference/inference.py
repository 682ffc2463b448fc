"""Shape inference: operations on arrays that have a shape and a dtype, but no elements.

In a block of `inferring_shapes`, operations on an `AbstractArray` compute the shape and dtype of
their result and run no kernel. A dimension can be unknown: its `Size` has one number for each of
two cases, and the shape of a result is computed for both.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from retrograde.core import namespaces
from retrograde.core.program import hashable
from retrograde.core.rules import Spec
from retrograde.core.tensor import wrap
from retrograde.shape_inference.abstract_array import AbstractArray, is_abstract
from retrograde.values import nest
from retrograde.values.errors import invalid
from retrograde.values.optional_jax import required_jax
from retrograde.values.shapes import broadcast
from retrograde.values.sizes import Size, has_size, in_both_cases, in_case, note_sizes

_MOST_VALUES = 64  # elements of an array of sizes whose values are computed
_SMALL = 1 << 13  # elements; up to so many it is fastest to run the kernel
_MOST_SIGNATURES = 1 << 14
_inferred: dict[tuple, Any] = {}  # specs of results by primitive, specs of inputs and attributes


@contextlib.contextmanager
def inferring_shapes() -> Iterator[None]:
    """Allows tensors to hold abstract arrays in a `with` block."""
    with namespaces.evaluate_with(evaluate):
        yield


def evaluate(primitive: Any, arrays: Sequence[Any], attrs: dict) -> Any:
    """Returns the result of `primitive`: abstract arrays if an input or an attribute is abstract.

    Returns `NotImplemented` otherwise.
    """
    sized = has_size(attrs)
    if primitive.name == "unstack" and type(arrays[0].shape[attrs["axis"]]) is Size:
        raise ValueError(f"unstack: the size of axis {attrs['axis']} is unknown.")
    if not sized and not any([type(x) is AbstractArray for x in arrays]):
        return NotImplemented
    known = None if sized else _known_values(arrays)
    if known is not None:
        results = [_parts(primitive, primitive.on_numpy(*xs, **attrs)) for xs in known]
        made = [
            AbstractArray(first.shape, first.dtype, (np.asarray(first), np.asarray(other)))
            for first, other in zip(*results, strict=True)
        ]
        return tuple(made) if primitive.outputs else made[0]
    try:
        first = _infer(primitive, [_spec(x, 0) for x in arrays], in_case(attrs, 0))
        other = first
        if sized or any([has_size(x.shape) for x in arrays]):
            other = _infer(primitive, [_spec(x, 1) for x in arrays], in_case(attrs, 1))
    except Exception:
        note_sizes([n for x in arrays for n in x.shape])
        raise
    made = [_merge(*pair) for pair in zip(first, other, strict=True)]
    return tuple(made) if primitive.outputs else made[0]


def _known_values(arrays: Sequence[Any]) -> list[list] | None:
    """Returns the values of all arrays in both cases, or `None` if one is unknown or large."""
    for x in arrays:
        if (type(x) is AbstractArray and x.values is None) or x.size > _MOST_VALUES:
            return None
    pairs: list[Any] = [x.values if type(x) is AbstractArray else (x, x) for x in arrays]
    return [[pair[case] for pair in pairs] for case in (0, 1)]


def _parts(primitive: Any, result: Any) -> Sequence[Any]:
    return result if primitive.outputs else (result,)


def _spec(x: Any, case: int) -> Spec:
    return Spec(in_case(tuple(x.shape), case), x.dtype)


def _merge(first: Spec, other: Spec) -> AbstractArray:
    if len(first.shape) != len(other.shape):
        raise invalid("The rank of a result depends on an unknown dimension.")
    sizes = zip(first.shape, other.shape, strict=True)
    return AbstractArray(tuple([in_both_cases(*pair) for pair in sizes]), first.dtype)


def _infer(primitive: Any, specs: list[Spec], attrs: dict) -> tuple[Spec, ...]:
    """Returns the specs of the results of one case."""
    plain = hashable(attrs)
    key = (primitive, *[(x.shape, x.dtype) for x in specs], plain)
    result = _inferred.get(key)
    if result is None:
        result = _without_values(primitive, specs, attrs)
        if plain is not None:
            if len(_inferred) >= _MOST_SIGNATURES:
                _inferred.clear()
            _inferred[key] = result
    return result


def _without_values(primitive: Any, specs: list[Spec], attrs: dict) -> tuple[Spec, ...]:
    if primitive.partials is not None and not any(x.dtype.kind == "O" for x in specs):
        shape = broadcast(*[x.shape for x in specs])
        if shape is not None:
            ones = [np.ones((1,) * len(shape), x.dtype) for x in specs]
            return (Spec(shape, primitive.on_numpy(*ones, **attrs).dtype),)
    elements = sum([math.prod(x.shape) for x in specs])
    numeric = not any(x.dtype.kind == "O" for x in specs)
    if numeric and (elements > _SMALL or "jax" in sys.modules) and _has_jax():
        return _with_jax(primitive, specs, attrs)
    result = primitive.run([_dummy(x) for x in specs], attrs)
    return tuple([Spec(y.shape, y.dtype) for y in _parts(primitive, result)])


def _dummy(spec: Spec) -> np.ndarray:
    """Returns an array without memory. Zeros are valid indices, ones are valid divisors."""
    value: Any = b"" if spec.dtype.kind == "O" else 0 if spec.dtype.kind in "iub" else 1
    return np.broadcast_to(np.array(value, spec.dtype), spec.shape)


@functools.cache
def _has_jax() -> bool:
    return importlib.util.find_spec("jax") is not None


def _with_jax(primitive: Any, specs: list[Spec], attrs: dict) -> tuple[Spec, ...]:
    jax = required_jax()
    inputs = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in specs]
    kernel = functools.partial(primitive.kernel, jax.numpy, **attrs)
    with jax.enable_x64(True):
        result = jax.eval_shape(kernel, *inputs)
    return tuple([Spec(y.shape, np.dtype(y.dtype)) for y in _parts(primitive, result)])


def on_abstract_arrays(function: Callable, args: tuple, kwargs: dict) -> Any:
    """Returns the abstract result of `function(*args, **kwargs)`.

    If an argument is abstract, the function runs on dummy arrays, for both cases. The shapes of its
    results must not depend on values.
    """
    leaves = list(nest.leaves((args, kwargs), expand_composites=True))
    if not any(map(is_abstract, leaves)):
        return function(*args, **kwargs)
    first, other = (
        function(*case_args, **case_kwargs)
        for case_args, case_kwargs in [
            nest.pack(
                (args, kwargs), iter([_concrete(x, case) for x in leaves]), expand_composites=True
            )
            for case in (0, 1)
        ]
    )
    pairs = zip(
        nest.leaves(first, expand_composites=True),
        nest.leaves(other, expand_composites=True),
        strict=True,
    )
    merged = [wrap(_merge(x._spec, y._spec)) if hasattr(x, "_spec") else x for x, y in pairs]
    return nest.pack(first, iter(merged), expand_composites=True)


def _concrete(x: Any, case: int) -> Any:
    """Returns a value in one case, with a dummy array in place of an abstract one."""
    if not is_abstract(x) or type(x) is Size:
        return in_case(x, case)
    spec = x._spec
    return wrap(_dummy(_spec(spec, case)) if spec.values is None else spec.values[case])


def created_from_sizes(create: Callable, *args: Any) -> Any:
    """Returns the abstract result of `create(*args)` if an argument depends on unknown dimensions.

    Returns `None` otherwise. `create` runs for both cases and returns a tensor.
    """
    if not namespaces.foreign or namespaces.evaluator() is None:
        return None
    args = tuple(map(_with_sizes, args))
    if not has_size(args):
        return None
    first, other = (create(*in_case(args, case))._spec for case in (0, 1))
    return wrap(_merge(first, other))


def _with_sizes(value: Any) -> Any:
    """Replaces tensors of sizes by sizes, also in lists."""
    if isinstance(value, (list, tuple)):
        return [_with_sizes(element) for element in value]
    if not is_abstract(value) or isinstance(value, int):
        return value
    return value._spec.integers() if value._spec.ndim else value._spec.item()
