"""tf.autograph: names for compatibility. retrograde traces functions and rewrites no code."""

from retrograde._api.lazy import from_stub

__getattr__, __dir__ = from_stub(__name__)
