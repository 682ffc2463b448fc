"""tf.profiler: profiles of a program, for TensorBoard."""

from retrograde._api.lazy import from_stub

__getattr__, __dir__ = from_stub(__name__)
