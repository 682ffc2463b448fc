"""The results of all programs in each layout, computed once for all tests and test processes."""

import fcntl
import os
import pickle

import pytest

from tests.distribute.workers import results


@pytest.fixture(scope="session")
def layout(tmp_path_factory):
    """Returns a function that runs all programs of a layout, and returns the results by worker.

    Starting processes takes longer than their programs. With pytest-xdist, the first test process
    that needs a layout runs it, and the others wait for it.
    """
    base = tmp_path_factory.getbasetemp()
    folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def run(name, size=1, **env):
        path = folder / f"{name}.results"
        files = folder / f"{name}.files"
        with (folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                files.mkdir()
                path.write_bytes(pickle.dumps(results(f"layouts:{name}", size, str(files), **env)))
        return pickle.loads(path.read_bytes())

    return run


@pytest.fixture(scope="session")
def one_replica(layout):
    return layout("one_replica")[0]


@pytest.fixture(scope="session")
def two_workers(layout):
    return layout("two_workers", 2)


@pytest.fixture(scope="session")
def four_workers(layout):
    return layout("four_workers", 4)


@pytest.fixture(scope="session")
def two_devices(layout):
    return layout("two_devices", DEVICES="2")[0]


@pytest.fixture(scope="session")
def four_devices(layout):
    return layout("four_devices", DEVICES="4")[0]
