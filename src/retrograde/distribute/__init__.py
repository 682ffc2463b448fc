"""tf.distribute: strategies, for programs that ask for one; each has one replica, on one device."""

from retrograde._api.lazy import from_stub

__getattr__, __dir__ = from_stub(__name__)
