"""RaggedTensor: a tensor whose rows may have different lengths."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.core.recorders import symbolic_name
from retrograde.core.tensor import Tensor
from retrograde.ops import indexing
from retrograde.ops.arguments import integer, integer_array
from retrograde.ops.conversion import as_tensor, numeric_dtype
from retrograde.ops.shaping import broadcast_to, reshape
from retrograde.ragged import partition as pt
from retrograde.ragged.partition import RowPartition, split_dtype
from retrograde.sparse.tensor import SparseTensor
from retrograde.values import dtypes
from retrograde.values.arguments import as_text, shown
from retrograde.values.composites import CompositeTensor
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.dtypes import DType
from retrograde.values.errors import invalid, to_list
from retrograde.values.shapes import TensorShape, normalize_axis


class RaggedTensor(CompositeTensor):
    """A tensor whose rows may have different lengths.

    Create it with `tf.ragged.constant` or a `from_` method. `values` holds the rows concatenated;
    with several ragged axes, it is a RaggedTensor. `row_splits` has the start of each row.
    `flat_values` is the innermost dense tensor. Gradients flow to it, and the gradient of a ragged
    source is ragged.

    >>> x = tf.ragged.constant([[1.0, 2.0], [], [3.0]])
    >>> x.shape, x.row_lengths().numpy(), (x * 2.0).to_list()
    (TensorShape([3, None]), array([2, 0, 1]), [[2.0, 4.0], [], [6.0]])
    """

    __slots__ = ("_partition", "_values")

    _in_lists = frozenset(("add_n", "concat", "stack", "map_fn", "gather", "embedding_lookup"))

    __array_priority__ = 100
    __hash__ = None

    _takes_gradients = True
    _instead = "Make it dense with its method to_tensor() first."

    def __init__(self, values: Any, row_partition: RowPartition, internal: bool = False) -> None:
        if not internal:
            raise ValueError(
                "Create RaggedTensors with methods such as RaggedTensor.from_row_lengths or with "
                "tf.ragged.constant, not with this constructor."
            )
        if isinstance(values, RaggedTensor) and values._partition.dtype != row_partition.dtype:
            row_partition = row_partition.with_dtype(np.dtype(np.int64))
            values = values.with_row_splits_dtype(dtypes.int64)
        self._values = values
        self._partition = row_partition

    # Construction

    @classmethod
    def from_row_splits(
        cls, values: Any, row_splits: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Creates rows that start at `row_splits`.

        >>> tf.RaggedTensor.from_row_splits([1, 2, 3], [0, 2, 2, 3])
        <tf.RaggedTensor [[1, 2], [], [3]]>
        """
        values = _values(values)
        return cls(values, pt.from_row_splits(row_splits, _count(values), validate), internal=True)

    @classmethod
    def from_row_lengths(
        cls, values: Any, row_lengths: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Creates rows of `row_lengths`."""
        values = _values(values)
        rows = pt.from_row_lengths(row_lengths, _count(values), validate)
        return cls(values, rows, internal=True)

    @classmethod
    def from_row_limits(
        cls, values: Any, row_limits: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Creates rows that end at `row_limits`."""
        values = _values(values)
        return cls(values, pt.from_row_limits(row_limits, _count(values), validate), internal=True)

    @classmethod
    def from_row_starts(
        cls, values: Any, row_starts: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Creates rows that start at `row_starts`."""
        values = _values(values)
        return cls(values, pt.from_row_starts(row_starts, _count(values), validate), internal=True)

    @classmethod
    def from_value_rowids(
        cls,
        values: Any,
        value_rowids: Any,
        nrows: Any = None,
        name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:
        """Creates rows from the row of each value."""
        values = _values(values)
        rows = pt.from_value_rowids(value_rowids, nrows, _count(values), validate)
        return cls(values, rows, internal=True)

    @classmethod
    def from_uniform_row_length(
        cls,
        values: Any,
        uniform_row_length: Any,
        nrows: Any = None,
        validate: bool = True,
        name: str | None = None,
    ) -> RaggedTensor:
        """Creates rows of equal length."""
        values = _values(values)
        length = integer(uniform_row_length, "uniform_row_length")
        count = None if nrows is None else integer(nrows, "nrows")
        tensor = tensor_or_variable(uniform_row_length)
        dtype = np.dtype(np.int64) if tensor is None else split_dtype(tensor.dtype)
        if isinstance(values, RaggedTensor):
            dtype = values._partition.dtype
        return cls(
            values, RowPartition.uniform(length, _count(values), count, dtype), internal=True
        )

    @classmethod
    def from_nested_row_splits(
        cls,
        flat_values: Any,
        nested_row_splits: Sequence[Any],
        name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:
        """Creates several ragged axes from their row splits, the outermost first."""
        return _nest(flat_values, nested_row_splits, cls.from_row_splits, validate)

    @classmethod
    def from_nested_row_lengths(
        cls,
        flat_values: Any,
        nested_row_lengths: Sequence[Any],
        name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:
        """Creates several ragged axes from their row lengths, the outermost first."""
        return _nest(flat_values, nested_row_lengths, cls.from_row_lengths, validate)

    @classmethod
    def from_nested_value_rowids(
        cls,
        flat_values: Any,
        nested_value_rowids: Sequence[Any],
        nested_nrows: Sequence[Any] | None = None,
        name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:
        """Creates several ragged axes from the rows of their values, the outermost first."""
        inner = to_list("from_nested_value_rowids", nested_value_rowids)[::-1]
        counts = nested_nrows or [None] * len(inner)
        values = flat_values
        for rowids, count in zip(inner, reversed(counts), strict=True):
            values = cls.from_value_rowids(values, rowids, count, validate=validate)
        return values

    @classmethod
    def from_tensor(
        cls,
        tensor: Any,
        lengths: Any = None,
        padding: Any = None,
        ragged_rank: int = 1,
        name: str | None = None,
        row_splits_dtype: Any = dtypes.int64,
    ) -> RaggedTensor:
        """Converts a dense tensor, with rows cut to `lengths` or before trailing `padding`.

        >>> tf.RaggedTensor.from_tensor([[1, 2, 0], [3, 0, 0]], padding=0)
        <tf.RaggedTensor [[1, 2], [3]]>
        """
        x, dtype = as_tensor(tensor), split_dtype(row_splits_dtype)
        if x.ndim < 2 or not 0 < ragged_rank < x.ndim:
            raise ValueError(
                f"from_tensor: a tensor of {x.ndim} axes cannot have {as_text(ragged_rank)} ragged "
                "axes. Expected 0 < ragged_rank < the number of axes."
            )
        if lengths is not None and padding is not None:
            raise ValueError("from_tensor: lengths and padding cannot be combined. Pass only one.")
        rows = x.shape[:ragged_rank].num_elements()
        flat = reshape(x, shape=(rows * x.shape[ragged_rank], *x.shape[ragged_rank + 1 :]))
        if lengths is None and padding is None:
            values: Any = flat
            for axis in reversed(range(ragged_rank)):
                count = x.shape[: axis + 1].num_elements()
                part = RowPartition.uniform(x.shape[axis + 1], _count(values), count, dtype)
                values = cls(values, part, internal=True)
            return values
        if ragged_rank != 1:
            raise ValueError(
                "from_tensor: lengths and padding require a single ragged axis. Received: "
                f"ragged_rank={as_text(ragged_rank)}."
            )
        size = x.shape[1]
        kept = (
            _unpadded_lengths(x, padding) if lengths is None else integer_array(lengths, "lengths")
        )
        if kept.shape != x.shape[:1]:
            raise invalid(
                f"from_tensor: expected one length for each of {x.shape[0]} rows. Received: shape "
                f"{kept.shape}."
            )
        kept = np.clip(kept, 0, size)
        positions = np.flatnonzero(np.arange(size) < kept[:, None])
        values = indexing.gather(flat, Tensor(positions), axis=0)
        return cls(values, RowPartition.from_lengths(kept, dtype), internal=True)

    @classmethod
    def from_sparse(
        cls, st_input: SparseTensor, name: str | None = None, row_splits_dtype: Any = dtypes.int64
    ) -> RaggedTensor:
        """Converts a sparse matrix whose values are at the start of each row, without gaps."""
        if not isinstance(st_input, SparseTensor):
            raise TypeError(f"from_sparse: expected a SparseTensor. Received: {shown(st_input)}.")
        shape = st_input.shape
        if shape.rank != 2:
            raise ValueError(f"from_sparse: expected 2 axes. Received: shape {shape}.")
        rows, columns = np.asarray(st_input.indices).T
        lengths = np.bincount(rows, minlength=shape[0])
        part = RowPartition.from_lengths(lengths, split_dtype(row_splits_dtype))
        if not (np.array_equal(part.rowids, rows) and np.array_equal(part.positions, columns)):
            raise invalid(
                "from_sparse: the values of each row must be sorted and at its start, without gaps."
            )
        return cls(st_input.values, part, internal=True)

    # Attributes

    @property
    def values(self) -> Any:
        """The concatenated rows: a tensor, or a RaggedTensor if there are more ragged axes."""
        return self._values

    @property
    def flat_values(self) -> Tensor:
        """The tensor that holds all elements."""
        return self._values.flat_values if isinstance(self._values, RaggedTensor) else self._values

    @property
    def row_splits(self) -> Tensor:
        """The start of each row, and the end of the last one."""
        return self._partition.row_splits

    @property
    def _partitions(self) -> tuple[RowPartition, ...]:
        inner = self._values._partitions if isinstance(self._values, RaggedTensor) else ()
        return self._partition, *inner

    @property
    def nested_row_splits(self) -> tuple[Tensor, ...]:
        """The row splits of all ragged axes, the outermost first."""
        return tuple(part.row_splits for part in self._partitions)

    @property
    def ragged_rank(self) -> int:
        """The number of ragged axes."""
        return len(self._partitions)

    @property
    def uniform_row_length(self) -> Tensor | None:
        """The length of all rows if it is uniform by construction, otherwise `None`."""
        length = self._partition.uniform_row_length
        return None if length is None else Tensor(self._partition.dtype.type(length))

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self.flat_values.dtype

    @property
    def shape(self) -> TensorShape:
        """The shape, with `None` for ragged axes."""
        sizes = [part.uniform_row_length for part in self._partitions]
        return TensorShape([self._partition.nrows, *sizes, *self.flat_values.shape[1:]])

    def get_shape(self) -> TensorShape:
        """Returns the shape."""
        return self.shape

    def nrows(self, out_type: Any = None, name: str | None = None) -> Tensor:
        """Returns the number of rows."""
        return Tensor(
            numeric_dtype(out_type, self._partition.dtype, "nrows").type(self._partition.nrows)
        )

    def row_lengths(self, axis: Any = 1, name: str | None = None) -> Any:
        """Returns the lengths of rows along `axis`."""
        axis = normalize_axis(axis, self.shape.rank, "row_lengths", ValueError)
        if axis == 0:
            return self.nrows()
        if axis == 1:
            return Tensor(self._partition.lengths)
        if isinstance(self._values, RaggedTensor):
            return self.with_values(self._values.row_lengths(axis - 1))
        lengths = np.full(self._values.shape[: axis - 1], self._values.shape[axis - 1])
        return self.with_values(Tensor(lengths.astype(self._partition.dtype)))

    def row_starts(self, name: str | None = None) -> Tensor:
        """Returns the start of each row in `values`."""
        return Tensor(self._partition.starts)

    def row_limits(self, name: str | None = None) -> Tensor:
        """Returns the end of each row in `values`."""
        return Tensor(self._partition.limits)

    def value_rowids(self, name: str | None = None) -> Tensor:
        """Returns the row of each value."""
        return Tensor(self._partition.rowids)

    def nested_row_lengths(self, name: str | None = None) -> tuple[Tensor, ...]:
        """Returns the row lengths of all ragged axes, the outermost first."""
        return tuple(Tensor(part.lengths) for part in self._partitions)

    def nested_value_rowids(self, name: str | None = None) -> tuple[Tensor, ...]:
        """Returns the rows of the values of all ragged axes, the outermost first."""
        return tuple(Tensor(part.rowids) for part in self._partitions)

    def bounding_shape(
        self, axis: Any = None, name: str | None = None, out_type: Any = None
    ) -> Tensor:
        """Returns the smallest dense shape that holds all rows.

        >>> tf.ragged.constant([[1, 2], [], [3]]).bounding_shape().numpy()
        array([3, 2])
        """
        sizes = [self._partition.nrows]
        sizes += [int(part.lengths.max(initial=0)) for part in self._partitions]
        sizes += self.flat_values.shape[1:]
        shape = np.array(sizes, numeric_dtype(out_type, self._partition.dtype, "bounding_shape"))
        if axis is None:
            return Tensor(shape)
        axes = integer_array(axis, "axis")
        if axes.size and not (-len(shape) <= axes.min() and axes.max() < len(shape)):
            raise invalid(
                f"bounding_shape: axis {shown(axis)} is out of range. Expected at least "
                f"{-len(shape)} and less than {len(shape)}."
            )
        return Tensor(shape[axes])

    # Modified copies

    def with_values(self, new_values: Any) -> RaggedTensor:
        """Returns a RaggedTensor with the same rows and `new_values` as `values`."""
        values = _values(new_values)
        _check_count(self._values, values)
        return RaggedTensor(values, self._partition, internal=True)

    def with_flat_values(self, new_values: Any) -> RaggedTensor:
        """Returns a RaggedTensor with the same rows and `new_values` as `flat_values`."""
        if isinstance(self._values, RaggedTensor):
            return self.with_values(self._values.with_flat_values(new_values))
        return self.with_values(new_values)

    def with_row_splits_dtype(self, dtype: Any) -> RaggedTensor:
        """Returns a RaggedTensor with row splits of int32 or int64."""
        kind = split_dtype(dtype)
        values = self._values
        if isinstance(values, RaggedTensor):
            values = values.with_row_splits_dtype(dtype)
        return RaggedTensor(values, self._partition.with_dtype(kind), internal=True)

    def merge_dims(self, outer_axis: Any, inner_axis: Any) -> Any:
        """Merges the axes from `outer_axis` to `inner_axis` into one.

        >>> x = tf.ragged.constant([[[1], [2, 3]], [[4]]])
        >>> x.merge_dims(1, 2).to_list(), x.merge_dims(0, 1).to_list()
        ([[1, 2, 3], [4]], [[1], [2, 3], [4]])
        """
        outer, inner = (
            normalize_axis(integer(a, "merge_dims"), self.shape.rank, "merge_dims", ValueError)
            for a in (outer_axis, inner_axis)
        )
        if outer > inner:
            raise ValueError(
                f"merge_dims: expected outer_axis <= inner_axis. Received: {outer} and {inner}."
            )
        return _merge(self, outer, inner)

    # Conversion

    def _coordinates(self) -> np.ndarray:
        """Returns the index of each flat value along the first axis and the ragged axes."""
        indices = np.arange(self._partition.nrows)[:, None]
        for part in self._partitions:
            if part.splits[0] or part.nrows != len(indices):  # unchecked with validate=False
                raise invalid(
                    "The row splits must start at 0 and match the number of values. "
                    f"Received: {part.splits.tolist()}."
                )
            indices = np.concatenate([indices[part.rowids], part.positions[:, None]], 1)
        if len(indices) != self.flat_values.shape[0]:
            raise invalid(
                f"The row splits end at {len(indices)}, but there are "
                f"{self.flat_values.shape[0]} values."
            )
        return indices

    def to_tensor(
        self, default_value: Any = None, name: str | None = None, shape: Any = None
    ) -> Tensor:
        """Converts to a dense tensor, padding rows with `default_value` (by default zero).

        Rows are padded or truncated to the sizes in `shape`; `None` uses the longest row.

        >>> tf.ragged.constant([[1, 2], [], [3]]).to_tensor().numpy()
        array([[1, 2],
               [0, 0],
               [3, 0]], dtype=int32)
        """
        flat, coordinates = self.flat_values, self._coordinates()
        sizes = np.asarray(self.bounding_shape()).tolist()
        outer = coordinates.shape[1]
        if shape is not None:
            fixed = TensorShape(shape).with_rank(len(sizes)).as_list()
            sizes = [n if f is None else f for n, f in zip(sizes, fixed, strict=True)]
            inside = np.flatnonzero((coordinates < np.array(sizes[:outer])).all(1))
            if len(inside) < len(coordinates):
                flat = indexing.gather(flat, Tensor(inside), axis=0)
                coordinates = coordinates[inside]
        if tuple(sizes[outer:]) != tuple(flat.shape[1:]):
            raise ValueError(
                f"to_tensor: the axes after the ragged ones have the shape "
                f"{tuple(flat.shape[1:])}. Received: shape={as_text(shape)}."
            )
        kind = flat._spec.dtype
        empty = b"" if kind.kind == "O" else kind.type(0)
        default = as_tensor(empty if default_value is None else default_value, kind)
        padding = broadcast_to(default, shape=tuple(sizes))
        return indexing.put_nd(padding, flat, Tensor(coordinates), batch_dims=0)

    def to_sparse(self, name: str | None = None) -> SparseTensor:
        """Converts to a SparseTensor."""
        flat, coordinates = self.flat_values, self._coordinates()
        if flat.ndim > 1:
            inner = np.indices(flat.shape[1:]).reshape(flat.ndim - 1, -1).T
            count = len(inner)
            inner = np.tile(inner, (len(coordinates), 1))
            coordinates = np.concatenate([np.repeat(coordinates, count, 0), inner], 1)
            flat = reshape(flat, shape=(flat.shape.num_elements(),))
        shape = self.bounding_shape(out_type=dtypes.int64)
        return SparseTensor(Tensor(coordinates.astype(np.int64)), flat, shape)

    def to_list(self) -> list:
        """Converts to nested Python lists."""
        if isinstance(self._values, RaggedTensor):
            rows = self._values.to_list()
        else:
            rows = np.asarray(self._values).tolist()
        splits = self._partition.splits.tolist()
        return [rows[a:b] for a, b in itertools.pairwise(splits)]

    def numpy(self) -> np.ndarray:
        """Converts to an array of arrays, or to one array if all rows have the same length."""
        values = self._values.numpy()
        rows = np.split(values, self._partition.splits[1:-1]) if self._partition.nrows else []
        if not rows:
            return np.zeros(0, values.dtype)
        if len({row.shape for row in rows}) == 1:
            return np.array(rows)
        array = np.empty(len(rows), object)
        array[:] = rows
        return array

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(self._partition.nrows))

    def __bool__(self) -> bool:
        raise TypeError(
            "A RaggedTensor cannot be converted to bool: use tf.reduce_any or tf.reduce_all."
        )

    def __repr__(self) -> str:
        if any(symbolic_name(part) is not None for part in self._components()):
            return f"tf.RaggedTensor(values={self.values}, row_splits={self.row_splits})"
        return f"<tf.RaggedTensor {_format(self)}>"

    # The interface of CompositeTensor

    def _components(self) -> tuple[Tensor, ...]:
        return self.flat_values, *self.nested_row_splits

    def _with_components(self, components: Iterator[Any]) -> RaggedTensor:
        flat = next(components)
        splits = [next(components) for _ in self._partitions]
        lengths = [part.uniform_row_length for part in self._partitions]
        for part, length in zip(reversed(splits), reversed(lengths), strict=True):
            flat = RaggedTensor(flat, RowPartition(as_tensor(part), length), internal=True)
        return flat

    @property
    def _followed(self) -> Tensor:
        return self.flat_values

    def _with_gradient(self, g: Any) -> RaggedTensor:
        return self.with_flat_values(g)

    def _handler(self, operation: Any) -> Callable | None:
        if isinstance(operation, Primitive):
            kind = "elementwise" if operation.partials is not None else operation.name
            return functools.partial(HANDLERS[kind], operation) if kind in HANDLERS else None
        handler = HANDLERS.get(operation.__name__)
        return handler and functools.partial(handler, operation)


# Implementations for ragged tensors, `handler(operation, *args, **kwargs)`, by the name of the
# public function or primitive, or "elementwise" for elementwise primitives.
HANDLERS: dict[str, Callable] = {}


def _values(value: Any) -> Any:
    if isinstance(value, RaggedTensor):
        return value
    values = as_tensor(value)
    if not values.ndim:
        raise ValueError("The values of a RaggedTensor need at least one axis. Received: a scalar.")
    return values


def _count(values: Any) -> int:
    return values._partition.nrows if isinstance(values, RaggedTensor) else values.shape[0]


def _check_count(before: Any, after: Any) -> None:
    if _count(before) != _count(after):
        raise ValueError(
            f"The values of this RaggedTensor have {_count(before)} rows. Received: "
            f"{_count(after)} rows."
        )


def _nest(flat_values: Any, parts: Sequence[Any], make: Callable, validate: bool) -> Any:
    if isinstance(parts, Tensor):
        raise TypeError("Expected a list of tensors, one for each ragged axis. Received: a tensor.")
    values = flat_values
    for part in reversed(parts):
        values = make(values, part, validate=validate)
    return values


def _unpadded_lengths(x: Tensor, padding: Any) -> np.ndarray:
    """Returns the number of elements of each row before its trailing padding."""
    filled = np.asarray(x) != np.asarray(as_tensor(padding, x._spec.dtype))
    filled = filled.any(tuple(range(2, filled.ndim)))
    return np.where(filled, np.arange(1, filled.shape[1] + 1), 0).max(1, initial=0)


def _merge(x: Any, outer: int, inner: int) -> Any:
    if outer == inner:
        return x
    if not isinstance(x, RaggedTensor):
        shape = tuple(x.shape)
        size = int(np.prod(shape[outer : inner + 1]))
        return reshape(x, shape=(*shape[:outer], size, *shape[inner + 1 :]))
    if outer == 0:
        return _merge(x.values, 0, inner - 1)
    if outer > 1:
        return x.with_values(_merge(x.values, outer - 1, inner - 1))
    values, splits = x.values, x._partition.splits
    if isinstance(values, RaggedTensor):  # nested rows: split where the inner rows are split
        part = RowPartition(Tensor(values._partition.splits[splits]))
        return _merge(RaggedTensor(values.values, part, internal=True), 1, inner - 1)
    size = values.shape[1]
    flat = reshape(values, shape=(values.shape[0] * size, *values.shape[2:]))
    part = RowPartition(Tensor(splits * size))
    return _merge(RaggedTensor(flat, part, internal=True), 1, inner - 1)


_SUMMARY_THRESHOLD = 1000  # above this number of elements, only the ends are shown, as in NumPy


def _format(x: RaggedTensor) -> str:
    rows = range(x._partition.nrows)
    shown: list[Any] = list(rows)
    if x.flat_values._spec.size > _SUMMARY_THRESHOLD and len(rows) > 6:
        shown = [*rows[:3], None, *rows[-3:]]
    return f"[{', '.join('...' if i is None else _format_row(x[i]) for i in shown)}]"


def _format_row(x: Any) -> str:
    if isinstance(x, RaggedTensor):
        return _format(x)
    lines = np.array2string(np.asarray(x), separator=", ", formatter=_FORMATTER).split("\n")
    return " ".join(map(str.strip, lines))


_FORMATTER = {"all": lambda value: repr(value) if isinstance(value, bytes) else str(value)}
