"""Checks for NaN and Inf."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from retrograde.core.tape import GradientTape
from retrograde.core.tensor import Tensor
from retrograde.diagnose.nonfinite.monitor import MODES, Monitor, active_monitor, set_monitor
from retrograde.ops import checks
from retrograde.ops.conversion import as_tensor
from retrograde.values.arguments import shown


def check_numerics(tensor: Any, message: str, name: str | None = None) -> Tensor:
    """Returns the tensor; raises `InvalidArgumentError` with `message` if it has NaN or Inf.

    Its gradient is checked in the same way.

    >>> tf.debugging.check_numerics([1.0, 2.0], "loss").numpy()
    array([1., 2.], dtype=float32)
    """
    if not isinstance(message, str):
        raise TypeError(
            f"check_numerics: expected a string for `message`. Received: {shown(message)}."
        )
    return checks.check_numerics(as_tensor(tensor), message=message)


def assert_all_finite(x: Any, message: str, name: str | None = None) -> Tensor:
    """Returns the tensor; raises `InvalidArgumentError` with `message` if it has NaN or Inf."""
    return check_numerics(x, message)


class nonfinite:
    """Reports NaN and Inf as they are produced, by operations and by backward passes.

    The mode "raise" raises `InvalidArgumentError` for the first of them, "warn" emits a
    `RuntimeWarning`, and "explain" prints a report. Each names the call and the line that produced
    the value from finite inputs, the elements, the cause and a fix, as `tape.autopsy()` does.
    "warn" and "explain" report each location once.

    It affects this thread. In a `with` statement it is active until the end of the block, otherwise
    until another `nonfinite` or `tf.debugging.disable_check_numerics()`. Tapes that are created
    meanwhile store source lines.

    >>> with tf.debugging.nonfinite("explain"):
    ...     y = tf.math.log([1.0, 0.0])
    In the forward pass, log produced Inf from finite inputs.
      <doctest ...
      1 of 2 elements are non-finite:
        [1] log(0) = -inf
      Why: The logarithm of 0 is -Inf.
      Fix: ...
    """

    def __init__(self, mode: str = "explain") -> None:
        if mode not in MODES:
            raise ValueError(
                f"nonfinite: expected 'raise', 'warn' or 'explain'. Received: {shown(mode)}."
            )
        self._before = active_monitor(), GradientTape._records_lines
        set_monitor(Monitor(mode))
        GradientTape._records_lines = True

    def __enter__(self) -> nonfinite:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        before, GradientTape._records_lines = self._before
        set_monitor(before)


def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int = 50) -> None:
    """Makes operations of this thread raise `InvalidArgumentError` if they produce NaN or Inf.

    Gradients are checked as well. This is `nonfinite("raise")` under TensorFlow's name. The two
    limits have no effect: the error has an ordinary Python traceback.

    >>> tf.debugging.enable_check_numerics()
    >>> tf.math.log([-1.0])
    Traceback (most recent call last):
        ...
    retrograde.values.errors.InvalidArgumentError: Detected Infinity or NaN in output 0 of ...
    >>> tf.debugging.disable_check_numerics()
    """
    nonfinite("raise")


def disable_check_numerics() -> None:
    """Undoes `enable_check_numerics` and `nonfinite` for this thread."""
    if active_monitor() is not None:
        set_monitor(None)
        GradientTape._records_lines = False
