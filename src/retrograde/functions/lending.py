"""Lending: variables leave their arrays to a program, which writes over them call after call.

While an array is lent its variable has no tensor, so that nobody sees what is written over. Whoever
asks for one ends the loan first. As long as nobody asks, a call does nothing for each variable.
"""

from __future__ import annotations

import functools
import itertools
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core.variable import Variable
from retrograde.functions.device_arrays import OnDevice, on_device, required_jax

# Held while a program is handed what was lent to it, and while a loan begins or ends. It is one for
# all, because two programs may want each other's variables. Whoever has it waits for nothing but
# the locks of variables, and whoever has one of those does not wait for it.
_turn = threading.RLock()


class Loan:
    """The arrays of `variables`, lent to a program that makes new ones for all of them.

    `given_away` is how many of them, from the first on, it takes and writes over.
    """

    def __init__(self, variables: list[Variable], given_away: int) -> None:
        self._variables = [weakref.ref(v) for v in variables]  # they know the loan
        self._given_away = given_away
        self._arrays: list[list] = []  # what is lent; in a call, what is taken and what is made
        self._begun = False

    def run(self, program: Callable, arrays: tuple) -> list:
        """What `program` makes of `arrays` and of what it is lent: first what it gives back."""
        with _turn:
            if not self._begun:
                self._begin()
            lent = self._arrays
            given_away = lent[-1][: self._given_away]
            # When the new arrays are there, the old ones are gone. No line of Python lies between,
            # where a signal handler could find neither, or Control-C lose both.
            lent.extend(itertools.starmap(program, ((*arrays, *given_away),)))
            made = lent[-1]
            lent[0] = made[: len(self._variables)]  # what else was made is not held
            del lent[1:]
            if not self._begun:  # a signal handler ended the loan just before the call
                self._arrays = lent
                for reference in self._variables:
                    reference()._loan = self
                self.end()
            return made

    def _begin(self) -> None:
        self.end()  # the rest of it, if it was interrupted
        arrays: list[Any] = []
        self._arrays = [arrays]
        for reference in self._variables:
            variable = reference()
            variable._end_loan()
            with variable._lock:
                arrays.append(_to_give_away(variable))
                variable._loan, variable._tensor = self, None
        self._begun = True

    def end(self) -> None:
        """Gives the variables what is theirs."""
        with _turn:
            self._begun = False
            arrays = self._arrays[-1] if self._arrays else ()
            for reference, array in zip(self._variables, arrays, strict=False):
                variable = reference()
                if variable is not None and variable._loan is self:
                    with variable._lock:
                        variable._tensor = on_device(array, variable._id)
                        variable._loan = None
            self._arrays = []


def _to_give_away(variable: Variable) -> Any:
    """The array of a variable, for a program to write over; a copy if somebody else holds it.

    Where NumPy holds or looks at it, JAX sees to that by itself.
    """
    if type(variable._current()) is OnDevice:
        array, *counts = _references(variable)
        alone = counts == _references_if_alone()
    else:
        array = variable._array
        alone = isinstance(array, (np.ndarray, np.generic))
    return array if alone else required_jax().numpy.copy(array)


def _references(variable: Variable) -> tuple[Any, int, int]:
    """The array of a variable, and how many hold its tensor or the array."""
    tensor = variable._current()
    device = tensor._device
    return device, sys.getrefcount(tensor), sys.getrefcount(device)


@functools.cache
def _references_if_alone() -> list[int]:
    """What is counted if nobody but the variable has them; without the global lock, nothing."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return []
    variable = Variable(0.0)
    variable._put(OnDevice(np.zeros(2)))
    return list(_references(variable)[1:])
