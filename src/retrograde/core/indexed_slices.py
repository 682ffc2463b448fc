"""IndexedSlices: a gradient that is zero except for some rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from retrograde.core import required
from retrograde.core.tensor import Tensor
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.composites import CompositeTensor
from retrograde.values.conversion import as_array
from retrograde.values.dtypes import DType
from retrograde.values.holder import Holder
from retrograde.values.shapes import TensorShape
from retrograde.values.specs import TypeSpec
from retrograde.values.thresholds import LARGE_ARRAY_SIZE


def _is_array(value: Any) -> bool:
    like_one = hasattr(value, "ndim") and hasattr(value, "dtype")  # a memoryview has no dtype
    return like_one and not isinstance(value, (CompositeTensor, type))


def _read(value: Any) -> Any:
    """Returns the current value of a variable, or `value` itself."""
    return value._read() if isinstance(value, Holder) else value


class IndexedSlices(CompositeTensor):
    """Rows `values` at `indices` of a tensor that is zero elsewhere; repeated rows add up.

    The gradient of `tf.gather` has this form, so that an optimizer updates only the rows that were
    read.

    >>> table = tf.Variable([[1.0], [2.0], [3.0]])
    >>> with tf.GradientTape() as tape:
    ...     y = tf.gather(table, [2, 2])
    >>> g = tape.gradient(y, table)
    >>> g.indices.numpy(), tf.convert_to_tensor(g).numpy().ravel()
    (array([2, 2], dtype=int32), array([0., 0., 2.], dtype=float32))
    """

    __slots__ = ("_dense_shape", "_indices", "_listed", "_values")

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        # Tapes pass arrays, which stay as they are. Lists become tensors, and are also kept: they
        # still take the dtype of the variable that they are assigned to.
        if _is_array(values):
            self._listed, self._values = None, _read(values)
        else:
            self._listed, self._values = values, Tensor(as_array(values))
        self._indices = _read(indices) if _is_array(indices) else Tensor(as_array(indices))
        listed = type(dense_shape) is list
        self._dense_shape = Tensor(as_array(dense_shape)) if listed else dense_shape

    @property
    def values(self) -> Tensor:
        """The rows."""
        return self._values

    @property
    def indices(self) -> Tensor:
        """The indices of the rows."""
        return self._indices

    @property
    def dense_shape(self) -> Tensor | None:
        """The dense shape, or `None` if it is unknown."""
        return self._dense_shape

    @property
    def shape(self) -> TensorShape:
        """The dense shape, which is unknown if it was not given."""
        if self._dense_shape is None:
            return TensorShape(None)
        return TensorShape(getattr(self._dense_shape, "_array", self._dense_shape))

    @property
    def dtype(self) -> DType:
        """The dtype of the rows."""
        return self._values.dtype

    @property
    def device(self) -> str:
        """The device of the rows."""
        return self._values.device

    def _components(self) -> tuple[Tensor, ...]:
        parts: tuple = (self._values, self._indices, self._dense_shape)
        parts = parts if self._dense_shape is not None else parts[:2]
        return tuple([Tensor(x) if isinstance(x, (np.ndarray, np.generic)) else x for x in parts])

    def _with_components(self, components: Iterator[Any]) -> IndexedSlices:
        return IndexedSlices(*(next(components) for _ in self._components()))

    @property
    def _followed(self) -> Tensor:
        return self._values

    @property
    def _type_spec(self) -> IndexedSlicesSpec:
        kind = None if self._dense_shape is None else self._dense_shape.dtype
        indices = self._indices
        return IndexedSlicesSpec(self.shape, self.dtype, indices.dtype, kind, indices.shape)

    def __neg__(self) -> IndexedSlices:
        return IndexedSlices(-self._values, self._indices, self._dense_shape)

    def __repr__(self) -> str:
        shape = "" if self._dense_shape is None else f", dense_shape={self._dense_shape!s}"
        return f"IndexedSlices(indices={self._indices!s}, values={self._values!s}{shape})"


class IndexedSlicesSpec(TypeSpec):
    """The type of `IndexedSlices`: the dense shape, and the dtypes of the components."""

    __slots__ = ("_parts",)

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        indices_dtype: Any = dtypes.int64,
        dense_shape_dtype: Any = None,
        indices_shape: Any = None,
    ) -> None:
        optional = None if dense_shape_dtype is None else dtypes.as_dtype(dense_shape_dtype)
        rows = TensorShape([None] if indices_shape is None else indices_shape).with_rank(1)
        kinds = dtypes.as_dtype(dtype), dtypes.as_dtype(indices_dtype)
        self._parts = (TensorShape(shape), *kinds, optional, rows)

    @property
    def value_type(self) -> type:
        """`tf.IndexedSlices`."""
        return IndexedSlices

    def _serialize(self) -> tuple:
        return self._parts


# In a backward pass, IndexedSlices may hold raw arrays.


def dense(slices: IndexedSlices) -> Any:
    """Returns the dense tensor or array: the sum of repeated rows, and zeros elsewhere."""
    shape = _dense_shape(slices)
    return required.scatter_add(slices._values, slices._indices, shape=shape)


def _dense_shape(slices: IndexedSlices) -> tuple[int, ...]:
    if slices._dense_shape is None:
        raise ValueError(
            f"Tensor conversion requested for IndexedSlices without dense_shape: {shown(slices)}. "
            "Pass dense_shape when you create them."
        )
    shape = np.asarray(getattr(slices._dense_shape, "_array", slices._dense_shape))
    if shape.ndim != 1 or shape.dtype.kind not in "iu":
        raise ValueError(
            "IndexedSlices: dense_shape must be a vector of integers. Received: "
            f"{shape.tolist()!r}."
        )
    return tuple(shape.tolist())


def scatter_rows(rows: Any, slices: IndexedSlices) -> Any:
    """Scatters `rows`, one for each row of `slices`, into a dense array."""
    shape = (_dense_shape(slices)[0], *rows.shape[1:])
    return required.scatter_add(rows, slices._indices, shape=shape)


def as_dense(x: Any) -> Any:
    """Returns `x`, converted to a dense tensor if it is IndexedSlices."""
    return dense(x) if isinstance(x, IndexedSlices) else x


def add(a: Any, b: Any) -> Any:
    """Returns the sum of two cotangents. The sum of two IndexedSlices has the rows of both."""
    if isinstance(a, IndexedSlices) and isinstance(b, IndexedSlices):
        concat = required.concat
        indices = concat(*_unify_dtypes(a._indices, b._indices), axis=0)
        return IndexedSlices(concat(a._values, b._values, axis=0), indices, a._dense_shape)
    a, b = as_dense(a), as_dense(b)
    if type(a) is np.ndarray and a.size >= LARGE_ARRAY_SIZE:
        return required.add.on_many(a, b)
    return a + b


def _unify_dtypes(*indices: Any) -> list:
    """Returns `indices` with one dtype: int64 if they differ."""
    if len({getattr(x, "_array", x).dtype for x in indices}) == 1:
        return list(indices)
    return [required.cast_discrete(x, dtype=np.dtype(np.int64)) for x in indices]


def with_tensors(slices: IndexedSlices) -> IndexedSlices:
    """Returns `slices` with tensors instead of arrays as components."""
    parts = (slices._values, slices._indices, slices._dense_shape)
    values, indices, shape = (p if isinstance(p, Tensor) else Tensor(np.asarray(p)) for p in parts)
    return IndexedSlices(values, indices, Tensor(shape._array.astype(np.int32)))
