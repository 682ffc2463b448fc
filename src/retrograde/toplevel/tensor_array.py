"""TensorArray: a list of tensors to write to and read from in loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops import shaping
from retrograde.ops.arguments import integers
from retrograde.ops.conversion import as_tensor
from retrograde.toplevel.creation import convert_to_tensor, zeros
from retrograde.toplevel.shaping import concat, split, unstack
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.dtypes import DType
from retrograde.values.errors import OutOfRangeError, allocate, invalid
from retrograde.values.shapes import TensorShape
from retrograde.values.specs import TypeSpec


class TensorArray:
    """Tensors of one dtype, by number. Methods that write return the array itself.

    `size` is the number of places; with `dynamic_size`, writing beyond them adds more. All
    elements have one shape, `element_shape` or else that of the first one written, unless
    `infer_shape` is off. A place that was never written reads as zeros. With `clear_after_read`,
    which is the default, `read` lets go of what it returns, and a second one is an error.

    >>> ta = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    >>> for i in range(3):
    ...     ta = ta.write(i, 2.0**i)
    >>> ta.stack().numpy()
    array([1., 2., 4.], dtype=float32)
    """

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Any = None,
        flow: Any = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        if handle is not None:
            raise ValueError("TensorArray handles are not supported: there are no graphs.")
        if size is None:
            raise ValueError("TensorArray: the `size` must be given; 0 if it is to grow.")
        self._dtype = dtypes.as_dtype(dtype)
        self._dynamic_size = bool(dynamic_size)
        self._clear_after_read = clear_after_read is None or bool(clear_after_read)
        self._infer_shape = bool(infer_shape)
        self._element_shape = TensorShape(element_shape)
        self._elements: list[Tensor | None] = _places(_whole_number(size, "size"))
        self._cleared: set[int] = set()

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self._dtype

    @property
    def dynamic_size(self) -> bool:
        """Whether writing may add places."""
        return self._dynamic_size

    @property
    def element_shape(self) -> TensorShape:
        """The shape of the elements, as far as it is known."""
        return self._element_shape

    @property
    def handle(self) -> None:
        """`None`: handles belong to graphs."""

    @property
    def flow(self) -> Tensor:
        """Zero: flows belong to graphs."""
        return Tensor(np.int32(0))

    @property
    def _type_spec(self) -> TensorArraySpec:
        return TensorArraySpec.from_value(self)

    def size(self, name: str | None = None) -> Tensor:
        """The number of places."""
        return Tensor(np.int32(len(self._elements)))

    def identity(self) -> TensorArray:
        """The array itself."""
        return self

    def close(self, name: str | None = None) -> None:
        """Gives up all elements, and their places."""
        self._elements.clear()

    def grad(self, source: str, flow: Any = None, name: str | None = None) -> None:
        """Not there: tapes follow the elements by themselves."""
        raise NotImplementedError(
            "TensorArray.grad is not supported: use a tf.GradientTape, which follows the elements."
        )

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """The element at `index`."""
        at = self._place(index, reading=True)
        if self._elements[at] is None and at in self._cleared:
            raise invalid(
                f"Could not read index {at} twice because it was cleared after a previous read "
                "(perhaps try setting clear_after_read = false?)"
            )
        element = self._element(at)
        if self._clear_after_read:
            self._elements[at] = None
            self._cleared.add(at)
        return element

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """Puts `value` at `index`."""
        at = self._place(index, reading=False)
        self._elements[at] = self._fitting(value)
        return self

    def stack(self, name: str | None = None) -> Tensor:
        """All elements along a new first axis."""
        if self._elements:
            return shaping.stack(*self._all(), axis=0)
        shape = tuple(self._element_shape) if self._element_shape.is_fully_defined() else ()
        return Tensor(np.zeros((0, *shape), self._dtype.numpy_dtype))

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """The elements at `indices` along a new first axis. They stay where they are."""
        places = [self._place(i, reading=True) for i in integers(indices, "TensorArray.gather")]
        if not places:
            return Tensor(np.zeros((0,), self._dtype.numpy_dtype))
        return shaping.stack(*map(self._element, places), axis=0)

    def concat(self, name: str | None = None) -> Tensor:
        """All elements joined along their first axis."""
        elements = self._all()
        for i, element in enumerate(elements):
            if not element.ndim:
                raise invalid(
                    f"Concat saw a scalar shape at index {i} but requires at least vectors."
                )
        return concat(elements, 0)

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """Makes the slices of `value` along its first axis the elements."""
        slices = unstack(self._converted(value))
        if len(slices) > len(self._elements) and not self._dynamic_size:
            raise ValueError(
                f"Cannot unstack {len(slices)} tensors into a TensorArray of static size "
                f"{len(self._elements)} "
            )
        self._elements = slices
        return self

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """Puts the slices of `value` along its first axis at `indices`."""
        places = integers(indices, "TensorArray.scatter")
        for place, element in zip(places, unstack(self._converted(value)), strict=False):
            self.write(place, element)
        return self

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """Cuts `value` along its first axis into parts of these lengths: the new elements."""
        whole, sizes = self._converted(value), as_tensor(lengths)
        if sizes.ndim != 1:
            raise invalid(f"Expected lengths to be a vector, received shape: {list(sizes.shape)} ")
        if not whole.ndim:
            raise invalid("Expected value to be at least a vector, but received shape: [] ")
        total, count = sum(integers(sizes, "TensorArray.split")), len(sizes)
        if total != len(whole):
            raise invalid(
                "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is "
                f"{total} and value's shape is: {list(whole.shape)} "
            )
        if count != len(self._elements) and not self._dynamic_size:
            raise invalid(
                "TensorArray's size is not equal to the size of lengths "
                f"({len(self._elements)} vs. {count}), and the TensorArray is not marked as "
                "dynamically resizeable."
            )
        self._elements = split(whole, sizes)
        return self

    def _place(self, index: Any, reading: bool) -> int:
        """`index` as a place that is there; one to write to is made if the array may grow."""
        at, size = _whole_number(index, "index"), len(self._elements)
        if at < 0:
            verb = "Reading from" if reading else "Writing to"
            raise _out_of_range(f"{verb} negative indices (index {at}) is not allowed.")
        if at >= size and reading:
            raise _out_of_range(f"Tried to read from index {at} but array size is: {size} ")
        if at >= size and not self._dynamic_size:
            raise _out_of_range(
                f"Tried to write to index {at} but array is not resizeable and size is: {size} "
            )
        self._elements.extend(_places(at + 1 - size))
        return at

    def _converted(self, value: Any) -> Tensor:
        """`value` as a tensor of the array's dtype; of a variable, what it holds now."""
        tensor = convert_to_tensor(value, dtype_hint=self._dtype)
        if tensor._spec.dtype != self._dtype.numpy_dtype:
            raise invalid(
                f"TensorArray dtype is {self._dtype.name} but Op is trying to write dtype "
                f"{tensor.dtype.name} "
            )
        return tensor

    def _fitting(self, value: Any) -> Tensor:
        """`value` as an element."""
        tensor = self._converted(value)
        shape = tensor._spec.shape
        if self._element_shape == shape:
            return tensor
        if not self._element_shape.is_compatible_with(shape):
            raise ValueError(
                f"Incompatible shape for value ({shape}), expected ({self._element_shape})"
            )
        if self._infer_shape:
            self._element_shape = self._element_shape.merge_with(shape)
        return tensor

    def _element(self, at: int) -> Tensor:
        """The element at `at`; zeros if it was never written."""
        element = self._elements[at]
        if element is None:
            if not self._element_shape.is_fully_defined():
                raise ValueError(
                    f"TensorArray: index {at} was never written, and the shape of the elements is "
                    f"not known, {self._element_shape}, to fill it with zeros. Write it first, or "
                    "pass a full `element_shape`."
                )
            element = zeros(tuple(self._element_shape), self._dtype)
            self._elements[at] = element
        return element

    def _all(self) -> list[Tensor]:
        return [self._element(at) for at in range(len(self._elements))]


def _places(count: int) -> list[None]:
    return allocate("TensorArray", [None].__mul__, count)


def _whole_number(value: Any, op_name: str) -> int:
    """An integer that may come as a tensor; its value leaves for Python then."""
    try:
        number = value.__index__()
    except (AttributeError, TypeError):
        raise TypeError(
            f"TensorArray: expected an integer for the {op_name}. Received: {shown(value)}."
        ) from None
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"TensorArray: the {op_name} {number} is out of range for int64.")
    return number


def _out_of_range(message: str) -> OutOfRangeError:
    return OutOfRangeError(None, None, message)


class TensorArraySpec(TypeSpec):
    """What a TensorArray must look like: the shape and dtype of its elements, and how it behaves.

    >>> tf.TensorArraySpec([2], tf.float32)
    TensorArraySpec(TensorShape([2]), tf.float32, False, True)
    """

    __slots__ = ("_dtype", "_dynamic_size", "_element_shape", "_infer_shape")

    def __init__(
        self,
        element_shape: Any = None,
        dtype: Any = dtypes.float32,
        dynamic_size: bool = False,
        infer_shape: bool = True,
    ) -> None:
        self._element_shape = TensorShape(element_shape)
        self._dtype = dtypes.as_dtype(dtype)
        self._dynamic_size = dynamic_size
        self._infer_shape = infer_shape

    @staticmethod
    def from_value(value: TensorArray) -> TensorArraySpec:
        """The spec of an array."""
        if not isinstance(value, TensorArray):
            raise TypeError(
                f"Expected value to be a TensorArray, but got: `{type(value).__name__}`."
            )
        return TensorArraySpec(
            value.element_shape, value.dtype, value.dynamic_size, value._infer_shape
        )

    @property
    def value_type(self) -> type:
        """`tf.TensorArray`."""
        return TensorArray

    def is_subtype_of(self, other: Any) -> bool:
        """Whether `other` is alike; the shape of elements does not count, as in TensorFlow."""
        return self._is_like(other) and self._serialize()[1:] == other._serialize()[1:]

    def most_specific_common_supertype(
        self, others: Sequence[TensorArraySpec]
    ) -> TensorArraySpec | None:
        """This spec, if all `others` are alike but for the shape of elements; else `None`."""
        return self if all(map(self.is_subtype_of, others)) else None

    def _serialize(self) -> tuple:
        return self._element_shape, self._dtype, self._dynamic_size, self._infer_shape
