"""tf.types.experimental: what may stand where a tensor is expected."""

from __future__ import annotations

import numpy as np

from retrograde.core.lazily import speaking
from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable

__all__ = ["TensorLike"]

__getattr__ = speaking(__name__)

TensorLike = (
    Tensor
    | Variable
    | int
    | float
    | bool
    | str
    | bytes
    | complex
    | tuple
    | list
    | np.ndarray
    | np.generic
)
