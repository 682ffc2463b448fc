"""The table: at least one sample call for each primitive, in a file for each family.

No sample lies at a kink or a tie. The random numbers of each file are its own, so that a new case
does not change those of other families.
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
