"""tf.experimental: NumPy's functions on tensors, and shared memory."""

from typing import TYPE_CHECKING

from retrograde._homes import HOMES
from retrograde.core.lazily import lazily

if TYPE_CHECKING:
    from retrograde.experimental import dlpack, numpy

__getattr__, __dir__ = lazily(__name__, HOMES[__name__])

__all__ = ["dlpack", "numpy"]
