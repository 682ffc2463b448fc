"""tf.math: arithmetic, elementary functions and reductions, with TensorFlow's signatures.

`name` is accepted and ignored throughout. `truncatediv` and `truncatemod`, which are only at top
level in TensorFlow, are also available here.
"""

from retrograde._api.lazy import from_stub

__getattr__, __dir__ = from_stub(__name__)
