"""Descriptions of the features that `tf.io.parse_example` reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from retrograde.values import dtypes
from retrograde.values.arguments import shown


class FixedLenFeature(NamedTuple):
    """A feature with a fixed number of values, which becomes a dense tensor.

    Examples without the feature have `default_value`. Without a default, the feature is required.

    >>> example = tf.train.Example()
    >>> example.features.feature["x"].float_list.value.extend([1.0, 2.0])
    >>> features = {"x": tf.io.FixedLenFeature([2], tf.float32)}
    >>> tf.io.parse_single_example(example.SerializeToString(), features)["x"].numpy()
    array([1., 2.], dtype=float32)
    """

    shape: Any
    dtype: Any
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """A feature with any number of values, which becomes a `tf.SparseTensor`.

    >>> example = tf.train.Example()
    >>> example.features.feature["x"].int64_list.value.extend([1, 2])
    >>> features = {"x": tf.io.VarLenFeature(tf.int64)}
    >>> tf.io.parse_single_example(example.SerializeToString(), features)["x"].values.numpy()
    array([1, 2])
    """

    dtype: Any


class SparseFeature(NamedTuple):
    """A `tf.SparseTensor` whose indices and values are separate features.

    `index_key` names one feature of indices for each axis, and `size` is the size of each axis.

    >>> example = tf.train.Example()
    >>> example.features.feature["i"].int64_list.value.extend([0, 2])
    >>> example.features.feature["v"].float_list.value.extend([1.0, 3.0])
    >>> features = {"x": tf.io.SparseFeature("i", "v", tf.float32, size=4)}
    >>> x = tf.io.parse_single_example(example.SerializeToString(), features)["x"]
    >>> tf.sparse.to_dense(x).numpy()
    array([1., 0., 3., 0.], dtype=float32)
    """

    index_key: Any
    value_key: str
    dtype: Any
    size: Any
    already_sorted: bool = False


class FixedLenSequenceFeature(NamedTuple):
    """A sequence of arrays of a fixed shape, which becomes a padded dense tensor.

    >>> examples = [tf.train.Example(), tf.train.Example()]
    >>> examples[1].features.feature["x"].int64_list.value.extend([1, 2])
    >>> serialized = [example.SerializeToString() for example in examples]
    >>> features = {"x": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)}
    >>> tf.io.parse_example(serialized, features)["x"].numpy()
    array([[0, 0],
           [1, 2]])
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


class RowSplits(NamedTuple):
    """The index of the first value of each row, followed by the number of values."""

    key: str


class RowLengths(NamedTuple):
    """The number of values in each row."""

    key: str


class RowStarts(NamedTuple):
    """The index of the first value of each row."""

    key: str


class RowLimits(NamedTuple):
    """The index after the last value of each row."""

    key: str


class ValueRowIds(NamedTuple):
    """The row index of each value."""

    key: str


class UniformRowLength(NamedTuple):
    """The number of values in every row."""

    length: int


_PARTITIONS = (RowSplits, RowLengths, RowStarts, RowLimits, ValueRowIds, UniformRowLength)


class _RaggedFields(NamedTuple):
    dtype: Any
    value_key: str | None
    partitions: tuple
    row_splits_dtype: Any
    validate: bool


class RaggedFeature(_RaggedFields):
    """A feature with any number of values, which becomes a `tf.RaggedTensor`.

    `partitions` divide the values into rows, from the outermost to the innermost. Each is a
    `RaggedFeature.RowLengths(key)`, `RowSplits`, `RowStarts`, `RowLimits` or `ValueRowIds`, with
    the key of a feature of integers, or a `RaggedFeature.UniformRowLength(length)`.

    >>> example = tf.train.Example()
    >>> example.features.feature["v"].int64_list.value.extend([3, 1, 4])
    >>> example.features.feature["n"].int64_list.value.extend([1, 2])
    >>> rows = tf.io.RaggedFeature(tf.int64, "v", [tf.io.RaggedFeature.RowLengths("n")])
    >>> tf.io.parse_example([example.SerializeToString()], {"x": rows})["x"]
    <tf.RaggedTensor [[[3], [1, 4]]]>
    """

    __slots__ = ()

    RowSplits, RowLengths, RowStarts = RowSplits, RowLengths, RowStarts
    RowLimits, ValueRowIds, UniformRowLength = RowLimits, ValueRowIds, UniformRowLength

    def __new__(
        cls,
        dtype: Any,
        value_key: str | None = None,
        partitions: Sequence[Any] = (),
        row_splits_dtype: Any = dtypes.int32,
        validate: bool = False,
    ) -> RaggedFeature:
        """Creates the description and checks its arguments."""
        if value_key is not None and not isinstance(value_key, str):
            raise ValueError(f"Argument `value_key` must be a string; got {shown(value_key)}")
        if not all(isinstance(part, _PARTITIONS) for part in partitions):
            raise TypeError(
                f"Argument `partitions` must be a list of partition objects; got "
                f"{shown(partitions)}"
            )
        value_dtype = dtypes.as_dtype(dtype)
        if value_dtype not in (dtypes.int64, dtypes.float32, dtypes.string):
            raise ValueError(
                f"Argument `dtype` must be int64, float32, or bytes; got {value_dtype!r}"
            )
        splits_dtype = dtypes.as_dtype(row_splits_dtype)
        if splits_dtype not in (dtypes.int32, dtypes.int64):
            raise ValueError(
                f"Argument `row_splits_dtype` must be int32 or int64; got {splits_dtype!r}"
            )
        return super().__new__(
            cls, value_dtype, value_key, tuple(partitions), splits_dtype, validate
        )
