"""Loads the examples as modules, with retrograde as `tensorflow`."""

import importlib.util
import sys

import pytest

from parity.programs import EXAMPLES
from retrograde.tensorflow_shim.import_hook import retrograde_as_tensorflow


@pytest.fixture(scope="module")
def example():
    """Returns a function that loads an example by name."""

    def load(name):
        spec = importlib.util.spec_from_file_location(name, EXAMPLES.folder / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    with retrograde_as_tensorflow():
        sys.path.insert(0, str(EXAMPLES.folder))
        yield load
        sys.path.remove(str(EXAMPLES.folder))
