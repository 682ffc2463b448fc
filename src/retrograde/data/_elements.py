"""Elements of datasets: nested tuples and dicts of tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from retrograde.core.recorders import Recorder, escape, use_recorders
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
from retrograde.strings.dummy import DummyString
from retrograde.values import nest
from retrograde.values.arguments import shown
from retrograde.values.composites import CompositeTensor
from retrograde.values.errors import OutOfRangeError, invalid
from retrograde.values.shapes import TensorShape
from retrograde.values.specs import TensorSpec, TypeSpec, spec_of


class NoneTensorSpec(TypeSpec):
    """The spec of a component that is `None`."""

    __slots__ = ()

    @property
    def value_type(self) -> type:
        """The type of `None`."""
        return type(None)

    def _serialize(self) -> tuple:
        return ()


def normalize(value: Any) -> Any:
    """Converts the leaves of `value` to tensors. Unlike in `tf.nest`, a list is one tensor."""
    if type(value) is Tensor or value is None or isinstance(value, CompositeTensor):
        return value
    if isinstance(value, tuple):
        parts = [normalize(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, Mapping):
        return type(value)({key: normalize(part) for key, part in value.items()})
    if type(value) is list and value and hasattr(value[0], "_join_datasets"):
        return value[0]._join_datasets(value)
    if hasattr(type(value), "__tf_flatten__"):
        return nest.rebuild(value, [normalize(part) for part in nest.children(value)])
    tensor = as_tensor(value)
    escape(tensor, "dataset")
    return wrap(tensor._array)


def normalize_result(result: Any) -> Any:
    """Converts the result of a user function to an element. A list becomes a tuple."""
    return normalize(tuple(result) if type(result) is list else result)


def call(function: Callable, element: Any) -> Any:
    """Calls `function` with an element. A tuple is passed as several arguments."""
    return call_with(function, *element) if type(element) is tuple else call_with(function, element)


def call_with(function: Callable, *arguments: Any) -> Any:
    """Calls a user function. Its own end of a sequence must not end the dataset."""
    try:
        return function(*arguments)
    except (StopIteration, OutOfRangeError) as error:
        raise invalid(
            f"Function invocation produced {type(error).__name__}: {error}. Expected an element. "
            "To end a dataset early, use take_while."
        ) from error


def flatten_element(tensors: Any) -> tuple[list, Callable[[list], Any]]:
    """Returns the leaves of an element and a function that packs leaves."""
    flat, pack = nest.flatten_with_pack(normalize(tensors))
    if all(leaf is None for leaf in flat):
        raise ValueError("Invalid `element`. `element` should not be empty.")
    for leaf in flat:
        if isinstance(leaf, Tensor):
            escape(leaf, "dataset")
    return [wrap(leaf._array) if isinstance(leaf, Tensor) else leaf for leaf in flat], pack


# Specs


def spec_of_element(element: Any) -> Any:
    """Returns the specs of the leaves in the structure of the element."""
    flat, pack = nest.flatten_with_pack(element)
    return pack([NoneTensorSpec() if leaf is None else spec_of(leaf) for leaf in flat])


def map_specs(function: Callable, spec: Any) -> Any:
    """Applies `function` to each leaf of a structure of specs."""
    flat, pack = nest.flatten_with_pack(spec)
    return pack([function(leaf) for leaf in flat])


def common_spec(first: Any, second: Any) -> Any:
    """Returns the most specific common supertype of both specs, or `None`."""
    (flat, pack), (others, pack_other) = map(nest.flatten_with_pack, (first, second))
    leaf_indices = list(range(len(flat)))
    if len(flat) != len(others) or pack(leaf_indices) != pack_other(leaf_indices):
        return None
    if not all(hasattr(leaf, "most_specific_common_supertype") for leaf in flat):  # not a spec
        return None
    specs = [a.most_specific_common_supertype([b]) for a, b in zip(flat, others, strict=True)]
    return None if None in specs else pack(specs)


def batched_spec(spec: TypeSpec, size: int | None) -> TypeSpec:
    """Returns the spec of `size` stacked values."""
    if isinstance(spec, TensorSpec):
        return TensorSpec(TensorShape([size]).concatenate(spec.shape), spec.dtype)
    if isinstance(spec, RaggedTensorSpec):
        shape = TensorShape([size]).concatenate(spec.shape)
        return RaggedTensorSpec(shape, spec.dtype, spec.ragged_rank + 1, spec.row_splits_dtype)
    if isinstance(spec, NoneTensorSpec):
        return spec
    return spec._batch(size) if hasattr(spec, "_batch") else _with_size(spec, size)


def _with_size(spec: TypeSpec, size: int | None) -> TypeSpec:
    shape, *others = spec._serialize()
    return type(spec)(TensorShape([size]).concatenate(shape), *others)


def specs_of_tensors(spec: Any) -> list[TypeSpec]:
    """Returns the specs of the components that are not `None`."""
    specs = [leaf for leaf in nest.flatten(spec) if not isinstance(leaf, NoneTensorSpec)]
    return [part for leaf in specs for part in _encoding_specs(leaf)]


def _encoding_specs(spec: TypeSpec) -> Sequence[TypeSpec]:
    """Returns the specs of the tensors that an ExtensionType is stacked by, or `spec` itself."""
    return spec._encoder().encoding_specs(spec) if hasattr(spec, "_encoder") else (spec,)


def row_spec(spec: TypeSpec) -> TypeSpec:
    """Returns the spec of one row of a value."""
    if isinstance(spec, NoneTensorSpec):
        return spec
    if hasattr(spec, "_unbatch"):
        return spec._unbatch()
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


# Functions are not traced, so the spec of their result is inferred by calling them with a dummy
# element. If dimensions are unknown, or the function reads a value, a second call with different
# values and sizes shows which dimensions of the result vary.


class _EscapeObserver(Recorder):
    """Observes whether a value was converted to Python or NumPy."""

    __slots__ = ("escaped",)

    def __init__(self) -> None:
        self.escaped = False

    def escape(self, tensor: Any, how: str) -> None:
        self.escaped = True


def infer_spec(function: Callable, spec: Any, first: Callable[[], Any]) -> Any:
    """Infers the specs of the result of `function` for elements of `spec`.

    If it fails with dummy elements, it is called with the real element `first()`. Then all
    dimensions of the result are unknown.
    """
    observer = _EscapeObserver()
    with random_state.replaying(random_state.state()):
        try:
            with use_recorders([observer]):
                specs = spec_of_element(function(_sample(spec, 0)))
            if not observer.escaped and all(map(_is_static, nest.flatten(spec))):
                return specs
            other = spec_of_element(function(_sample(spec, 1)))
        except Exception as error:
            try:
                element = first()
            except StopIteration:
                raise error from None
            return map_specs(_with_unknown_dims, spec_of_element(function(element)))
    return common_spec(specs, other) or specs


def _is_static(spec: TypeSpec) -> bool:
    """Returns whether elements differ only in numbers. Strings may be file names."""
    return (
        isinstance(spec, TensorSpec)
        and spec.shape.is_fully_defined()
        and spec.dtype.numpy_dtype.kind != "O"
    )


def _with_unknown_dims(spec: TypeSpec) -> TypeSpec:
    if isinstance(spec, TensorSpec):
        return TensorSpec([None] * spec.shape.rank, spec.dtype)
    return spec


def _sample(spec: Any, sample_index: int) -> Any:
    return map_specs(lambda leaf: sample_leaf(leaf, sample_index), spec)


def sample_leaf(spec: TypeSpec, sample_index: int) -> Any:
    if isinstance(spec, NoneTensorSpec):
        return None
    if isinstance(spec, RaggedTensorSpec):
        return _ragged_sample(spec, sample_index)
    shape = _sizes(spec, sample_index, 1 + sample_index)
    if isinstance(spec, SparseTensorSpec):
        indices = np.zeros((1, len(shape)), np.int64)
        return SparseTensor(
            indices, _sample_values((1,), spec, sample_index), np.array(shape, np.int64)
        )
    return (
        _sample_values(shape, spec, sample_index)
        if isinstance(spec, TensorSpec)
        else spec._sample(sample_index)
    )


def _sizes(spec: TypeSpec, sample_index: int, rank: int) -> list[int]:
    """Returns the shape of a dummy value, with `rank` axes if the rank is unknown."""
    shape = getattr(spec, "shape", None) or TensorShape([])
    sizes = [None] * rank if shape.rank is None else shape
    return [2 + sample_index if size is None else size for size in sizes]


def _sample_values(shape: Sequence[int], spec: Any, sample_index: int) -> Tensor:
    """Returns zeros for sample 0, and a mix of zeros and ones for sample 1."""
    dtype = spec.dtype.numpy_dtype
    if dtype.kind == "O":
        strings = np.empty(shape, object)
        strings.fill(DummyString(str(sample_index).encode()))  # np.full would convert it to bytes
        return Tensor(strings)
    positions = np.arange(math.prod(shape)).reshape(shape)
    return Tensor(np.asarray((positions % 3 != 1) * sample_index).astype(dtype))


def _ragged_sample(spec: RaggedTensorSpec, sample_index: int) -> Any:
    sizes = _sizes(spec, sample_index, spec.ragged_rank + 1)
    inner = spec.ragged_rank + 1
    flat = _sample_values([math.prod(sizes[:inner]), *sizes[inner:]], spec, sample_index)
    lengths = [
        np.full(math.prod(sizes[: axis + 1]), sizes[axis + 1], spec.row_splits_dtype.numpy_dtype)
        for axis in range(spec.ragged_rank)
    ]
    return RaggedTensor.from_nested_row_lengths(flat, lengths) if lengths else flat


# Stacking and unstacking


def stack_elements(elements: Sequence[Any], spec: Callable[[], Any], ragged: bool = False) -> Any:
    """Stacks elements leaf by leaf.

    `spec()` is called only if shapes differ or if `ragged` says that some leaves are rows of ragged
    tensors. These become ragged again.
    """
    if not elements:
        return map_specs(_no_rows, spec())
    _, pack = nest.flatten_with_pack(elements[0])
    columns = zip(*map(nest.flatten, elements), strict=True)
    return pack(
        [stack_leaf(column, leaf_index, spec, ragged) for leaf_index, column in enumerate(columns)]
    )


def _no_rows(spec: TypeSpec) -> Any:
    """Returns a batch without rows."""
    return _sample_values([0, *_sizes(spec, 0, 0)], spec, 0)


def are_ragged(spec: Any) -> bool:
    """Returns whether some leaves are ragged or rows of ragged tensors."""
    return any(isinstance(leaf, RaggedTensorSpec) for leaf in nest.flatten(spec))


def stack_leaf(
    leaves: Sequence[Any], leaf_index: int, spec: Callable[[], Any], ragged: bool
) -> Any:
    first = leaves[0]
    if first is None:
        return None
    if isinstance(first, SparseTensor):
        return concat_sparse(0, [expand_sparse(leaf, 0) for leaf in leaves], True)
    if isinstance(first, RaggedTensor):
        return stack_ragged(leaves, 0)
    if hasattr(first, "_join_datasets"):
        return first._join_datasets(leaves)
    if isinstance(first, CompositeTensor):
        return first._stack(leaves)
    other = next((i for i, x in enumerate(leaves) if x._spec.shape != first._spec.shape), None)
    if ragged or other is not None:
        leaf = nest.flatten(spec())[leaf_index]
        if isinstance(leaf, RaggedTensorSpec):
            return ragged_rows(leaves, leaf.ragged_rank + 1, leaf.row_splits_dtype.numpy_dtype)
    if other is not None:
        raise invalid(
            f"Cannot batch tensors with different shapes in component {leaf_index}. First element "
            f"had shape {list(first._spec.shape)} and element {other} had shape "
            f"{list(leaves[other]._spec.shape)}. Use padded_batch for such elements."
        )
    return wrap(stack_arrays([leaf._array for leaf in leaves]))


def ragged_rows(leaves: Sequence[Tensor], depth: int, splits: np.dtype) -> RaggedTensor:
    """Stacks tensors to a ragged tensor with `depth` ragged axes after the first axis."""
    arrays = [np.asarray(leaf._array) for leaf in leaves]
    lengths = [
        np.concatenate([np.full(int(np.prod(a.shape[:axis])), a.shape[axis]) for a in arrays])
        for axis in range(depth)
    ]
    flat = np.concatenate([a.reshape(-1, *a.shape[depth:]) for a in arrays])
    return RaggedTensor.from_nested_row_lengths(
        wrap(flat), [wrap(each.astype(splits)) for each in lengths], validate=False
    )


def stack_arrays(arrays: Sequence[Any]) -> np.ndarray:
    """Stacks arrays of one shape."""
    if arrays[0].ndim or arrays[0].dtype.kind == "O":
        return np.stack(arrays)
    return np.array(arrays, arrays[0].dtype)


def row_counts(leaves: Sequence[Any]) -> set[int]:
    """Returns the set of sizes of the first axes."""
    composites = [leaf for leaf in leaves if hasattr(leaf, "_row_counts")]
    if composites:
        others = [leaf for leaf in leaves if not hasattr(leaf, "_row_counts")]
        return set().union(row_counts(others), *[leaf._row_counts() for leaf in composites])
    shapes = [getattr(leaf, "shape", None) for leaf in leaves if leaf is not None]
    if any(shape is None or not shape.rank for shape in shapes):  # a Dataset has no shape
        raise ValueError(
            "Unbatching a tensor is only supported for rank >= 1. Use from_tensors for one element."
        )
    return {shape[0] for shape in shapes}


def rows_of(leaf: Any) -> Iterator[Any]:
    """Yields the rows of one leaf, or `None` forever if the leaf is `None`."""
    if leaf is None:
        while True:
            yield None
    if isinstance(leaf, Tensor):
        array = np.asarray(leaf._array)
        yield from (wrap(row_at(array, i)) for i in range(len(array)))
    elif isinstance(leaf, SparseTensor):
        yield from (_sparse_row(leaf, i) for i in range(leaf.shape[0]))
    elif hasattr(leaf, "_rows"):
        yield from leaf._rows()
    else:
        yield from (leaf[i] for i in range(leaf.shape[0]))


def row_at(array: np.ndarray, position: int) -> Any:
    """Returns one row: a view, or the value of a scalar."""
    row = array[position]
    return np.asarray(row, object) if array.dtype.kind == "O" and array.ndim == 1 else row


def _sparse_row(x: SparseTensor, position: int) -> SparseTensor:
    sizes = x.dense_shape.numpy()
    cut = slice_sparse(x, [position] + [0] * (len(sizes) - 1), [1, *sizes[1:]])
    return SparseTensor(cut.indices[:, 1:], cut.values, sizes[1:])
