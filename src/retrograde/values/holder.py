"""Holder: the base class of tensors and variables."""

from __future__ import annotations


class Holder:
    """What holds a value of ours and has a place on tapes: a Tensor or a Variable.

    Both have `_array`, the current value; `_spec`, which tells `shape`, `dtype`, `ndim` and `size`
    and never materializes the value; `_id`, which identifies them on tapes; and `_read()`, which
    returns the tensor to use as an input.
    """

    __slots__ = ()
