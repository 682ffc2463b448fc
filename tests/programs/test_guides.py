"""Programs on the topics of TensorFlow's published guides give the same results as in TensorFlow.

The programs import `tensorflow`, which is replaced by retrograde. All values that they record are
compared with those recorded with TensorFlow 2.21. `python parity/run.py --programs --record` runs
them with TensorFlow again.
"""

import importlib
import json
import runpy
import sys

import pytest

from benchmarks.peers import ROOT
from parity.programs import GUIDES, compare_results, results_of
from retrograde.tensorflow_shim import compatibility
from retrograde.tensorflow_shim.import_hook import retrograde_as_tensorflow

EXPECTED = GUIDES.recorded_results()
SOURCE = {"PYTHONPATH": str(ROOT / "src")}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Returns a function that runs a program in this process and returns its notes."""
    file = tmp_path / "notes.json"

    def run(name):
        path = str(GUIDES.folder / f"{name}.py")
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(str(GUIDES.folder))
        monkeypatch.setattr(sys, "argv", [path, "--numbers", str(file)])
        try:
            with retrograde_as_tensorflow():
                runpy.run_path(path, run_name="__main__")
        finally:
            sys.modules.pop("notes", None)
        return json.loads(file.read_text())

    return run


def test_all_guides_have_recorded_results():
    assert sorted(EXPECTED) == GUIDES.names()


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_guide_gives_the_same_results_as_in_tensorflow(name, run):
    outcome = compare_results(EXPECTED[name], run(name), GUIDES.tolerance)

    assert outcome.mismatches == []


def test_a_guide_runs_with_retrograde_run(tmp_path):
    command = [sys.executable, "-m", "retrograde", "run"]

    results = results_of(GUIDES, "tensor_slicing", command, tmp_path, SOURCE)

    assert compare_results(EXPECTED["tensor_slicing"], results, GUIDES.tolerance).mismatches == []


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_guide_has_cells_and_uses_only_supported_names(name):
    path = GUIDES.folder / f"{name}.py"
    text = path.read_text()

    assert "\nimport tensorflow as tf\n" in text
    assert "retrograde" not in text
    assert text.count("# %% ") >= 5
    assert compatibility.check([str(path)]).findings == []


@pytest.mark.parametrize(
    ("name", "reason"),
    {
        "tf.distribute.ParameterServerStrategy": "Every worker has a copy of each variable, and "
        "all workers train in step. Use tf.distribute.MultiWorkerMirroredStrategy.",
        "tf.distribute.experimental.CentralStorageStrategy": "Every replica has a copy of each "
        "variable. Use tf.distribute.MirroredStrategy.",
        "tf.distribute.coordinator": "Every worker has a copy of each variable, and all workers "
        "train in step. Use tf.distribute.MultiWorkerMirroredStrategy.",
        "tf.experimental.dtensor": "A program runs on one machine and one device.",
        "tf.autograph.to_code": "tf.function traces operations; it does not rewrite source code.",
        "tf.Graph": "Operations run eagerly; there are no graphs.",
        "tf.profiler.experimental.client": "Call tf.profiler.experimental.start in the program.",
    }.items(),
)
def test_unsupported_names_of_the_guides_are_explained(name, reason, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(f"import tensorflow as tf\n{name}\n")

    (finding,) = compatibility.check([str(program)]).findings

    expected = f" is in TensorFlow but not supported by retrograde. {reason}"
    assert finding.message.endswith(expected)
    with retrograde_as_tensorflow():
        tensorflow = importlib.import_module("tensorflow")
        with pytest.raises(AttributeError) as caught:
            eval(name, {"tf": tensorflow})
    assert str(caught.value).endswith(finding.message)
