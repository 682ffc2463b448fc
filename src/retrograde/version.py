"""tf.version: the TensorFlow version that retrograde is compatible with.

Programs written for TensorFlow compare `tf.version.VERSION`, or `tensorflow.__version__` under
`retrograde run`. The version of retrograde itself is `retrograde.__version__`.
"""

from retrograde._api.lazy import from_all

__all__ = [
    "COMPILER_VERSION",
    "GIT_VERSION",
    "GRAPH_DEF_VERSION",
    "GRAPH_DEF_VERSION_MIN_CONSUMER",
    "GRAPH_DEF_VERSION_MIN_PRODUCER",
    "VERSION",
]

__getattr__, __dir__ = from_all(__name__)

VERSION = "2.21.0"
GIT_VERSION = "unknown"
COMPILER_VERSION = "none"
GRAPH_DEF_VERSION = 2474
GRAPH_DEF_VERSION_MIN_CONSUMER = 0
GRAPH_DEF_VERSION_MIN_PRODUCER = 0

__version__ = "0.1.0"  # of retrograde
