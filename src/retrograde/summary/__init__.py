"""tf.summary: numbers, histograms, images and text, for TensorBoard to show."""

from retrograde._api.lazy import from_stub

__getattr__, __dir__ = from_stub(__name__)
