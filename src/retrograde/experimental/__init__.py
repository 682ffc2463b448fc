"""tf.experimental: NumPy's functions on tensors, and shared memory."""

from typing import TYPE_CHECKING

from retrograde._api.lazy import lazily
from retrograde._api.names import HOMES

if TYPE_CHECKING:
    from retrograde.experimental import dlpack, numpy

__getattr__, __dir__ = lazily(__name__, HOMES[__name__])

__all__ = ["dlpack", "numpy"]
