"""The processor's word that a number is no longer finite, handed to the walk that it comes from.

A processor notes by itself when a division by zero, an overflow or an operation without a result
happens, and NumPy looks at these notes after each kernel anyway. To be called then costs nothing
as long as nothing happens.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType

# What to do with an alarm that came from below a call of certain code.
answers: dict[CodeType, Callable[[FrameType], None]] = {}


def heard(_kind: str = "", _flags: int = 0) -> None:
    """Tells the innermost of the callers that has an answer. NumPy calls it in a kernel."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        answer = answers.get(frame.f_code)
        if answer is not None:
            answer(frame)
            return
        frame = frame.f_back
