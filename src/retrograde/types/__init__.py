"""tf.types: names for annotations."""

from retrograde._api.lazy import speaking
from retrograde.types import experimental

__all__ = ["experimental"]

__getattr__ = speaking(__name__)
