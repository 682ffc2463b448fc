"""Lending: variables leave their arrays to a program, which writes over them call after call.

While its array is lent a variable has no tensor, so that nobody sees what is written over. Whoever
asks for one gets the array back first. For variables that nobody asks for, a call does nothing.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from itertools import starmap
from typing import Any

import numpy as np

from retrograde.core.lazy import LazyTensor
from retrograde.core.locks import fork_safe_lock
from retrograde.core.reference_counts import count, if_alone
from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable, writing
from retrograde.program.device_tensors import DeviceArray, on_device, required_jax

# Held while a program is handed what was lent to it, and while a loan begins or ends. It is one for
# all, because two programs may want each other's variables. A thread that holds it waits for
# nothing but `writing`, and a thread that holds `writing` does not wait for it.
_turn = fork_safe_lock()


class Loan:
    """The arrays of `variables`, lent to a program that makes new ones for all of them.

    `given_away` is how many of them, from the first on, it takes and writes over.
    """

    def __init__(self, variables: list[Variable], given_away: int) -> None:
        self._variables = [weakref.ref(v) for v in variables]  # they know the loan
        self._places = {id(v): i for i, v in enumerate(variables)}
        self._given_away = given_away
        self._missing = set(range(len(variables)))  # are not lent now
        self._arrays: list[list] = [[None] * len(variables)]  # in a call, the new ones behind them
        self._runs = False

    def run(self, program: Callable, arrays: tuple) -> list:
        """What `program` makes of `arrays` and of what it is lent: first what it gives back."""
        with _turn:
            self._runs = True
            try:
                return self._run(program, arrays)
            finally:
                self._runs = False
                self._drop_missing()

    def _drop_missing(self) -> None:
        """Frees the arrays of variables that were taken back while the program ran."""
        for i in tuple(self._missing):
            if getattr(self._variables[i](), "_loan", None) is not self:
                self._arrays[-1][i] = None

    def _run(self, program: Callable, arrays: tuple) -> list:
        if self._missing:
            self._borrow()
        lent = self._arrays
        # When the new arrays are there, the old ones are gone. No line of Python lies between,
        # where a signal handler could find neither, or Control-C lose both.
        lent.extend(starmap(program, ((*arrays, *lent[-1][: self._given_away]),)))
        made = lent[-1]
        lent[0] = made[: len(self._variables)]  # what else was made is not held
        del lent[1:]
        if self._missing:
            self._hand_over(made)
        return made

    def _borrow(self) -> None:
        lent = self._arrays[-1]
        for i in tuple(self._missing):
            variable = self._variables[i]()
            variable._end_loan()
            lent[i] = None  # where it was given back by half
            with writing:
                tensor = variable._written = variable._tensor
                try:
                    variable._tensor = None  # a thread that read it before is counted as a holder
                    lent[i] = _to_give_away(tensor)
                    variable._loan = self
                except BaseException:
                    variable._tensor = tensor
                    raise
                finally:
                    variable._written = None
            self._missing.discard(i)

    def _hand_over(self, made: list) -> None:
        """Gives their new values to variables that a signal handler took back before the call."""
        for i in tuple(self._missing):
            variable = self._variables[i]()
            with writing:
                variable._tensor, variable._loan = on_device(made[i], variable._id), None
            self._arrays[-1][i] = None

    def end(self, variable: Variable) -> None:
        """Gives a variable back what is its own."""
        with _turn:
            i, lent = self._places[id(variable)], self._arrays[-1]
            self._missing.add(i)
            with writing:
                if variable._loan is self:
                    variable._tensor = on_device(lent[i], variable._id)
                    variable._loan = None
            if not self._runs:
                lent[i] = None

    def end_all(self) -> None:
        """Gives all variables back what is theirs."""
        for reference in self._variables:
            self.end(reference())


def _to_give_away(tensor: Tensor) -> Any:
    """Returns the array of a variable's tensor for donation, a copy if anything else holds it.

    JAX copies NumPy arrays that something else holds.
    """
    array = tensor._device
    if array is not None:
        alone = _references(tensor) == _references_if_alone()
    else:
        array = tensor._array
        alone = isinstance(array, (np.ndarray, np.generic))
    return array if alone else required_jax().numpy.copy(array)


def _references(tensor: Tensor) -> int:
    return count(tensor) + count(tensor._spec) + count(tensor._device)


@functools.cache
def _references_if_alone() -> int:
    """Counts the references to a tensor that only its variable holds, as `_to_give_away` does."""

    def counted(tensor: Tensor) -> int:
        array = tensor._device  # noqa: F841  held there, too
        return _references(tensor)

    def held_by_variable() -> int:
        variable = Variable(0.0)
        tensor = variable._written = LazyTensor(DeviceArray(np.zeros(2)))
        return counted(tensor)

    return if_alone(held_by_variable)
