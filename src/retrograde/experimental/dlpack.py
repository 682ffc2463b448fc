"""tf.experimental.dlpack: zero-copy exchange of memory with other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde._api.lazy import from_all
from retrograde.core.tensor import Tensor
from retrograde.ops.conversion import as_tensor
from retrograde.values.errors import invalid

__all__ = ["from_dlpack", "to_dlpack"]

__getattr__, __dir__ = from_all(__name__)

_CPU = (1, 0)


def to_dlpack(tf_tensor: Any) -> Any:
    """Returns a DLPack capsule with the elements of a tensor."""
    x = as_tensor(tf_tensor)
    try:
        return x.__dlpack__()
    except BufferError as error:
        raise invalid(f"to_dlpack: {error}. Received: dtype {x.dtype.name}.") from None


def from_dlpack(dlcapsule: Any) -> Tensor:
    """Creates a tensor from a CPU capsule of another library, without copying.

    >>> capsule = tf.experimental.dlpack.to_dlpack(tf.constant([1.0, 2.0]))
    >>> tf.experimental.dlpack.from_dlpack(capsule).numpy()
    array([1., 2.], dtype=float32)
    """
    return Tensor(np.from_dlpack(_Capsule(dlcapsule)))


class _Capsule:
    """Adapts a capsule to the interface that NumPy expects."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU
