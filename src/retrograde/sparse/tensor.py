"""SparseTensor: nonzero elements and their indices."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.core.tensor import Tensor
from retrograde.ops.conversion import as_tensor, numeric_dtype
from retrograde.values import dtypes
from retrograde.values.arguments import expect, shown
from retrograde.values.composites import CompositeTensor, map_instances
from retrograde.values.dtypes import DType
from retrograde.values.shapes import TensorShape
from retrograde.values.specs import TypeSpec

_INT64 = np.dtype(np.int64)


class SparseTensorValue(NamedTuple):
    """The three components of a SparseTensor, as arrays."""

    indices: Any
    values: Any
    dense_shape: Any


class SparseTensor(CompositeTensor):
    """A tensor with `values` at `indices` (one row per value) and zeros elsewhere.

    Gradients flow to `values`, which is an ordinary tensor.

    >>> sparse = tf.SparseTensor([[0, 1], [2, 0]], [5.0, 7.0], [3, 2])
    >>> tf.sparse.to_dense(sparse).numpy()
    array([[0., 5.],
           [0., 0.],
           [7., 0.]], dtype=float32)
    """

    __slots__ = ("_dense_shape", "_indices", "_values")

    __array_priority__ = 100
    _instead = "Make it dense with tf.sparse.to_dense first, or use an operation of tf.sparse."

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        self._indices = as_tensor(indices, _INT64)
        self._values = as_tensor(values)
        self._dense_shape = as_tensor(dense_shape, _INT64)
        count = self._indices.shape.with_rank(2)
        size = self._values.shape.with_rank(1)
        rank = self._dense_shape.shape.with_rank(1)
        _check_equal("indices and values", "number of elements", count[0], size[0])
        _check_equal("indices and dense_shape", "rank", count[1], rank[0])

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> SparseTensor:
        """Converts a `SparseTensorValue`; a SparseTensor is returned unchanged."""
        if isinstance(sparse_tensor_value, SparseTensor):
            return sparse_tensor_value
        parts = [getattr(sparse_tensor_value, name, None) for name in SparseTensorValue._fields]
        if any(part is None for part in parts):
            raise TypeError(
                f"Argument sparse_tensor_value={shown(sparse_tensor_value)} is neither a "
                "SparseTensor nor a SparseTensorValue."
            )
        return cls(*parts)

    @property
    def indices(self) -> Tensor:
        """The indices of the values: an int64 tensor of shape `[number of values, rank]`."""
        return self._indices

    @property
    def values(self) -> Tensor:
        """The values, along one axis."""
        return self._values

    @property
    def dense_shape(self) -> Tensor:
        """The dense shape, as an int64 tensor."""
        return self._dense_shape

    @property
    def shape(self) -> TensorShape:
        """The dense shape. A negative size is an unknown dimension."""
        sizes = np.asarray(self._dense_shape).tolist()
        return TensorShape([None if size < 0 else size for size in sizes])

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return self._values.dtype

    def get_shape(self) -> TensorShape:
        """Returns the dense shape."""
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Raises if the dense shape is not compatible with `shape`."""
        self.shape.assert_is_compatible_with(shape)

    def with_values(self, new_values: Any) -> SparseTensor:
        """Returns a SparseTensor with the same indices and `new_values`."""
        return SparseTensor(self._indices, new_values, self._dense_shape)

    # The interface of CompositeTensor

    def _components(self) -> tuple[Tensor, ...]:
        return self._indices, self._values, self._dense_shape

    def _with_components(self, components: Iterator[Any]) -> SparseTensor:
        return SparseTensor(*(next(components) for _ in range(3)))

    @property
    def _followed(self) -> Tensor:
        return self._values

    @property
    def _type_spec(self) -> SparseTensorSpec:
        return SparseTensorSpec(self.shape, self.dtype)

    def _handler(self, operation: Any) -> Callable | None:
        name = operation.name if isinstance(operation, Primitive) else operation.__name__
        handler = _map_values if name in _ZERO_PRESERVING else HANDLERS.get(name)
        return handler and functools.partial(handler, operation)

    def __repr__(self) -> str:
        return (
            f"SparseTensor(indices={self._indices!s}, values={self._values!s}, "
            f"dense_shape={self._dense_shape!s})"
        )


def _map_values(function: Callable, *args: Any, **kwargs: Any) -> SparseTensor:
    sparse_args = [x for x in (*args, *kwargs.values()) if isinstance(x, SparseTensor)]
    if not sparse_args:
        raise TypeError("Expected a tf.SparseTensor. Received: a list with a SparseTensor.")
    x = sparse_args[0]
    args, kwargs = map_instances(SparseTensor, lambda x: x.values, args, kwargs)
    return x.with_values(function(*args, **kwargs))


# The functions that TensorFlow applies to the values only: zero-preserving ones and bessel_i0e.
_ZERO_PRESERVING = frozenset(
    {
        "abs", "asin", "asinh", "atan", "atanh", "bessel_i0e", "bessel_i1e", "cast", "erf",
        "identity", "negative", "sign", "sin", "sqrt", "square", "stop_gradient", "tan", "tanh",
    }
)  # fmt: skip


def _shape_as(x: SparseTensor, dtype: Any, op_name: str = "shape") -> Tensor:
    return Tensor(np.asarray(x.dense_shape).astype(numeric_dtype(dtype, np.int32, op_name)))


# Implementations of other public functions for SparseTensors: `handler(function, *args, **kwargs)`.
HANDLERS: dict[str, Callable] = {
    "rank": lambda _, input, name=None: Tensor(np.int32(input.shape.rank)),
    "shape": lambda _, input, out_type=None, name=None: _shape_as(input, out_type),
    "size": lambda _, input, out_type=None, name=None: Tensor(
        np.prod(
            _shape_as(input, out_type, "size")._array,
            dtype=numeric_dtype(out_type, np.int32, "size"),
        )
    ),
}


def _check_equal(parts: str, quantity: str, first: int, second: int) -> None:
    if first != second:
        raise ValueError(
            f"Dimensions {first} and {second} are not compatible: {parts} of a SparseTensor must "
            f"have the same {quantity}."
        )


class SparseTensorSpec(TypeSpec):
    """The dtype and the (possibly partial) shape of a SparseTensor.

    >>> spec = tf.SparseTensorSpec([None, 2], tf.float32)
    >>> spec, spec.is_compatible_with(tf.sparse.eye(2))
    (SparseTensorSpec(TensorShape([None, 2]), tf.float32), True)
    """

    __slots__ = ("_dtype", "_shape")

    def __init__(self, shape: Any = None, dtype: Any = dtypes.float32) -> None:
        self._shape = TensorShape(shape)
        self._dtype = dtypes.as_dtype(dtype)

    @classmethod
    def from_value(cls, value: Any) -> SparseTensorSpec:
        """Returns the spec of `value`."""
        expect(value, SparseTensor, "from_value", "a tf.SparseTensor")
        return cls(value.shape, value.dtype)

    @property
    def shape(self) -> TensorShape:
        """The shape, with `None` for unknown dimensions."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return self._dtype

    @property
    def value_type(self) -> type:
        """`tf.SparseTensor`."""
        return SparseTensor

    def _dummy(self) -> SparseTensor:
        """Returns a value of this spec, to trace a function."""
        sizes = [None] if self._shape.rank is None else self._shape.as_list()
        shape = [2 if n is None else n for n in sizes]
        value = np.array([b"" if self._dtype.name == "string" else 0], self._dtype.numpy_dtype)
        count = int(all(shape))  # of the elements
        return SparseTensor(np.zeros([count, len(shape)], np.int64), Tensor(value[:count]), shape)

    def _serialize(self) -> tuple:
        return self._shape, self._dtype
