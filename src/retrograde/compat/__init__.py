"""tf.compat: string, path and number helpers for older programs."""

from retrograde._api.lazy import from_stub

__getattr__, __dir__ = from_stub(__name__)
