"""Donation: a compiled program owns the buffers of variables, and overwrites them in each call.

A variable has no tensor while its buffer is donated, so that nothing reads an overwritten buffer. A
read ends the donation first. Calls in between do no work for variables that are not read.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from itertools import starmap
from typing import Any

import numpy as np

from retrograde.core.lazy import LazyTensor
from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable
from retrograde.core.variable_cell import VariableCell
from retrograde.devices.device_tensors import DeviceArray, on_device
from retrograde.values.locks import fork_safe_lock
from retrograde.values.optional_jax import required_jax
from retrograde.values.reference_counts import count, unshared_count

# Held while a program runs on donated buffers, and while a donation begins or ends. All donations
# share it, because two programs may use the same variables. A thread that holds it acquires no
# other lock except `writing`, and a thread that holds `writing` does not acquire it.
_lock = fork_safe_lock()


class Donation:
    """The buffers of `variables`, owned by a program that computes new values for all of them.

    The program takes the first `inputs` of the arrays as arguments, and overwrites them.
    """

    def __init__(self, variables: list[Variable], inputs: int) -> None:
        # Variables refer to the donation, so strong references would create reference cycles.
        self._variables: list[Any] = [weakref.ref(v) for v in variables]
        self._places = {id(v): i for i, v in enumerate(variables)}
        self._inputs = inputs
        self._missing = set(range(len(variables)))  # places of variables that are not donated
        self._arrays: list[list] = [[None] * len(variables)]  # in a call, followed by the new ones
        self._runs = False

    def run(self, program: Callable, arrays: tuple) -> list:
        """Runs `program` on `arrays` and the donated arrays.

        The first results are the new values of the variables.
        """
        with _lock:
            self._runs = True
            try:
                return self._run(program, arrays)
            finally:
                self._runs = False
                self._free_missing()

    def _free_missing(self) -> None:
        """Frees the arrays of variables that were taken back while the program ran."""
        for i in tuple(self._missing):
            if getattr(self._variables[i](), "_owner", None) is not self:
                self._arrays[-1][i] = None

    def _run(self, program: Callable, arrays: tuple) -> list:
        if self._missing:
            self._begin()
        arrays_in_use = self._arrays
        # The old arrays are deleted as soon as the new ones exist. No bytecode runs in between,
        # where a signal handler would find neither, and Control-C would lose both.
        arrays_in_use.extend(starmap(program, ((*arrays, *arrays_in_use[-1][: self._inputs]),)))
        new_arrays = arrays_in_use[-1]
        arrays_in_use[0] = new_arrays[: len(self._variables)]  # without the other results
        del arrays_in_use[1:]
        if self._missing:
            self._assign_missing(new_arrays)
        return new_arrays

    def _begin(self) -> None:
        """Takes the buffers of variables that are not donated."""
        for i in tuple(self._missing):
            variable = self._variables[i]()
            variable._end_donation()
            self._arrays[-1][i] = None  # if an interrupt stopped an earlier donation
            variable._donate(self, functools.partial(_move, self._arrays[-1], i))
            self._missing.discard(i)

    def _assign_missing(self, new_arrays: list) -> None:
        """Assigns new values to variables that a signal handler took back before the call."""
        for i in tuple(self._missing):
            variable = self._variables[i]()
            variable._hold(on_device(new_arrays[i], variable._id))
            self._arrays[-1][i] = None

    def end(self, variable: VariableCell) -> None:
        """Returns its buffer to a variable."""
        with _lock:
            i, donated_arrays = self._places[id(variable)], self._arrays[-1]
            self._missing.add(i)
            if variable._owner is self:
                variable._take_back(self, on_device(donated_arrays[i], variable._id))
            if not self._runs:
                donated_arrays[i] = None

    def block_until_ready(self) -> None:
        """Waits until the arrays are computed."""
        with _lock:
            required_jax().block_until_ready(self._arrays[-1])

    def end_all(self) -> None:
        """Returns their buffers to all variables."""
        for reference in self._variables:
            self.end(reference())


def _move(arrays: list, i: int, tensor: Tensor) -> None:
    """Puts the array of a variable's `tensor` into `arrays`, or a copy if it is shared.

    JAX itself copies a NumPy array if it is shared.
    """
    array = tensor._device
    if array is not None:
        is_unshared = _references(tensor) == _references_if_alone()
    else:
        array = tensor._array
        is_unshared = isinstance(array, (np.ndarray, np.generic))
    arrays[i] = array if is_unshared else required_jax().numpy.copy(array)


def _references(tensor: Tensor) -> int:
    return count(tensor) + count(tensor._spec) + count(tensor._device)


@functools.cache
def _references_if_alone() -> int:
    """Returns the reference count that `_move` observes if only the variable holds the tensor."""
    counts = []

    def count_references(_: list, __: int, tensor: Tensor) -> None:
        array = tensor._device  # noqa: F841  a reference, as in `_move`
        counts.append(_references(tensor))

    cell = VariableCell()
    cell._tensor, cell._owner = LazyTensor(DeviceArray(np.zeros(2))), None
    cell._donate(None, functools.partial(count_references, [], 0))
    return unshared_count(counts.pop)
