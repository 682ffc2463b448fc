"""tf.autograph: nothing is rewritten, so there is nothing to keep from being rewritten."""

from retrograde._api.lazy import from_stub

__getattr__, __dir__ = from_stub(__name__)
