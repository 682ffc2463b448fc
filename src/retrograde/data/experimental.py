"""tf.data.experimental: the number of elements, and no element."""

from __future__ import annotations

from collections.abc import Callable

from retrograde.core.lazily import speaking
from retrograde.core.tensor import Tensor
from retrograde.data._nodes import AUTOTUNE
from retrograde.data._nodes import INFINITE as INFINITE_CARDINALITY
from retrograde.data._nodes import UNKNOWN as UNKNOWN_CARDINALITY
from retrograde.data._steps import counted_exactly
from retrograde.data.dataset import Dataset
from retrograde.data.iterator import Optional

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Optional",
    "assert_cardinality",
    "cardinality",
]

__path__: list[str] = []  # of TensorFlow's, modules can be imported
__getattr__ = speaking(__name__)


def cardinality(dataset: Dataset) -> Tensor:
    """How many elements there are, as `dataset.cardinality()`."""
    return dataset.cardinality()


def assert_cardinality(expected_cardinality: int) -> Callable[[Dataset], Dataset]:
    """For `Dataset.apply`: says how many elements there are, and checks it in each whole pass."""
    expected = int(expected_cardinality)

    def transformation(dataset: Dataset) -> Dataset:
        return dataset._stream(
            lambda elements, _run: counted_exactly(elements, expected),
            "AssertCardinality",
            cardinality=lambda _n: expected,
        )

    return transformation
