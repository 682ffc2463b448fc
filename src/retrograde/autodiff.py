"""tf.autodiff: differentiation."""

from retrograde.core.accumulator import ForwardAccumulator
from retrograde.core.tape import GradientTape

__all__ = ["ForwardAccumulator", "GradientTape"]
