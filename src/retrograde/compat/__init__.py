"""tf.compat: strings, paths and numbers, for programs that ran on several Pythons."""

from retrograde._api.lazy import from_stub

__getattr__, __dir__ = from_stub(__name__)
