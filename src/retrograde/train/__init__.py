"""tf.train: checkpoints and moving averages of variables."""

from retrograde._api.lazy import from_stub

__getattr__, __dir__ = from_stub(__name__)
