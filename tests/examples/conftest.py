"""The examples as modules."""

import importlib.util
import pathlib

import pytest

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="session")
def example():
    """Loads an example by its name."""

    def load(name):
        spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load
