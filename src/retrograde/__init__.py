"""retrograde: TensorFlow's GradientTape programming model, on NumPy."""

from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable
from retrograde.core.tape import GradientTape
import retrograde.ops.operators
