"""tf.types: names for annotations."""

from retrograde.core.lazily import speaking
from retrograde.types import experimental

__all__ = ["experimental"]

__getattr__ = speaking(__name__)
