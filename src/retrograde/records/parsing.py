"""Parses serialized examples to tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops.host_functions import host_function
from retrograde.protobuf.wire import WireFormatError
from retrograde.records import columns
from retrograde.records.decoding import EMPTY, Values, decode_example, decode_feature
from retrograde.records.features import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
)
from retrograde.records.plans import Plan, make_plans
from retrograde.sparse.tensor import SparseTensor
from retrograde.strings._elementwise import STRING, array_of, as_string_tensor
from retrograde.strings.dummy import DummyString
from retrograde.values.arguments import brief, shown
from retrograde.values.errors import InvalidArgumentError, invalid

_KINDS = (FixedLenFeature, FixedLenSequenceFeature, RaggedFeature, SparseFeature, VarLenFeature)
_PROTO_NAMES = {"float32": "float", "int64": "int64", "string": "string"}


def parse_example(
    serialized: Any, features: Any, example_names: Any = None, name: str | None = None
) -> dict[str, Any]:
    """Parses serialized `tf.train.Example` messages to a dict of tensors.

    `serialized` is a vector of strings, or one string. `features` maps names to
    `tf.io.FixedLenFeature`, `VarLenFeature`, `SparseFeature`, `RaggedFeature` or
    `FixedLenSequenceFeature`. `example_names` appear in error messages.

    >>> example = tf.train.Example()
    >>> example.features.feature["x"].float_list.value.append(1.5)
    >>> serialized = [example.SerializeToString(), tf.train.Example().SerializeToString()]
    >>> features = {"x": tf.io.FixedLenFeature([], tf.float32, default_value=-1.0)}
    >>> tf.io.parse_example(serialized, features)["x"].numpy()
    array([ 1.5, -1. ], dtype=float32)
    """
    plans = _make_plans(features)
    if not as_string_tensor(serialized).ndim:
        return _parse_one(serialized, plans)
    return _parse_batch(serialized, plans, example_names)


def parse_single_example(
    serialized: Any, features: Any, example_names: Any = None, name: str | None = None
) -> dict[str, Any]:
    """Parses one serialized `tf.train.Example`, like `tf.io.parse_example`.

    >>> example = tf.train.Example()
    >>> example.features.feature["x"].int64_list.value.extend([1, 2])
    >>> features = {"x": tf.io.FixedLenFeature([2], tf.int64)}
    >>> tf.io.parse_single_example(example.SerializeToString(), features)["x"].numpy()
    array([1, 2])
    """
    plans = _make_plans(features)
    if as_string_tensor(serialized).ndim:
        raise ValueError("Input serialized must be a scalar")
    return _parse_one(serialized, plans)


def _make_plans(features: Any) -> tuple[tuple, ...]:
    if not features:
        raise ValueError(f"Argument `features` cannot be None or falsy. Got {shown(features)}")
    plans = make_plans(features, *_KINDS)
    for plan in map(Plan._make, plans):
        if plan.kind == "FixedLenSequenceFeature" and not plan.options[1]:
            raise ValueError(
                "Unsupported: FixedLenSequenceFeature requires allow_missing to be True."
            )
    return plans


@host_function(dynamic_shapes=True)
def _parse_batch(serialized: Any, plans: tuple, example_names: Any) -> dict[str, Any]:
    strings = np.asarray(as_string_tensor(serialized)._array)
    if strings.ndim != 1:
        raise invalid(
            f"Expected serialized to be a scalar or vector, got shape: {list(strings.shape)}"
        )
    names = ["<unknown>"] * len(strings)
    if example_names is not None and len(example_names):
        values = np.asarray(as_string_tensor(example_names)._array).ravel().tolist()
        names = [value.decode(errors="replace") for value in values]
    examples = Examples(strings.tolist(), [f"Name: {name}, " for name in names])
    return {plan[1]: parse_column(Plan._make(plan), examples) for plan in plans}


@host_function(dynamic_shapes=True)
def _parse_one(serialized: Any, plans: tuple) -> dict[str, Any]:
    example = as_string_tensor(serialized)._array.item()
    examples = Examples([example], [""])
    return {plan[1]: first_row(parse_column(Plan._make(plan), examples), plan[0]) for plan in plans}


def first_row(column: Any, kind: str) -> Any:
    """Returns the row of a column with one row."""
    if isinstance(column, SparseTensor):
        return SparseTensor(
            Tensor(column.indices._array[:, 1:]),
            column.values,
            Tensor(column.dense_shape._array[1:]),
        )
    if kind == "RaggedFeature":
        return column.values
    return Tensor(column._array.reshape(column._array.shape[1:]))


class Examples:
    """The features of serialized examples. `labels` are prefixes of error messages."""

    def __init__(self, examples: Sequence[bytes], labels: Sequence[str]) -> None:
        self.labels = labels
        self.dummies = [
            int(example) + 1 if type(example) is DummyString else 0 for example in examples
        ]
        pairs = zip(examples, self.dummies, strict=True)
        self._features = [{} if dummy else _decode_example(example) for example, dummy in pairs]

    def values(self, key: str, dtype: str) -> list[np.ndarray | None]:
        """Returns the values of a feature in each example, or `None` if the feature is missing."""
        return [
            self._dummy_values(self.dummies[index], dtype)
            if self.dummies[index]
            else read_values(features.get(key), key, dtype, self.labels[index])
            for index, features in enumerate(self._features)
        ]

    def values_or_empty(self, key: str, dtype: str) -> list[np.ndarray]:
        """Returns the values of a feature in each example, or an empty array if it is missing."""
        return [EMPTY[dtype] if x is None else x for x in self.values(key, dtype)]

    def _dummy_values(self, count: int, dtype: str) -> np.ndarray:
        if dtype == "string":
            return array_of([DummyString(b"%d" % (count - 1))] * count, STRING)
        return np.zeros(count, dtype)


def _decode_example(example: bytes) -> dict[str, bytes]:
    try:
        return decode_example(example)
    except WireFormatError:
        raise invalid(f"Could not parse example input, value: {brief(example)}") from None


def read_values(feature: bytes | None, key: str, dtype: str, label: str) -> np.ndarray | None:
    """Returns the values of a serialized feature, which must have `dtype`."""
    try:
        values: Values = decode_feature(feature)
    except WireFormatError as error:
        raise invalid(f"{label}Key: {key}.  Can't parse serialized Example: {error}.") from None
    if values is None:
        return None
    if values[0] != dtype:
        raise invalid(
            f"{label}Key: {key}.  Data types don't match. Expected type: {_PROTO_NAMES[dtype]}, "
            f"Actual type: {_PROTO_NAMES[values[0]]}"
        )
    return values[1]


def parse_column(plan: Plan, examples: Any) -> Any:
    """Returns the tensor of one feature."""
    key, dtype = plan.key, plan.dtype
    if plan.kind == "FixedLenFeature":
        return _fixed_column(plan, examples)
    rows = examples.values_or_empty(key, dtype)
    if plan.kind == "VarLenFeature":
        return columns.sparse_rows(rows, dtype)
    if plan.kind == "FixedLenSequenceFeature":
        shape, _, padding = plan.options
        size = int(np.prod(shape))
        if any(examples.dummies):
            rows = [
                np.resize(row, count * size)
                for row, count in zip(rows, examples.dummies, strict=True)
            ]
        for index, row in enumerate(rows):
            if len(row) % size if size else len(row):
                raise invalid(
                    f"{examples.labels[index]}Key: {key}, Index: {index}.  Number of "
                    f"{_PROTO_NAMES[dtype]} values is not a multiple of stride length. Saw "
                    f"{len(row)} values but output shape is: {list(shape)}"
                )
        return columns.pad_rows(rows, dtype, shape, padding)
    if plan.kind == "SparseFeature":
        keys, sizes, already_sorted = plan.options
        indices = [examples.values_or_empty(index_key, "int64") for index_key in keys]
        return columns.sparse_feature(indices, rows, dtype, sizes, already_sorted)
    partitions, splits_dtype = plan.options
    if any(examples.dummies):
        rows, partitions = _dummy_partitions(rows, partitions)
        return columns.ragged_column(rows, dtype, partitions, splits_dtype)
    parts = [
        (
            part,
            [EMPTY["int64"]] * len(rows)
            if part[0] == "UniformRowLength"
            else examples.values_or_empty(part[1], "int64"),
        )
        for part in partitions
    ]
    return columns.ragged_column(rows, dtype, parts, splits_dtype)


def _dummy_partitions(rows: list[np.ndarray], partitions: tuple) -> tuple[list, list]:
    """Returns dummy partitions, and dummy values whose number the uniform partitions divide."""
    factor = int(np.prod([part[1] for part in partitions if part[0] == "UniformRowLength"]))
    parts = [
        (part if part[0] == "UniformRowLength" else ("RowLengths", ""), None) for part in partitions
    ]
    resized = [np.resize(row, len(row) * factor) for row in rows]
    counts = [len(row) for row in resized]
    for index in reversed(range(len(parts))):
        part = parts[index][0]
        if part[0] == "UniformRowLength":
            parts[index] = (part, [EMPTY["int64"]] * len(rows))
            counts = [count // part[1] if part[1] else 0 for count in counts]
        else:
            parts[index] = (part, [np.ones(count, np.int64) for count in counts])
    return resized, parts


def _fixed_column(plan: Plan, examples: Any) -> Tensor:
    shape, default = plan.options
    size = int(np.prod(shape))
    rows = examples.values(plan.key, plan.dtype)
    for index, row in enumerate(rows):
        if examples.dummies[index]:
            rows[index] = np.resize(row, size)
        elif row is None:
            rows[index] = _default_row(plan, default, examples.labels[index])
        elif len(row) != size:
            raise _count_error(plan, index, len(row), size, examples.labels[index])
    return columns.stack_rows(rows, plan.dtype, shape)


def _default_row(plan: Plan, default: tuple | None, label: str) -> np.ndarray:
    if default is None:
        raise invalid(
            f"{label}Feature: {plan.name} (data type: {_PROTO_NAMES[plan.dtype]}) is required but "
            "could not be found."
        )
    row = np.empty(len(default), EMPTY[plan.dtype].dtype)
    row[:] = default
    return row


def _count_error(plan: Plan, index: int, count: int, size: int, label: str) -> InvalidArgumentError:
    return invalid(
        f"{label}Key: {plan.name}, Index: {index}.  Number of {_PROTO_NAMES[plan.dtype]} values "
        f"!= expected.  Values size: {count} but output shape: {list(plan.options[0])} has {size}."
    )
