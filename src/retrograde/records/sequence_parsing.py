"""Parses serialized sequence examples to tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops.host_functions import host_function
from retrograde.protobuf.wire import WireFormatError
from retrograde.records import columns
from retrograde.records.decoding import EMPTY, decode_sequence_example
from retrograde.records.features import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    VarLenFeature,
)
from retrograde.records.parsing import Examples, first_row, parse_column, read_values
from retrograde.records.plans import Plan, make_plans
from retrograde.strings._elementwise import as_string_tensor
from retrograde.strings.dummy import DummyString
from retrograde.values.arguments import brief
from retrograde.values.errors import invalid

_CONTEXT_KINDS = (FixedLenFeature, RaggedFeature, VarLenFeature)
_SEQUENCE_KINDS = (FixedLenSequenceFeature, RaggedFeature, VarLenFeature)


def parse_sequence_example(
    serialized: Any,
    context_features: Any = None,
    sequence_features: Any = None,
    example_names: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Tensor]]:
    """Parses serialized `tf.train.SequenceExample` messages.

    Returns a dict of tensors for the context, a dict of tensors for the sequences, and the lengths
    of the sequences that are dense. Sequences are described by `tf.io.FixedLenSequenceFeature`,
    `VarLenFeature` or `RaggedFeature`.

    >>> example = tf.train.SequenceExample()
    >>> for word in (b"to", b"be"):
    ...     steps = example.feature_lists.feature_list["words"]
    ...     steps.feature.add().bytes_list.value.append(word)
    >>> features = {"words": tf.io.FixedLenSequenceFeature([], tf.string)}
    >>> serialized = [example.SerializeToString()]
    >>> _, sequences, lengths = tf.io.parse_sequence_example(serialized, None, features)
    >>> sequences["words"].numpy(), lengths["words"].numpy()
    (array([[b'to', b'be']], dtype=object), array([2]))
    """
    plans = _make_plans(context_features, sequence_features)
    if not as_string_tensor(serialized).ndim:
        return _parse_one(serialized, *plans)
    return _parse_batch(serialized, *plans, example_names)


def parse_single_sequence_example(
    serialized: Any,
    context_features: Any = None,
    sequence_features: Any = None,
    example_name: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parses one serialized `tf.train.SequenceExample`, like `tf.io.parse_sequence_example`.

    >>> example = tf.train.SequenceExample()
    >>> example.context.feature["id"].int64_list.value.append(5)
    >>> context = {"id": tf.io.FixedLenFeature([], tf.int64)}
    >>> serialized = example.SerializeToString()
    >>> features, sequences = tf.io.parse_single_sequence_example(serialized, context)
    >>> features["id"].numpy(), sequences
    (np.int64(5), {})
    """
    plans = _make_plans(context_features, sequence_features)
    if as_string_tensor(serialized).ndim:
        raise ValueError("Input serialized must be a scalar")
    return _parse_one(serialized, *plans)[:2]


def _make_plans(context: Any, sequences: Any) -> tuple[tuple, tuple]:
    if not (context or sequences):
        raise ValueError(
            "Both context_features and sequence_features are None, but at least one should have "
            "values."
        )
    plans = make_plans(sequences or {}, *_SEQUENCE_KINDS, where="sequence_features")
    for plan in map(Plan._make, plans):
        if plan.kind == "FixedLenSequenceFeature" and plan.options[2] is not None:
            raise ValueError(f"Value feature_list.dense_defaults[{plan.name}] must be None")
    return make_plans(context or {}, *_CONTEXT_KINDS, where="context_features"), plans


@host_function(dynamic_shapes=True)
def _parse_batch(
    serialized: Any, context: tuple, sequences: tuple, example_names: Any
) -> tuple[dict, dict, dict]:
    strings = np.asarray(as_string_tensor(serialized)._array)
    if strings.ndim != 1:
        raise invalid(
            f"Expected serialized to be a scalar or vector, got shape: {list(strings.shape)}"
        )
    names = ["<unknown>"] * len(strings)
    if example_names is not None and len(example_names):
        values = np.asarray(as_string_tensor(example_names)._array).ravel().tolist()
        names = [value.decode(errors="replace") for value in values]
    examples = SequenceExamples(strings.tolist(), [f"Name: {name}, " for name in names])
    results, lengths = {}, {}
    for plan in map(Plan._make, sequences):
        results[plan.name] = _sequence_column(plan, examples)
        if plan.kind == "FixedLenSequenceFeature":
            lengths[plan.name] = Tensor(examples.lengths(plan.key))
    return {plan[1]: parse_column(Plan._make(plan), examples) for plan in context}, results, lengths


@host_function(dynamic_shapes=True)
def _parse_one(serialized: Any, context: tuple, sequences: tuple) -> tuple[dict, dict, dict]:
    example = as_string_tensor(serialized)._array.item()
    examples = SequenceExamples([example], [""])
    results, lengths = {}, {}
    for plan in map(Plan._make, sequences):
        results[plan.name] = first_row(_sequence_column(plan, examples), plan.kind)
        if plan.kind == "FixedLenSequenceFeature":
            lengths[plan.name] = Tensor(examples.lengths(plan.key)[0])
    columns = {
        plan[1]: first_row(parse_column(Plan._make(plan), examples), plan[0]) for plan in context
    }
    return columns, results, lengths


class SequenceExamples(Examples):
    """The features and feature lists of serialized sequence examples."""

    def __init__(self, examples: Sequence[bytes], labels: Sequence[str]) -> None:
        super().__init__([e if type(e) is DummyString else b"" for e in examples], labels)
        parts = [
            ({}, {}) if type(e) is DummyString else _decode_sequence_example(e) for e in examples
        ]
        self._features = [part[0] for part in parts]
        self._lists = [part[1] for part in parts]

    def lengths(self, key: str) -> np.ndarray:
        """Returns the number of steps in each example."""
        steps = [len(lists.get(key, ())) for lists in self._lists]
        pairs = zip(steps, self.dummies, strict=True)
        return np.array([dummy or count for count, dummy in pairs], np.int64)

    def steps(self, key: str, dtype: str) -> list[list[np.ndarray] | None]:
        """Returns the values of each step in each example, or `None` if the list is missing."""
        rows: list[list[np.ndarray] | None] = []
        for index, lists in enumerate(self._lists):
            dummy, label = self.dummies[index], self.labels[index]
            if dummy:
                rows.append([self._dummy_values(dummy, dtype)] * dummy)
            elif key not in lists:
                rows.append(None)
            else:
                values = [read_values(step, key, dtype, label) for step in lists[key]]
                rows.append([EMPTY[dtype] if value is None else value for value in values])
        return rows


def _decode_sequence_example(example: bytes) -> tuple[dict, dict]:
    try:
        return decode_sequence_example(example)
    except WireFormatError:
        raise invalid(f"Could not parse example input, value: {brief(example)}") from None


def _sequence_column(plan: Plan, examples: SequenceExamples) -> Any:
    key, dtype = plan.key, plan.dtype
    steps = examples.steps(key, dtype)
    if plan.kind == "FixedLenSequenceFeature":
        return _dense_sequence(plan, examples, steps)
    rows = [row or [] for row in steps]
    if plan.kind == "VarLenFeature":
        return columns.sparse_steps(rows, dtype)
    partitions, splits_dtype = plan.options
    flat = [values for row in rows for values in row]
    counts = [len(row) for row in rows]
    parts = []
    for kind, argument in partitions:
        lists = [[]] if kind == "UniformRowLength" else examples.steps(argument, "int64")
        column = [values for row in lists for values in row or []]
        if kind == "UniformRowLength":
            column = [EMPTY["int64"]] * len(flat)
        if len(column) != len(flat):
            raise invalid(
                f"RaggedFeature {plan.name}: the feature list {argument!r} has {len(column)} "
                f"steps, but {key!r} has {len(flat)}."
            )
        parts.append(((kind, argument), column))
    return columns.ragged_column(flat, dtype, parts, splits_dtype, [counts])


def _dense_sequence(plan: Plan, examples: SequenceExamples, steps: list) -> Tensor:
    shape, allow_missing, _ = plan.options
    size, rows = int(np.prod(shape)), []
    for index, row in enumerate(steps):
        label = examples.labels[index]
        if row is None and not allow_missing:
            raise invalid(
                f"{label}Feature list '{plan.name}' is required but could not be found.  Did you "
                "mean to include it in feature_list_dense_missing_assumed_empty or "
                "feature_list_dense_defaults?"
            )
        row = row or []
        if examples.dummies[index]:
            row = [np.resize(values, size) for values in row]
        for step, values in enumerate(row):
            if len(values) != size:
                raise invalid(
                    f"{label}Key: {plan.name}, Index: {step}.  Number of values != expected.  "
                    f"Values size: {len(values)} but output shape: {list(shape)} has {size}."
                )
        rows.append(columns.concatenate(row, plan.dtype))
    return columns.pad_rows(rows, plan.dtype, shape, None)
