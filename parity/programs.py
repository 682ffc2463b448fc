"""Runs programs written for TensorFlow on TensorFlow and on retrograde, and compares the results.

There are two kinds: the examples, at reduced size, and programs that follow TensorFlow's published
guides. Each writes its results to a file: numbers, strings, and lists and dicts of these.
"""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.peers import ROOT
from benchmarks.processes import child_environment

MIN_SCALE = 1e-2  # for values near zero, which are differences of larger numbers


class Programs(NamedTuple):
    """A folder of programs, and TensorFlow's results.

    `tolerance` is relative to the largest number in a value; rounding errors grow during training.
    Files that contain `mark` are programs.
    """

    kind: str
    folder: Path
    results_file: Path
    mark: str
    options: tuple[str, ...]
    tolerance: float

    def names(self) -> list[str]:
        """Returns the names of the programs."""
        files = sorted(self.folder.glob("*.py"))
        return [file.stem for file in files if self.mark in file.read_text()]

    def recorded_results(self) -> dict[str, dict]:
        """Returns TensorFlow's recorded results."""
        return json.loads(self.results_file.read_text())

    def record(self, results: dict[str, Any]) -> None:
        """Records TensorFlow's results for the tests."""
        lines = [f" {json.dumps(name)}: {_text(value)}" for name, value in results.items()]
        self.results_file.write_text("{\n" + ",\n".join(lines) + "\n}\n")


EXAMPLES = Programs(
    "example",
    ROOT / "examples",
    ROOT / "tests" / "examples" / "results.json",
    "__main__",
    ("--small",),
    1e-3,
)
GUIDES = Programs(
    "guide",
    ROOT / "tests" / "programs" / "guides",
    ROOT / "tests" / "data" / "guide_results.json",
    "\nsave_notes()\n",
    (),
    1e-4,
)


def _text(results: Any) -> str:
    """Formats JSON with one line per value, and nine digits, enough for float32."""
    if not isinstance(results, dict):
        return json.dumps(results)
    lines = [f"  {json.dumps(key)}: {json.dumps(_short(value))}" for key, value in results.items()]
    return "{\n" + ",\n".join(lines) + "\n }"


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _short(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_short(part) for part in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def results_of(
    programs: Programs, name: str, command: list[str], folder: Path, environment: dict
) -> dict | str:
    """Returns the results of a program, or the last line of its error."""
    file = folder / f"{name}.json"
    file.unlink(missing_ok=True)
    program = [str(programs.folder / f"{name}.py"), *programs.options, "--numbers", str(file)]
    run = subprocess.run(
        [*command, *program],
        cwd=folder,
        env=child_environment() | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        return (run.stderr.strip().splitlines() or ["ended without a message"])[-1]
    return json.loads(file.read_text())


class Outcome(NamedTuple):
    """The result of a comparison: compared values, largest difference, and errors."""

    compared: str
    largest: float
    mismatches: list[str]


def compare_results(theirs: dict | str, ours: dict | str, tolerance: float) -> Outcome:
    """Compares the results of two libraries."""
    if isinstance(theirs, str) or isinstance(ours, str):
        return Outcome("", 0.0, [f"fails: {x}" for x in (theirs, ours) if isinstance(x, str)])
    if theirs.keys() != ours.keys():
        return Outcome("", 0.0, [f"different values: {sorted(theirs.keys() ^ ours.keys())}"])
    largest, mismatches = 0.0, []
    for name in theirs:
        difference, problems = _difference(name, theirs[name], ours[name], tolerance)
        largest = max(largest, difference)
        mismatches += problems
    single = all(isinstance(value, float) for value in theirs.values())
    return Outcome("; ".join(theirs) if single else _count(theirs), largest, mismatches)


def _count(values: dict) -> str:
    return "1 value" if len(values) == 1 else f"{len(values)} values"


def _difference(name: str, theirs: Any, ours: Any, tolerance: float) -> tuple[float, list[str]]:
    """Returns the largest relative difference in a value, and descriptions of differences."""
    expected, actual = dict(_leaves(name, theirs)), dict(_leaves(name, ours))
    sizes = [abs(x) for x in expected.values() if _is_number(x) and math.isfinite(x)]
    size, largest, mismatches = max([*sizes, MIN_SCALE]), 0.0, []
    for place in expected.keys() | actual.keys():
        a, e = actual.get(place, "absent"), expected.get(place, "absent")
        if a == e or (a != a and e != e):
            continue
        if isinstance(a, float) and isinstance(e, float) and math.isfinite(a - e):
            largest = max(largest, abs(a - e) / size)
            if abs(a - e) <= tolerance * size:
                continue
        mismatches.append(f"{place}: {_format_value(a)}, TensorFlow {_format_value(e)}")
    return largest, sorted(mismatches)


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, (dict, list)):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in pairs:
            yield from _leaves(f"{name}[{key!r}]", part)
    else:
        yield name, value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _format_value(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def compare(
    programs: Programs, theirs: str, ours: str, folder: Path, log: Callable[[str], None]
) -> tuple[dict[str, Outcome], dict[str, dict | str]]:
    """Returns the outcome for each program, and TensorFlow's results."""
    outcomes, results = {}, {}
    for name in programs.names():
        log(f"{programs.kind} {name}")
        results[name] = results_of(programs, name, [theirs], folder, {})
        source = {"PYTHONPATH": str(ROOT / "src")}
        run = results_of(programs, name, [ours, "-m", "retrograde", "run"], folder, source)
        outcomes[name] = compare_results(results[name], run, programs.tolerance)
    return outcomes, results


def table(kind: str, outcomes: dict[str, Outcome]) -> str:
    """Returns a Markdown table."""
    rows = [
        f"| `{name}` | {outcome.compared} | {_verdict(outcome)} |"
        for name, outcome in outcomes.items()
    ]
    return "\n".join([f"| {kind} | compared | largest difference |", "| --- | --- | --- |", *rows])


def _verdict(outcome: Outcome) -> str:
    if outcome.mismatches:
        return "; ".join(outcome.mismatches)
    return f"{outcome.largest:.0e}" if outcome.largest else "none"
