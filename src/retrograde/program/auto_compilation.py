"""jit_compile="auto": replays a trace while XLA compiles it, and continues with the faster one."""

from __future__ import annotations

import importlib.util
import threading
import time
from typing import Any

from retrograde.program.executable import Executable
from retrograde.program.interpreter import Divergence
from retrograde.program.traces import ResultStructure, Trace
from retrograde.program.tracing import CallbackLog, Tracer
from retrograde.values.settings import settings
from retrograde.values.thresholds import (
    COMPARED_CALLS,
    SECONDS_BEFORE_COMPILATION,
    SECONDS_PER_COMPILED_CALL,
)
from retrograde.values.variable_scopes import scopes


class AutoTrace(Trace):
    """A trace that runs on NumPy or XLA, depending on which is faster.

    It is replayed until the replays have taken as long as the compilation is expected to take. So
    compilation at most doubles the time of a short run. Then XLA compiles in a background thread.
    Afterwards a few calls of each kind are timed, and the faster executable is kept. Rounding
    differs between the two, so with `enable_op_determinism` the trace is always replayed.
    """

    def __init__(self, tracer: Tracer, results: ResultStructure) -> None:
        super().__init__(tracer, results, compiles=False)
        self._replayed = self.executable
        self._compiled: Executable | None = None  # set by the background thread
        self._compilation: threading.Thread | None = None
        self._seconds = 0.0  # of all replays before the compilation
        self._replay_times: list[float] = []
        self._compiled_times: list[float] = []
        self._is_serialized_when_replayed = self._is_serialized
        self.is_settled = (
            settings["op_determinism"]
            or scopes.replica is not None  # all replicas have to change at the same step
            or tracer.replica_rounds is not None
            or self.has_side_effects()
            or self.executable.has_collectives
            or importlib.util.find_spec("jax") is None
        )
        self._is_serialized = not self.is_settled or self._is_serialized

    @property
    def times(self) -> tuple[float, float] | None:
        """The seconds of a replayed and of a compiled call, if both were measured."""
        if len(self._compiled_times) <= COMPARED_CALLS:
            return None
        return min(self._replay_times[1:]), min(self._compiled_times[1:])

    def run(self, inputs: list, arguments: list, log: CallbackLog) -> Any:
        """Runs the program. Until the choice is made, the calls are timed."""
        if self.is_settled:
            return super().run(inputs, arguments, log)
        start_time = time.perf_counter()
        try:
            outcome = super().run(inputs, arguments, log)
        except Exception:
            if self.executable is self._replayed:
                raise
            with self.lock:  # XLA may need more memory, for example
                self._settle(self._replayed)
            log.rewind()
            return super().run(inputs, arguments, log)
        if type(outcome) is Divergence:
            return outcome
        if self.executable.compiles:
            self._block_until_ready(outcome)  # the call is committed, so it is never repeated
        with self.lock:
            if not self.is_settled:
                self._observe(time.perf_counter() - start_time)
        return outcome

    def _observe(self, seconds: float) -> None:
        """Takes the time of a call into account. The first call of each kind warms up."""
        if self._compilation is None:
            self._seconds += seconds
            calls = len(self._replayed.program.steps)
            if self._seconds > SECONDS_BEFORE_COMPILATION + calls * SECONDS_PER_COMPILED_CALL:
                # Not a daemon: the interpreter aborts if it exits while XLA compiles.
                self._compilation = threading.Thread(target=self._compile, name="compilation")
                self._compilation.start()
        elif self.executable is not self._replayed:
            self._compiled_times.append(seconds)
            if self.times is not None:
                replayed, compiled = self.times
                self._settle(self.executable if compiled < replayed else self._replayed)
        elif self._compiled is not None:
            self._replay_times.append(seconds)
            if len(self._replay_times) > COMPARED_CALLS:
                self.executable, self._compiles = self._compiled, True

    def _compile(self) -> None:
        """Compiles the program. Runs in a background thread."""
        try:
            executable = self._new_executable(self._replayed.program, compiles=True)
            if executable.compiles:
                executable.compiled().compile()
                self._compiled = executable
                return
            self._replayed.uncompiled = executable.uncompiled
        except Exception as error:
            self._replayed.uncompiled = f"the program ({type(error).__name__})"
        with self.lock:
            self._settle(self._replayed)

    def _settle(self, executable: Executable) -> None:
        """Keeps `executable` for all further calls."""
        self.executable, self._compiles = executable, executable.compiles
        if not executable.compiles:
            self._is_serialized = self._is_serialized_when_replayed
            if self._donation is not None:
                self._donation.end_all()
                self._donation = None
        self._compiled = None
        self.is_settled = True
