"""tf.sparse: operations on SparseTensors, which store only nonzero elements."""

from retrograde._api.lazy import from_stub
from retrograde.sparse import (
    arithmetic as _arithmetic,  # noqa: F401 (it binds operators)
)
from retrograde.sparse import (
    counting as _counting,  # noqa: F401 (it binds a handler)
)
from retrograde.sparse import (
    shaping as _shaping,  # noqa: F401 (it binds a handler)
)

__getattr__, __dir__ = from_stub(__name__)
