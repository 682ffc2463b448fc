"""tf.experimental: user-defined types of tensors, NumPy functions on tensors, and DLPack."""

from retrograde._api.lazy import from_stub

__getattr__, __dir__ = from_stub(__name__)
