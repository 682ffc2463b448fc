"""The processor's word that a number is no longer finite, handed to the walk that it comes from.

A processor notes by itself when a division by zero, an overflow or an operation without a result
happens, and NumPy looks at these notes after each kernel anyway. To be called then costs nothing
as long as nothing happens.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType

Answer = Callable[[FrameType], FrameType | None]

_answers: dict[int, Answer] = {}  # by the id of the code, which takes long to hash


def answer_in(code: CodeType, answer: Answer) -> None:
    """Has `answer` called with the frame of each call of `code` that an alarm comes from below.

    It returns the caller with which to go on.
    """
    _answers[id(code)] = answer


def heard(_kind: str = "", _flags: int = 0) -> None:
    """Tells all callers that have an answer. NumPy calls it in a kernel."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        answer = _answers.get(id(frame.f_code))
        frame = frame.f_back if answer is None else answer(frame)
