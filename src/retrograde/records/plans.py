"""Plans: descriptions of features, checked and converted to tuples of plain Python values.

Traced functions store the arguments of a parser, so plans contain only values that a saved model
can store.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from retrograde.ops.conversion import as_tensor
from retrograde.records.features import (
    FixedLenFeature,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
)
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.errors import invalid
from retrograde.values.shapes import TensorShape

_DTYPES = (dtypes.float32, dtypes.int64, dtypes.string)


class Plan(NamedTuple):
    """The description of one feature: the name of its class, its key, dtype and other options."""

    kind: str
    name: str
    key: str  # of the values
    dtype: str
    options: tuple = ()


def make_plans(features: Any, *kinds: type, where: str = "features") -> tuple[tuple, ...]:
    """Returns the plans of a dict of features, as plain tuples. Only `kinds` are allowed."""
    if not isinstance(features, Mapping):
        raise TypeError(f"`{where}` must be a dict of features. Received: {shown(features)}.")
    return tuple(
        [tuple(_make_plan(name, features[name], kinds, where)) for name in sorted(features)]
    )


def _make_plan(name: str, feature: Any, kinds: tuple[type, ...], where: str) -> Plan:
    if not isinstance(feature, kinds):
        expected = ", ".join(kind.__name__ for kind in kinds)
        raise ValueError(
            f"Unsupported {type(feature).__name__} {shown(feature)} for key {name!r} of `{where}`. "
            f"Expected one of: {expected}."
        )
    if feature.dtype is None or feature.dtype == "":
        raise ValueError(f"Missing type for feature {name}. Received feature={shown(feature)}.")
    dtype = dtypes.as_dtype(feature.dtype)
    if dtype not in _DTYPES:
        raise invalid(
            f"Feature {name} has the dtype {dtype.name}. Expected float32, int64 or string."
        )
    kind = type(feature).__name__
    if isinstance(feature, VarLenFeature):
        return Plan(kind, name, name, dtype.name)
    if isinstance(feature, SparseFeature):
        return Plan(
            kind, name, _get_required(feature, "value_key"), dtype.name, _axes(feature, name)
        )
    if isinstance(feature, RaggedFeature):
        partitions = tuple([(type(part).__name__, part[0]) for part in feature[2]])
        key = name if feature.value_key is None else feature.value_key
        splits = feature.row_splits_dtype.name
        return Plan(kind, name, key, dtype.name, (partitions, splits))
    shape = _shape(feature, name)
    if isinstance(feature, FixedLenFeature):
        default = _default(feature.default_value, dtype, shape, name)
        return Plan(kind, name, name, dtype.name, (shape, default))
    default = feature.default_value
    padding = None if default is None else _scalar(default, dtype, name)
    return Plan(kind, name, name, dtype.name, (shape, feature.allow_missing, padding))


def _get_required(feature: Any, attribute: str) -> Any:
    value = getattr(feature, attribute)
    if not value:
        raise ValueError(
            f"Missing {attribute} in SparseFeature. Received feature={shown(feature)}."
        )
    return value


def _axes(feature: SparseFeature, name: str) -> tuple:
    keys, sizes = _get_required(feature, "index_key"), feature.size
    keys = (keys,) if isinstance(keys, str) else tuple(keys)
    sizes = tuple([int(n) for n in np.ravel(np.asarray(sizes))])
    if len(keys) != len(sizes):
        raise ValueError(
            f"SparseFeature {name} has {len(keys)} index keys and {len(sizes)} sizes. Expected one "
            "size for each index key."
        )
    return keys, sizes, bool(feature.already_sorted)


def _shape(feature: Any, name: str) -> tuple[int, ...]:
    if feature.shape is None:
        raise ValueError(f"Missing shape for feature {name}. Received feature={shown(feature)}.")
    shape = TensorShape(feature.shape)
    if not shape.is_fully_defined():
        raise ValueError(
            f"Feature {name} has the shape {shape}. All dimensions must be known. Use "
            "tf.io.FixedLenSequenceFeature or tf.io.VarLenFeature for an unknown number of values."
        )
    return tuple(shape.as_list())


def _values(value: Any, dtype: Any) -> np.ndarray:
    return np.asarray(as_tensor(value, dtype.numpy_dtype))


def _default(value: Any, dtype: Any, shape: tuple[int, ...], name: str) -> tuple | None:
    """Returns the default values of a dense feature, flattened."""
    if value is None:
        return None
    array = _values(value, dtype)
    if array.size != np.prod(shape):
        raise invalid(
            f"The default of feature {name} has shape {array.shape}. Expected shape {shape}."
        )
    return tuple(array.ravel().tolist())


def _scalar(value: Any, dtype: Any, name: str) -> Any:
    array = _values(value, dtype)
    if array.size != 1:
        raise invalid(f"The default of feature {name} has shape {array.shape}. Expected a scalar.")
    return array.ravel().tolist()[0]
