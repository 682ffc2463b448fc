"""LazyTensor: a tensor whose array may be absent."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograde.core import namespaces
from retrograde.core.recorders import next_id
from retrograde.core.tensor import Tensor

waiting: set[int] = set()  # ids of the groups of deferred calls, see `fusion`


class Materializer:
    """The origin of a `LazyTensor`: its shape and dtype, and a method that computes the array.

    There is one subclass for each origin.
    """

    __slots__ = ()

    shape: tuple[int, ...]
    dtype: np.dtype
    array: Any = None  # the array on the host, if it is materialized and kept here
    device_array: Any = None  # the JAX array of a value that stays on a device

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

    def replaced_by(self, value: Tensor, variable_id: int) -> Tensor:
        """Returns the tensor of a variable that has this origin, after an assignment."""
        return Tensor(value._array, variable_id)

    def update(self, variable: Any, primitive: Any, delta: Tensor) -> bool:  # noqa: ARG002
        """Assigns `primitive(variable, delta)` to a variable if it is not on the host.

        Returns whether it did.
        """
        return False


_MATERIALIZED = Materializer()


def materializer_of(tensor: Tensor) -> Materializer:
    """Returns the origin of a tensor. Another thread may materialize the tensor meanwhile."""
    origin = tensor._spec
    return origin if isinstance(origin, Materializer) else _MATERIALIZED


namespaces.treat_as_numpy(Materializer)  # operations read the array with NumPy


class LazyTensor(Tensor):
    """A tensor whose array may not exist yet. Its slot then holds a `Materializer`.

    The shape and dtype are available without the array, which is materialized on first use.
    """

    __slots__ = ()

    def __init__(self, materializer: Materializer, tensor_id: int | None = None) -> None:
        self._spec = materializer
        self._id = tensor_id or next_id()

    @property
    def _array(self) -> Any:
        origin = self._spec
        # A thread that materializes the tensor first stores the array, then changes the class.
        return origin.materialize(self) if isinstance(origin, Materializer) else origin

    @property
    def _device(self) -> Any:
        return getattr(self._spec, "device_array", None)

    def _replaced_by(self, value: Tensor, variable_id: int) -> Tensor:
        return materializer_of(self).replaced_by(value, variable_id)

    def numpy(self) -> Any:
        """Returns a copy of the values as a NumPy array, or as a NumPy scalar if the rank is 0."""
        return materializer_of(self).numpy(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return materializer_of(self).view(self, dtype, copy)

    def __repr__(self) -> str:
        return materializer_of(self).text(self)

    def __reduce__(self) -> tuple:
        return Tensor, (np.require(self._array, requirements="W"),)


def make_lazy(tensor: Tensor, materializer: Materializer) -> None:
    """Frees the array of `tensor` and replaces it with `materializer`."""
    tensor.__class__ = LazyTensor
    tensor._spec = materializer


def alias(x: Tensor, tensor_id: int | None = None) -> Tensor:
    """Returns another tensor with the value of `x`, which stays where it is."""
    return Tensor(x._array, tensor_id) if x._device is None else LazyTensor(x._spec, tensor_id)
