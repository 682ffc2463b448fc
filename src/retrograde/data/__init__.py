"""tf.data: pipelines of elements."""

from retrograde._api.lazy import speaking
from retrograde.data import experimental
from retrograde.data._nodes import AUTOTUNE
from retrograde.data._nodes import INFINITE as INFINITE_CARDINALITY
from retrograde.data._nodes import UNKNOWN as UNKNOWN_CARDINALITY
from retrograde.data.dataset import Dataset, DatasetSpec
from retrograde.data.iterator import Iterator, NumpyIterator
from retrograde.data.options import Options, ThreadingOptions
from retrograde.data.readers import FixedLengthRecordDataset, TextLineDataset

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Dataset",
    "DatasetSpec",
    "FixedLengthRecordDataset",
    "Iterator",
    "NumpyIterator",
    "Options",
    "TextLineDataset",
    "ThreadingOptions",
    "experimental",
]

__getattr__ = speaking(__name__)
