"""Every example, run small: it ends with the numbers that TensorFlow ends with."""

import pytest

from parity.programs import EXAMPLES, compared

ANSWERS = EXAMPLES.recorded()


def test_all_examples_were_compared_with_tensorflow():
    assert sorted(ANSWERS) == EXAMPLES.names()


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_an_example_ends_as_under_tensorflow(example, name, capsys):
    numbers = {n: float(x) for n, x in example(name).main(["--small"]).items()}
    said = capsys.readouterr().out

    assert compared(ANSWERS[name], numbers, EXAMPLES.tolerance).wrong == []
    assert [number for number in numbers if number not in said] == []


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_an_example_speaks_of_tensorflow_and_says_what_it_teaches(name):
    text = (EXAMPLES.folder / f"{name}.py").read_text()

    assert "\nimport tensorflow as tf\n" in text
    assert "retrograde as tf" not in text
    assert "What is taught" in text.replace("\n", " ")


def test_an_example_draws_its_picture(example, tmp_path):
    thomson = example("thomson")

    thomson.main(["--starts", "1", "--out", str(tmp_path)])

    assert (tmp_path / "thomson.png").read_bytes().startswith(b"\x89PNG")
