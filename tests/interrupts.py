"""Runs a function at a chosen bytecode instruction, as signal handlers do."""

import opcode
import sys
from collections.abc import Callable, Sequence


class CallAtInstruction:
    """A context manager that calls `callback` at the n-th instruction of code in `files`.

    With `realistic=True`, only the instructions at which CPython handles signals count: after a
    call, after a backward jump and at the start of a function.
    """

    def __init__(
        self, n: int, callback: Callable[[], None], files: Sequence[str], realistic: bool = False
    ) -> None:
        self._remaining = n
        self._callback = callback
        self._files = tuple(files)
        self._realistic = realistic
        self._previous: dict[int, str] = {}
        self.was_reached = False

    def __enter__(self) -> "CallAtInstruction":
        self._stop = self._monitor() if sys.version_info >= (3, 12) else self._trace()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def _watches(self, code) -> bool:
        return code.co_filename in self._files

    def _on_instruction(self, code, offset: int) -> None:
        """Observes the instruction that is about to run."""
        name = opcode.opname[code.co_code[offset]]
        before = self._previous.get(id(code), "")
        self._previous[id(code)] = name
        if self._realistic and not before.startswith(("CALL", "RESUME", "JUMP_BACKWARD")):
            return
        self._remaining -= 1
        if self._remaining == 0:
            self.was_reached = True
            self._callback()

    def _trace(self) -> Callable:
        def trace(frame, event, _):
            if not self._watches(frame.f_code):
                return None
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            if event == "opcode":
                self._on_instruction(frame.f_code, frame.f_lasti)
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        return lambda: sys.settrace(before)

    def _monitor(self) -> Callable:
        monitoring = sys.monitoring

        def callback(code, offset):
            if not self._watches(code):
                return monitoring.DISABLE
            self._on_instruction(code, offset)
            return None

        instruction, tool = monitoring.events.INSTRUCTION, monitoring.DEBUGGER_ID
        monitoring.use_tool_id(tool, __name__)
        monitoring.register_callback(tool, instruction, callback)
        monitoring.set_events(tool, instruction)
        return lambda: (monitoring.set_events(tool, 0), monitoring.free_tool_id(tool))


def interrupt() -> None:
    """Raises KeyboardInterrupt, as Control-C does."""
    raise KeyboardInterrupt
