from retrograde.core.forward_accumulator import ForwardAccumulator as ForwardAccumulator
from retrograde.core.tape import GradientTape as GradientTape
