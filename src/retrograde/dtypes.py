"""tf.dtypes: dtypes and casts."""

from retrograde._api.lazy import from_stub

__path__: list[str] = []  # makes `import tensorflow.dtypes` work
__getattr__, __dir__ = from_stub(__name__)
