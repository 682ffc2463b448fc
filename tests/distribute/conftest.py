"""What one replica gives, computed once for all tests."""

import pytest

from tests.distribute.workers import results


@pytest.fixture(scope="session")
def one_replica(tmp_path_factory):
    """Returns all trainings and the Keras training with one replica."""
    folder = str(tmp_path_factory.mktemp("files"))
    return results("programs:one_replica", 1, folder)[0]
