"""Tests `tools/notebooks.py`: notebooks of the examples, with outputs."""

import base64
import json

import pytest

from parity.programs import EXAMPLES
from retrograde.tensorflow_shim.import_hook import retrograde_as_tensorflow
from tools import notebooks

NAMES = sorted(notebooks.gallery())


def cells(name, kind="code"):
    content = json.loads(notebooks.notebook(name))
    return [cell for cell in content["cells"] if cell["cell_type"] == kind]


def test_every_example_is_in_the_gallery():
    assert sorted(EXAMPLES.names()) == NAMES


def test_all_outputs_are_recorded():
    assert [name for name in NAMES if not notebooks.recorded(name)[0]] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_recorded_output_is_that_of_the_current_code(name):
    """If it fails, run `python tools/notebooks.py record NAME`."""
    _, digest = notebooks.recorded(name)

    assert digest == notebooks.digest(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_has_the_printed_results_and_the_figure(name):
    *_, run, show = cells(name)
    (printed,), (figure,) = run["outputs"], show["outputs"]

    assert f"plot  demo/{name}.png\n" in printed["text"]
    for result in EXAMPLES.recorded_results()[name]:
        assert f"\n{result} " in printed["text"]
    assert base64.b64decode(figure["data"]["image/png"]).startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["thomson", "burgers", "vae"])
def test_a_notebook_runs_without_other_files(name, tmp_path, monkeypatch):
    setup, *program, run, _ = [cell["source"] for cell in cells(name)]
    monkeypatch.chdir(tmp_path)
    namespace = {}
    with retrograde_as_tensorflow():  # instead of the first cell, which replaces it for good
        for part in [*program, run.replace("[]", '["--small"]')]:
            exec(part, namespace)

    assert "install_as_tensorflow()" in setup
    assert list(namespace["results"]) == list(EXAMPLES.recorded_results()[name])


def test_definitions_have_a_cell_each():
    text = "import a\n\nX = 1\n\n\n@a.b\ndef f():\n    pass\n\n\nclass C:\n    y = 1\n"

    assert notebooks.definitions(text) == [
        "import a\n\nX = 1",
        "@a.b\ndef f():\n    pass",
        "class C:\n    y = 1",
    ]


def test_a_change_of_a_docstring_does_not_change_the_digest(tmp_path, monkeypatch):
    monkeypatch.setattr(notebooks, "EXAMPLES", tmp_path)
    digests = []
    for text in ('"""A."""\nx = 1\n', '"""B."""\nx = 1  # one\n', '"""A."""\nx = 2\n'):
        (tmp_path / "a.py").write_text(text)
        digests.append(notebooks.digest("a"))

    assert digests[0] == digests[1] != digests[2]
