"""The public functions of tf.ragged."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops.arguments import integer, shape_from
from retrograde.ops.conversion import as_tensor, numeric_dtype, numpy_dtype
from retrograde.ops.shaping import reshape
from retrograde.ragged import rows
from retrograde.ragged.operations import align_to_flat_values
from retrograde.ragged.partition import RowPartition, as_int_vector, split_dtype
from retrograde.ragged.tensor import RaggedTensor
from retrograde.sparse.crosses import cross_rows, hash_combiner, string_joiner, values_by_row
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.conversion import MAX_AXES, nesting_error, tensor_or_variable
from retrograde.values.errors import allocate, invalid
from retrograde.values.shapes import broadcast


def constant(
    pylist: Any,
    dtype: Any = None,
    ragged_rank: int | None = None,
    inner_shape: Any = None,
    name: str | None = None,
    row_splits_dtype: Any = dtypes.int64,
) -> RaggedTensor | Tensor:
    """Converts nested lists to a RaggedTensor, and a flat list to a dense tensor.

    By default, all axes but the first are ragged. `ragged_rank` and `inner_shape` change this.

    >>> tf.ragged.constant([[1, 2], [3]])
    <tf.RaggedTensor [[1, 2], [3]]>
    >>> tf.ragged.constant([[[1, 2]], [[3, 4], [5, 6]]], ragged_rank=1).shape
    TensorShape([2, None, 2])
    """
    kind, splits = numpy_dtype(dtype), split_dtype(row_splits_dtype)
    depth, deepest = _nesting_depths(pylist)
    if depth is not None and depth != deepest:
        raise ValueError("constant: all scalars must have the same nesting depth.")
    inner = None if inner_shape is None else shape_from(inner_shape, "constant: inner_shape")
    if ragged_rank is None:
        ragged_rank = max(0, deepest - 1 - (0 if inner is None else len(inner)))
    if ragged_rank and ragged_rank >= deepest and depth is not None:
        raise ValueError(
            f"constant: lists of depth {deepest} cannot have {ragged_rank} ragged axes."
        )
    if not ragged_rank:
        return as_tensor(_to_lists(pylist), kind)
    partitions, level = [], _as_list(pylist)
    for _ in builtins.range(ragged_rank):
        lists = [_as_list(row) for row in level]
        lengths = np.array([len(row) for row in lists], np.int64)
        partitions.append(RowPartition.from_lengths(lengths, splits))
        level = [element for row in lists for element in row]
    values: Any = _flat(level, kind, inner)
    for part in reversed(partitions):
        values = RaggedTensor(values, part, internal=True)
    return values


def _flat(level: list, kind: Any, inner: tuple | None) -> Tensor:
    if level:
        return as_tensor(_to_lists(level), kind)
    return Tensor(np.zeros((0, *(inner or ())), kind or np.float32))


def _nesting_depths(value: Any, level: int = 0) -> tuple[int | None, int]:
    """Returns the nesting depth of scalars (`None` without scalars) and of lists."""
    if not isinstance(value, (list, tuple, np.ndarray)):
        return 0, 0
    if level > MAX_AXES:
        raise nesting_error()
    depths = [_nesting_depths(element, level + 1) for element in _as_list(value)]
    scalars = {s for s, _ in depths if s is not None}
    if len(scalars) > 1:
        raise ValueError("constant: all scalars must have the same nesting depth.")
    deepest = 1 + max((d for _, d in depths), default=0)
    return (scalars.pop() + 1 if scalars else None), deepest


def _as_list(value: Any) -> list:
    if not isinstance(value, (list, tuple, np.ndarray)):
        raise ValueError("constant: all scalars must have the same nesting depth.")
    return list(np.asarray(value) if isinstance(value, np.ndarray) else value)


def _to_lists(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [_to_lists(v) for v in value] if isinstance(value, (list, tuple)) else value


def stack(values: Sequence[Any], axis: int = 0, name: str | None = None) -> Any:
    """Stacks tensors, which may be ragged or differ in size, along a new axis.

    >>> tf.ragged.stack([[1, 2], [3]])
    <tf.RaggedTensor [[1, 2], [3]]>
    """
    if not isinstance(values, (list, tuple)) or not values:
        raise ValueError(f"stack: expected a list of tensors. Received: {shown(values)}.")
    return rows.stack(rows.as_tensors(values), axis)


# The dtypes of ranges, in the order of promotion.
_RANGES = tuple(map(np.dtype, (np.int32, np.int64, np.float32, np.float64)))


def range(
    starts: Any,
    limits: Any = None,
    deltas: Any = 1,
    dtype: Any = None,
    name: str | None = None,
    row_splits_dtype: Any = dtypes.int64,
) -> RaggedTensor:
    """Creates a row `range(start, limit, delta)` for each start.

    >>> tf.ragged.range([3, 0, 2])
    <tf.RaggedTensor [[0, 1, 2], [], [0, 1]]>
    """
    if limits is None:
        starts, limits = 0, starts
    bounds = [as_tensor(x) for x in (starts, limits, deltas)]
    for x in bounds:
        if x._spec.dtype not in _RANGES:
            raise ValueError(
                f"range: expected int32, int64, float32 or float64. Received: dtype {x.dtype.name}."
            )
    kind = numpy_dtype(dtype) or max((x._spec.dtype for x in bounds), key=_RANGES.index)
    shapes = [tuple(x.shape) for x in bounds]
    common = broadcast(*shapes)
    if common is None:
        raise invalid("range: shapes {}, {} and {} do not broadcast.".format(*shapes))
    if len(common) > 1:
        raise invalid(f"range: expected scalars or vectors. Received: shape {tuple(common)}.")
    first, last, step = np.broadcast_arrays(*(np.asarray(x).astype(kind) for x in bounds))
    if not step.all():
        raise invalid("range: deltas must not be zero.")
    wide = [np.atleast_1d(x).astype(np.float64) for x in (first, last, step)]
    counts = np.maximum(0, np.ceil((wide[1] - wide[0]) / wide[2])).astype(np.int64)
    within = rows.concatenated_ranges(np.zeros_like(counts), counts).astype(kind)
    first, step = (np.repeat(np.atleast_1d(x), counts) for x in (first, step))
    part = RowPartition.from_lengths(counts, split_dtype(row_splits_dtype))
    return RaggedTensor(Tensor((first + within * step).astype(kind)), part, internal=True)


def boolean_mask(data: Any, mask: Any, name: str | None = None) -> Any:
    """Keeps the elements for which `mask` is true, in their rows.

    >>> tf.ragged.boolean_mask([[1, 2], [3, 4]], [[True, False], [False, False]])
    <tf.RaggedTensor [[1], []]>
    """
    data, mask = (x if isinstance(x, RaggedTensor) else as_tensor(x) for x in (data, mask))
    return rows.boolean_mask(data, mask)


def map_flat_values(op: Callable, *args: Any, **kwargs: Any) -> Any:
    """Applies `op` to the flat values of ragged tensors with equal row partitions.

    >>> x = tf.ragged.constant([[1, 2], [3]])
    >>> tf.ragged.map_flat_values(lambda v: v + 1, x)
    <tf.RaggedTensor [[2, 3], [4]]>
    """
    ragged_args = [x for x in (*args, *kwargs.values()) if isinstance(x, RaggedTensor)]
    if not ragged_args:
        return op(*args, **kwargs)
    template = ragged_args[0]

    def flat(x: Any) -> Any:
        return align_to_flat_values(template, x) if isinstance(x, RaggedTensor) else x

    result = op(*map(flat, args), **{name: flat(x) for name, x in kwargs.items()})
    size = template.flat_values.shape[0]
    tensor = tensor_or_variable(result)
    if tensor is not None and (not tensor.ndim or tensor.shape[0] != size):
        raise ValueError(
            f"map_flat_values: op must keep the number of flat values, {size}. It returned the "
            f"shape {tuple(tensor.shape)}."
        )
    return template.with_flat_values(result)


def row_splits_to_segment_ids(splits: Any, name: str | None = None, out_type: Any = None) -> Tensor:
    """Converts row splits to the row of each value.

    >>> tf.ragged.row_splits_to_segment_ids([0, 2, 2, 3]).numpy()
    array([0, 0, 2])
    """
    part = RowPartition(as_int_vector(splits, "row_splits_to_segment_ids"))
    if (part.lengths < 0).any():
        raise invalid(
            f"row_splits_to_segment_ids: splits must be sorted. Received: {part.splits.tolist()}."
        )
    return Tensor(
        part.rowids.astype(numeric_dtype(out_type, part.dtype, "row_splits_to_segment_ids"))
    )


def segment_ids_to_row_splits(
    segment_ids: Any, num_segments: Any = None, out_type: Any = None, name: str | None = None
) -> Tensor:
    """Converts the row of each value to row splits.

    >>> tf.ragged.segment_ids_to_row_splits([0, 0, 2]).numpy()
    array([0, 2, 2, 3])
    """
    ids = as_int_vector(segment_ids, "segment_ids_to_row_splits")
    size = 0 if num_segments is None else integer(num_segments, "num_segments")
    op_name = "segment_ids_to_row_splits"
    counts = allocate(op_name, np.bincount, np.asarray(ids), minlength=size)
    if num_segments is not None and len(counts) > size:
        raise invalid(f"segment_ids_to_row_splits: an id is not less than num_segments={size}.")
    kind = numeric_dtype(out_type, ids._spec.dtype, "segment_ids_to_row_splits")
    return RowPartition.from_lengths(counts, kind).row_splits


def stack_dynamic_partitions(
    data: Any, partitions: Any, num_partitions: Any, name: str | None = None
) -> RaggedTensor:
    """Groups the rows of `data` by partition.

    >>> tf.ragged.stack_dynamic_partitions([1, 2, 3], [1, 0, 1], 3)
    <tf.RaggedTensor [[2], [1, 3], []]>
    """
    data = data if isinstance(data, RaggedTensor) else as_tensor(data)
    while isinstance(partitions, RaggedTensor):
        data, partitions = data.values, partitions.values
    partition_ids, count = as_tensor(partitions), integer(num_partitions, "num_partitions")
    ids = np.asarray(partition_ids).ravel()
    axes = partition_ids._spec.ndim
    if not axes or tuple(data.shape[:axes]) != partition_ids._spec.shape:
        raise invalid(
            "stack_dynamic_partitions: expected the shape of data to start with the shape of "
            f"partitions. Received: {data.shape} and {partition_ids._spec.shape}."
        )
    if axes > 1:
        data = reshape(data, shape=(ids.size, *data._spec.shape[axes:]))
    if ids.size and not 0 <= ids.min() <= ids.max() < count:
        raise invalid(f"stack_dynamic_partitions: expected partitions in [0, {count}).")
    order = np.argsort(ids, kind="stable")
    part = RowPartition.from_lengths(np.bincount(ids, minlength=count), partition_ids._spec.dtype)
    return RaggedTensor(rows.take_rows(data, order), part, internal=True)


def cross(inputs: Sequence[Any], name: str | None = None) -> RaggedTensor:
    """Computes the Cartesian product of each row's values and joins them to strings.

    >>> tf.ragged.cross([tf.ragged.constant([["a"], ["b", "c"]]), tf.constant([["x"], ["y"]])])
    <tf.RaggedTensor [[b'a_X_x'], [b'b_X_y', b'c_X_y']]>
    """
    return _cross(inputs, string_joiner(None), np.dtype(object), "cross")


def cross_hashed(
    inputs: Sequence[Any], num_buckets: Any = 0, hash_key: Any = None, name: str | None = None
) -> RaggedTensor:
    """Computes the Cartesian product of each row's values and hashes it to `num_buckets`."""
    return _cross(inputs, hash_combiner(num_buckets, hash_key), np.dtype(np.int64), "cross_hashed")


def _cross(inputs: Sequence[Any], combine: Callable, dtype: np.dtype, op_name: str) -> RaggedTensor:
    tables = [
        x.to_list() if isinstance(x, RaggedTensor) else values_by_row(x, op_name) for x in inputs
    ]
    crossed_rows = cross_rows(tables, combine, op_name)
    flat = np.empty(sum(map(len, crossed_rows)), dtype)
    flat[:] = [value for row in crossed_rows for value in row]
    lengths = np.array([len(row) for row in crossed_rows], np.int64)
    return RaggedTensor(Tensor(flat), RowPartition.from_lengths(lengths), internal=True)
