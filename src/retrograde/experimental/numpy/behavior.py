"""NumPy behavior of all tensors."""

from __future__ import annotations

from typing import Any

import retrograde as tf
from retrograde.core.tensor import Tensor
from retrograde.experimental.numpy import dtypes
from retrograde.experimental.numpy._inputs import promote
from retrograde.experimental.numpy.elementwise import around, clip
from retrograde.experimental.numpy.indexing import get_item
from retrograde.experimental.numpy.products import matmul
from retrograde.experimental.numpy.promotion import promoter
from retrograde.experimental.numpy.reductions import amax, amin, mean
from retrograde.experimental.numpy.shaping import flatten, ravel, reshape, transpose
from retrograde.ops.operators import promote_operands
from retrograde.values.arguments import shown


def experimental_enable_numpy_behavior(
    prefer_float32: bool = False, dtype_conversion_mode: str = "legacy"
) -> None:
    """Makes tensors behave like NumPy arrays, for the rest of the program.

    Tensors get some methods of arrays: `T`, `size`, `data`, `reshape`, `ravel`, `flatten`,
    `transpose`, `astype`, `clip`, `max`, `min`, `mean`, `tolist`, `+x` and `round`. Brackets accept
    arrays of indices. Operators promote different dtypes to their `result_type`, unless
    `dtype_conversion_mode` is "off"; functions such as `tf.add` stay strict. The mode "safe"
    refuses conversions that could change values, such as int32 to float32. In the mode "all",
    integers take the dtype of floating-point operands, however narrow it is. In both, a Python
    number takes the dtype of the tensor. With `prefer_float32`, Python floats count as float32.
    """
    modes = {"legacy": promote, "off": None, "safe": promoter("safe"), "all": promoter("all")}
    if dtype_conversion_mode not in modes:
        raise ValueError(
            "experimental_enable_numpy_behavior: `dtype_conversion_mode` must be 'legacy', 'off', "
            f"'safe' or 'all'. Received: {shown(dtype_conversion_mode)}."
        )
    promote_operands(modes[dtype_conversion_mode], matmul)
    dtypes.prefer_float32(prefer_float32)
    Tensor.__getitem__ = get_item
    for name, method in _METHODS.items():
        setattr(Tensor, name, method)


def _reshape(self: Tensor, *newshape: Any, **kwargs: Any) -> Tensor:
    order = kwargs.pop("order", "C")
    if kwargs:
        raise ValueError(f"reshape: the argument `{next(iter(kwargs))}` is not supported.")
    single = len(newshape) == 1 and not isinstance(newshape[0], int)
    return reshape(self, newshape[0] if single else newshape, order)


_METHODS = {
    "T": property(lambda self: transpose(self)),
    "size": property(lambda self: self._spec.size),
    "data": property(lambda self: self),
    "tolist": lambda self: self.numpy().tolist(),
    "reshape": _reshape,
    "ravel": ravel,
    "flatten": flatten,
    "transpose": transpose,
    "astype": tf.cast,
    "clip": clip,
    "max": amax,
    "min": amin,
    "mean": mean,
    "__pos__": lambda self: self,
    "__round__": around,
}
