"""Implementations of public functions and operators for ragged tensors, in one table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde import math
from retrograde.core.apply import Primitive
from retrograde.core.tensor import Tensor
from retrograde.math._inputs import binary, unary
from retrograde.ops import indexing, reduction
from retrograde.ops.arguments import integer, integer_array, integers
from retrograde.ops.conversion import as_tensor
from retrograde.ops.shaping import reshape
from retrograde.ragged import reductions, rows
from retrograde.ragged.spec import RaggedTensorSpec
from retrograde.ragged.tensor import HANDLERS, RaggedTensor
from retrograde.toplevel import shaping as dense
from retrograde.values import dtypes, nest
from retrograde.values.arguments import as_int, as_text, shown
from retrograde.values.composites import NotOneTensor, dispatched, map_instances
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import invalid
from retrograde.values.shapes import normalize_axis


def elementwise(function: Callable, *args: Any, **kwargs: Any) -> RaggedTensor:
    """Applies `function` elementwise; dense arguments are broadcast to the ragged one."""
    template = _most_ragged(args, kwargs)
    flat = [align_to_flat_values(template, x) for x in args]
    named = {
        name: align_to_flat_values(template, x) for name, x in kwargs.items() if name != "name"
    }
    return template.with_flat_values(function(*flat, **named))


def map_flat(function: Callable, *args: Any, **kwargs: Any) -> RaggedTensor:
    """Applies `function` to the flat values; other arguments are passed unchanged."""
    template = _most_ragged(args, kwargs)
    args, kwargs = map_instances(RaggedTensor, lambda x: _align_ragged(template, x), args, kwargs)
    return template.with_flat_values(function(*args, **kwargs))


def _most_ragged(args: tuple, kwargs: dict) -> RaggedTensor:
    """Returns the argument with the most ragged axes; the result has its row partitions."""
    ragged_args = [x for x in (*args, *kwargs.values()) if isinstance(x, RaggedTensor)]
    if not ragged_args:
        raise TypeError("Expected a tf.RaggedTensor. Received: a list with a RaggedTensor.")
    return max(ragged_args, key=lambda x: x.ragged_rank)


def _primitive(primitive: Primitive, *args: Any) -> RaggedTensor:
    run = unary if len(args) == 1 else binary
    return elementwise(lambda *flat: run(primitive, *flat), *args)


def align_to_flat_values(template: RaggedTensor, x: Any) -> Any:
    """Broadcasts `x` to `template` and returns the elements for its flat values."""
    if isinstance(x, RaggedTensor):
        return _align_ragged(template, x)
    listed = isinstance(x, (list, tuple, range))
    if tensor_or_variable(x) is None and not listed and np.ndim(x) == 0:
        return x
    x = as_tensor(x, hint=template.flat_values._spec.dtype)
    inner = template.flat_values.ndim - 1
    return x if x.ndim <= inner else _gather_broadcast(template, x, inner)


def _align_ragged(template: RaggedTensor, x: RaggedTensor) -> Tensor:
    """Returns the flat values of `x`, repeated along ragged axes where `x` has size 1."""
    shared, missing = x._partitions, template.ragged_rank - x.ragged_rank
    fits = rows.rank_of(x) == rows.rank_of(template) and all(
        a.equals(b) for a, b in zip(shared, template._partitions, strict=False)
    )
    if not fits or any(n != 1 for n in x.flat_values.shape[1 : 1 + missing]):
        raise invalid(
            f"Two RaggedTensors of shapes {template.shape} and {x.shape} cannot be broadcast. "
            "Expected equal row lengths."
        )
    if not missing:
        return x.flat_values
    count, *sizes = x.flat_values.shape
    flat = reshape(x.flat_values, shape=(count, *sizes[missing:]))
    row_ids = np.arange(count)
    for part in template._partitions[x.ragged_rank :]:
        row_ids = row_ids[part.rowids]
    return indexing.gather(flat, Tensor(row_ids), axis=0)


def _gather_broadcast(template: RaggedTensor, x: Tensor, inner: int) -> Tensor:
    """Gathers for each flat value the element of a dense tensor that is broadcast to it."""
    outer = x.ndim - inner
    if outer > template.ragged_rank + 1:
        raise _broadcast_error(template, x)
    coordinates = template._coordinates()[:, template.ragged_rank + 1 - outer :]
    lengths = [np.array([template._partition.nrows]), *(p.lengths for p in template._partitions)]
    for axis, (size, expected) in enumerate(
        zip(x.shape[:outer], lengths[len(lengths) - outer :], strict=True)
    ):
        if size == 1:
            coordinates[:, axis] = 0
        elif (expected != size).any():
            raise _broadcast_error(template, x)
    return indexing.gather_nd(x, Tensor(coordinates), batch_dims=0)


def _broadcast_error(template: RaggedTensor, x: Tensor) -> Exception:
    return invalid(
        f"A tensor of shape {tuple(x.shape)} does not broadcast to a RaggedTensor of shape "
        f"{template.shape}. Expected 1 or the length of all rows along each axis."
    )


def _where(function: Callable, condition: Any, x: Any = None, y: Any = None, name: Any = None):
    if x is None and y is None:
        chosen = np.flatnonzero(np.asarray(condition.flat_values))
        return Tensor(condition._coordinates()[chosen])
    return elementwise(function, condition, x, y)


def _apply_to_padded(
    function: Callable, x: RaggedTensor, *args: Any, **kwargs: Any
) -> RaggedTensor:
    """Applies `function` to the tensor padded with zeros and removes the padding of the result."""
    y = function(x.to_tensor(), *args, **kwargs)
    return x.with_flat_values(indexing.gather_nd(y, Tensor(x._coordinates()), batch_dims=0))


def _tile(_: Any, input: RaggedTensor, multiples: Any, name: Any = None) -> RaggedTensor:
    times = integers(multiples, "tile: multiples")
    if len(times) != rows.rank_of(input) or min(times) < 0:
        raise invalid(
            f"tile: expected {rows.rank_of(input)} nonnegative integers, one for each axis. "
            f"Received: {shown(list(times))}."
        )
    return rows.tile(input, times)


def _squeeze(_: Any, input: RaggedTensor, axis: Any = None, name: Any = None) -> Any:
    if axis is None:
        raise ValueError("squeeze: axis is required for a RaggedTensor.")
    rank = rows.rank_of(input)
    axes = {normalize_axis(a, rank, "squeeze", ValueError) for a in integers(axis, "squeeze: axis")}
    y: Any = input
    for a in sorted(axes, reverse=True):
        y = rows.squeeze(y, a)
    return y


def _split(_: Any, value: RaggedTensor, num_or_size_splits: Any, axis: Any = 0, num: Any = None,
           name: Any = None) -> list:  # fmt: skip
    at = normalize_axis(as_int(axis, "split: axis"), rows.rank_of(value), "split", ValueError)
    if at > value.ragged_rank:
        parts = dense.split(value.flat_values, num_or_size_splits, at - value.ragged_rank, num)
        return [value.with_flat_values(part) for part in parts]
    if at:
        raise ValueError(
            "split: a RaggedTensor can be split only along uniform axes. Received: "
            f"axis={as_text(axis)}."
        )
    count = value._partition.nrows
    sizes = integers(num_or_size_splits, "split")
    if np.ndim(num_or_size_splits) == 0:
        if count % sizes[0]:
            raise invalid(f"split: {count} rows cannot be split evenly into {sizes[0]} parts.")
        sizes = (count // sizes[0],) * sizes[0]
    return rows.split_rows(value, sizes)


def _dynamic_partition(_: Any, data: RaggedTensor, partitions: Any, num_partitions: Any,
                       name: Any = None) -> list:  # fmt: skip
    partition_ids = integer_array(partitions, "dynamic_partition: partitions")
    count = integer(num_partitions, "dynamic_partition: num_partitions")
    if partition_ids.shape != (rows.row_count(data),):
        raise invalid(
            f"dynamic_partition: expected one partition for each of {rows.row_count(data)} rows of "
            f"the RaggedTensor. Received: shape {partition_ids.shape}."
        )
    return [rows.take_rows(data, np.flatnonzero(partition_ids == i)) for i in range(count)]


def _gather_nd(_: Any, params: RaggedTensor, indices: Any, batch_dims: int = 0, name: Any = None):
    index_array = integer_array(indices, "gather_nd: indices")
    columns = index_array.shape[-1] if index_array.ndim == 2 else 0
    if batch_dims or not 0 < columns <= params.ragged_rank + 1:
        raise ValueError(
            "gather_nd: a RaggedTensor requires a matrix of indices into its first axes, and "
            f"batch_dims=0. Received: shape {index_array.shape}, batch_dims={batch_dims}."
        )
    positions, rest = index_array[:, 0], params
    for column in index_array[:, 1:].T:
        part = rest._partition
        _check_bounds(positions, part.nrows)
        _check_bounds(column, part.lengths[positions])
        positions, rest = part.starts[positions] + column, rest.values
    _check_bounds(positions, rows.row_count(rest))
    return rows.take_rows(rest, positions)


def _check_bounds(indices: np.ndarray, limit: Any) -> None:
    wrong = (indices < 0) | (indices >= limit)
    if wrong.any():
        raise invalid(f"gather_nd: index {indices[wrong][0]} is out of bounds.")


def _segments(function: Callable, data: RaggedTensor, segment_ids: Any, num_segments: Any,
              name: Any = None) -> RaggedTensor:  # fmt: skip
    ids = integer_array(segment_ids, "segment_ids")
    count = integer(num_segments, "num_segments")
    if ids.shape != (data._partition.nrows,) or (ids < 0).any() or (ids >= count).any():
        raise invalid(
            f"Expected one segment id in [0, {count}) for each of {data._partition.nrows} rows of "
            f"the RaggedTensor. Received: {ids.tolist()}."
        )
    return reductions.combine_rows(function, data, ids, count)


def _segment_average(divide_by: Callable) -> Callable:
    """Returns a handler that divides the sums by a function of the number of their terms."""

    def handler(_: Any, data: RaggedTensor, segment_ids: Any, num_segments: Any,
                name: Any = None) -> RaggedTensor:  # fmt: skip
        args = segment_ids, num_segments
        counts = math.unsorted_segment_sum(
            data.with_flat_values(_ones_like(data.flat_values)), *args
        )
        return math.unsorted_segment_sum(data, *args) / divide_by(counts)

    return handler


def _ones_like(x: Tensor) -> Tensor:
    return Tensor(np.ones(x._spec.shape, x._spec.dtype))


def _reshape(function: Callable, tensor: RaggedTensor, shape: Any) -> Tensor:
    return function(tensor.flat_values, shape)


def _resize(function: Callable, images: RaggedTensor, size: Any, **options: Any) -> Tensor:
    """Resizes each image. The results have one size."""
    resized = [function(_dense(image), size, **options) for image in rows.unstack_rows(images)]
    if not resized:  # an image of one pixel has the sizes and the dtype of the result
        flat = images.flat_values
        pixel = Tensor(np.zeros((1, 1, flat._spec.shape[-1]), flat._spec.dtype))
        return dense.stack([function(pixel, size, **options)])[:0]
    return dense.stack(resized)


def _dense(x: Any) -> Tensor:
    return x.to_tensor() if isinstance(x, RaggedTensor) else x


def _as_sparse(function: Callable, *args: Any, **kwargs: Any) -> Any:
    args, kwargs = map_instances(RaggedTensor, RaggedTensor.to_sparse, args, kwargs)
    return dispatched(function)(*args, **kwargs)


def _map_fn(_: Any, fn: Callable, elems: Any, dtype: Any = None, parallel_iterations: Any = None,
            back_prop: bool = True, swap_memory: bool = False, infer_shape: bool = True,
            name: Any = None, fn_output_signature: Any = None) -> Any:  # fmt: skip
    """Maps row by row; results with a RaggedTensorSpec become the rows of a RaggedTensor."""
    leaves, pack = nest.flatten_with_pack(elems)
    columns = zip(*map(rows.unstack_rows, leaves), strict=True)
    results = [nest.flatten(fn(pack(list(row)))) for row in columns]
    signature = dtype if fn_output_signature is None else fn_output_signature
    expected = elems if signature is None else signature
    stacked = []
    for spec, column in zip(nest.flatten(expected), zip(*results, strict=True), strict=True):
        if isinstance(spec, (RaggedTensor, RaggedTensorSpec)):
            y = rows.stack(rows.as_tensors(column), 0)
            if not isinstance(y, RaggedTensor):
                raise ValueError(
                    "map_fn: expected `fn` to return rows of a RaggedTensor. Received: scalars. "
                    "Pass the dtype of its results as `fn_output_signature`."
                )
            stacked.append(y.with_row_splits_dtype(dtypes.int64))
        else:
            stacked.append(dense.stack(column))
    return nest.pack(expected, iter(stacked))


def _reduce_bool(primitive: Primitive) -> Callable:
    def handler(_, input_tensor, axis=None, keepdims=False, name=None):
        return reductions.reduce(
            primitive, map_flat(dense.cast, input_tensor, bool), axis, keepdims
        )

    return handler


def _add_n(_: Callable, inputs: Any, name: Any = None) -> Any:
    total, *others = inputs
    for other in others:
        total = math.add(total, other)
    return total


def _gather(_: Any, params: Any, indices: Any, validate_indices: Any = None, axis: Any = None,
            batch_dims: int = 0, name: Any = None) -> Any:  # fmt: skip
    return rows.gather(params, indices, axis, batch_dims)


def _lookup(function: Callable, params: Any, ids: RaggedTensor, **kwargs: Any) -> RaggedTensor:
    if not isinstance(ids, RaggedTensor):  # the RaggedTensor is in `params` or in a list
        raise NotOneTensor(
            next(x for x in nest.leaves([params, ids]) if isinstance(x, RaggedTensor))
        )
    return ids.with_flat_values(function(params, ids.flat_values, **kwargs))


def _expand_dims(_: Any, input: RaggedTensor, axis: Any, name: Any = None) -> RaggedTensor:
    position, rank = as_int(axis, "expand_dims: axis"), input.shape.rank + 1
    return rows.expand_dims(input, normalize_axis(position, rank, "expand_dims", ValueError))


def _reverse(_: Any, tensor: RaggedTensor, axis: Any, name: Any = None) -> RaggedTensor:
    rank = tensor.shape.rank
    return rows.reverse(
        tensor, {normalize_axis(a, rank, "reverse", ValueError) for a in np.ravel(axis)}
    )


def _concat(_: Any, values: Any, axis: Any, name: Any = None) -> Any:
    if isinstance(values, RaggedTensor):
        return values
    return rows.concat(rows.as_tensors(values), as_int(axis, "concat: axis"))


def _stack(_: Any, values: Any, axis: int = 0, name: Any = None) -> Any:
    return rows.stack(rows.as_tensors(values), axis)


_ELEMENTWISE = (
    "abs", "divide", "truediv", "divide_no_nan", "clip_by_value", "scalar_mul",
    "multiply_no_nan", "reciprocal_no_nan", "xdivy", "xlog1py", "xlogy", "erfcinv",
    "sigmoid_cross_entropy_with_logits",
    "logical_and", "logical_or", "logical_xor", "logical_not",
)  # fmt: skip
_MAPPED = (
    "cast", "identity", "stop_gradient", "zeros_like", "ones_like", "one_hot", "bitcast",
    "saturate_cast", "round", "log_sigmoid", "conj", "real", "imag", "angle",
    "leaky_relu", "gelu", "silu", "dropout",
    *(name for name in math.special.__all__ if name.startswith("bessel")),
)  # fmt: skip
_SEGMENTS = (
    "unsorted_segment_sum", "unsorted_segment_prod", "unsorted_segment_max", "unsorted_segment_min",
)  # fmt: skip
_REDUCTIONS = ("sum", "mean", "prod", "max", "min", "any", "all", "logsumexp")

HANDLERS |= {
    "elementwise": _primitive,
    **dict.fromkeys(_ELEMENTWISE, elementwise),
    **dict.fromkeys(_MAPPED, map_flat),
    **dict.fromkeys(_REDUCTIONS, reductions.reduce),
    "reduce_any": _reduce_bool(reduction.any),
    "reduce_all": _reduce_bool(reduction.all),
    "reduce_variance": reductions.reduce_variance,
    "softmax": reductions.softmax,
    "where": _where,
    "add_n": _add_n,
    "gather": _gather,
    "embedding_lookup": _lookup,
    "expand_dims": _expand_dims,
    "reverse": _reverse,
    "concat": _concat,
    "cumsum": _apply_to_padded,
    "tile": _tile,
    "squeeze": _squeeze,
    "split": _split,
    "dynamic_partition": _dynamic_partition,
    "gather_nd": _gather_nd,
    **dict.fromkeys(_SEGMENTS, _segments),
    "unsorted_segment_mean": _segment_average(lambda counts: counts),
    "unsorted_segment_sqrt_n": _segment_average(math.sqrt),
    "reshape": _reshape,
    "resize": _resize,
    "bincount": _as_sparse,
    "map_fn": _map_fn,
    "stack": _stack,
    "rank": lambda _, input, name=None: Tensor(np.int32(input.shape.rank)),
    "size": lambda function, input, out_type=None, name=None: function(input.flat_values, out_type),
}

_OPERATORS = {
    "add": math.add,
    "sub": math.subtract,
    "mul": math.multiply,
    "truediv": math.truediv,
    "floordiv": math.floordiv,
    "mod": math.floormod,
    "pow": math.pow,
    "and": math.logical_and,
    "or": math.logical_or,
    "xor": math.logical_xor,
    "lt": math.less,
    "le": math.less_equal,
    "gt": math.greater,
    "ge": math.greater_equal,
}


def _operator(function: Callable) -> Callable:
    return lambda self, other: function(self, other)


def _equality(function: Callable, if_none: bool) -> Callable:
    return lambda self, other: if_none if other is None else function(self, other)


def _reflect(function: Callable) -> Callable:
    return lambda self, other: function(other, self)


def _bind() -> None:
    for name, function in _OPERATORS.items():
        setattr(RaggedTensor, f"__{name}__", _operator(function))
        if name not in ("lt", "le", "gt", "ge"):
            setattr(RaggedTensor, f"__r{name}__", _reflect(function))
    RaggedTensor.__eq__ = _equality(math.equal, False)
    RaggedTensor.__ne__ = _equality(math.not_equal, True)
    RaggedTensor.__neg__ = lambda self: math.negative(self)
    RaggedTensor.__abs__ = lambda self: math.abs(self)
    RaggedTensor.__invert__ = lambda self: math.logical_not(self)


_bind()
