"""Elements of datasets: structures of tuples and dicts with tensors in them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from retrograde.core.recorders import Recorder, escape, listening
from retrograde.core.tensor import Tensor, wrap
from retrograde.ops import random_state
from retrograde.ops.conversion import as_tensor
from retrograde.ragged.rows import stack as stack_ragged
from retrograde.ragged.spec import RaggedTensorSpec
from retrograde.ragged.tensor import RaggedTensor
from retrograde.sparse.shaping import (
    concat as concat_sparse,
)
from retrograde.sparse.shaping import (
    expand_dims as expand_sparse,
)
from retrograde.sparse.shaping import (
    slice as slice_sparse,
)
from retrograde.sparse.tensor import SparseTensor, SparseTensorSpec
from retrograde.values import nest
from retrograde.values.arguments import shown
from retrograde.values.composites import CompositeTensor
from retrograde.values.errors import invalid
from retrograde.values.shapes import TensorShape
from retrograde.values.specs import TensorSpec, TypeSpec, spec_of


class NoneTensorSpec(TypeSpec):
    """The spec of a part of an element that is `None`."""

    __slots__ = ()

    @property
    def value_type(self) -> type:
        """The type of `None`."""
        return type(None)

    def _serialize(self) -> tuple:
        return ()


def normalise(value: Any) -> Any:
    """`value` with tensors for leaves. Unlike in `tf.nest`, a list is one tensor."""
    if type(value) is Tensor or value is None or isinstance(value, CompositeTensor):
        return value
    if isinstance(value, tuple):
        parts = [normalise(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, Mapping):
        return type(value)({key: normalise(part) for key, part in value.items()})
    tensor = as_tensor(value)
    escape(tensor, "dataset")
    return wrap(tensor._array)


def from_function(result: Any) -> Any:
    """What a user's function returned, as an element: a list means a tuple there."""
    return normalise(tuple(result) if type(result) is list else result)


def call(function: Callable, element: Any) -> Any:
    """`function` of an element; of its parts one by one if it is a tuple."""
    return function(*element) if type(element) is tuple else function(element)


def element_of(tensors: Any) -> tuple[list, Callable[[list], Any]]:
    """The leaves of what a user made a dataset of, and a function that packs others like them."""
    flat, pack = nest.flatten_with_pack(normalise(tensors))
    if all(leaf is None for leaf in flat):
        raise ValueError("Invalid `element`. `element` should not be empty.")
    for leaf in flat:
        if isinstance(leaf, Tensor):
            escape(leaf, "dataset")
    return [wrap(leaf._array) if isinstance(leaf, Tensor) else leaf for leaf in flat], pack


# Specs


def spec_of_element(element: Any) -> Any:
    """The specs of the leaves, in the structure of the element."""
    flat, pack = nest.flatten_with_pack(element)
    return pack([NoneTensorSpec() if leaf is None else spec_of(leaf) for leaf in flat])


def map_specs(function: Callable, spec: Any) -> Any:
    """`function` of every leaf of a structure of specs."""
    flat, pack = nest.flatten_with_pack(spec)
    return pack([function(leaf) for leaf in flat])


def common_spec(first: Any, second: Any) -> Any:
    """The narrowest specs that both fit, or `None` if there are none."""
    (flat, pack), (others, pack_other) = map(nest.flatten_with_pack, (first, second))
    places = list(range(len(flat)))
    if len(flat) != len(others) or pack(places) != pack_other(places):
        return None
    if not all(hasattr(leaf, "most_specific_common_supertype") for leaf in flat):  # not a spec
        return None
    found = [a.most_specific_common_supertype([b]) for a, b in zip(flat, others, strict=True)]
    return None if None in found else pack(found)


def batched_spec(spec: TypeSpec, size: int | None) -> TypeSpec:
    """The spec of `size` values, stacked."""
    if isinstance(spec, TensorSpec):
        return TensorSpec(TensorShape([size]).concatenate(spec.shape), spec.dtype)
    if isinstance(spec, RaggedTensorSpec):
        shape = TensorShape([size]).concatenate(spec.shape)
        return RaggedTensorSpec(shape, spec.dtype, spec.ragged_rank + 1, spec.row_splits_dtype)
    if isinstance(spec, NoneTensorSpec):
        return spec
    return spec._batched(size) if hasattr(spec, "_batched") else _reshaped(spec, size)


def _reshaped(spec: TypeSpec, size: int | None) -> TypeSpec:
    shape, *others = spec._serialize()
    return type(spec)(TensorShape([size]).concatenate(shape), *others)


def specs_of_tensors(spec: Any) -> list[TypeSpec]:
    """Returns the specs of the parts of an element that are not `None`."""
    return [leaf for leaf in nest.flatten(spec) if not isinstance(leaf, NoneTensorSpec)]


def row_spec(spec: TypeSpec) -> TypeSpec:
    """The spec of one row of a value."""
    if isinstance(spec, NoneTensorSpec):
        return spec
    if not hasattr(spec, "shape"):
        raise TypeError(f"Cannot take rows of a value of {shown(spec)}. Expected a tensor.")
    if spec.shape.rank == 0:
        raise ValueError(
            "Cannot unbatch an input with scalar components. Expected elements with a first axis."
        )
    if isinstance(spec, RaggedTensorSpec) and spec.shape.rank == 1:
        return TensorSpec([], spec.dtype)
    if isinstance(spec, RaggedTensorSpec):
        rank = max(spec.ragged_rank - 1, 0)
        return RaggedTensorSpec(spec.shape[1:], spec.dtype, rank, spec.row_splits_dtype)
    if isinstance(spec, TensorSpec):
        return TensorSpec(spec.shape[1:], spec.dtype)
    shape, *others = spec._serialize()
    return type(spec)(shape[1:], *others)


# A function is not traced, so what it returns is found by trying it on a made-up element. A second
# one, that differs in every value and in every dimension which is not fixed, is needed only if
# these can make a difference: where dimensions are open, or a value was looked at.


class _Attention(Recorder):
    """Hears whether a value was looked at."""

    __slots__ = ("looked",)

    def __init__(self) -> None:
        self.looked = False

    def escape(self, tensor: Any, how: str) -> None:
        self.looked = True


def spec_by_trial(function: Callable, spec: Any, first: Callable[[], Any]) -> Any:
    """The specs of what `function` returns for elements of a `spec`.

    Where it cannot work with made-up elements, `first()` gives a real one. Then no dimension of
    the result is taken for fixed.
    """
    attention = _Attention()
    with random_state.replaying(random_state.state()):
        try:
            with listening([attention]):
                found = spec_of_element(function(_sample(spec, 0)))
            if not attention.looked and all(map(_is_fixed, nest.flatten(spec))):
                return found
            other = spec_of_element(function(_sample(spec, 1)))
        except Exception as error:
            try:
                element = first()
            except StopIteration:
                raise error from None
            return map_specs(_opened, spec_of_element(function(element)))
    return common_spec(found, other) or found


def _is_fixed(spec: TypeSpec) -> bool:
    """Whether elements of a `spec` differ only in numbers. Strings may be names of files."""
    return (
        isinstance(spec, TensorSpec)
        and spec.shape.is_fully_defined()
        and spec.dtype.numpy_dtype.kind != "O"
    )


def _opened(spec: TypeSpec) -> TypeSpec:
    if isinstance(spec, TensorSpec):
        return TensorSpec([None] * spec.shape.rank, spec.dtype)
    return spec


def _sample(spec: Any, which: int) -> Any:
    return map_specs(lambda leaf: _sample_of(leaf, which), spec)


def _sample_of(spec: TypeSpec, which: int) -> Any:
    if isinstance(spec, NoneTensorSpec):
        return None
    if isinstance(spec, RaggedTensorSpec):
        return _ragged_sample(spec, which)
    shape = _sizes(spec, which, 1 + which)
    if isinstance(spec, SparseTensorSpec):
        place = np.zeros((1, len(shape)), np.int64)
        return SparseTensor(place, _numbers((1,), spec, which), np.array(shape, np.int64))
    return _numbers(shape, spec, which) if isinstance(spec, TensorSpec) else spec._sample(which)


def _sizes(spec: TypeSpec, which: int, rank: int) -> list[int]:
    """The shape of a made-up value; of `rank` axes where that is open, too."""
    shape = getattr(spec, "shape", None) or TensorShape([])
    sizes = [None] * rank if shape.rank is None else shape
    return [2 + which if size is None else size for size in sizes]


def _numbers(shape: Sequence[int], spec: Any, which: int) -> Tensor:
    """Zeros, or zeros and ones that are not all alike."""
    dtype = spec.dtype.numpy_dtype
    if dtype.kind == "O":
        return Tensor(np.full(shape, str(which).encode(), object))
    places = np.arange(math.prod(shape)).reshape(shape)
    return Tensor(np.asarray((places % 3 != 1) * which).astype(dtype))


def _ragged_sample(spec: RaggedTensorSpec, which: int) -> Any:
    sizes = _sizes(spec, which, spec.ragged_rank + 1)
    inner = spec.ragged_rank + 1
    flat = _numbers([math.prod(sizes[:inner]), *sizes[inner:]], spec, which)
    lengths = [
        np.full(math.prod(sizes[: axis + 1]), sizes[axis + 1], spec.row_splits_dtype.numpy_dtype)
        for axis in range(spec.ragged_rank)
    ]
    return RaggedTensor.from_nested_row_lengths(flat, lengths) if lengths else flat


# Many elements as one, and back


def stacked(elements: Sequence[Any], spec: Callable[[], Any], ragged: bool = False) -> Any:
    """Elements stacked leaf by leaf.

    `spec()` is asked only where their shapes differ, or if some of the leaves are known to be rows
    of ragged tensors, which become ragged again.
    """
    _, pack = nest.flatten_with_pack(elements[0])
    columns = zip(*map(nest.flatten, elements), strict=True)
    return pack([_stacked(column, place, spec, ragged) for place, column in enumerate(columns)])


def are_ragged(spec: Any) -> bool:
    """Whether some leaves are ragged, or rows of ragged tensors."""
    return any(isinstance(leaf, RaggedTensorSpec) for leaf in nest.flatten(spec))


def _stacked(leaves: Sequence[Any], place: int, spec: Callable[[], Any], ragged: bool) -> Any:
    first = leaves[0]
    if first is None:
        return None
    if isinstance(first, SparseTensor):
        return concat_sparse(0, [expand_sparse(leaf, 0) for leaf in leaves])
    if isinstance(first, RaggedTensor):
        return stack_ragged(leaves, 0)
    if isinstance(first, CompositeTensor):
        raise TypeError(f"Elements of type {type(first).__name__} cannot be batched.")
    other = next((i for i, x in enumerate(leaves) if x._spec.shape != first._spec.shape), None)
    if ragged or other is not None:
        leaf = nest.flatten(spec())[place]
        if isinstance(leaf, RaggedTensorSpec):
            return ragged_rows(leaves, leaf.ragged_rank + 1, leaf.row_splits_dtype.numpy_dtype)
    if other is not None:
        raise invalid(
            f"Cannot batch tensors with different shapes in component {place}. First element "
            f"had shape {list(first._spec.shape)} and element {other} had shape "
            f"{list(leaves[other]._spec.shape)}. Use padded_batch for such elements."
        )
    return wrap(stacked_arrays([leaf._array for leaf in leaves]))


def ragged_rows(leaves: Sequence[Tensor], depth: int, splits: np.dtype) -> RaggedTensor:
    """Tensors as the rows of a ragged one whose first `depth` axes behind the rows are ragged."""
    arrays = [np.asarray(leaf._array) for leaf in leaves]
    lengths = [
        np.concatenate([np.full(int(np.prod(a.shape[:axis])), a.shape[axis]) for a in arrays])
        for axis in range(depth)
    ]
    flat = np.concatenate([a.reshape(-1, *a.shape[depth:]) for a in arrays])
    return RaggedTensor.from_nested_row_lengths(
        wrap(flat), [wrap(each.astype(splits)) for each in lengths], validate=False
    )


def stacked_arrays(arrays: Sequence[Any]) -> np.ndarray:
    """Arrays of one shape as one array."""
    if arrays[0].ndim or arrays[0].dtype.kind == "O":
        return np.stack(arrays)
    return np.array(arrays, arrays[0].dtype)


def row_counts(leaves: Sequence[Any]) -> set[int]:
    """The sizes of the first axes."""
    shapes = [getattr(leaf, "shape", None) for leaf in leaves if leaf is not None]
    if any(shape is None or not shape.rank for shape in shapes):  # a Dataset has no shape
        raise ValueError(
            "Unbatching a tensor is only supported for rank >= 1. Use from_tensors for one element."
        )
    return {shape[0] for shape in shapes}


def rows_of(leaf: Any) -> Iterator[Any]:
    """The rows of one leaf, over and over `None` if it is `None`."""
    if leaf is None:
        while True:
            yield None
    if isinstance(leaf, Tensor):
        array = np.asarray(leaf._array)
        yield from (wrap(row_at(array, i)) for i in range(len(array)))
    elif isinstance(leaf, SparseTensor):
        yield from (_sparse_row(leaf, i) for i in range(leaf.shape[0]))
    else:
        yield from (leaf[i] for i in range(leaf.shape[0]))


def row_at(array: np.ndarray, position: int) -> Any:
    """One row: a view, or what a tensor without axes holds."""
    row = array[position]
    return np.asarray(row, object) if array.dtype.kind == "O" and array.ndim == 1 else row


def _sparse_row(x: SparseTensor, position: int) -> SparseTensor:
    sizes = x.dense_shape.numpy()
    cut = slice_sparse(x, [position] + [0] * (len(sizes) - 1), [1, *sizes[1:]])
    return SparseTensor(cut.indices[:, 1:], cut.values, sizes[1:])
