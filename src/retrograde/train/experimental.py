"""tf.train.experimental: Python objects in checkpoints."""

from __future__ import annotations

import abc
from collections.abc import Callable

from retrograde._api.lazy import from_all

__all__ = ["PythonState"]

__getattr__, __dir__ = from_all(__name__)


class PythonState(abc.ABC):
    """A base class for objects that checkpoints save as a string.

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
        """Returns the string to save."""

    @abc.abstractmethod
    def deserialize(self, string_value: bytes) -> None:
        """Restores the object from a saved string."""

    def _checkpoint_bytes(self) -> bytes:
        text = self.serialize()
        return text.encode() if isinstance(text, str) else text

    def _restore_function(self, value: bytes) -> Callable[[], None]:
        return lambda: self.deserialize(value)
