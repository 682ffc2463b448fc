"""Switches: those that TensorFlow has for its logs and tracebacks, and what tapes note down."""

from __future__ import annotations

from types import TracebackType

from retrograde.core.tape import defaults

_settings = {"log_device_placement": False, "traceback_filtering": True}


def get_log_device_placement() -> bool:
    """What `set_log_device_placement` was told last."""
    return _settings["log_device_placement"]


def set_log_device_placement(enabled: bool) -> None:
    """Remembers `enabled`. There is nothing to log: operations run where their inputs are."""
    _settings["log_device_placement"] = bool(enabled)


def is_traceback_filtering_enabled() -> bool:
    """Whether tracebacks were asked to be filtered; they are short, and shown whole."""
    return _settings["traceback_filtering"]


def enable_traceback_filtering() -> None:
    """Remembers that tracebacks are to be filtered; they are short, and shown whole."""
    _settings["traceback_filtering"] = True


def disable_traceback_filtering() -> None:
    """Remembers that tracebacks are not to be filtered, which they never are."""
    _settings["traceback_filtering"] = False


class record_lines:
    """Makes tapes note, for each call, the line of your program that made it.

    It goes for tapes made from here on, in all threads: until the end of the block if used in a
    `with` statement, else until `record_lines(False)`. `GradientTape(lines=True)` does it for one
    tape. What a tape is asked about its calls is then answered with the line of each. Such tapes
    keep all values that went through their calls, as long as they live; and recording takes a
    little longer.

    >>> x = tf.Variable(3.0)
    >>> with tf.debugging.record_lines():
    ...     with tf.GradientTape() as tape:
    ...         y = x * x
    """

    def __init__(self, enabled: bool = True) -> None:
        self._before = defaults.lines
        defaults.lines = bool(enabled)

    def __enter__(self) -> record_lines:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        defaults.lines = self._before
