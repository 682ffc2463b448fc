"""tf.dtypes: the dtypes, and changing them."""

from retrograde._api.lazy import from_stub

__path__: list[str] = []  # of TensorFlow's, modules can be imported
__getattr__, __dir__ = from_stub(__name__)
