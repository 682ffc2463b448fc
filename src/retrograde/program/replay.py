"""Replay: a simplified recording made ready to run, on NumPy or on XLA."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from retrograde.core.host_callbacks import Host
from retrograde.core.program import Call, Program
from retrograde.core.recorders import thread
from retrograde.core.tensor import Tensor
from retrograde.program.donation import Loan
from retrograde.program.interpreter import Divergence
from retrograde.program.numpy_codegen import Writer, generate
from retrograde.program.tracing import Log
from retrograde.program.xla import CompiledProgram, can_compile


class Replay:
    """Runs a simplified recording on the arrays of tensors.

    `variables` are those that it reads once more on its way. `first_values` are the numbers of what
    variables hold before, by their places, if they may be lent to a compiled program.
    """

    def __init__(
        self,
        plain: Program,
        variables: list[Any],
        compiles: bool,
        first_values: dict[int, int] | None = None,
    ) -> None:
        self.plain = plain
        self.uncompiled = can_compile(plain) if compiles else None
        self.compiles = compiles and self.uncompiled is None
        self._variables = variables
        self._first_values = first_values
        calls = [entry for entry in plain.steps if type(entry) is Call]
        self.calls_python = any(type(call.primitive) is Host for call in calls)
        self._writer: Writer | None = None
        self._code: Any = None
        self._program: CompiledProgram | None = None
        self.seconds = 0.0  # that it took to make this ready

    def source(self) -> str:
        """The code of the replay on NumPy."""
        if self._writer is None:
            self._writer = generate(self.plain, self._variables)
        return self._writer.source

    def code(self) -> Callable:
        """The replay on NumPy: a function of arrays."""
        if self._code is None:
            begun = time.perf_counter()
            self.source()
            self._code = self._writer.compiled()
            self.seconds = time.perf_counter() - begun
        return self._code

    def program(self) -> CompiledProgram:
        """The compiled program."""
        if self._program is None:
            self._program = CompiledProgram(self.plain, self._variables, self._first_values)
        return self._program

    @property
    def lent(self) -> Sequence[int]:
        """The places of the variables that are lent to the program."""
        return self.program().lent if self.compiles else ()

    @property
    def given_away(self) -> Mapping[int, int]:
        """The first values of those that give their memory away, by place."""
        return self.program().given_away if self.compiles else {}

    def run(
        self, tensors: list[Tensor | None], log: Log | None, loan: Loan | None = None
    ) -> tuple | Divergence:
        """The arrays of the results and of the writes, for these arguments; see `CompiledProgram.run`."""
        if self.compiles:
            begun = time.perf_counter()
            outcome = self.program().run(tensors, log, loan)
            self.seconds = self.seconds or time.perf_counter() - begun
            return outcome
        if self._code is None:
            self.code()
        arrays = [x._array for x in tensors]
        if not self.calls_python:
            return thread.recorders.quietly(self._code, *arrays, log)
        with np.errstate(all="ignore"):  # unlike a context, it can be entered within itself
            return self._code(*arrays, log)
