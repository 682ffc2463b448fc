"""Replaces the `conftest.py` of Keras's tests. It is copied next to them.

Keras's wheel contains its tests, but not the `conftest` that they import from. This one imports
Keras with the backend under test, skips the tests in `excluded.toml` and writes the outcome of
each test to a file.
"""

import contextlib
import importlib
import importlib.util
import json
import os
import pathlib
import re
import tomllib

import pytest

with contextlib.suppress(ImportError):
    import torch  # noqa: F401 (must be imported before TensorFlow, or it crashes)

ON_RETROGRADE = os.environ["SUITE_BACKEND"] == "retrograde"
RESULTS = os.environ["SUITE_RESULTS"]  # read now: a test deletes all environment variables
IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ  # the controller process writes the results
if ON_RETROGRADE:
    import retrograde.keras  # noqa: F401

from keras.src.backend import backend  # noqa: E402

EXCLUDED = pathlib.Path(__file__).with_name("excluded.toml")


def skip_if_backend(given_backend, reason):
    """Returns a mark that skips a test on a backend."""
    return pytest.mark.skipif(backend() == given_backend, reason=reason)


def read_exclusions():
    """Returns the reasons for exclusion by name of a test or file, relative to `keras/src`."""
    groups = tomllib.loads(EXCLUDED.read_text())["excluded"] if ON_RETROGRADE else []
    return {name: group["reason"] for group in groups for name in group["tests"]}


def short_name(nodeid):
    """Returns the name of a test relative to `keras/src`."""
    return nodeid.partition("keras/src/")[2]


def pytest_configure(config):
    assert backend() == os.environ["SUITE_BACKEND"], f"Keras runs on {backend()}"
    config.addinivalue_line("markers", "requires_trainable_backend: needs gradients")
    config.addinivalue_line("markers", "multi_device: needs more than one device")


def pytest_collection_modifyitems(items):
    reasons = read_exclusions()
    for item in items:
        name = short_name(item.nodeid)
        for part in (name, name.partition("[")[0], name.partition("::")[0]):
            if part in reasons:
                item.add_marker(pytest.mark.skip(reason=f"excluded: {reasons[part]}"))
                break
        if "multi_device" in item.keywords and _has_one_device():
            item.add_marker(pytest.mark.skip(reason="needs more than one device"))


def _has_one_device():
    """Returns whether JAX has a single device, or is not used."""
    return not ON_RETROGRADE or importlib.import_module("jax").device_count() == 1


MISSING = re.compile(r"No module named '(\w+)|This requires the (\w+) module")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Marks a test as skipped if it failed because a package is not installed."""
    report = yield
    return _skip_if_missing(report, report.location)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Does the same for files that cannot be imported."""
    report = yield
    return _skip_if_missing(report, (str(collector.path), 0))


def _skip_if_missing(report, location):
    match = report.failed and MISSING.search(str(report.longrepr))
    package = match and (match[1] or match[2])
    if package and importlib.util.find_spec(package) is None:
        report.outcome = "skipped"
        reason = f"Skipped: needs {package}, which is not installed"
        report.longrepr = (*location[:2], reason)
    return report


def pytest_runtest_logreport(report):
    if report.outcome != "passed":
        _write_result(report, "excluded" if _is_excluded(report) else report.outcome)
    elif report.when == "call":
        _write_result(report, "passed")


def pytest_collectreport(report):
    if report.outcome != "passed" and "::" not in report.nodeid:
        _write_result(report, report.outcome)


def _is_excluded(report):
    return report.outcome == "skipped" and "excluded: " in str(report.longrepr)


def _write_result(report, outcome):
    """Appends a line to the results file, which is usable even if the run is aborted."""
    if IS_WORKER:
        return
    reason = getattr(report.longrepr, "reprcrash", report.longrepr) or ""
    with open(RESULTS, "a") as file:
        file.write(json.dumps([short_name(report.nodeid), outcome, str(reason)[-300:]]) + "\n")
