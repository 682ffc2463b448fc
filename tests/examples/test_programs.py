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


@pytest.mark.parametrize("largest", [8, 32])
def test_an_example_draws_its_picture(example, tmp_path, largest):
    thomson = example("thomson")

    thomson.main(["--starts", "1", "--largest", str(largest), "--out", str(tmp_path)])

    assert (tmp_path / "thomson.png").read_bytes().startswith(b"\x89PNG")


TOO_SMALL = {
    "spirals": ("--points", "4", "5"),
    "thomson": ("--largest", "3", "4"),
    "texture": ("--size", "-1", "12"),
    "neural_ode": ("--noise", "-0.5", "0"),
    "gan": ("--steps", "0", "1"),
}


@pytest.mark.parametrize("name", TOO_SMALL)
def test_an_example_says_how_small_a_size_may_be(example, name, capsys):
    option, value, least = TOO_SMALL[name]

    with pytest.raises(SystemExit):
        example(name).main(["--small", option, value])

    said = capsys.readouterr().err
    assert said.endswith(f": error: {option}: expected at least {least}, not {value}\n")


SMALLEST = {
    "addition": ["--width", "2"],
    "adversarial": ["--pictures", "3"],
    "burgers": ["--points", "10"],
    "neural_ode": ["--points", "2"],
    "spirals": ["--points", "5"],
    "texture": ["--size", "12"],
}


@pytest.mark.parametrize("name", SMALLEST)
def test_an_example_runs_with_its_smallest_size(example, name):
    numbers = example(name).main(["--small", *SMALLEST[name]])

    assert [n for n, value in numbers.items() if float(value) != float(value)] == []
