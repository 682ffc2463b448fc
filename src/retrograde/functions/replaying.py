"""Replay: a simplified recording made ready to run, on NumPy or on XLA."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core.effects import Host
from retrograde.core.recorders import thread
from retrograde.core.tensor import Tensor
from retrograde.functions.numpy_replay import Writer, generate
from retrograde.functions.playing import Divergence
from retrograde.functions.recording import Call, Log
from retrograde.functions.simplifying import Plain
from retrograde.functions.xla_replay import Program, can_compile


class Replay:
    """Runs a simplified recording on the arrays of tensors.

    `variables` are those that it reads once more on its way. `given_away` are arguments whose
    memory a compiled program may use, each with the value that it is for.
    """

    def __init__(
        self,
        plain: Plain,
        variables: list[Any],
        compiles: bool,
        given_away: dict[int, int] | None = None,
    ) -> None:
        self.plain = plain
        self.uncompiled = can_compile(plain) if compiles else None
        self.compiles = compiles and self.uncompiled is None
        self._variables = variables
        self._given_away = given_away or {}
        calls = [entry for entry in plain.entries if type(entry) is Call]
        self.calls_python = any(type(call.primitive) is Host for call in calls)
        self._writer: Writer | None = None
        self._code: Any = None
        self._program: Program | None = None
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

    def program(self) -> Program:
        """The compiled program."""
        if self._program is None:
            self._program = Program(self.plain, self._variables, self._given_away)
        return self._program

    def run(self, tensors: list[Tensor], log: Log | None) -> tuple | Divergence:
        """The arrays of the results and of the writes, for these arguments."""
        if self._program is not None:
            return self._program.run(tensors, log)
        if self.compiles:
            begun = time.perf_counter()
            outcome = self.program().run(tensors, log)
            self.seconds = time.perf_counter() - begun
            return outcome
        if self._code is None:
            self.code()
        arrays = [x._array for x in tensors]
        if not self.calls_python:
            return thread.recorders.quietly(self._code, *arrays, log)
        with np.errstate(all="ignore"):  # unlike a context, it can be entered within itself
            return self._code(*arrays, log)
