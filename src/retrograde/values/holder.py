"""Holder: the base class of tensors and variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any


class Holder:
    """What holds a value of ours and has a place on tapes: a Tensor or a Variable.

    Both have `_array`, the current value; `_spec`, which tells `shape`, `dtype`, `ndim` and `size`
    and never materializes the value; `_id`, which identifies them on tapes; and `_read()`, which
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
