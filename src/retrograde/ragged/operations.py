"""What operations do with ragged tensors: all that is known of them stands in this table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde import math
from retrograde.core.conversion import held_by
from retrograde.core.dispatch import Primitive
from retrograde.core.errors import invalid
from retrograde.core.shapes import normalise_axis
from retrograde.core.tensor import Tensor
from retrograde.math._inputs import binary, unary
from retrograde.ops import indexing, reduction
from retrograde.ops.conversion import as_tensor
from retrograde.ragged import reductions, rows
from retrograde.ragged.tensor import HANDLERS, RaggedTensor


def elementwise(function: Callable, *args: Any, **kwargs: Any) -> RaggedTensor:
    """`function` of the elements; dense arguments are broadcast to the ragged one."""
    model = next(x for x in args if isinstance(x, RaggedTensor))
    flat = [beside(model, x) for x in args]
    return model.with_flat_values(function(*flat, **kwargs))


def _primitive(primitive: Primitive, *args: Any) -> RaggedTensor:
    run = unary if len(args) == 1 else binary
    return elementwise(lambda *flat: run(primitive, *flat), *args)


def mapped(function: Callable, x: RaggedTensor, *args: Any, **kwargs: Any) -> RaggedTensor:
    """`function` of the flat values, its other arguments as they are."""
    return x.with_flat_values(function(x.flat_values, *args, **kwargs))


def beside(model: RaggedTensor, x: Any) -> Any:
    """The elements of `x` that belong to the flat values of `model`."""
    if isinstance(x, RaggedTensor):
        same = x.ragged_rank == model.ragged_rank and rows.rank_of(x) == rows.rank_of(model)
        if not same or not all(map(_same, x._partitions, model._partitions)):
            raise invalid(
                f"Two RaggedTensors of shapes {model.shape} and {x.shape} do not go together. "
                "Expected rows of the same lengths."
            )
        return x.flat_values
    if held_by(x) is None and np.ndim(x) == 0:
        return x
    x = as_tensor(x, hint=model.flat_values._array.dtype)
    inner = model.flat_values.ndim - 1
    return x if x.ndim <= inner else _spread(model, x, inner)


def _same(a: Any, b: Any) -> bool:
    return a.same(b)


def _spread(model: RaggedTensor, x: Tensor, inner: int) -> Tensor:
    """Rows of a dense tensor, repeated for each flat value as its axes of size 1 are."""
    outer = x.ndim - inner
    if outer > model.ragged_rank + 1:
        raise _not_broadcast(model, x)
    coordinates = model._coordinates()[:, model.ragged_rank + 1 - outer :]
    lengths = [np.array([model._partition.nrows]), *(p.lengths for p in model._partitions)]
    for axis, (size, expected) in enumerate(
        zip(x.shape[:outer], lengths[len(lengths) - outer :], strict=True)
    ):
        if size == 1:
            coordinates[:, axis] = 0
        elif (expected != size).any():
            raise _not_broadcast(model, x)
    return indexing.gather_nd(x, Tensor(coordinates), batch_dims=0)


def _not_broadcast(model: RaggedTensor, x: Tensor) -> Exception:
    return invalid(
        f"A tensor of shape {tuple(x.shape)} does not broadcast to a RaggedTensor of shape "
        f"{model.shape}. Expected 1 or the length of all rows along each axis."
    )


def _where(function: Callable, condition: Any, x: Any = None, y: Any = None, name: Any = None):
    if x is None and y is None:
        chosen = np.flatnonzero(np.asarray(condition.flat_values))
        return Tensor(condition._coordinates()[chosen])
    return elementwise(function, condition, x, y)


def _truth(primitive: Primitive) -> Callable:
    def handler(_, input_tensor, axis=None, keepdims=False, name=None):
        return reductions.reduce(primitive, input_tensor, axis, keepdims)

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
    return ids.with_flat_values(function(params, ids.flat_values, **kwargs))


def _expand_dims(_: Any, input: RaggedTensor, axis: Any, name: Any = None) -> RaggedTensor:
    return rows.expand_dims(input, normalise_axis(int(axis), input.shape.rank + 1, "expand_dims"))


def _reverse(_: Any, tensor: RaggedTensor, axis: Any, name: Any = None) -> RaggedTensor:
    rank = tensor.shape.rank
    return rows.reverse(tensor, {normalise_axis(a, rank, "reverse") for a in np.ravel(axis)})


def _concat(_: Any, values: Any, axis: Any, name: Any = None) -> Any:
    return rows.concat(rows.tensors_of(values), int(axis))


def _stack(_: Any, values: Any, axis: int = 0, name: Any = None) -> Any:
    return rows.stack(rows.tensors_of(values), axis)


_ELEMENTWISE = (
    "abs", "divide", "truediv", "divide_no_nan", "clip_by_value",
    "logical_and", "logical_or", "logical_xor", "logical_not",
)  # fmt: skip
_MAPPED = (
    "cast", "identity", "stop_gradient", "zeros_like", "ones_like", "one_hot", "bitcast",
    "saturate_cast", "round", "log_sigmoid", "conj", "real", "imag", "angle",
    "leaky_relu", "gelu", "silu", "dropout",
)  # fmt: skip
_REDUCTIONS = ("sum", "mean", "prod", "max", "min", "any", "all", "logsumexp")

HANDLERS |= {
    "elementwise": _primitive,
    **dict.fromkeys(_ELEMENTWISE, elementwise),
    **dict.fromkeys(_MAPPED, mapped),
    **dict.fromkeys(_REDUCTIONS, reductions.reduce),
    "reduce_any": _truth(reduction.any),
    "reduce_all": _truth(reduction.all),
    "reduce_variance": reductions.reduce_variance,
    "reduce_std": reductions.reduce_std,
    "softmax": reductions.softmax,
    "where": _where,
    "add_n": _add_n,
    "gather": _gather,
    "embedding_lookup": _lookup,
    "expand_dims": _expand_dims,
    "reverse": _reverse,
    "concat": _concat,
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
    "eq": math.equal,
    "ne": math.not_equal,
    "lt": math.less,
    "le": math.less_equal,
    "gt": math.greater,
    "ge": math.greater_equal,
}


def _operator(function: Callable) -> Callable:
    return lambda self, other: function(self, other)


def _reflected(function: Callable) -> Callable:
    return lambda self, other: function(other, self)


def _bind() -> None:
    for name, function in _OPERATORS.items():
        setattr(RaggedTensor, f"__{name}__", _operator(function))
        if name not in ("eq", "ne", "lt", "le", "gt", "ge"):
            setattr(RaggedTensor, f"__r{name}__", _reflected(function))
    RaggedTensor.__neg__ = lambda self: math.negative(self)
    RaggedTensor.__abs__ = lambda self: math.abs(self)
    RaggedTensor.__invert__ = lambda self: math.logical_not(self)


_bind()
