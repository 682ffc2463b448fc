"""tf.ragged: operations on RaggedTensors, whose rows may have different lengths."""

from retrograde._api.lazy import from_stub
from retrograde.ragged import (
    indexing as _indexing,  # noqa: F401 (it binds __getitem__)
)
from retrograde.ragged import (
    operations as _operations,  # noqa: F401 (it registers handlers)
)
from retrograde.ragged import (
    spec as _spec,  # noqa: F401 (it binds _type_spec)
)

__getattr__, __dir__ = from_stub(__name__)
