"""JAX as the oracle: in 64 bits, for these tests alone, and asked once for each case."""

import jax
import pytest

from tests.ops.cases._table import Case


@pytest.fixture(autouse=True)
def _jax_in_64_bits():
    with jax.enable_x64(True):
        yield


def pytest_collection_modifyitems(items):
    """All tests of one case in a row, so that what was compiled for it serves them all."""
    position = {}
    for item in items:
        case = getattr(item, "callspec", None) and item.callspec.params.get("case")
        is_ours = isinstance(case, Case)  # others may have a parameter of that name
        position[item] = position.setdefault(case, len(position)) if is_ours else len(position)
    items.sort(key=position.get)
