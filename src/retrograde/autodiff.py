"""tf.autodiff: differentiation."""

from retrograde.core.accumulator import ForwardAccumulator
from retrograde.core.lazily import speaking
from retrograde.core.tape import GradientTape

__all__ = ["ForwardAccumulator", "GradientTape"]

__getattr__ = speaking(__name__)
