"""tf.autodiff: differentiation."""

from retrograde.core.tape import GradientTape

__all__ = ["GradientTape"]
