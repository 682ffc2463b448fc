"""tf.debugging: assertions, checks for NaN and Inf, and settings of diagnostics."""

from retrograde._api.lazy import from_stub

__getattr__, __dir__ = from_stub(__name__)
