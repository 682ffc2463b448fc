"""The command line: runs TensorFlow's tests in both libraries and reports the counts."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.environments import HOME, python_of
from benchmarks.peers import PEER_BY_NAME, ROOT
from benchmarks.processes import child_environment
from parity.__main__ import version_of
from tensorflow_suite.report import (
    Comparison,
    compare,
    failures,
    page,
    read_exclusions,
    read_results,
    results_file,
    table,
    unfinished,
)

PAGE = ROOT / "docs" / "parity.md"
FOLDER = HOME / "tensorflow-suite"
LIBRARIES = ("retrograde", "tensorflow")

# The directories with tests of public functions. The other ones test compilers, graphs, services,
# accelerators and tools.
DIRECTORIES = (
    "checkpoint",
    "data/experimental/kernel_tests",
    "data/kernel_tests",
    "data/util",
    "dlpack",
    "eager",
    "framework",
    "kernel_tests",
    "lib",
    "module",
    "ops",
    "saved_model",
    "summary",
    "trackable",
    "training",
    "util",
)
IGNORED = ("benchmarks", "custom_ops", "memory_tests", "optimization", "service", "v1_compat_tests")


def log(text: str) -> None:
    """Prints progress with the time of day to stderr; stdout has only the report."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(
        prog="tensorflow_suite/run.py",
        description="Run TensorFlow's own tests on retrograde, and what fails on TensorFlow.",
    )
    add = parser.add_argument
    add("tests", type=Path, help="a copy of TensorFlow's repository, or of its tensorflow/python")
    add("parts", nargs="*", help="directories or files below tensorflow/python (default: all)")
    add("--write", action="store_true", help=f"write the counts to docs/{PAGE.name}")
    add("--only-report", action="store_true", help="report the last results without running tests")
    add(
        "--environments",
        type=Path,
        metavar="DIR",
        help="use DIR/tensorflow/bin/python and DIR/retrograde/bin/python, if they exist",
    )
    options = parser.parse_args(arguments)
    nested = options.tests / "tensorflow" / "python"
    options.tests = (nested if nested.is_dir() else options.tests).resolve()
    if not (options.tests / "framework").is_dir():
        parser.error(f"{options.tests} has no folder tensorflow/python with TensorFlow's tests")
    return options


def find_files(tests: Path, parts: list[str]) -> list[str]:
    """Returns the test files below `parts`, relative to `tests`."""
    files = set()
    for part in parts or DIRECTORIES:
        path = tests / part
        paths = [path] if path.is_file() else path.rglob("*_test.py")
        files |= {str(path.relative_to(tests)) for path in paths}
    return sorted(file for file in files if parts or not set(IGNORED) & set(file.split("/")))


def write_names(tests: Path, python: str, is_partial: bool) -> None:
    """Writes the public names of TensorFlow's internal names.

    A run of some files uses the names of the last run.
    """
    file = FOLDER / "names.json"
    if is_partial and file.exists():
        return
    command = [python, "-m", "tensorflow_suite.names", str(tests), str(file)]
    subprocess.run(command, cwd=ROOT, env=child_environment(), check=True)


def run(library: str, python: str, tests: Path, jobs: list[list]) -> None:
    """Runs test files on one library."""
    (FOLDER / library).mkdir(parents=True, exist_ok=True)
    file = FOLDER / f"{library}_jobs.json"
    file.write_text(json.dumps(jobs))
    variables = {
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "src"))),
        "SUITE_LIBRARY": library,
        "SUITE_NAMES": str(FOLDER / "names.json"),
        "SUITE_TESTS": str(tests),
    }
    command = [python, "-m", "tensorflow_suite.worker", str(file)]
    environment = child_environment() | variables
    subprocess.run(command, cwd=FOLDER, env=environment, stdout=sys.stderr, check=True)


def run_both(options: argparse.Namespace, files: list[str]) -> None:
    """Runs the files on retrograde, and then the tests that did not pass on TensorFlow."""
    ours, theirs = (
        python_of(PEER_BY_NAME[library], options.environments, log) for library in LIBRARIES
    )
    FOLDER.mkdir(parents=True, exist_ok=True)
    write_names(options.tests, theirs, bool(options.parts))
    log(f"{len(files)} files on retrograde")
    jobs = [
        [str(options.tests / f), str(results_file(FOLDER, LIBRARIES[0], f)), None] for f in files
    ]
    run(LIBRARIES[0], ours, options.tests, jobs)
    jobs = []
    for file in files:
        names = unfinished(read_results(FOLDER, "retrograde", file))
        output = results_file(FOLDER, "tensorflow", file)
        output.unlink(missing_ok=True)
        if names:
            jobs.append([str(options.tests / file), str(output), names])
    log(f"{sum(len(names) for *_, names in jobs)} tests on TensorFlow")
    if jobs:
        run(LIBRARIES[1], theirs, options.tests, jobs)


def main(arguments: list[str] | None = None) -> int:
    """Runs the tests according to the options. Returns 0 if no test failed."""
    options = parse_arguments(arguments)
    files = find_files(options.tests, options.parts)
    if not options.only_report:
        run_both(options, files)
    exclusions = read_exclusions()
    comparisons: list[Comparison] = [compare(FOLDER, file, exclusions) for file in files]
    print(failures(comparisons))
    print(table(comparisons))
    if options.write:
        python = python_of(PEER_BY_NAME["tensorflow"], options.environments, log)
        PAGE.write_text(page(PAGE.read_text(), comparisons, version_of(python)))
    return int(any(comparison.failures for comparison in comparisons))


if __name__ == "__main__":
    sys.exit(main())
