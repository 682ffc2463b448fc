"""Holder: the base class of tensors and variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any


class Holder:
    """Base class of Tensor and Variable.

    Both have `_array`, the current value; `_spec`, with `shape`, `dtype`, `ndim` and `size`, which
    never materializes the value; `_id`, which identifies them on tapes; and `_read()`, which
    returns the tensor to use as an input.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        _id: int

        @property
        def _array(self) -> Any: ...
        @property
        def _spec(self) -> Any: ...
        def _read(self) -> Any: ...
