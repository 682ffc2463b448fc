"""Every example, run small: it ends with the numbers that TensorFlow ends with."""

import json

import pytest

from parity import examples

ANSWERS = json.loads(examples.FILE.read_text())


def test_all_examples_were_compared_with_tensorflow():
    assert sorted(ANSWERS) == examples.names()


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_an_example_ends_as_under_tensorflow(example, name, capsys):
    numbers = example(name).main(["--small"])
    said = capsys.readouterr().out

    assert examples.differences(ANSWERS[name], numbers) == []
    assert [number for number in numbers if number not in said] == []


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_an_example_speaks_of_tensorflow_and_says_what_it_teaches(name):
    text = (examples.FOLDER / f"{name}.py").read_text()

    assert "\nimport tensorflow as tf\n" in text
    assert "retrograde as tf" not in text
    assert "What is taught" in text.replace("\n", " ")


def test_a_number_that_differs_is_told():
    theirs = {"loss": 1.0, "small": 1e-9}

    assert examples.differences(theirs, {"loss": 1.0005, "small": 1e-6}) == []
    assert examples.differences(theirs, {"loss": 1.002, "small": 0.0}) == [
        "loss: 1.002, TensorFlow 1"
    ]
    assert examples.differences(theirs, {"loss": 1.0}) == ["other numbers: ['small']"]
    assert examples.differences("no scipy", theirs) == ["fails: no scipy"]
    assert examples.table({"gan": [], "vae": ["loss: 1"]}).splitlines()[2:] == [
        "| `gan` | the same |",
        "| `vae` | loss: 1 |",
    ]


def test_an_example_draws_its_picture(example, tmp_path):
    thomson = example("thomson")

    thomson.main(["--starts", "1", "--out", str(tmp_path)])

    assert (tmp_path / "thomson.png").read_bytes().startswith(b"\x89PNG")
