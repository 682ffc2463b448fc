"""LazyTensor: a tensor whose array may be absent."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograde.core import namespaces
from retrograde.core.recorders import next_id
from retrograde.core.tensor import Tensor

waiting: set[int] = set()  # the ids of all groups of calls that are evaluated lazily, in `fusion`


class Materializer:
    """The origin of a `LazyTensor`: it knows shape and dtype, and how to get the array.

    There is one subclass for each origin. A device or a sharding would be an attribute here.
    """

    __slots__ = ()

    shape: tuple[int, ...]
    dtype: np.dtype
    array: Any = None  # on the host, if it has been materialized and is kept here
    device_array: Any = None  # what JAX holds of a value that stays on a device

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def materialize(self, tensor: LazyTensor) -> Any:
        """Returns the array of `tensor`."""
        raise NotImplementedError

    def numpy(self, tensor: LazyTensor) -> Any:
        """Returns `tensor.numpy()`."""
        return Tensor.numpy(tensor)

    def view(self, tensor: LazyTensor, dtype: Any, copy: bool | None) -> np.ndarray:
        """Returns `tensor.__array__(dtype, copy)`."""
        return Tensor.__array__(tensor, dtype, copy)

    def text(self, tensor: LazyTensor) -> str:
        """Returns `repr(tensor)`."""
        return Tensor.__repr__(tensor)


_MATERIALIZED = Materializer()

namespaces.take_for_numpy(Materializer)  # operations read the array with NumPy


class LazyTensor(Tensor):
    """A tensor whose array may be absent: its slot holds a `Materializer` then.

    Shape and dtype are known without the array. It is materialized when it is first read.
    """

    __slots__ = ()

    def __init__(self, materializer: Materializer, tensor_id: int | None = None) -> None:
        self._spec = materializer
        self._id = tensor_id or next_id()

    @property
    def _array(self) -> Any:
        origin = self._spec
        # Another thread that materializes it puts the array there, and then changes the class.
        return origin.materialize(self) if isinstance(origin, Materializer) else origin

    @property
    def _materializer(self) -> Materializer:
        origin = self._spec
        return origin if isinstance(origin, Materializer) else _MATERIALIZED

    @property
    def _device(self) -> Any:
        return getattr(self._spec, "device_array", None)

    def numpy(self) -> Any:
        """A copy of the values: an array, or a NumPy scalar if there are no axes."""
        return self._materializer.numpy(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self._materializer.view(self, dtype, copy)

    def __repr__(self) -> str:
        return self._materializer.text(self)

    def __reduce__(self) -> tuple:
        return Tensor, (np.require(self._array, requirements="W"),)


def make_lazy(tensor: Tensor, materializer: Materializer) -> None:
    """Frees the array of `tensor`, which `materializer` stands for from now on."""
    tensor.__class__ = LazyTensor
    tensor._spec = materializer
