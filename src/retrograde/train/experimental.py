"""tf.train.experimental: Python objects in checkpoints."""

from __future__ import annotations

import abc
from collections.abc import Callable

from retrograde._api.lazy import from_all

__all__ = ["PythonState"]

__getattr__, __dir__ = from_all(__name__)


class PythonState(abc.ABC):
    """A base for classes whose objects are saved in checkpoints as strings of their own.

    >>> class Notes(tf.train.experimental.PythonState):
    ...     def __init__(self, text):
    ...         self.text = text
    ...
    ...     def serialize(self):
    ...         return self.text
    ...
    ...     def deserialize(self, string_value):
    ...         self.text = string_value.decode()
    >>> import tempfile
    >>> path = tf.train.Checkpoint(notes=Notes("abc")).write(tempfile.mkdtemp() + "/a")
    >>> notes = Notes("")
    >>> status = tf.train.Checkpoint(notes=notes).read(path)
    >>> notes.text
    'abc'
    """

    _checkpoint_name = "py_state"

    @abc.abstractmethod
    def serialize(self) -> str | bytes:
        """A string to be saved."""

    @abc.abstractmethod
    def deserialize(self, string_value: bytes) -> None:
        """Takes up a string that was saved."""

    def _checkpoint_bytes(self) -> bytes:
        text = self.serialize()
        return text.encode() if isinstance(text, str) else text

    def _restoring(self, value: bytes) -> Callable[[], None]:
        return lambda: self.deserialize(value)
