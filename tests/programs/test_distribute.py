"""Programs on the topics of TensorFlow's tutorials on distribution give TensorFlow's numbers.

`distribute/facts.json` has what the programs record with TensorFlow 2.21 and MirroredStrategy on 1,
2 and 4 logical CPUs: `REPLICAS=2 WITHOUT_TENSORBOARD=1 python
tests/programs/distribute/run_all.py OUTPUT NAME` in an environment with TensorFlow, for each number
and each program. (TensorFlow fails if a second MirroredStrategy of a process reduces values.)
"""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from tests.distribute.workers import SECONDS, environment

FOLDER = pathlib.Path(__file__).parent / "distribute"
FACTS = json.loads((FOLDER / "facts.json").read_text())
PROGRAM = str(FOLDER / "run_all.py")


def run(command, output, **env):
    process = subprocess.run(
        [sys.executable, "-m", "retrograde", *command],
        env=environment(**env) | {"PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert process.returncode == 0, f"{process.stdout[-3000:]}\n{process.stderr[-3000:]}"
    return json.loads(output.read_text())


def differences(actual, expected, path=""):
    """Yields the values that differ from TensorFlow's by more than 1e-5."""
    if isinstance(expected, dict):
        for name in expected:
            if name in actual:
                yield from differences(actual[name], expected[name], f"{path}/{name}")
            else:
                yield f"{path}/{name} is missing"
    elif isinstance(expected, (int, float, list)) and np.array(expected).dtype.kind in "if":
        same_shape = np.shape(actual) == np.shape(expected)
        if not same_shape or not np.allclose(actual, expected, rtol=1e-5, atol=1e-5):
            yield f"{path}: {actual}, expected {expected}"
    elif actual != expected:
        yield f"{path}: {actual}, expected {expected}"


@pytest.mark.parametrize("replicas", sorted(FACTS))
def test_programs_on_logical_devices_give_the_numbers_of_tensorflow(replicas, tmp_path):
    output = tmp_path / "output.json"
    names = sorted(FACTS[replicas])
    actual = run(["run", PROGRAM, str(output), *names], output, REPLICAS=replicas)

    assert list(differences(actual, FACTS[replicas])) == []


def test_programs_in_two_workers_give_the_numbers_of_two_devices(tmp_path):
    output = tmp_path / "output.json"
    command = ["launch", "-n", "2", PROGRAM, str(output), *sorted(FACTS["2"])]
    actual = run(command, output, SHARED=str(tmp_path / "shared"))

    expected = {name: dict(values) for name, values in FACTS["2"].items()}
    for name in ("continued", "predicted"):  # of a strategy on devices
        expected.get("save_and_load", {}).pop(name, None)
    assert list(differences(actual, expected)) == []


def test_programs_use_the_api_of_tensorflow_only():
    names = {path.name for path in FOLDER.glob("*.py")}
    assert len(names) == 8
    for name in names:
        assert "retrograde" not in (FOLDER / name).read_text()
