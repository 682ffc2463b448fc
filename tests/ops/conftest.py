"""Enables 64-bit JAX for these tests, and groups tests by case so that JAX compiles each once."""

import jax
import pytest

from tests.ops.cases._table import Case


@pytest.fixture(autouse=True)
def _jax_in_64_bits():
    with jax.enable_x64(True):
        yield


def pytest_collection_modifyitems(items):
    """Runs all tests of one case in a row, so that they share its compiled function."""
    position = {}
    for item in items:
        case = getattr(item, "callspec", None) and item.callspec.params.get("case")
        is_ours = isinstance(case, Case)  # others may have a parameter of that name
        position[item] = position.setdefault(case, len(position)) if is_ours else len(position)
    items.sort(key=position.get)
