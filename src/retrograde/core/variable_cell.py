"""The cell of a variable: its tensor, and the owner of the buffer of the array."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.values import dtypes
from retrograde.values.holder import Holder
from retrograde.values.reference_counts import count, unshared_count

# The lock for writes to variables. All variables share it, so that a function commits all of its
# writes at once and a fork finds each variable in a complete state.
writing = threading.RLock()

_NUMPY = (np.ndarray, np.generic)

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=writing.acquire, after_in_parent=writing.release, after_in_child=writing.release
    )


class VariableCell(Holder):
    """Holds the tensor of a variable. Only this module changes its state.

    =============  ==========  ===========================  ====================================
    state          `_tensor`   `_owner`                     a reader
    =============  ==========  ===========================  ====================================
    held           the tensor  unused                       reads the tensor
    being written  `None`      the tensor that is written   waits for the lock `writing`
    donated        `None`      the donation                 ends the donation first
    =============  ==========  ===========================  ====================================

    The owner of a donated buffer has a method `end(cell)`, which calls `_take_back`. The method
    acquires another lock, so it is not called while `writing` is held.
    """

    __slots__ = ("_id", "_owner", "_tensor")

    _id: int
    _owner: Any
    _tensor: Tensor | None

    def _current(self) -> Tensor:
        """Returns the tensor. Waits for other threads that write it, and ends a donation."""
        tensor = self._tensor
        while tensor is None:
            self._end_donation()
            with writing:
                tensor = self._held()
        return tensor

    def _held(self) -> Tensor | None:
        """Returns the tensor, or `None` if it is donated. The caller holds `writing`.

        So it is being written only if a signal handler interrupts the writer in the same thread.
        """
        tensor = self._tensor
        if tensor is None and isinstance(self._owner, Tensor):
            return self._owner
        return tensor

    def _end_donation(self) -> None:
        """Ends a donation of the buffer. The caller does not hold `writing`."""
        owner = self._owner
        if owner is not None and not isinstance(owner, Tensor):
            owner.end(self)

    def _hold(self, tensor: Tensor) -> None:
        """Replaces the tensor by `tensor`, which has the id of the variable."""
        while True:
            with writing:
                if self._tensor is not None or self._held() is not None:
                    self._tensor = tensor
                    return
            self._end_donation()

    def _write(self, write: Callable[[Any, np.ndarray | None], Any]) -> None:
        """Replaces the array `old` by `write(old, out)`.

        `out` is `old` itself if this cell is its sole owner and may write into it. Otherwise it is
        `None`, and `write` returns a new array.
        """
        while True:
            with writing:
                if self._held() is not None:
                    self._write_now(write)
                    return
            self._end_donation()

    def _write_now(self, write: Callable[[Any, np.ndarray | None], Any]) -> None:
        tensor: Any = self._held()
        try:
            # A thread that has read the tensor before this line counts as a holder.
            self._owner, self._tensor = tensor, None
            array = tensor._array
            alone = _references(tensor, array) == _ALONE and _is_writable(array)
            value = write(array, array if alone else None)
            if value is not array:
                tensor = tensor._replaced_by(Tensor(value), self._id)
        finally:
            self._tensor, self._owner = tensor, None

    def _update_in_place(self, ufunc: Any, delta: Any, quietly: Callable) -> bool:
        """Updates the array in place in the common case of training. Returns whether it did."""
        with writing:
            tensor = self._tensor
            if tensor is None:
                return False
            array = tensor._array
            if type(array) is not np.ndarray or not isinstance(delta, _NUMPY):
                return False
            dtype = array.dtype
            if (
                dtype is not delta.dtype
                or dtype not in dtypes.NUMERIC
                or array.shape != delta.shape
                or array.base is not None
            ):
                return False
            try:
                # A thread that has read the tensor before this line counts as a holder.
                self._owner, self._tensor = tensor, None
                if _references(tensor, array) != _ALONE:
                    return False
                quietly(ufunc, array, delta, array)
            except ValueError:  # the array is read-only
                return False
            finally:
                self._tensor, self._owner = tensor, None
        return True

    def _donate(self, donation: Any, take: Callable[[Tensor], None]) -> None:
        """Makes `donation` the owner of the buffer, after `take(tensor)` has moved the array."""
        with writing:
            tensor: Any = self._held()
            try:
                # A thread that has read the tensor before this line counts as a holder.
                self._owner, self._tensor = tensor, None
                take(tensor)
                self._owner = donation
            except BaseException:
                self._tensor, self._owner = tensor, None
                raise

    def _take_back(self, donation: Any, tensor: Tensor) -> None:
        """Holds `tensor`, if `donation` still owns the buffer."""
        with writing:
            if self._owner is donation:
                if self._tensor is None:
                    self._tensor = tensor
                self._owner = None


_slot: Any = VariableCell.__dict__["_tensor"]
_get_tensor, _set_tensor = _slot.__get__, _slot.__set__


def commit(
    variables: Sequence[VariableCell],
    tensors: Sequence[Tensor],
    updated: Sequence[VariableCell] = (),
    expected: Sequence[Tensor] = (),
) -> bool:
    """Replaces the tensors of `variables` by new `tensors`, all at once.

    Returns `False` and changes nothing if a variable in `updated` no longer holds its tensor in
    `expected`: another thread has changed it, and the caller has to compute the new values again.
    """
    while True:
        with writing:
            before = list(map(_get_tensor, variables))  # freed after the lock
            if NoneType not in map(type, before) or not any(map(_is_donated, variables)):
                for variable, tensor in zip(updated, expected, strict=True):
                    if variable._tensor is not tensor and variable._held() is not tensor:
                        return False
                # No bytecode runs between the first change and the last, so that neither a
                # signal nor another thread finds only some of the variables changed.
                deque(map(_set_tensor, variables, tensors), 0)
                return True
        for variable in variables:
            variable._end_donation()


def _is_donated(variable: VariableCell) -> bool:
    return variable._held() is None


def _references(tensor: Tensor, array: Any) -> int:
    return count(tensor) + count(array)


def _references_if_alone() -> int:
    """Returns the count of the methods above for a tensor that only its cell holds."""
    cell = VariableCell()
    tensor = cell._owner = Tensor(np.zeros(2))
    array = tensor._array
    return _references(tensor, array)


_ALONE = unshared_count(_references_if_alone)


def _is_writable(array: Any) -> bool:
    return type(array) is np.ndarray and array.base is None and array.flags.writeable
