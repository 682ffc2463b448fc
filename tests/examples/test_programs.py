"""Every example, run with `--small`, gives the same results as with TensorFlow."""

import pytest

from parity.programs import EXAMPLES, compare_results

EXPECTED = EXAMPLES.recorded_results()


def test_all_examples_have_recorded_results():
    assert sorted(EXPECTED) == EXAMPLES.names()


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_results_agree_with_tensorflow(example, name, capsys):
    numbers = {n: float(x) for n, x in example(name).main(["--small"]).items()}
    printed = capsys.readouterr().out

    assert compare_results(EXPECTED[name], numbers, EXAMPLES.tolerance).mismatches == []
    assert [number for number in numbers if number not in printed] == []


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_an_example_imports_tensorflow_and_states_its_topic(name):
    text = (EXAMPLES.folder / f"{name}.py").read_text()

    assert "\nimport tensorflow as tf\n" in text
    assert "retrograde as tf" not in text
    assert " Shows " in text.split('"""')[1].replace("\n", " ")


@pytest.mark.parametrize("largest", [8, 32])
def test_an_example_saves_its_plot(example, tmp_path, largest):
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
def test_too_small_options_are_reported(example, name, capsys):
    option, value, minimum = TOO_SMALL[name]

    with pytest.raises(SystemExit):
        example(name).main(["--small", option, value])

    printed = capsys.readouterr().err
    assert printed.endswith(f": error: {option}: expected at least {minimum}, not {value}\n")


SMALLEST = {
    "addition": ["--width", "2"],
    "adversarial": ["--images", "3"],
    "burgers": ["--points", "10"],
    "neural_ode": ["--points", "2"],
    "spirals": ["--points", "5"],
    "texture": ["--size", "12"],
}


@pytest.mark.parametrize("name", SMALLEST)
def test_an_example_runs_with_its_minimum_size(example, name):
    numbers = example(name).main(["--small", *SMALLEST[name]])

    assert [n for n, value in numbers.items() if float(value) != float(value)] == []
