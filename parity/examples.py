"""The examples, run small in TensorFlow and in retrograde: both end with the same numbers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from benchmarks.peers import ROOT
from benchmarks.processes import child_environment

FOLDER = ROOT / "examples"
FILE = ROOT / "tests" / "examples" / "answers.json"

# What an example may differ by, of a number of its size. Rounding grows with the steps of training;
# a number that is a difference of two near ones is left to its own size.
TOLERANCE = 1e-3
SMALLEST = 1e-2


def names() -> list[str]:
    """The examples: the files that can be run."""
    files = sorted(FOLDER.glob("*.py"))
    return [file.stem for file in files if "__main__" in file.read_text()]


def numbers_of(name: str, command: list[str], folder: Path, environment: dict) -> dict | str:
    """The numbers that an example ends with, or the last line of what went wrong."""
    file = folder / f"{name}.json"
    file.unlink(missing_ok=True)
    program = [str(FOLDER / f"{name}.py"), "--small", "--numbers", str(file)]
    run = subprocess.run(
        [*command, *program],
        cwd=folder,
        env=child_environment() | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        return (run.stderr.strip().splitlines() or ["it ended without a word"])[-1]
    return json.loads(file.read_text())


def differences(theirs: dict | str, ours: dict | str) -> list[str]:
    """What is not the same, in words."""
    if isinstance(theirs, str) or isinstance(ours, str):
        return [f"fails: {said}" for said in (theirs, ours) if isinstance(said, str)]
    if theirs.keys() != ours.keys():
        return [f"other numbers: {sorted(theirs.keys() ^ ours.keys())}"]
    return [
        f"{name}: {ours[name]:.6g}, TensorFlow {theirs[name]:.6g}"
        for name in theirs
        if abs(ours[name] - theirs[name]) > TOLERANCE * max(abs(theirs[name]), SMALLEST)
    ]


def compare(
    theirs: str, ours: str, folder: Path, say: Callable[[str], None]
) -> tuple[dict[str, list[str]], dict[str, dict | str]]:
    """For each example what differs, and TensorFlow's numbers; both are named by their Python."""
    found, answers = {}, {}
    for name in names():
        say(f"example {name}")
        answers[name] = numbers_of(name, [theirs], folder, {})
        source = {"PYTHONPATH": str(ROOT / "src")}
        run = numbers_of(name, [ours, "-m", "retrograde", "run"], folder, source)
        found[name] = differences(answers[name], run)
    return found, answers


def table(found: dict[str, list[str]]) -> str:
    """A table in Markdown."""
    rows = [f"| `{name}` | {'; '.join(lines) or 'the same'} |" for name, lines in found.items()]
    return "\n".join(["| example | numbers |", "| --- | --- |", *rows])


def record(answers: dict[str, dict | str]) -> None:
    """Keeps TensorFlow's numbers for the tests."""
    FILE.write_text(json.dumps(answers, indent=1) + "\n")
