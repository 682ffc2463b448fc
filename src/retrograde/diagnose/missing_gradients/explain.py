"""`tape.explain`, and the `on_none` option of tapes."""

from __future__ import annotations

import sys
import warnings
from types import FrameType
from typing import Any

from retrograde.diagnose.missing_gradients.findings import Explanation
from retrograde.diagnose.missing_gradients.obstacles import ExplainQuery, dereference
from retrograde.diagnose.missing_gradients.query import watched_tensor
from retrograde.diagnose.missing_gradients.source_code import Program
from retrograde.diagnose.tape_notes import last_without_gradient
from retrograde.values import nest
from retrograde.values.source_location import user_frame


def explain(tape: Any, target: Any, sources: Any) -> Explanation:
    """Explains why the gradient of `target` with respect to each of `sources` is `None`.

    Returns a sequence with one `Finding` for each source. A finding says whether the source is
    connected to the target. If it is not, the finding has the cause, the line of your program and a
    fix. The result prints as text, and notebooks show it as a table. You can call `explain` before
    or after `gradient()`. The page "Why is my gradient None?" lists all causes.

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
    """Returns a finding for each of `sources`. `frame`, the caller's, has the names to use."""
    query = ExplainQuery(tape, nest.flatten(target), Program(user_frame(frame)))
    leaves = nest.flatten(sources)
    return Explanation([query.finding(leaf, i, len(leaves)) for i, leaf in enumerate(leaves)])


class NoGradientError(ValueError):
    """Raised if a gradient is `None` on a tape with `on_none="raise"`.

    `explanation` has a finding for each source without a gradient.
    """

    def __init__(self, explanation: Explanation) -> None:
        super().__init__(f"The gradient is None.\n\n{explanation}")
        self.explanation = explanation


def report_none(tape: Any, targets: list, missing: list, frame: FrameType | None) -> None:
    """Warns or raises, as `on_none` says, because `missing` have no gradient."""
    explanation = explanation_for(tape, targets, missing, frame)
    if tape._on_none == "raise":
        raise NoGradientError(explanation)
    levels, users_own = 2, user_frame(frame)
    while frame is not None and frame is not users_own:
        frame, levels = frame.f_back, levels + 1
    warnings.warn(f"The gradient is None.\n\n{explanation}", stacklevel=levels + 1)


_SHOWN = 3  # findings in a message of Keras: a model may have hundreds of variables


def reasons_for(variables: list, frame: FrameType | None) -> str:
    """Returns why the last gradients of this thread were `None`, as the end of a message.

    The string is empty if the tape no longer exists.
    """
    tape = last_without_gradient.tape and last_without_gradient.tape()
    missing = None if tape is None or tape._notes is None else tape._notes.missing
    if missing is None:
        return ""
    targets = [target for target in dereference(missing.targets) if target is not None]
    sources = dereference(missing.sources)
    explained = [v for v in variables if watched_tensor(v) in sources]
    if not targets or not explained:
        return ""
    findings = explanation_for(tape, targets, explained[:_SHOWN], frame)
    more = len(explained) - len(findings)
    return f"\n\n{findings}" + (f"\n\n… and {more} more." if more else "")
