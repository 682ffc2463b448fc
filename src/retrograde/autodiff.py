"""tf.autodiff: differentiation."""

from retrograde.core.accumulator import ForwardAccumulator
from retrograde.core.lazily import speaking as _speaking
from retrograde.core.tape import GradientTape

__all__ = ["ForwardAccumulator", "GradientTape"]

__getattr__ = _speaking(__name__)
