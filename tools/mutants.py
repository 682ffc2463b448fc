"""Mutation testing: checks that the tests detect faults in the source.

    python tools/mutants.py --seed 17 --count 300 --select "not jax and not xla"

Creates mutants: copies of `core`, `program` and `ops` with one small random fault. Runs the tests
of these packages on each mutant until one fails. Prints the mutants that survive all tests.

All work is done in a copy of a commit. The tests are collected once. A forked process runs them all
and records which functions each test calls. `--scratch` keeps these data for the next run, which
also resumes an interrupted run.

Each mutant is a forked process in which the code of the changed functions is replaced. It runs
tests that enter one of these functions, as many as took `--budget` seconds without the fault:
the quickest case of each test function first. `--select` leaves out tests that take long.
Changes of module and class bodies, and of functions that run during imports, are written into the
copy and tested in a new interpreter.

A failure counts only if the same test passes without the fault directly afterwards.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import gc
import json
import os
import pathlib
import random
import re
import resource
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

import pytest
from mutations import Mutant, changed_functions, mutants_of

ROOT = pathlib.Path(__file__).parents[1]
PACKAGES = ("core", "program", "ops")
SOURCES = "src/retrograde"
PYTEST = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0"]
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


@dataclass
class Outcome:
    """The outcome for a mutant: the test that killed it, or `None`."""

    mutant: Mutant
    killed_by: str | None
    tests: int

    def as_json(self, source: str) -> dict:
        """Returns the outcome as a dictionary for a JSON file."""
        return {
            "place": f"{self.mutant.file}:{self.mutant.line}",
            "kind": self.mutant.kind,
            "diff": self.mutant.diff(source),
            "killed_by": self.killed_by,
            "tests": self.tests,
        }


class Mutating:
    """A pytest plugin that runs the collected tests on many mutants instead of once."""

    def __init__(self, options: argparse.Namespace, tree: pathlib.Path) -> None:
        self._options = options
        self._tree = tree
        self._sources: dict[str, str] = {}
        self._entered: set[CodeType] = set()
        self._results = tree.with_name(f"mutants-{options.seed}.json")
        self.outcomes = json.loads(self._results.read_text()) if self._results.exists() else []
        _trace(f"{tree / SOURCES}/", self._entered)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Replaces pytest's test loop."""
        _stop_tracing()
        self._entered_in_imports = {_key(code) for code in self._entered}
        self._items = {item.nodeid: item for item in session.items}
        measured = self._measured_coverage()
        self._tests, self._entering = measured["tests"], measured["entering"]
        for mutant in self._sample()[len(self.outcomes) :]:
            self._report(self._try(mutant))
        return True

    def _sample(self) -> list[Mutant]:
        mutants = []
        for package in PACKAGES:
            for path in sorted((self._tree / SOURCES / package).glob("*.py")):
                file = str(path.relative_to(self._tree))
                self._sources[file] = path.read_text()
                mutants += mutants_of(file, self._sources[file])
        print(f"{len(mutants)} mutants are possible", flush=True)
        return random.Random(self._options.seed).sample(mutants, self._options.count)

    def _report(self, outcome: Outcome) -> None:
        record = outcome.as_json(self._sources[outcome.mutant.file])
        self.outcomes.append(record)
        self._results.write_text(json.dumps(self.outcomes, indent=1))
        verdict = outcome.killed_by or f"SURVIVED {outcome.tests} tests\n{record['diff']}"
        print(f"{len(self.outcomes):4d} {record['place']} {record['kind']}: {verdict}", flush=True)

    def _try(self, mutant: Mutant) -> Outcome:
        changed = self._changed_code(mutant)
        if changed is None:
            tests = self._in_order(self._near(mutant)) or self._in_order(self._in_file(mutant))
            return Outcome(mutant, self._killer_in_a_new_interpreter(mutant, tests), len(tests))
        keys = [_key(code) for code in changed]
        tests = self._in_order({test for key in keys for test in self._entering.get(key, ())})
        killer = self._killer(tests, changed)
        if killer is None and self._entered_in_imports.intersection(keys):
            tests = tests or self._in_order(self._in_file(mutant))
            killer = self._killer_in_a_new_interpreter(mutant, tests)
        return Outcome(mutant, killer, len(tests))

    def _changed_code(self, mutant: Mutant) -> dict[CodeType, CodeType] | None:
        source, name = self._sources[mutant.file], str(self._tree / mutant.file)
        before = compile(source, name, "exec", dont_inherit=True)
        after = compile(mutant.tree(source), name, "exec", dont_inherit=True)
        changed = changed_functions(before, after)
        if changed is None or any(
            old.co_freevars != new.co_freevars for old, new in changed.items()
        ):
            return None
        return changed

    # Selecting tests

    def _measured_coverage(self) -> dict[str, Any]:
        path = self._tree.with_suffix(".json")
        if not path.exists():
            print(f"running {len(self._items)} tests without a fault", flush=True)
            child = os.fork()
            if child == 0:
                with _end_of_process():
                    _silence()
                    _measure(list(self._items.values()), path, f"{self._tree / SOURCES}/")
            os.waitpid(child, 0)
        return json.loads(path.read_text())

    def _near(self, mutant: Mutant) -> set[str]:
        """Returns the tests that call a function of the same top-level statement."""
        statement = ast.parse(self._sources[mutant.file]).body[mutant.path[0][1]]
        lines = range(statement.lineno, statement.end_lineno + 1)
        return self._in_file(mutant, lines)

    def _in_file(self, mutant: Mutant, lines: range = range(1 << 20)) -> set[str]:
        start = f"{self._tree / mutant.file}:"
        return {
            test
            for key, tests in self._entering.items()
            if key.startswith(start) and int(key.rsplit(":", 1)[1]) in lines
            for test in tests
        }

    def _in_order(self, tests: set[str]) -> list[str]:
        """Returns the quickest case of every test function, then the next, within the budget."""
        cases = defaultdict(list)
        for name in tests:
            seconds, passed = self._tests[name]
            if passed and name in self._items:
                cases[name.split("[")[0]].append((seconds, name))
        rounds = [
            (turn, seconds, name)
            for group in cases.values()
            for turn, (seconds, name) in enumerate(sorted(group))
        ]
        chosen, remaining = [], self._options.budget
        for _, seconds, name in sorted(rounds):
            remaining -= seconds
            if remaining > 0:
                chosen.append(name)
        return chosen

    # Running tests

    def _killer(self, tests: list[str], changed: dict[CodeType, CodeType]) -> str | None:
        while tests:
            failed = self._first_failure(tests, changed)
            if failed not in tests or self._first_failure([failed], {}) is None:
                return failed
            tests = tests[tests.index(failed) + 1 :]  # this test also fails without the fault
        return None

    def _first_failure(self, tests: list[str], changed: dict[CodeType, CodeType]) -> str | None:
        """Runs tests in a forked process, and returns the first that fails or how it ended."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            with _end_of_process():
                os.setpgid(0, 0)
                _silence()
                _limit_time(self._options.budget)
                _replace(changed)
                os.write(writing, _run([self._items[test] for test in tests]).encode())
        os.close(writing)
        ready, _, _ = select.select([reading], [], [], 60 * self._options.budget)
        outcome = os.read(reading, 1 << 16).decode() if ready else "hangs"
        os.close(reading)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return None if outcome == "passed" else outcome or "ends the process"

    def _killer_in_a_new_interpreter(self, mutant: Mutant, tests: list[str]) -> str | None:
        if not tests:
            return None
        path, source = self._tree / mutant.file, self._sources[mutant.file]
        before = path.stat()
        path.write_text(mutant.text(source))
        try:
            failed = self._first_failure_in_a_new_interpreter(tests)
        finally:
            path.write_text(source)
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        if failed not in self._items or self._first_failure([failed], {}) is None:
            return failed
        return None

    def _first_failure_in_a_new_interpreter(self, tests: list[str]) -> str | None:
        names = self._tree.with_suffix(".tests")
        names.write_text("\n".join(tests))
        command = [sys.executable, "-B", "-m", "pytest", "-x", "-rfE", *PYTEST, f"@{names}"]
        try:
            done = subprocess.run(
                command,
                cwd=self._tree,
                capture_output=True,
                text=True,
                timeout=60 * self._options.budget,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "hangs"
        if done.returncode == 0:
            return None
        match = FAILED.search(done.stdout)
        return match[1] if match else f"exit status {done.returncode}"


def _run(items: list[pytest.Item]) -> str:
    """Runs tests up to the first failure. Returns its name, or "passed"."""
    session = items[0].session
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return item.nodeid
    return "passed"


def _replace(changed: dict[CodeType, CodeType]) -> None:
    for each in gc.get_objects():
        if type(each) is FunctionType and each.__code__ in changed:
            each.__code__ = changed[each.__code__]


def _measure(items: list[pytest.Item], path: pathlib.Path, sources: str) -> None:
    """Runs all tests, and writes which functions each test calls and how long it takes."""
    outcome = _Outcomes()
    items[0].config.pluginmanager.register(outcome)
    measured, others = _representatives(items)
    tests, entering = {}, defaultdict(set)
    for done, (item, following) in enumerate(zip(measured, [*measured[1:], None], strict=True)):
        entered: set[CodeType] = set()
        outcome.passed, start = True, time.process_time()
        _trace(sources, entered)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        _stop_tracing()
        seconds = time.process_time() - start
        cases = [item, *others.get(_case(item), ())]
        for code in entered:
            for each in cases:
                entering[_key(code)].add(each.nodeid)
        for each in cases:
            tests[each.nodeid] = seconds, outcome.passed
        if done % 200 == 0:
            path.with_suffix(".progress").write_text(f"{done} of {len(measured)} tests")
    path.write_text(json.dumps({"tests": tests, "entering": entering}, default=sorted))


def _representatives(items: list[pytest.Item]) -> tuple[list, dict[str, list]]:
    """Returns the tests to measure, and the others by the case that they share with one of them.

    Many test functions take the same table of cases. Three of these are enough to see what the
    others enter.
    """
    counts: Counter[str] = Counter()
    measured, others = [], defaultdict(list)
    for item in items:
        case = _case(item)
        counts[case] += 1
        if "[" in case and counts[case] > 3:
            others[case].append(item)
        else:
            measured.append(item)
    return measured, others


def _case(item: pytest.Item) -> str:
    file, _, parameters = item.nodeid.partition("[")
    return f"{file.partition('::')[0]}[{parameters}" if parameters else item.nodeid


class _Outcomes:
    """A pytest plugin that records whether a test passes."""

    passed = True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Records one phase of a test."""
        self.passed = self.passed and report.passed


def _trace(sources: str, entered: set[CodeType]) -> None:
    """Starts to record the code of every function below `sources` that is called."""

    def note(frame, event, argument):  # noqa: ARG001
        if frame.f_code.co_filename.startswith(sources):
            entered.add(frame.f_code)

    sys.settrace(note)
    threading.settrace(note)


def _stop_tracing() -> None:
    sys.settrace(None)
    threading.settrace(None)


def _key(code: CodeType) -> str:
    return f"{code.co_filename}:{code.co_qualname}:{code.co_firstlineno}"


def _silence() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)


def _limit_time(budget: float) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (int(4 * budget), int(4 * budget) + 1))


@contextlib.contextmanager
def _end_of_process() -> Iterator[None]:
    """Exits a forked process at the end of a `with` block, also after an exception."""
    try:
        yield
    finally:
        os._exit(1)


def _copy_of(commit: str, scratch: pathlib.Path) -> pathlib.Path:
    tree = scratch / commit
    tree.mkdir(parents=True, exist_ok=True)  # restores files that an interrupted run has changed
    archive = subprocess.Popen(["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x"], cwd=tree, stdin=archive.stdout, check=True)
    return tree


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=300, help="number of mutants to sample")
    parser.add_argument("--commit", default="HEAD", help="the commit to mutate")
    parser.add_argument(
        "--budget", type=float, default=10.0, help="CPU seconds of tests per mutant (default: 10)"
    )
    parser.add_argument("--select", default="", help="run only these tests, as pytest -k")
    parser.add_argument(
        "--scratch", type=pathlib.Path, help="a folder that keeps the copy and the measurement"
    )
    return parser.parse_args()


def main() -> int:
    """Runs the mutants, prints the survivors and the counts, and returns the exit status."""
    options = _parse_arguments()
    commit = subprocess.check_output(["git", "rev-parse", options.commit], cwd=ROOT, text=True)
    scratch = (options.scratch or pathlib.Path(tempfile.mkdtemp())).resolve()
    tree = _copy_of(commit.strip(), scratch)
    os.environ["PYTHONPATH"] = str(tree / "src")
    sys.path.insert(0, str(tree / "src"))
    os.chdir(tree)
    mutating = Mutating(options, tree)
    folders = [f"tests/{package}" for package in PACKAGES]
    pytest.main([*PYTEST, "-s", "-k", options.select, *folders], plugins=[mutating])
    _summarize(mutating.outcomes)
    return 0


def _summarize(outcomes: list[dict]) -> None:
    for package in (*PACKAGES, ""):
        package_outcomes = [each for each in outcomes if f"{SOURCES}/{package}" in each["place"]]
        killed = sum(each["killed_by"] is not None for each in package_outcomes)
        print(f"{package or 'total':10} killed {killed} of {len(package_outcomes)}")
    survivors = Counter(each["kind"] for each in outcomes if each["killed_by"] is None)
    print("survivors:", ", ".join(f"{count} {kind}" for kind, count in survivors.most_common()))


if __name__ == "__main__":
    sys.exit(main())
