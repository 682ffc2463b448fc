"""tf.experimental: NumPy's functions on tensors, and shared memory."""

from retrograde._api.lazy import from_stub

__getattr__, __dir__ = from_stub(__name__)
