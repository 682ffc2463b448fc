"""tf.nn: activations, convolutions, losses, moments, lookups. `name` is accepted and ignored."""

from retrograde._api.lazy import from_stub

__getattr__, __dir__ = from_stub(__name__)
