"""Shapes, ranks, sizes and specs of tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops.arguments import integers
from retrograde.ops.casting import identity
from retrograde.ops.conversion import as_tensor, numeric_dtype, one_dtype
from retrograde.shape_inference.abstract_array import array_of_sizes
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.composites import CompositeTensor, dispatched
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import invalid, to_list
from retrograde.values.shapes import TensorShape, broadcast
from retrograde.values.sizes import has_size
from retrograde.values.specs import TensorSpec, TypeSpec, spec_of


@dispatched
def shape(input: Any, out_type: Any = None, name: Any = None) -> Tensor:
    """Returns the shape as an int32 tensor, or of dtype `out_type`.

    >>> tf.shape([[1, 2, 3]]).numpy()
    array([1, 3], dtype=int32)
    """
    dtype = numeric_dtype(out_type, np.int32, "shape")
    sizes = _shape_of(input)
    return Tensor(array_of_sizes(sizes, dtype) if has_size(sizes) else np.array(sizes, dtype))


def _shape_of(x: Any) -> tuple[int, ...]:
    """Returns the shape of `x`, without reading its value."""
    tensor = tensor_or_variable(x)
    return (as_tensor(x) if tensor is None else tensor)._spec.shape


def shape_n(input: Sequence[Any], out_type: Any = dtypes.int32, name: Any = None) -> list[Tensor]:
    """Returns the shape of each of several tensors."""
    return [shape(x, out_type) for x in to_list("shape_n", input)]


@dispatched
def size(input: Any, out_type: Any = None, name: Any = None) -> Tensor:
    """Returns the number of elements."""
    dtype = numeric_dtype(out_type, np.int32, "size")
    count = math.prod(_shape_of(input))
    return Tensor(array_of_sizes(count, dtype) if has_size(count) else np.asarray(count, dtype)[()])


@dispatched
def rank(input: Any, name: Any = None) -> Tensor:
    """Returns the number of axes."""
    return Tensor(np.int32(len(_shape_of(input))))


def ensure_shape(x: Any, shape: Any, name: Any = None) -> Tensor:
    """Returns `x` after checking that it has `shape`, in which `None` matches any size."""
    tensor = as_tensor(x)
    if not TensorShape(shape).is_compatible_with(tensor.shape):
        raise invalid(
            f"ensure_shape: shape {tensor.shape} of the tensor is not compatible with the expected "
            f"shape {TensorShape(shape)}."
        )
    return identity(tensor)


def broadcast_static_shape(shape_x: TensorShape, shape_y: TensorShape) -> TensorShape:
    """Returns the shape that two shapes broadcast to, as far as it is known.

    >>> tf.broadcast_static_shape(tf.TensorShape([1, 3]), tf.TensorShape([2, 1]))
    TensorShape([2, 3])
    """
    x, y = TensorShape(shape_x), TensorShape(shape_y)
    if x.rank is None or y.rank is None:
        return TensorShape(None)
    ndim = max(x.rank, y.rank)
    pairs = zip(
        [1] * (ndim - x.rank) + x.as_list(), [1] * (ndim - y.rank) + y.as_list(), strict=True
    )
    return TensorShape([_broadcast_dimension(a, b, x, y) for a, b in pairs])


def _broadcast_dimension(
    a: int | None, b: int | None, x: TensorShape, y: TensorShape
) -> int | None:
    if a == b or b == 1:
        return a
    if a == 1 or a is None:
        return b
    if b is None:
        return a
    raise ValueError(
        f"Incompatible shapes for broadcasting: {x} and {y}. Expected each pair of dimensions to "
        "be equal, or one of them 1."
    )


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """Returns the shape that two shapes, given as tensors, broadcast to."""
    dtype = np.result_type(*(s._spec.dtype for s in one_dtype((shape_x, shape_y))))
    shapes = [integers(s, "broadcast_dynamic_shape", ndim=1) for s in (shape_x, shape_y)]
    result = broadcast(*shapes)
    if result is None:
        raise invalid(f"Incompatible shapes: {shapes[0]} vs. {shapes[1]}.")
    return Tensor(np.array(result, dtype if dtype.kind == "i" else np.int32))


def is_tensor(x: Any) -> bool:
    """Returns whether `x` is a Tensor, a Variable, a composite tensor, or represents one of them.

    >>> tf.is_tensor(tf.constant(1)), tf.is_tensor(np.array(1))
    (True, False)
    """
    return tensor_or_variable(x) is not None or (isinstance(x, CompositeTensor) and x._is_tensor)


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """Returns the value as a NumPy array, or `None` for a variable, whose value may change.

    Values that are not tensors stay unchanged.
    """
    x = tensor_or_variable(tensor)
    if x is None:
        return tensor
    return x.numpy() if isinstance(x, Tensor) else None


def type_spec_from_value(value: Any) -> TypeSpec:
    """Returns the spec of `value`.

    >>> tf.type_spec_from_value(tf.ones([2]))
    TensorSpec(shape=(2,), dtype=tf.float32, name=None)
    """
    return spec_of(value) or TensorSpec.from_tensor(_convert(value))


def _convert(value: Any) -> Tensor:
    try:
        return as_tensor(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"Could not build a TypeSpec for {shown(value)} of unsupported type {type(value)}. "
            "Expected a tensor, or a value that converts to one."
        ) from None
