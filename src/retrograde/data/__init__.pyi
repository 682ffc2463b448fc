from retrograde.data import experimental as experimental
from retrograde.data._nodes import (
    AUTOTUNE as AUTOTUNE,
    INFINITE_CARDINALITY as INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY as UNKNOWN_CARDINALITY,
)
from retrograde.data.dataset import Dataset as Dataset, DatasetSpec as DatasetSpec
from retrograde.data.iterator import Iterator as Iterator, NumpyIterator as NumpyIterator
from retrograde.data.options import Options as Options, ThreadingOptions as ThreadingOptions
from retrograde.data.readers import (
    FixedLengthRecordDataset as FixedLengthRecordDataset,
    TextLineDataset as TextLineDataset,
)
