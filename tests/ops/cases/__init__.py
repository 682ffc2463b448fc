"""The table of cases: at least one sample call for each primitive, in one file per family.

No sample is at a non-differentiable point or a tie. Each file has its own random numbers, so a new
case does not change the inputs of other families.
"""

import importlib
import pkgutil

from tests.ops.cases import _table
from tests.ops.cases._table import (
    ALL_DTYPES,
    CASES,
    COMPLEXES,
    FLOATS,
    PRIMITIVES,
    Case,
)

__all__ = ["ALL_DTYPES", "CASES", "COMPLEXES", "FLOATS", "PRIMITIVES", "Case"]

for _family in pkgutil.iter_modules(__path__):
    _table.start_family(_family.name)
    importlib.import_module(f"{__name__}.{_family.name}")
