"""tf.debugging: assertions about values, shapes and dtypes, and watching for what is not finite."""

from retrograde._api.lazy import from_stub

__getattr__, __dir__ = from_stub(__name__)
