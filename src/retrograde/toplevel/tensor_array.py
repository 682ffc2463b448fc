"""TensorArray: a list of tensors for use in loops."""

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
    """A list of tensors of one dtype. Methods that write return the array itself.

    `size` is the number of elements; with `dynamic_size`, writing beyond the end adds more. All
    elements have the same shape, `element_shape` or else the shape of the first write, unless
    `infer_shape` is false. Elements that were never written read as zeros. With `clear_after_read`,
    the default, `read` frees the element, and reading it again is an error.

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
            raise ValueError("TensorArray: `size` is required. Use 0 with dynamic_size=True.")
        self._dtype = dtypes.as_dtype(dtype)
        self._dynamic_size = bool(dynamic_size)
        self._clear_after_read = clear_after_read is None or bool(clear_after_read)
        self._infer_shape = bool(infer_shape)
        self._element_shape = TensorShape(element_shape)
        self._elements: list[Tensor | None] = _empty_elements(_as_integer(size, "size"))
        self._cleared: set[int] = set()

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self._dtype

    @property
    def dynamic_size(self) -> bool:
        """Whether writing can add elements."""
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
        """Returns the number of elements."""
        return Tensor(np.int32(len(self._elements)))

    def identity(self) -> TensorArray:
        """Returns the array itself."""
        return self

    def close(self, name: str | None = None) -> None:
        """Removes all elements."""
        self._elements.clear()

    def grad(self, source: str, flow: Any = None, name: str | None = None) -> None:
        """Raises an error: tapes record the elements automatically."""
        raise NotImplementedError(
            "TensorArray.grad is not supported: use a tf.GradientTape, which records the elements."
        )

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """Returns the element at `index`."""
        position = self._check_index(index, reading=True)
        if self._elements[position] is None and position in self._cleared:
            raise invalid(
                f"Could not read index {position} twice because it was cleared after a previous "
                "read (perhaps try setting clear_after_read = false?)"
            )
        element = self._element(position)
        if self._clear_after_read:
            self._elements[position] = None
            self._cleared.add(position)
        return element

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """Writes `value` at `index`."""
        position = self._check_index(index, reading=False)
        self._elements[position] = self._as_element(value)
        return self

    def stack(self, name: str | None = None) -> Tensor:
        """Stacks all elements along a new first axis."""
        if self._elements:
            return shaping.stack(*self._all(), axis=0)
        shape = tuple(self._element_shape) if self._element_shape.is_fully_defined() else ()
        return Tensor(np.zeros((0, *shape), self._dtype.numpy_dtype))

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """Stacks the elements at `indices` along a new first axis, without clearing them."""
        indices = [
            self._check_index(i, reading=True) for i in integers(indices, "TensorArray.gather")
        ]
        if not indices:
            return Tensor(np.zeros((0,), self._dtype.numpy_dtype))
        return shaping.stack(*map(self._element, indices), axis=0)

    def concat(self, name: str | None = None) -> Tensor:
        """Concatenates all elements along their first axis."""
        elements = self._all()
        for i, element in enumerate(elements):
            if not element.ndim:
                raise invalid(
                    f"Concat saw a scalar shape at index {i} but requires at least vectors."
                )
        return concat(elements, 0)

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """Sets the elements to the slices of `value` along its first axis."""
        slices = unstack(self._convert(value))
        if len(slices) > len(self._elements) and not self._dynamic_size:
            raise ValueError(
                f"Cannot unstack {len(slices)} tensors into a TensorArray of static size "
                f"{len(self._elements)} "
            )
        self._elements = slices
        return self

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """Writes the slices of `value` along its first axis at `indices`."""
        indices = integers(indices, "TensorArray.scatter")
        for index, element in zip(indices, unstack(self._convert(value)), strict=False):
            self.write(index, element)
        return self

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """Splits `value` along its first axis into new elements of these lengths."""
        tensor, sizes = self._convert(value), as_tensor(lengths)
        if sizes.ndim != 1:
            raise invalid(f"Expected lengths to be a vector, received shape: {list(sizes.shape)} ")
        if not tensor.ndim:
            raise invalid("Expected value to be at least a vector, but received shape: [] ")
        total, count = sum(integers(sizes, "TensorArray.split")), len(sizes)
        if total != len(tensor):
            raise invalid(
                "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is "
                f"{total} and value's shape is: {list(tensor.shape)} "
            )
        if count != len(self._elements) and not self._dynamic_size:
            raise invalid(
                "TensorArray's size is not equal to the size of lengths "
                f"({len(self._elements)} vs. {count}), and the TensorArray is not marked as "
                "dynamically resizeable."
            )
        self._elements = split(tensor, sizes)
        return self

    def _check_index(self, index: Any, reading: bool) -> int:
        """Checks `index`; adds elements if it is written beyond the end of a dynamic array."""
        position, size = _as_integer(index, "index"), len(self._elements)
        if position < 0:
            verb = "Reading from" if reading else "Writing to"
            raise _out_of_range(f"{verb} negative indices (index {position}) is not allowed.")
        if position >= size and reading:
            raise _out_of_range(f"Tried to read from index {position} but array size is: {size} ")
        if position >= size and not self._dynamic_size:
            raise _out_of_range(
                f"Tried to write to index {position} but array is not resizeable and size is: "
                f"{size} "
            )
        self._elements.extend(_empty_elements(position + 1 - size))
        return position

    def _convert(self, value: Any) -> Tensor:
        """Converts `value` to the dtype of the array; a variable gives its current value."""
        tensor = convert_to_tensor(value, dtype_hint=self._dtype)
        if tensor._spec.dtype != self._dtype.numpy_dtype:
            raise invalid(
                f"TensorArray dtype is {self._dtype.name} but Op is trying to write dtype "
                f"{tensor.dtype.name} "
            )
        return tensor

    def _as_element(self, value: Any) -> Tensor:
        """Converts `value` to an element and checks its shape."""
        tensor = self._convert(value)
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

    def _element(self, position: int) -> Tensor:
        """Returns the element at `position`; zeros if it was never written."""
        element = self._elements[position]
        if element is None:
            if not self._element_shape.is_fully_defined():
                raise ValueError(
                    f"TensorArray: index {position} was never written, and the element shape "
                    f"{self._element_shape} is not fully known, so it cannot be filled with zeros. "
                    "Write it first, or pass a full `element_shape`."
                )
            element = zeros(tuple(self._element_shape), self._dtype)
            self._elements[position] = element
        return element

    def _all(self) -> list[Tensor]:
        return [self._element(position) for position in range(len(self._elements))]


def _empty_elements(count: int) -> list[None]:
    return allocate("TensorArray", [None].__mul__, count)


def _as_integer(value: Any, argument: str) -> int:
    """Converts an index, possibly a tensor, to a Python integer."""
    try:
        number = value.__index__()
    except (AttributeError, TypeError):
        raise TypeError(
            f"TensorArray: expected an integer for the {argument}. Received: {shown(value)}."
        ) from None
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"TensorArray: the {argument} {number} is out of range for int64.")
    return number


def _out_of_range(message: str) -> OutOfRangeError:
    return OutOfRangeError(None, None, message)


class TensorArraySpec(TypeSpec):
    """The type of a TensorArray: the shape and dtype of its elements, and its options.

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
        """Returns the spec of an array."""
        if not isinstance(value, TensorArray):
            raise TypeError(
                f"Expected value to be a TensorArray, but got: `{type(value).__name__}`."
            )
        return TensorArraySpec(
            value.element_shape, value.dtype, value.dynamic_size, value._infer_shape
        )

    @property
    def value_type(self) -> type:
        """The class of values, `tf.TensorArray`."""
        return TensorArray

    def is_subtype_of(self, other: Any) -> bool:
        """Returns whether `other` is equal except for the element shape, as in TensorFlow."""
        return self._is_like(other) and self._serialize()[1:] == other._serialize()[1:]

    def most_specific_common_supertype(
        self, others: Sequence[TensorArraySpec]
    ) -> TensorArraySpec | None:
        """Returns this spec if all `others` are equal except for the element shape, else `None`."""
        return self if all(map(self.is_subtype_of, others)) else None

    def _serialize(self) -> tuple:
        return self._element_shape, self._dtype, self._dynamic_size, self._infer_shape
