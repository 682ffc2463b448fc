"""conftest.py marks tests by their path, their source and their parameters."""

import types

import pytest

import conftest


def function_with_keras():
    return "tf.keras.layers"


def function_with_process():
    return "subprocess.run"


def plain_function():
    return 3


@pytest.mark.parametrize(
    ("path", "name", "function", "marks"),
    [
        ("tests/core/test_tape.py", "test_a", plain_function, set()),
        ("tests/core/test_tape.py", "test_a[xla]", plain_function, {"xla"}),
        ("tests/core/test_tape.py", "test_a", function_with_keras, {"keras"}),
        ("tests/core/test_tape.py", "test_a", function_with_process, {"slow"}),
        ("tests/keras/test_nn.py", "test_a", plain_function, {"keras", "slow"}),
        ("tests/parity/test_cases.py", "test_a", plain_function, {"slow"}),
    ],
)
def test_marks(path, name, function, marks, monkeypatch):
    monkeypatch.setattr(conftest, "source_of", lambda item: conftest.source_of_function(item.f))
    item = types.SimpleNamespace(nodeid=f"{path}::{name}", name=name, fixturenames=(), f=function)

    assert {*conftest.marks_of(item)} == marks


def test_a_test_is_marked_by_its_source(request):
    assert [mark.name for mark in request.node.iter_markers()] == ["keras"]
