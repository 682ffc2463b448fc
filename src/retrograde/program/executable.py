"""Executable: a program ready to run, replayed with NumPy or compiled by XLA."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from retrograde.core.program import Program
from retrograde.core.recorders import thread
from retrograde.ops.collectives import announce, current_group
from retrograde.ops.host_callbacks import HostCallback
from retrograde.program.donation import Donation
from retrograde.program.interpreter import Divergence
from retrograde.program.numpy_codegen import ReplayWriter
from retrograde.program.replica_merging import ReplicaProgram
from retrograde.program.spmd import SpmdProgram, WorkerProgram
from retrograde.program.tracing import CallbackLog
from retrograde.program.xla import CompiledProgram, can_compile, has_collectives


class Executable:
    """Runs a program on the arrays of tensors.

    `variables` are those that the program reads or shows to host callbacks. `first_values` are the
    numbers of the values that variables have before, by place, if they may be donated. `replicas`
    is the same program in a form that XLA runs on several devices, if there is one. A program with
    collectives is compiled only if it `runs_on_workers`.
    """

    def __init__(
        self,
        program: Program,
        variables: list[Any],
        compiles: bool,
        first_values: dict[int, int] | None = None,
        replicas: ReplicaProgram | None = None,
        runs_on_workers: bool = False,
    ) -> None:
        self.program = program
        self.has_collectives = has_collectives(program)
        self.uncompiled = can_compile(program) if compiles else None
        spans_workers = compiles and self.has_collectives and current_group().size > 1
        if spans_workers and self.uncompiled is None and not runs_on_workers:
            self.uncompiled = "a collective under a tape"
        self._spans_workers = spans_workers and self.uncompiled is None
        self.compiles = compiles and self.uncompiled is None
        self.calls_python = any([type(call.primitive) is HostCallback for call in program.calls])
        self.seconds = 0.0  # time for code generation or compilation
        self._variables = variables
        self._first_values = first_values
        self._replicas = replicas
        self._writer: Any = None  # a `ReplayWriter`
        self._code: Any = None
        self._compiled: CompiledProgram | None = None

    def source(self) -> str:
        """Returns the source of the NumPy replay."""
        if self._writer is None:
            self._writer = ReplayWriter(self.program, self._variables)
        return self._writer.source

    def code(self) -> Callable:
        """Returns the NumPy replay, a function of arrays."""
        if self._code is None:
            start_time = time.perf_counter()
            self.source()
            self._code = self._writer.compiled()
            self.seconds = time.perf_counter() - start_time
        return self._code

    def compiled(self) -> CompiledProgram:
        """Returns the program for XLA."""
        if self._compiled is None and self._replicas is not None:
            places = list(self.program.writes)
            self._compiled = SpmdProgram(self._replicas, self._variables, places)
        elif self._compiled is None and self._spans_workers:
            self._compiled = WorkerProgram(self.program, self._variables)
        elif self._compiled is None:
            self._compiled = CompiledProgram(self.program, self._variables, self._first_values)
        return self._compiled

    @property
    def donated(self) -> Sequence[int]:
        """The places of the variables whose buffers are donated to the program."""
        return self.compiled().donated if self.compiles else ()

    @property
    def donated_inputs(self) -> Mapping[int, int]:
        """The first values that are passed as donated arguments, by place."""
        return self.compiled().donated_inputs if self.compiles else {}

    def run(
        self, tensors: Sequence[Any], log: CallbackLog | None, donation: Donation | None = None
    ) -> tuple | Divergence:
        """Returns the arrays of the results and of the writes; see `CompiledProgram.run`."""
        if not self.compiles:
            if self.has_collectives:
                announce(log)
            return self._replay(tensors, log)
        start_time = time.perf_counter()
        outcome = self.compiled().run(tensors, log, donation)
        self.seconds = self.seconds or time.perf_counter() - start_time
        if outcome is not None:
            return outcome
        outcome = self._replay(tensors, log)
        if log is not None and log.is_undecided:
            return self.compiled().run(tensors, log, donation) or outcome
        return outcome

    def _replay(self, tensors: Sequence[Any], log: CallbackLog | None) -> tuple | Divergence:
        """Runs the program with NumPy."""
        if self._code is None:
            self.code()
        arrays = [x._array for x in tensors]
        if not self.calls_python:
            return thread.recorders.quietly(self._code, *arrays, log)
        with np.errstate(all="ignore"):  # unlike a context, it can be entered within itself
            return self._code(*arrays, log)
