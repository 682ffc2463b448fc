"""tf.ragged: tensors whose rows differ in length."""

from retrograde._api.lazy import speaking
from retrograde.ragged import indexing as _indexing  # noqa: F401 (it binds __getitem__)
from retrograde.ragged.factories import (
    boolean_mask,
    constant,
    cross,
    cross_hashed,
    map_flat_values,
    range,
    row_splits_to_segment_ids,
    segment_ids_to_row_splits,
    stack,
    stack_dynamic_partitions,
)

__all__ = [
    "boolean_mask",
    "constant",
    "cross",
    "cross_hashed",
    "map_flat_values",
    "range",
    "row_splits_to_segment_ids",
    "segment_ids_to_row_splits",
    "stack",
    "stack_dynamic_partitions",
]

__getattr__ = speaking(__name__)
