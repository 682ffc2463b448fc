"""Tensor: an immutable handle on one array."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from retrograde.core import namespaces
from retrograde.core.hooks import hook
from retrograde.core.recorders import escape, next_id, symbolic_name
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.dtypes import DType
from retrograde.values.errors import allocate, exhausted
from retrograde.values.holder import Holder
from retrograde.values.shapes import TensorShape
from retrograde.values.sizes import Size, public_shape
from retrograde.values.specs import TensorSpec

if TYPE_CHECKING:
    from retrograde._api.declarations import TensorMethods as _TensorBase
else:
    _TensorBase = Holder

_EDGE_ITEMS = 6  # elements of a long axis that NumPy prints
_MOST_PRINTED = 100_000

_PACKAGE = f"{__name__.partition('.')[0]}."
_CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


class _MissingAttribute:
    """An attribute that tensors do not have. Reading it raises an error that says what to use.

    A `__getattr__` would slow down every access to every attribute.
    """

    __slots__ = ("_message",)

    def __init__(self, message: str) -> None:
        self._message = message

    def __get__(self, instance: Any, owner: type) -> Any:
        raise AttributeError(self._message)


class Tensor(_TensorBase):
    """An immutable array with TensorFlow's semantics. Tapes record the operations on it.

    `tf.constant` and `tf.convert_to_tensor` create tensors, and every operation returns them.
    Python's operators work on them. Different dtypes do not mix without `tf.cast`. `numpy()`
    returns a copy as a NumPy array.

    >>> x = tf.constant([[1.0, 2.0]])
    >>> x.shape, x.dtype, (x @ tf.transpose(x)).numpy()
    (TensorShape([1, 2]), tf.float32, array([[5.]], dtype=float32))
    """

    # `_spec` is another name for the slot of `_array`, used to read `shape`, `dtype`, `ndim` and
    # `size`: the slot of a `LazyTensor` has an object that has these before the array exists.
    # The array is a `numpy.ndarray` or a `jax.Array`. A scalar may be a NumPy scalar, which is
    # faster. `_id` identifies the tensor on tapes. `ops/operators.py` defines the operators.
    # Packages above `core` add the attributes `_extra1` and `_extra2`: a `__dict__` would make each
    # tensor larger, and slower to create.
    __slots__ = ("__weakref__", "_array", "_extra1", "_extra2", "_id", "trainable")
    __array_priority__ = 100

    _device: Any = None  # the JAX array, if the value stays on a device after a compiled program

    def __init__(self, array: Any, tensor_id: int | None = None) -> None:
        if not isinstance(array, (np.ndarray, np.generic)):
            namespaces.register(array)
        self._array = array
        self._id = tensor_id or next_id()

    @property
    def shape(self) -> TensorShape:
        """The shape."""
        spec = self._spec
        if type(spec) is not np.ndarray:
            dims = spec.shape
            if Size in map(type, dims) and not _is_called_from_here():
                dims = public_shape(dims)
            return TensorShape(dims)
        shape = _new(TensorShape)  # without the checks of `__init__`: layers read shapes often
        shape._dims = spec.shape
        return shape

    @property
    def dtype(self) -> DType:
        """The dtype."""
        return dtypes.of(self._spec.dtype)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._spec.ndim

    @property
    def device(self) -> str:
        """The name of the device that holds the array, in TensorFlow's notation."""
        array = self._array if self._device is None else self._device
        is_numpy = isinstance(array, (np.ndarray, np.generic))
        return _CPU if is_numpy else hook("device_name")(array)

    def get_shape(self) -> TensorShape:
        """Returns the shape."""
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Raises a `ValueError` unless `shape` is compatible with the shape of the tensor."""
        if not self.shape.is_compatible_with(shape):
            raise ValueError(
                f"Tensor's shape {self.shape} is not compatible with supplied shape "
                f"{TensorShape(shape)}."
            )

    def _read(self) -> Tensor:
        """Returns the tensor itself. The method of a `Variable` returns its current tensor."""
        return self

    def _replaced_by(self, value: Tensor, variable_id: int) -> Tensor:
        """Returns the tensor of a variable that holds this one, after `value` is assigned to it."""
        tensor = _new(Tensor)  # inlined `wrap`
        tensor._array = value._array
        tensor._id = variable_id
        return tensor

    def ref(self) -> Reference:
        """Returns a hashable reference, equal to other references to the same tensor."""
        return Reference(self)

    def numpy(self) -> Any:
        """Returns a copy of the values as a NumPy array, or as a NumPy scalar if the rank is 0."""
        escape(self, "numpy")
        array = self._array
        if array.ndim:
            try:
                return np.array(array)
            except MemoryError as error:
                raise exhausted(error, "numpy") from None
        return array.item() if array.dtype == object else np.asarray(array)[()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        escape(self, "__array__")
        return readable(self._array, dtype, copy)

    def __dlpack__(self, *, max_version: tuple[int, int] | None = None, **options: Any) -> Any:
        escape(self, "__dlpack__")
        return _exportable(self._array, max_version).__dlpack__(max_version=max_version, **options)

    def __dlpack_device__(self) -> tuple:
        return _exportable(self._array).__dlpack_device__()

    def __buffer__(self, flags: int) -> memoryview:
        escape(self, "__buffer__")
        view: Any = readable(self._array)
        return view.__buffer__(flags)

    def __bytes__(self) -> bytes:
        escape(self, "bytes")
        return readable(self._array).tobytes()

    def __len__(self) -> int:
        if not self._spec.ndim:
            raise TypeError("Scalar tensor has no `len()`.")
        return self._spec.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self._spec.ndim:
            raise TypeError("Cannot iterate over a scalar tensor.")
        if type(self._spec.shape[0]) is Size:
            raise TypeError("Cannot iterate over a tensor with an unknown first dimension.")
        return (self[i] for i in range(self._spec.shape[0]))

    def __bool__(self) -> bool:
        escape(self, "bool")
        if self._spec.size > 1:
            raise ValueError(
                f"The truth value of a tensor of shape {self._spec.shape} is ambiguous. "
                "Expected one element: use tf.reduce_any or tf.reduce_all first."
            )
        return bool(self._spec.size and self._array.reshape(-1)[0])

    def __int__(self) -> int:
        return int(_real(self._scalar("int")))

    def __float__(self) -> float:
        return float(_real(self._scalar("float")))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        if self._spec.dtype.kind not in "iu":
            raise TypeError(
                f"Only integer tensors can be used as an index. Received: dtype {self.dtype.name}."
            )
        return int(self._scalar("index"))

    def _scalar(self, what: str) -> Any:
        """Returns the value of a scalar tensor for a conversion to Python."""
        escape(self, what)
        if self._spec.ndim:
            raise TypeError(
                f"Only scalar tensors can be converted to Python scalars. "
                f"Received: shape {self._spec.shape}. Index one element first."
            )
        return self._array.item()

    # In a function that is being traced, the text of a tensor has its name, as in TensorFlow: it is
    # printed once, and the value differs in each call.

    def __format__(self, spec: str) -> str:
        if not spec and symbolic_name(self) is not None:
            return str(self)
        escape(self, "format")
        return format(self._array if self._spec.ndim else self._array.item(), spec)

    def __repr__(self) -> str:
        name = symbolic_name(self)
        if name is not None:
            return f"<tf.Tensor {name!r} shape={self._spec.shape} dtype={self.dtype.name}>"
        return (
            f"<tf.Tensor: shape={self._spec.shape}, dtype={self.dtype.name}, "
            f"numpy={representation(self._array)}>"
        )

    def __str__(self) -> str:
        name = symbolic_name(self)
        if name is not None:
            return f'Tensor("{name}", shape={self._spec.shape}, dtype={self.dtype.name})'
        values = _printed(self._array, lambda array: str(array[()]))
        start = "\n" if "\n" in values else ""
        return f"tf.Tensor({start}{values}, shape={self._spec.shape}, dtype={self.dtype.name})"

    def __hash__(self) -> int:
        raise TypeError("Tensor is unhashable. Instead, use tensor.ref() as the key.")

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if hasattr(self, name)]

    def __copy__(self) -> Tensor:
        return self

    def __deepcopy__(self, memo: dict) -> Tensor:
        return self

    def __reduce__(self) -> tuple:
        return _restore, (np.asarray(self._array),)


Tensor._spec = Tensor.__dict__["_array"]  # type: ignore[method-assign]
TensorSpec._tensor_class = Tensor


def _real(number: Any) -> Any:
    """Returns the real part of a complex number; returns other values unchanged."""
    return number.real if type(number) is complex else number


_new = object.__new__


def _is_called_from_here() -> bool:
    """Returns whether code of this package reads a property, not the program."""
    return sys._getframe(2).f_globals.get("__name__", "").startswith(_PACKAGE)


def add_attributes(first: str, second: str) -> None:
    """Adds two attributes to tensors, in the slots reserved for them."""
    setattr(Tensor, first, Tensor.__dict__["_extra1"])
    setattr(Tensor, second, Tensor.__dict__["_extra2"])


def wrap(array: Any) -> Tensor:
    """Returns `Tensor(array)` for the result of a kernel, without checks."""
    tensor = _new(Tensor)
    tensor._array = array
    tensor._id = next_id()
    return tensor


def _restore(array: np.ndarray) -> Tensor:
    return Tensor(array)


_REPLACEMENTS_FOR_NUMPY_NAMES = {
    "T": "tf.transpose(x)",
    "astype": "tf.cast(x, dtype)",
    "reshape": "tf.reshape(x, shape)",
    "sum": "tf.reduce_sum(x)",
    "mean": "tf.reduce_mean(x)",
    "max": "tf.reduce_max(x)",
    "min": "tf.reduce_min(x)",
    "size": "tf.size(x)",
    "item": "float(x) or x.numpy()",
    "tolist": "x.numpy().tolist()",
    "copy": "tf.identity(x)",
    "clip": "tf.clip_by_value(x, low, high)",
}

for _name, _instead in _REPLACEMENTS_FOR_NUMPY_NAMES.items():
    setattr(
        Tensor,
        _name,
        _MissingAttribute(f"Tensor has no attribute {_name!r}, as in TensorFlow: use {_instead}."),
    )
for _name in ("op", "graph", "name", "consumers", "value_index"):
    setattr(
        Tensor,
        _name,
        _MissingAttribute(f"Tensor.{_name} is undefined when eager execution is enabled."),
    )


class Reference:
    """A hashable reference to a tensor or variable, which themselves compare by value."""

    __slots__ = ("__weakref__", "_wrapped")

    def __init__(self, wrapped: Any) -> None:
        self._wrapped = wrapped

    def deref(self) -> Any:
        """Returns the tensor or variable."""
        return self._wrapped

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Reference):
            raise TypeError(
                f"Cannot compare a reference with {shown(other)} of type {type(other).__name__!r}. "
                "Expected another reference: use ref() on it too."
            )
        return self._wrapped is other._wrapped

    def __lt__(self, other: Reference) -> bool:
        """Orders references by creation, so that dicts with references as keys can be flattened."""
        return self._wrapped._id < other._wrapped._id

    def __hash__(self) -> int:
        return id(self._wrapped)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._wrapped!r}>"


def representation(array: Any) -> str:
    """Formats the values of `array` as TensorFlow does in a `repr`."""
    if not array.ndim:
        return repr(np.asarray(array).item())
    values = _printed(array, repr)
    return f"\n{values}" if "\n" in values else values


def _printed(array: Any, text_of: Callable[[np.ndarray], str]) -> str:
    """Returns `text_of(array)`, unless that is too long.

    NumPy omits the middle of long axes only, so the text of an array with many short axes is long.
    """
    if math.prod([min(n, _EDGE_ITEMS) for n in array.shape]) > _MOST_PRINTED:
        return f"[... {array.size} elements ...]"
    return text_of(np.asarray(array))


def readable(array: Any, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    """Returns a read-only NumPy view of `array`, or a copy if `copy` or `dtype` requires it."""
    result = np.asarray(array)
    if dtype is not None and dtypes.as_numpy(dtype) != result.dtype:
        if copy is False:
            raise ValueError(f"A view of a {result.dtype} tensor cannot have dtype {dtype}.")
        return allocate("__array__", result.astype, dtype)
    if copy:
        return allocate("__array__", result.copy)
    result = result.view()
    result.flags.writeable = False
    return result


def _exportable(array: Any, max_version: tuple[int, int] | None = None) -> Any:
    """Returns an array that supports DLPack: a JAX array or a NumPy array, not a NumPy scalar.

    Only DLPack 1 can mark memory as read-only, so consumers of older versions get a copy.
    """
    if not isinstance(array, (np.ndarray, np.generic)):
        return array
    return readable(array, copy=max_version is None or max_version[0] < 1)
