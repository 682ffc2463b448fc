"""retrograde: TensorFlow's GradientTape programming model, on NumPy."""

import sys as _sys

from retrograde._api import hooks as _hooks  # noqa: F401 (registers the methods of tapes)
from retrograde._api.default_device import select_default_device as _select_default_device
from retrograde._api.lazy import from_stub
from retrograde._api.module_finders import KerasFinder as _KerasFinder
from retrograde.fusion.allocator import raise_malloc_thresholds as _raise_malloc_thresholds
from retrograde.ops import (
    _required,  # noqa: F401 (registers the primitives that core applies)
)
from retrograde.ops import (
    operators as _operators,  # noqa: F401 (binds Python's operators)
)

__getattr__, __dir__ = from_stub(__name__)

_raise_malloc_thresholds()
_sys.meta_path.insert(0, _KerasFinder)
_select_default_device()
