"""tf.image: operations on images of shape `[height, width, channels]` and on batches of them.

Every function accepts `name` and ignores it.
"""

from retrograde._api.lazy import from_stub

__getattr__, __dir__ = from_stub(__name__)
