"""Checks the elements of `from_generator` against its signature."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from retrograde.core.tensor import Tensor, wrap
from retrograde.data._elements import map_specs
from retrograde.ops.conversion import as_tensor
from retrograde.values import nest
from retrograde.values.arguments import shown
from retrograde.values.errors import invalid
from retrograde.values.shapes import TensorShape
from retrograde.values.specs import TensorSpec, TypeSpec


def resolve_signature(types: Any, shapes: Any, output_signature: Any) -> Any:
    """Returns the spec from `output_signature`, or from `output_types` and `output_shapes`."""
    if output_signature is not None:
        for argument, value in (("output_types", types), ("output_shapes", shapes)):
            if value is not None:
                raise TypeError(
                    f"The `{argument}` argument can not be used together with the "
                    "`output_signature` argument."
                )
        if isinstance(output_signature, list):
            raise _not_a_spec(output_signature)
        for leaf in nest.flatten(output_signature):
            if not isinstance(leaf, TypeSpec):
                raise _not_a_spec(leaf)
        return output_signature
    if types is None:
        raise TypeError(
            "To specify the output signature you need to provide either the `output_signature` "
            "argument or the `output_types` argument."
        )
    flat, pack = nest.flatten_with_pack(types)
    if shapes is None:
        return pack([TensorSpec(None, dtype) for dtype in flat])
    sizes = _shapes_like(types, shapes)
    return pack([TensorSpec(TensorShape(s), d) for s, d in zip(sizes, flat, strict=True)])


def _shapes_like(types: Any, shapes: Any) -> list:
    """Returns the shape of each leaf of `types`. A shape may be a list."""
    if not nest.is_nested(types):
        return [shapes]
    pairs = zip(nest.children(types), nest.children(shapes), strict=True)
    return [shape for part, inner in pairs for shape in _shapes_like(part, inner)]


def _not_a_spec(value: Any) -> TypeError:
    return TypeError(
        "`output_signature` must contain objects that are subclass of `tf.TypeSpec` but found "
        f"{type(value)} which is not."
    )


def check_elements(values: Iterable, spec: Any) -> Iterator:
    """Converts the values of a generator to elements of this spec."""
    return map(lambda value: _element(value, spec), values)  # continues after an error


def _element(value: Any, spec: Any) -> Any:
    if isinstance(spec, TypeSpec):
        return _leaf(value, spec)
    parts, part_specs = _parts(value, spec), nest.children(spec)
    if parts is None:
        raise invalid(
            "`generator` yielded an element that did not match the expected structure. The "
            f"expected structure was {map_specs(_dtype_name, spec)}, but the yielded element was "
            f"{shown(value)}."
        )
    elements = [_element(part, inner) for part, inner in zip(parts, part_specs, strict=True)]
    if hasattr(spec, "_fields"):
        return type(spec)(*elements)
    return (
        dict(zip(sorted(spec), elements, strict=True))
        if isinstance(spec, dict)
        else tuple(elements)
    )


def _dtype_name(spec: TypeSpec) -> str:
    return getattr(spec, "dtype", spec)


def _parts(value: Any, spec: Any) -> list | None:
    if isinstance(spec, dict):
        matches = isinstance(value, dict) and set(value) == set(spec)
        return [value[key] for key in sorted(spec)] if matches else None
    matches = isinstance(value, (tuple, list)) and len(value) == len(spec)
    return list(value) if matches else None


def _leaf(value: Any, spec: TypeSpec) -> Any:
    if not isinstance(spec, TensorSpec):
        if not spec.is_compatible_with(value):
            raise invalid(f"`generator` yielded {shown(value)} where {spec} was expected.")
        return value
    try:
        tensor = as_tensor(value, spec.dtype.numpy_dtype)
    except (TypeError, ValueError):
        raise invalid(
            "`generator` yielded an element that could not be converted to the expected type. The "
            f"expected type was {spec.dtype.name}, but the yielded element was {shown(value)}."
        ) from None
    if not spec.shape.is_compatible_with(tensor.shape):
        raise invalid(
            f"`generator` yielded an element of shape {tensor.shape} where an element of shape "
            f"{spec.shape} was expected."
        )
    return tensor if type(value) is Tensor else wrap(tensor._array)
