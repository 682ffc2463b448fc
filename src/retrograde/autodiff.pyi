from retrograde.core.tape import GradientTape as GradientTape
from retrograde.derivatives.forward_accumulator import ForwardAccumulator as ForwardAccumulator
