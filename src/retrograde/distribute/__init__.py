"""tf.distribute: strategies, which run a program in several replicas."""

from retrograde._api.lazy import from_stub

__getattr__, __dir__ = from_stub(__name__)
