"""RaggedTensorSpec: shape, dtype and ragged rank of a RaggedTensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ragged.partition import split_dtype
from retrograde.ragged.tensor import RaggedTensor
from retrograde.values import dtypes
from retrograde.values.arguments import expect
from retrograde.values.dtypes import DType
from retrograde.values.shapes import TensorShape
from retrograde.values.specs import TypeSpec


class RaggedTensorSpec(TypeSpec):
    """The (possibly partial) shape, the dtype and the number of ragged axes of a RaggedTensor.

    >>> spec = tf.RaggedTensorSpec([None, None], tf.int32)
    >>> spec.is_compatible_with(tf.ragged.constant([[1, 2], [3]]))
    True
    """

    __slots__ = ("_dtype", "_flat_values_spec", "_ragged_rank", "_row_splits_dtype", "_shape")

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        ragged_rank: int | None = None,
        row_splits_dtype: Any = dtypes.int64,
        flat_values_spec: TypeSpec | None = None,
    ) -> None:
        self._shape = TensorShape(shape)
        if flat_values_spec is not None:
            dtype = expect(flat_values_spec, TypeSpec, "RaggedTensorSpec", "a tf.TypeSpec").dtype
        self._dtype = dtypes.as_dtype(dtype)
        self._row_splits_dtype = dtypes.of(split_dtype(row_splits_dtype))
        rank = self._shape.rank
        if ragged_rank is None:
            if rank is None:
                raise ValueError(
                    "RaggedTensorSpec: ragged_rank is required if the rank of the shape is unknown."
                )
            ragged_rank = rank - 1
        elif rank is not None and ragged_rank >= rank:
            raise ValueError(
                f"RaggedTensorSpec: ragged_rank {ragged_rank} must be less than the rank {rank}."
            )
        self._ragged_rank = ragged_rank
        self._flat_values_spec = flat_values_spec

    @classmethod
    def from_value(cls, value: RaggedTensor) -> RaggedTensorSpec:
        """Returns the spec of `value`."""
        return expect(value, RaggedTensor, "from_value", "a tf.RaggedTensor")._type_spec

    @property
    def shape(self) -> TensorShape:
        """The shape, with `None` for unknown dimensions."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self._dtype

    @property
    def ragged_rank(self) -> int:
        """The number of ragged axes."""
        return self._ragged_rank

    @property
    def row_splits_dtype(self) -> DType:
        """int32 or int64."""
        return self._row_splits_dtype

    @property
    def flat_values_spec(self) -> TypeSpec | None:
        """The spec of the flat values, if it was passed to the constructor."""
        return self._flat_values_spec

    @property
    def value_type(self) -> type:
        """`tf.RaggedTensor`."""
        return RaggedTensor

    def _dummy(self) -> Any:
        """Returns a value of this spec, to trace a function."""
        rank = self._ragged_rank + 1 if self._shape.rank is None else self._shape.rank
        sizes = [None] * rank if self._shape.rank is None else self._shape.as_list()
        shape = [2 if n is None else n for n in sizes]
        value = b"" if self._dtype.name == "string" else 0
        values = Tensor(np.full(shape, value, self._dtype.numpy_dtype))
        if not self._ragged_rank:
            return values
        return RaggedTensor.from_tensor(
            values, ragged_rank=self._ragged_rank, row_splits_dtype=self._row_splits_dtype
        )

    def _serialize(self) -> tuple:
        parts = (self._shape, self._dtype, self._ragged_rank, self._row_splits_dtype)
        return parts if self._flat_values_spec is None else (*parts, self._flat_values_spec)


def _spec_of(x: RaggedTensor) -> RaggedTensorSpec:
    return RaggedTensorSpec(x.shape, x.dtype, x.ragged_rank, x.row_splits.dtype)


RaggedTensor._type_spec = property(_spec_of)
