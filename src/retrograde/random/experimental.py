"""tf.random.experimental: other names of the same, and two ways to shuffle."""

from retrograde._api.lazy import from_stub

__getattr__, __dir__ = from_stub(__name__)
