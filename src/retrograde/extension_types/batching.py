"""BatchableExtensionType: types whose values can be stacked, and split into rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from retrograde.data import _elements
from retrograde.extension_types.specs import ExtensionTypeSpec
from retrograde.extension_types.types import ExtensionType
from retrograde.ragged.rows import as_tensors, unstack_rows
from retrograde.ragged.rows import stack as stack_rows
from retrograde.ragged.tensor import RaggedTensor
from retrograde.toplevel.shaping import stack
from retrograde.values import dtypes, nest
from retrograde.values.specs import TypeSpec


class ExtensionTypeBatchEncoder:
    """Encodes values as lists of tensors that can be stacked, and decodes them again.

    By default, each tensor of a value gets a batch axis. A subclass that encodes values in another
    way overrides all methods, and is the `__batch_encoder__` of a BatchableExtensionType.

    >>> encoder = tf.experimental.ExtensionTypeBatchEncoder()
    >>> class Point(tf.experimental.BatchableExtensionType):
    ...     x: tf.Tensor
    >>> encoder.batch(Point.Spec(tf.TensorSpec([2])), 5).x.shape
    TensorShape([5, 2])
    """

    def batch(self, spec: ExtensionTypeSpec, batch_size: int | None) -> ExtensionTypeSpec:
        """Returns the spec of `batch_size` stacked values."""
        return spec._from_fields(
            spec._map_leaves(lambda leaf: _elements.batched_spec(leaf, batch_size))
        )

    def unbatch(self, spec: ExtensionTypeSpec) -> ExtensionTypeSpec:
        """Returns the spec of one value of a batch."""
        return spec._from_fields(spec._map_leaves(_elements.row_spec))

    def encode(
        self,
        spec: ExtensionTypeSpec,  # noqa: ARG002
        value: ExtensionType,
        minimum_rank: int = 0,  # noqa: ARG002
    ) -> list[Any]:
        """Returns the tensors of a value."""
        return list(value._leaves())

    def decode(self, spec: ExtensionTypeSpec, encoded_value: Sequence[Any]) -> Any:
        """Creates a value from its tensors."""
        remaining = iter(encoded_value)
        return spec._value(lambda _: next(remaining))

    def encoding_specs(self, spec: ExtensionTypeSpec) -> list[TypeSpec]:
        """Returns the specs of the tensors that `encode` returns."""
        return list(spec._leaves())


class BatchableExtensionType(ExtensionType):
    """An ExtensionType whose values can be batched and unbatched.

    `Dataset.batch`, `unbatch` and `from_tensor_slices`, `tf.map_fn` and `tf.vectorized_map` accept
    such values. The attribute `__batch_encoder__` of the class can be replaced.

    >>> class Point(tf.experimental.BatchableExtensionType):
    ...     x: tf.Tensor
    ...     y: tf.Tensor
    >>> points = Point([1.0, 2.0], [3.0, 4.0])
    >>> tf.map_fn(lambda p: p.x * p.y, points, fn_output_signature=tf.float32).numpy()
    array([3., 8.], dtype=float32)
    """

    __batch_encoder__ = ExtensionTypeBatchEncoder()


# Values of datasets


def stack_values(values: Sequence[ExtensionType]) -> Any:
    """Stacks elements of a dataset. Static fields must be equal."""
    specs = [value._type_spec for value in values]
    spec = specs[0].most_specific_common_supertype(specs[1:])
    if spec is None:
        raise TypeError(f"Cannot batch values with different static fields: {specs}.")
    encoder = spec._encoder()
    columns = zip(*[encoder.encode(s, v) for s, v in zip(specs, values, strict=True)], strict=True)
    leaves = [
        _elements.stack_leaf(column, i, lambda: None, False) for i, column in enumerate(columns)
    ]
    return encoder.decode(encoder.batch(specs[0], len(values)), leaves)


def split_values(value: ExtensionType) -> Iterator[Any]:
    """Yields the rows of an element of a dataset."""
    return _decoded_rows(value, _elements.rows_of)


def row_counts(value: ExtensionType) -> set[int]:
    """Returns the set of sizes of the first axes."""
    spec = value._type_spec
    return _elements.row_counts(spec._encoder().encode(spec, value, minimum_rank=1))


def _decoded_rows(value: ExtensionType, rows_of: Callable) -> Iterator[Any]:
    spec = value._type_spec
    encoder = spec._encoder()
    row_spec = encoder.unbatch(spec)
    columns = [rows_of(leaf) for leaf in encoder.encode(spec, value, minimum_rank=1)]
    for row in zip(*columns, strict=True):
        yield encoder.decode(row_spec, list(row))


# map_fn, with gradients


def map_fn(fn: Callable, elems: Any, signature: Any = None) -> Any:
    """Maps `fn` over the rows of a structure of tensors and ExtensionTypes."""
    leaves, pack = nest.flatten_with_pack(elems)
    columns = zip(*map(_rows, leaves), strict=True)
    results = [nest.flatten(fn(pack(list(row)))) for row in columns]
    expected = elems if signature is None else signature
    stacked = [_stack(list(column)) for column in zip(*results, strict=True)]
    return nest.pack(expected, iter(stacked))


def _rows(leaf: Any) -> list:
    if isinstance(leaf, ExtensionType):
        return list(_decoded_rows(leaf, unstack_rows))
    return unstack_rows(leaf)


def _stack(values: list) -> Any:
    first = values[0]
    if isinstance(first, ExtensionType):
        spec = first._type_spec
        encoder = spec._encoder()
        columns = zip(*[encoder.encode(v._type_spec, v) for v in values], strict=True)
        return encoder.decode(encoder.batch(spec, len(values)), [_stack(list(c)) for c in columns])
    if isinstance(first, RaggedTensor):
        return stack_rows(as_tensors(values), 0).with_row_splits_dtype(dtypes.int64)
    return stack(values)
