"""tf.random: numbers that are a function of a seed and of how often it was drawn from.

The numbers come from a counter-based generator (`numpy.random.Philox`). The same seed
gives the same numbers again; they are not those of TensorFlow.
"""

from retrograde._api.lazy import from_stub

__getattr__, __dir__ = from_stub(__name__)
