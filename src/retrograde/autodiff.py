"""tf.autodiff: differentiation."""

from retrograde._api.lazy import speaking as _speaking
from retrograde.core.forward_accumulator import ForwardAccumulator
from retrograde.core.tape import GradientTape

__all__ = ["ForwardAccumulator", "GradientTape"]

__getattr__ = _speaking(__name__)
