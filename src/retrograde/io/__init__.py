"""tf.io: reading, writing, encoding and decoding files and tensors."""

from retrograde._api.lazy import from_stub

__getattr__, __dir__ = from_stub(__name__)
