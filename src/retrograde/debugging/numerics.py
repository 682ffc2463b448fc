"""Values that are not finite, found where they arise."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from retrograde.core.tape import defaults
from retrograde.core.tensor import Tensor
from retrograde.diagnose.nonfinite.monitor import MODES, Watcher, watch, watcher
from retrograde.ops import checks
from retrograde.ops.conversion import as_tensor
from retrograde.values.arguments import shown


def check_numerics(tensor: Any, message: str, name: str | None = None) -> Tensor:
    """The tensor, if all its values are finite; else an `InvalidArgumentError` with `message`.

    The gradient that comes back through it is checked in the same way.

    >>> tf.debugging.check_numerics([1.0, 2.0], "loss").numpy()
    array([1., 2.], dtype=float32)
    """
    if not isinstance(message, str):
        raise TypeError(
            f"check_numerics: expected a string for `message`. Received: {shown(message)}."
        )
    return checks.check_numerics(as_tensor(tensor), message=message)


def assert_all_finite(x: Any, message: str, name: str | None = None) -> Tensor:
    """The tensor, if all its values are finite; else an `InvalidArgumentError` with `message`."""
    return check_numerics(x, message)


class nonfinite:
    """Watches for NaN and infinity as they are made: in operations and on the way back over tapes.

    With "raise", the first of them is an `InvalidArgumentError`; with "warn", a `RuntimeWarning`;
    with "explain", it is printed. Each says which call of which line made it out of finite values,
    at which elements, why, and what to write instead, as `tape.autopsy()` does. The last two tell
    of each place once.

    It goes for this thread: until the end of the block if used in a `with` statement, else until
    another is made or `tf.debugging.disable_check_numerics()`. Tapes made meanwhile note their
    lines.

    >>> with tf.debugging.nonfinite("explain"):
    ...     y = tf.math.log([1.0, 0.0])
    On the way forwards, log made an infinity out of finite values.
      <doctest ...
      1 of 2 elements are not finite:
        [1] log(0) = -inf
      Why: The logarithm of 0 is -inf.
      Cure: ...
    """

    def __init__(self, mode: str = "explain") -> None:
        if mode not in MODES:
            raise ValueError(
                f"nonfinite: expected 'raise', 'warn' or 'explain'. Received: {shown(mode)}."
            )
        self._before = watcher(), defaults.lines
        watch(Watcher(mode))
        defaults.lines = True

    def __enter__(self) -> nonfinite:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        before, defaults.lines = self._before
        watch(before)


def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int = 50) -> None:
    """Makes every operation of this thread that yields NaN or infinity an `InvalidArgumentError`.

    That goes for gradients as well: it is `nonfinite("raise")` under TensorFlow's name. The
    traceback is that of the error, so its limits do nothing.

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
    if watcher() is not None:
        watch(None)
        defaults.lines = False
