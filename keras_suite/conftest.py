"""What Keras's tests expect around them. It is copied to where they are.

The wheel of Keras has its tests, but not the `conftest` that they import from. This one imports
Keras on the backend under test, skips the tests that `excluded.toml` names, and writes down how
each test ended.
"""

import contextlib
import importlib.util
import json
import os
import pathlib
import re
import tomllib

import pytest

with contextlib.suppress(ImportError):
    import torch  # noqa: F401 (before TensorFlow, which some tests import: else it crashes)

ON_RETROGRADE = os.environ["SUITE_BACKEND"] == "retrograde"
if ON_RETROGRADE:
    import retrograde.keras  # noqa: F401

from keras.src.backend import backend  # noqa: E402

EXCLUDED = pathlib.Path(__file__).with_name("excluded.toml")


def skip_if_backend(given_backend, reason):
    """A mark for tests that a backend cannot pass."""
    return pytest.mark.skipif(backend() == given_backend, reason=reason)


def excluded():
    """Reasons, by the name of a test or of a file, from `keras/src` on."""
    groups = tomllib.loads(EXCLUDED.read_text())["excluded"] if ON_RETROGRADE else []
    return {name: group["reason"] for group in groups for name in group["tests"]}


def short_name(nodeid):
    """The name of a test from `keras/src` on."""
    return nodeid.partition("keras/src/")[2]


def pytest_configure(config):
    assert backend() == os.environ["SUITE_BACKEND"], f"Keras runs on {backend()}"
    config.addinivalue_line("markers", "requires_trainable_backend: needs gradients")
    config.addinivalue_line("markers", "multi_device: needs more than one device")


def pytest_collection_modifyitems(items):
    reasons = excluded()
    for item in items:
        name = short_name(item.nodeid)
        for part in (name, name.partition("[")[0], name.partition("::")[0]):
            if part in reasons:
                item.add_marker(pytest.mark.skip(reason=f"excluded: {reasons[part]}"))
                break
        if "multi_device" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="needs more than one device"))


MISSING = re.compile(r"No module named '(\w+)|This requires the (\w+) module")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Skips a test that failed for want of a package which is not installed."""
    report = yield
    return _skipped_if_missing(report, report.location)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """The same for files that cannot be imported."""
    report = yield
    return _skipped_if_missing(report, (str(collector.path), 0))


def _skipped_if_missing(report, location):
    found = report.failed and MISSING.search(str(report.longrepr))
    package = found and (found[1] or found[2])
    if package and importlib.util.find_spec(package) is None:
        report.outcome = "skipped"
        reason = f"Skipped: needs {package}, which is not installed"
        report.longrepr = (*location[:2], reason)
    return report


def pytest_runtest_logreport(report):
    if report.outcome != "passed":
        _note(report, "excluded" if _is_excluded(report) else report.outcome)
    elif report.when == "call":
        _note(report, "passed")


def pytest_collectreport(report):
    if report.outcome != "passed" and "::" not in report.nodeid:
        _note(report, report.outcome)


def _is_excluded(report):
    return report.outcome == "skipped" and "excluded: " in str(report.longrepr)


def _note(report, outcome):
    """Appends a line to the results: they are of use even if the run does not come to its end."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return  # the process that reports come to writes them down
    why = getattr(report.longrepr, "reprcrash", report.longrepr) or ""
    with open(os.environ["SUITE_RESULTS"], "a") as file:
        file.write(json.dumps([short_name(report.nodeid), outcome, str(why)[-300:]]) + "\n")
