"""Settings: TensorFlow's for logs and tracebacks, and `record_lines`."""

from __future__ import annotations

from types import TracebackType

from retrograde.core.tape import GradientTape

_settings = {"log_device_placement": False, "traceback_filtering": True}


def get_log_device_placement() -> bool:
    """Returns the value that was set by `set_log_device_placement`."""
    return _settings["log_device_placement"]


def set_log_device_placement(enabled: bool) -> None:
    """Stores `enabled`. It has no effect: operations run on the device of their inputs."""
    _settings["log_device_placement"] = bool(enabled)


def is_traceback_filtering_enabled() -> bool:
    """Returns the setting, which has no effect: tracebacks are never filtered."""
    return _settings["traceback_filtering"]


def enable_traceback_filtering() -> None:
    """Stores the setting, which has no effect: tracebacks are never filtered."""
    _settings["traceback_filtering"] = True


def disable_traceback_filtering() -> None:
    """Stores the setting, which has no effect: tracebacks are never filtered."""
    _settings["traceback_filtering"] = False


class record_lines:
    """Makes tapes store the source line of each call, for their diagnostics.

    It affects tapes that are created from now on, in all threads. In a `with` statement it is
    active until the end of the block, otherwise until `record_lines(False)`.
    `GradientTape(lines=True)` does the same for a single tape. Such tapes also keep the inputs and
    outputs of all calls for their lifetime, and recording is slower.

    >>> x = tf.Variable(3.0)
    >>> with tf.debugging.record_lines():
    ...     with tf.GradientTape() as tape:
    ...         y = x * x
    """

    def __init__(self, enabled: bool = True) -> None:
        self._before = GradientTape._records_lines
        GradientTape._records_lines = bool(enabled)

    def __enter__(self) -> record_lines:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        GradientTape._records_lines = self._before
