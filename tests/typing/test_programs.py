"""Type checkers accept a correct program, and find the mistakes in other ones.

mypy checks the sources. pyright is what editors run, and it also reads Keras, which has no types.
Each checker runs once, on all programs, because it has to read all of retrograde first.
"""

import json
import pathlib
import subprocess
import sys
from collections import defaultdict

PROGRAMS = pathlib.Path(__file__).parent / "programs"
CORRECT = PROGRAMS / "correct.py"
MISTAKES = PROGRAMS / "mistakes.py"
KERAS_MISTAKES = PROGRAMS / "keras_mistakes.py"


def run(folder, *arguments):
    """Runs a type checker in `folder`, so that it finds no settings of this repository."""
    command = [sys.executable, "-m", *map(str, arguments)]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    assert result.returncode in (0, 1), result.stderr
    return result.stdout


def marked_lines(path):
    """Returns the lines of a program that are marked as mistakes."""
    lines = enumerate(path.read_text().splitlines(), start=1)
    return {number for number, line in lines if line.endswith("# mistake")}


def test_mypy(tmp_path):
    output = run(
        tmp_path, "mypy", "--cache-dir", tmp_path / "cache", "--output=json", CORRECT, MISTAKES
    )
    errors = defaultdict(set)
    for report in map(json.loads, output.splitlines()):
        errors[pathlib.Path(report["file"]).name].add((report["line"], report["message"]))

    assert errors[CORRECT.name] == set()
    assert {line for line, _ in errors[MISTAKES.name]} == marked_lines(MISTAKES)


def test_pyright(tmp_path):
    programs = (CORRECT, MISTAKES, KERAS_MISTAKES)
    output = run(tmp_path, "pyright", "--outputjson", "--pythonpath", sys.executable, *programs)
    errors = defaultdict(set)
    for report in json.loads(output)["generalDiagnostics"]:
        line = report["range"]["start"]["line"] + 1
        errors[pathlib.Path(report["file"]).name].add((line, report["message"]))

    assert errors[CORRECT.name] == set()
    assert {line for line, _ in errors[MISTAKES.name]} == marked_lines(MISTAKES)
    assert {line for line, _ in errors[KERAS_MISTAKES.name]} == marked_lines(KERAS_MISTAKES)
