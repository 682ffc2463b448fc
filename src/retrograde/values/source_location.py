"""Source locations in the user's program."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, NamedTuple


class SourceLocation(NamedTuple):
    """A location in a program. The line is computed on demand.

    `layer` is the name of the Keras layer that was running, if any. `rule` is the name of the
    operation whose gradient was computed, in the backward pass.
    """

    code: CodeType
    instruction: int
    layer: str | None = None
    rule: str | None = None

    @property
    def filename(self) -> str:
        """The file."""
        return self.code.co_filename

    @property
    def function(self) -> str:
        """The name of the function, or "<module>"."""
        return self.code.co_qualname

    @property
    def line(self) -> int:
        """The line number, from 1."""
        return self._positions()[0] or self.code.co_firstlineno

    @property
    def text(self) -> str:
        """The stripped source line; empty if the file cannot be read."""
        return linecache.getline(self.filename, self.line).strip()

    @property
    def expression(self) -> str:
        """The expression that was evaluated, if Python knows its columns; else the entire line."""
        first, last, start, end = self._positions()
        if first != last or start is None or end is None:
            return self.text
        # Columns are counted in bytes.
        source_line = linecache.getline(self.filename, first).encode()
        return source_line[start:end].decode() or self.text

    def _positions(self) -> tuple:
        if self.instruction < 0:
            return None, None, None, None
        for number, positions in enumerate(self.code.co_positions()):
            if number == self.instruction // 2:
                return positions
        return None, None, None, None

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}"


_new_tuple = tuple.__new__


def user_frame(frame: FrameType | None) -> FrameType | None:
    """Returns the innermost frame of the user's program, from `frame` on."""
    while frame is not None and not is_user_frame(frame):
        frame = frame.f_back
    return frame


def is_user_frame(frame: FrameType) -> bool:
    """Returns whether `frame` is in the user's program."""
    return not LIBRARIES[frame.f_code.co_filename]


class InterpreterFrames(NamedTuple):
    """Locates the steps that an interpreter of traces with this `code` runs, from its frame.

    `location` returns where in the user's program the step was traced. If the step is part of a
    gradient, `derived` returns the differentiated call, if available: the primitive, its inputs and
    its outputs.
    """

    code: CodeType
    location: Callable[[FrameType], SourceLocation | None]
    derived: Callable[[FrameType], tuple[Any, tuple, tuple] | None]


def register_interpreter(interpreter: InterpreterFrames) -> None:
    """Makes `location_of` use `interpreter`. A file can have one interpreter."""
    LIBRARIES[interpreter.code.co_filename] = interpreter


def interpreter_of(frame: FrameType) -> InterpreterFrames | None:
    """Returns the interpreter that runs in `frame`, or `None`."""
    interpreter = LIBRARIES[frame.f_code.co_filename]
    return (
        interpreter
        if isinstance(interpreter, InterpreterFrames) and interpreter.code is frame.f_code
        else None
    )


def location_of(frame: FrameType | None) -> SourceLocation | None:
    """Returns the current location of the innermost frame of the user's program, from `frame` on.

    While a trace is interpreted, it is the location where the step was traced.
    """
    while frame is not None:
        library = LIBRARIES[frame.f_code.co_filename]
        if not library:
            return _new_tuple(SourceLocation, (frame.f_code, frame.f_lasti, None, None))
        if library is not True and library.code is frame.f_code:
            location = library.location(frame)
            if location is not None:
                return location
        frame = frame.f_back
    return None


def locals_of(frame: FrameType, *names: str) -> list:
    """Returns local variables of a running function; `None` for unassigned ones."""
    frame_locals = frame.f_locals
    values = list(map(frame_locals.get, names))
    if type(frame_locals) is dict:
        frame_locals.clear()  # else the frame would keep the arrays alive
    return values


def caller_location() -> SourceLocation | None:
    """Returns the location in the user's program that led to this call."""
    return location_of(sys._getframe(1))


class _Libraries(dict[str, Any]):
    """Maps file names to whether the file belongs to a library, or to its `InterpreterFrames`."""

    def __missing__(self, filename: str) -> bool:
        is_library = self[filename] = _is_library(filename)
        return is_library


LIBRARIES = _Libraries()

# Packages whose frames can be between the user's program and this library.
_LIBRARIES = ("retrograde", "keras", "numpy", "scipy", "jax", "optree", "contextlib", "functools")


def _is_library(filename: str) -> bool:
    if filename.startswith("<"):
        return filename.startswith(("<retrograde", "<frozen", "<__array_function__"))
    return any(filename.startswith(home) for home in map(_home_of, _LIBRARIES) if home)


def _home_of(name: str) -> str | None:
    """Returns the directory of an imported package, or the file of a module."""
    module = sys.modules.get(name)
    if module is None:
        return None
    if hasattr(module, "__path__"):
        return os.path.join(next(iter(module.__path__)), "")
    return module.__file__


def first_output(out: Any) -> int:
    """Returns the id of the first output of an entry."""
    return out[0][0] if type(out) is tuple else out
