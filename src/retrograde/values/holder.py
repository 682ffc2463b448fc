"""Holder: the base class of tensors and variables."""

from __future__ import annotations


class Holder:
    """What holds a value of ours and has a place on tapes: a Tensor or a Variable.

    Both have `_array`, the value now; `_form`, which tells its shape and dtype even if it is yet to
    be computed; `_id`, their name on tapes; and `_read()`, the tensor to use as an input.
    """

    __slots__ = ()
