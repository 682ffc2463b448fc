"""Type checkers accept a correct program, and find the mistakes in another one.

mypy checks the sources. pyright is what editors run, and it also reads Keras, which has no types.
"""

import json
import pathlib
import subprocess
import sys

import pytest

PROGRAMS = pathlib.Path(__file__).parent / "programs"
CORRECT, MISTAKES = PROGRAMS / "correct.py", PROGRAMS / "mistakes.py"


def run(folder, *arguments):
    """Runs a type checker in `folder`, so that it finds no settings of this repository."""
    command = [sys.executable, "-m", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)


def mypy_errors(folder, program):
    result = run(folder, "mypy", "--cache-dir", folder / "cache", "--output", "json", program)
    assert result.returncode in (0, 1), result.stderr
    reports = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    return {(r["line"], r["message"]) for r in reports if r["severity"] == "error"}


def pyright_errors(folder, program):
    result = run(folder, "pyright", "--outputjson", "--pythonpath", sys.executable, program)
    assert result.returncode in (0, 1), result.stderr
    reports = json.loads(result.stdout)["generalDiagnostics"]
    return {
        (r["range"]["start"]["line"] + 1, r["message"]) for r in reports if r["severity"] == "error"
    }


each_checker = pytest.mark.parametrize("errors", [mypy_errors, pyright_errors])


@each_checker
def test_a_correct_program_has_no_errors(errors, tmp_path):
    assert errors(tmp_path, CORRECT) == set()


@each_checker
def test_every_mistake_is_found(errors, tmp_path):
    lines = enumerate(MISTAKES.read_text().splitlines(), start=1)
    marked = {number for number, line in lines if line.endswith("# mistake")}

    assert {line for line, _ in errors(tmp_path, MISTAKES)} == marked


def test_pyright_knows_the_classes_of_keras(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import retrograde as tf\nreveal_type(tf.keras.layers.Dense(3))\ntf.keras.layers.Dens(3)\n"
    )
    result = run(tmp_path, "pyright", "--outputjson", "--pythonpath", sys.executable, program)
    revealed, error = json.loads(result.stdout)["generalDiagnostics"]

    assert revealed["message"] == 'Type of "tf.keras.layers.Dense(3)" is "Dense"'
    assert error["message"].startswith('"Dens" is not a known attribute of module')
