"""Shape inference: operations on arrays that have a shape and a dtype, but no elements.

In a `with inferring_shapes()` block, operations on an `AbstractArray` compute the shape and dtype
of their result without running a kernel. An unknown dimension is a `Size`, which has one integer
for each of two cases. The shape of a result is computed in both cases, and a dimension that differs
between them is unknown, too.
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

_MAX_COMPUTED_SIZES = 64  # Arrays of sizes with more elements get no values.
_MAX_KERNEL_ELEMENTS = 1 << 13  # Up to this many input elements, running the kernel is fastest.
_MAX_CACHED_SPECS = 1 << 14
_cached_specs: dict[tuple, Any] = {}  # results by primitive, specs of inputs and attributes


@contextlib.contextmanager
def inferring_shapes() -> Iterator[None]:
    """Allows tensors to hold abstract arrays in a `with` block."""
    with namespaces.evaluate_with(evaluate):
        yield


def evaluate(primitive: Any, arrays: Sequence[Any], attrs: dict) -> Any:
    """Returns the abstract result of `primitive` if an input or an attribute is abstract.

    Returns `NotImplemented` otherwise.
    """
    has_sized_attrs = has_size(attrs)
    if primitive.name == "unstack" and type(arrays[0].shape[attrs["axis"]]) is Size:
        raise ValueError(f"unstack: the size of axis {attrs['axis']} is unknown.")
    if not has_sized_attrs and not any([type(x) is AbstractArray for x in arrays]):
        return NotImplemented
    values = None if has_sized_attrs else _values_in_both_cases(arrays)
    if values is not None:
        results = [_as_tuple(primitive, primitive.on_numpy(*xs, **attrs)) for xs in values]
        outputs = [
            AbstractArray(first.shape, first.dtype, (np.asarray(first), np.asarray(second)))
            for first, second in zip(*results, strict=True)
        ]
        return tuple(outputs) if primitive.outputs else outputs[0]
    try:
        first_specs = _infer(primitive, [_spec(x, 0) for x in arrays], in_case(attrs, 0))
        second_specs = first_specs
        if has_sized_attrs or any([has_size(x.shape) for x in arrays]):
            second_specs = _infer(primitive, [_spec(x, 1) for x in arrays], in_case(attrs, 1))
    except Exception:
        note_sizes([n for x in arrays for n in x.shape])
        raise
    outputs = [_merge(*pair) for pair in zip(first_specs, second_specs, strict=True)]
    return tuple(outputs) if primitive.outputs else outputs[0]


def _values_in_both_cases(arrays: Sequence[Any]) -> list[list] | None:
    """Returns the values of all arrays in each case, or `None` if one is unknown or large."""
    for x in arrays:
        if (type(x) is AbstractArray and x.values is None) or x.size > _MAX_COMPUTED_SIZES:
            return None
    pairs: list[Any] = [x.values if type(x) is AbstractArray else (x, x) for x in arrays]
    return [[pair[case] for pair in pairs] for case in (0, 1)]


def _as_tuple(primitive: Any, result: Any) -> Sequence[Any]:
    return result if primitive.outputs else (result,)


def _spec(x: Any, case: int) -> Spec:
    return Spec(in_case(tuple(x.shape), case), x.dtype)


def _merge(first: Spec, second: Spec) -> AbstractArray:
    """Returns an abstract array with the shapes of both cases."""
    if len(first.shape) != len(second.shape):
        raise invalid("The rank of a result depends on an unknown dimension.")
    sizes = zip(first.shape, second.shape, strict=True)
    return AbstractArray(tuple([in_both_cases(*pair) for pair in sizes]), first.dtype)


def _infer(primitive: Any, specs: list[Spec], attrs: dict) -> tuple[Spec, ...]:
    """Returns the specs of the results in one case, from a cache if possible."""
    attrs_key = hashable(attrs)
    key = (primitive, *[(x.shape, x.dtype) for x in specs], attrs_key)
    result = _cached_specs.get(key)
    if result is None:
        result = _infer_uncached(primitive, specs, attrs)
        if attrs_key is not None:
            if len(_cached_specs) >= _MAX_CACHED_SPECS:
                _cached_specs.clear()
            _cached_specs[key] = result
    return result


def _infer_uncached(primitive: Any, specs: list[Spec], attrs: dict) -> tuple[Spec, ...]:
    """Infers specs by broadcasting, by JAX, or by running the kernel on dummy arrays."""
    if primitive.partials is not None and not any(x.dtype.kind == "O" for x in specs):
        shape = broadcast(*[x.shape for x in specs])
        if shape is not None:
            ones = [np.ones((1,) * len(shape), x.dtype) for x in specs]
            return (Spec(shape, primitive.on_numpy(*ones, **attrs).dtype),)
    element_count = sum([math.prod(x.shape) for x in specs])
    is_numeric = not any(x.dtype.kind == "O" for x in specs)
    prefers_jax = element_count > _MAX_KERNEL_ELEMENTS or "jax" in sys.modules
    if is_numeric and prefers_jax and _has_jax():
        return _infer_with_jax(primitive, specs, attrs)
    result = primitive.run([_dummy(x) for x in specs], attrs)
    return tuple([Spec(y.shape, y.dtype) for y in _as_tuple(primitive, result)])


def _dummy(spec: Spec) -> np.ndarray:
    """Returns an array that takes the memory of one element.

    Integers are 0, which is a valid index. Floating-point numbers are 1, a valid divisor.
    """
    value: Any = b"" if spec.dtype.kind == "O" else 0 if spec.dtype.kind in "iub" else 1
    return np.broadcast_to(np.array(value, spec.dtype), spec.shape)


@functools.cache
def _has_jax() -> bool:
    return importlib.util.find_spec("jax") is not None


def _infer_with_jax(primitive: Any, specs: list[Spec], attrs: dict) -> tuple[Spec, ...]:
    jax = required_jax()
    inputs = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in specs]
    kernel = functools.partial(primitive.kernel, jax.numpy, **attrs)
    with jax.enable_x64(True):
        result = jax.eval_shape(kernel, *inputs)
    return tuple([Spec(y.shape, np.dtype(y.dtype)) for y in _as_tuple(primitive, result)])


def on_abstract_arrays(function: Callable, args: tuple, kwargs: dict) -> Any:
    """Returns the abstract result of `function(*args, **kwargs)`.

    If an argument is abstract, the function runs on dummy arrays, once in each case. The shapes of
    its results must not depend on values.
    """
    leaves = list(nest.leaves((args, kwargs), expand_composites=True))
    if not any(map(is_abstract, leaves)):
        return function(*args, **kwargs)
    first_result, second_result = (
        function(*case_args, **case_kwargs)
        for case_args, case_kwargs in [
            nest.pack(
                (args, kwargs), iter([_in_case(x, case) for x in leaves]), expand_composites=True
            )
            for case in (0, 1)
        ]
    )
    pairs = zip(
        nest.leaves(first_result, expand_composites=True),
        nest.leaves(second_result, expand_composites=True),
        strict=True,
    )
    merged = [wrap(_merge(x._spec, y._spec)) if hasattr(x, "_spec") else x for x, y in pairs]
    return nest.pack(first_result, iter(merged), expand_composites=True)


def _in_case(x: Any, case: int) -> Any:
    """Returns the value of `x` in one case, with a dummy array in place of an abstract one."""
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
    args = tuple(map(_convert_to_sizes, args))
    if not has_size(args):
        return None
    first, second = (create(*in_case(args, case))._spec for case in (0, 1))
    return wrap(_merge(first, second))


def _convert_to_sizes(value: Any) -> Any:
    """Converts abstract tensors of sizes to `Size`s, also in lists."""
    if isinstance(value, (list, tuple)):
        return [_convert_to_sizes(element) for element in value]
    if not is_abstract(value) or isinstance(value, int):
        return value
    return value._spec.integers() if value._spec.ndim else value._spec.item()
