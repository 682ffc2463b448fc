"""Why a gradient is `None`: `tape.explain`, and what `on_none` asks for."""

from __future__ import annotations

import sys
import warnings
from types import FrameType
from typing import Any

from retrograde.diagnose.missing_gradients.findings import Explanation
from retrograde.diagnose.missing_gradients.obstacles import Inquiry, alive
from retrograde.diagnose.missing_gradients.questions import held_or_followed
from retrograde.diagnose.missing_gradients.source_code import Program
from retrograde.diagnose.tape_notes import last_without_gradient
from retrograde.values import nest
from retrograde.values.source_location import users


def explain(tape: Any, target: Any, sources: Any) -> Explanation:
    """Why the gradient of `target` by each of `sources` is `None`, or by which way it flows.

    The answer is a sequence with one `Finding` for each source: whether it is connected; if not,
    the cause, the line of your program, and what to write instead. It prints as text, and notebooks
    show it as a table. It may be asked before or after `gradient()`, as long as the tape lives.
    The page "Why is it None" lists all causes.

    >>> x = tf.constant(3.0)
    >>> with tf.GradientTape() as tape:
    ...     y = x * x
    >>> print(tape.gradient(y, x))
    None
    >>> tape.explain(y, x)[0].cause
    'not watched'
    """
    return explanation_for(tape, target, sources, sys._getframe(1))


def explanation_for(tape: Any, target: Any, sources: Any, frame: FrameType | None) -> Explanation:
    """A finding for each of `sources`. `frame` is that of the caller, for the names it uses."""
    inquiry = Inquiry(tape, nest.flatten(target), Program(users(frame)))
    leaves = nest.flatten(sources)
    return Explanation([inquiry.finding(leaf, i, len(leaves)) for i, leaf in enumerate(leaves)])


class NoGradientError(ValueError):
    """A gradient is `None`, on a tape made with `on_none="raise"`.

    `explanation` holds a finding for each source that has none.
    """

    def __init__(self, explanation: Explanation) -> None:
        super().__init__(f"There is no gradient.\n\n{explanation}")
        self.explanation = explanation


def answer_none(tape: Any, targets: list, missing: list, frame: FrameType | None) -> None:
    """What a tape does that found no gradient for `missing`, and was asked to explain or raise."""
    explanation = explanation_for(tape, targets, missing, frame)
    if tape._on_none == "raise":
        raise NoGradientError(explanation)
    levels, users_own = 2, users(frame)
    while frame is not None and frame is not users_own:
        frame, levels = frame.f_back, levels + 1
    warnings.warn(f"There is no gradient.\n\n{explanation}", stacklevel=levels + 1)


_SHOWN = 3  # findings that a message of Keras carries: a model may have hundreds of variables


def reasons_for(variables: list, frame: FrameType | None) -> str:
    """Why the last gradients taken in this thread were `None` for `variables`, to end a message.

    It is empty if no tape is left that could tell.
    """
    tape = last_without_gradient.tape and last_without_gradient.tape()
    missing = None if tape is None or tape._notes is None else tape._notes.missing
    if missing is None:
        return ""
    targets = [target for target in alive(missing.targets) if target is not None]
    asked = alive(missing.sources)
    known = [v for v in variables if held_or_followed(v) in asked]
    if not targets or not known:
        return ""
    findings = explanation_for(tape, targets, known[:_SHOWN], frame)
    more = len(known) - len(findings)
    return f"\n\n{findings}" + (f"\n\n… and {more} more." if more else "")
