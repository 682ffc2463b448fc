"""Runs test files on one library, each in a forked process.

`python -m tensorflow_suite.worker JOBS` reads a JSON list of [file, results, names of the tests or
null] and writes a JSON object to each results file: test -> [outcome, exception, message, place].
The library, the folder with the tests and other settings are in environment variables.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import tempfile
import time
import traceback
import types
import unittest
import warnings
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["SUITE_TEMPORARY"] = tempfile.mkdtemp()
warnings.simplefilter("ignore")

from absl import flags  # noqa: E402

from tensorflow_suite import internals, modules  # noqa: E402, F401 (internals fills a table)

# Seconds for a test and for a file
TEST_LIMIT = int(os.environ.get("SUITE_TEST_LIMIT", "40"))
FILE_LIMIT = int(os.environ.get("SUITE_FILE_LIMIT", "240"))

# Tests that allocate many gigabytes
TOO_LARGE = re.compile(r"LargeBatches|Int64Slicing|LargeConcat|testLargeDim|\.test_session$")


class TooSlow(BaseException):
    """Raised if a test exceeds its time limit."""


def _raise_too_slow(*arguments):
    raise TooSlow


class Result(unittest.TestResult):
    """Notes the outcome of one test."""

    def __init__(self):
        super().__init__()
        self.outcome = ["passed", "", "", ""]

    def note(self, outcome, error):
        """Notes the first error."""
        kind, value, trace = error
        special = {"MissingPublic": "missing", "TooSlow": "slow", "NotApplicable": "inapplicable"}
        outcome = special.get(kind.__name__, outcome)
        if "Absent" in str(value):
            outcome = "inapplicable"
        if self.outcome[0] == "passed":
            self.outcome = [outcome, kind.__name__, str(value)[:600], _place(trace)]

    def addError(self, test, error):
        """Notes an error."""
        self.note("failed", error)

    addFailure = addError

    def addSkip(self, test, reason):
        """Notes that the test was skipped."""
        is_inapplicable = reason.startswith("not applicable")
        self.outcome = ["inapplicable" if is_inapplicable else "skipped", "", reason[:200], ""]

    def addSubTest(self, test, subtest, error):
        """Notes an error of a part of the test."""
        if error:
            self.note("failed", error)


def _place(trace):
    frames = [f for f in traceback.extract_tb(trace) if "unittest" not in f.filename]
    places = [f"{'/'.join(Path(f.filename).parts[-2:])}:{f.lineno}" for f in frames]
    return " < ".join(reversed(places))[:400]


def load(path):
    """Imports a test file. Returns its module."""
    module = types.ModuleType("test_file")
    module.__file__ = path
    sys.modules[module.__name__] = module
    modules.execute(path, module.__dict__)
    return module


def tests_in(module):
    """Yields the tests of a module."""
    for value in list(vars(module).values()):
        is_case = isinstance(value, type) and issubclass(value, unittest.TestCase)
        if is_case and value.__module__ == module.__name__:
            yield from unittest.defaultTestLoader.loadTestsFromTestCase(value)


def outcome_of(test):
    """Runs one test. Returns its outcome."""
    result = Result()
    signal.alarm(TEST_LIMIT)
    try:
        test.run(result)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        result.note("failed", (type(error), error, error.__traceback__))
    finally:
        signal.alarm(0)
    return result.outcome


def run_file(path, output, only):
    """Runs the tests of a file, or those in `only`, and writes their outcomes."""
    results: dict[str, object] = {}
    try:
        tests = list(tests_in(load(path)))
    except BaseException as error:
        tests = []
        results["<import>"] = ["import", type(error).__name__, str(error)[:300], ""]
    written = time.monotonic()
    for test in tests:
        name = re.sub(r" at 0x[0-9a-f]+", "", test.id().partition(".")[2])
        if (only is not None and name not in only) or TOO_LARGE.search(name):
            continue
        if time.monotonic() - written > 2:
            _write(output, results | {"<running>": name})
            written = time.monotonic()
        count = sum(known.partition("#")[0] == name for known in results) if name in results else 0
        results[f"{name}#{count + 1}" if count else name] = outcome_of(test)
    _write(output, results)


def _write(path, results):
    temporary = Path(f"{path}.part")
    temporary.write_text(json.dumps(results, indent=0))
    temporary.replace(path)


def run_in_fork(path, output, only):
    """Runs a file in a forked process, with a time limit. Returns a note if it did not end well."""
    process = os.fork()
    if process == 0:
        log = os.open(f"{output}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        status = 1
        try:
            run_file(path, output, only)
            status = 0
        finally:
            os._exit(status)
    start = time.monotonic()
    while time.monotonic() - start < FILE_LIMIT:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return f"exit status {status}" if status else ""
        time.sleep(0.05)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return f"more than {FILE_LIMIT} seconds"


def main(jobs):
    """Runs all jobs."""
    signal.signal(signal.SIGALRM, _raise_too_slow)
    flags.FLAGS(["test"], known_only=True)
    modules.install()
    for path, output, only in jobs:
        Path(output).unlink(missing_ok=True)
        start = time.monotonic()
        note = run_in_fork(path, output, None if only is None else set(only))
        results = json.loads(Path(output).read_text()) if Path(output).exists() else {}
        running = results.pop("<running>", "")
        if note:
            results["<process>"] = ["stopped", "", f"{note}: {running}", ""]
        _write(output, results)
        seconds = time.monotonic() - start
        print(f"{Path(output).stem}: {len(results)} tests, {seconds:.0f} s {note}", flush=True)


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
