"""tf.random: random numbers from counter-based generators.

The numbers come from `numpy.random.Philox` and depend on a seed and on how many draws were made.
The same seed gives the same numbers again. They differ from TensorFlow's numbers.
"""

from retrograde._api.lazy import from_stub

__getattr__, __dir__ = from_stub(__name__)
