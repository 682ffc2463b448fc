"""Arrays that have a shape and a dtype, but no elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograde.values.sizes import Size, in_both_cases, in_case


class NeedsValue(TypeError):
    """Raised if Python needs the value of a tensor during shape inference."""


class AbstractArray:
    """Has the shape and dtype of an array. `values` are two arrays if the elements are sizes."""

    __slots__ = ("dtype", "shape", "values")
    __hash__ = None  # type: ignore[assignment]
    symbolic_name = "Placeholder:0"  # tensors are printed with this name

    def __init__(
        self, shape: tuple[int, ...], dtype: np.dtype, values: tuple | None = None
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.values = values

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The number of bytes that the array would take."""
        return self.size * self.dtype.itemsize

    def integers(self) -> list[int]:
        """Returns the elements of an array of sizes."""
        self._refuse()
        first, other = self.values  # type: ignore[misc]
        pairs = zip(first.reshape(-1).tolist(), other.reshape(-1).tolist(), strict=True)
        return [in_both_cases(*pair) for pair in pairs]

    def item(self) -> Any:
        """Returns the only element of an array of sizes."""
        (element,) = self.integers()
        return element

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        self._refuse()
        return np.array(self.values[0], dtype)  # type: ignore[index]

    def _refuse(self) -> None:
        if self.values is None:
            raise NeedsValue(
                f"A tensor of shape {self.shape} has no value during shape inference, so it cannot "
                "be converted to Python or NumPy. Use tf operations."
            )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NeedsValue(f"A tensor of shape {self.shape} has no value during shape inference.")

    def __repr__(self) -> str:
        return f"<shape {self.shape}, {self.dtype}>"


def array_of_sizes(sizes: Any, dtype: np.dtype) -> AbstractArray:
    """Returns the array of an integer or of a list of integers, some of which are sizes."""
    values = tuple([np.array(in_case(sizes, case), dtype) for case in (0, 1)])
    return AbstractArray(values[0].shape, dtype, values)


def is_abstract(x: Any) -> bool:
    """Returns whether a tensor, or a `Size`, has no value."""
    return type(x) is Size or type(getattr(x, "_spec", None)) is AbstractArray
