"""Every public callable takes TensorFlow's parameters: their names, their order, their defaults."""

import functools
import inspect
import json
import pathlib
import re

import pytest

import retrograde

DATA = pathlib.Path(__file__).parents[1] / "data"
ADDRESS = re.compile(" at 0x[0-9a-f]+")
RECORDED = {
    name: parameters
    for file in ("api_signatures.json", "numpy_signatures.json")
    for name, parameters in json.loads((DATA / file).read_text()).items()
    if parameters is not None
}

OTHERWISE = {
    "tf.UnconnectedGradients": "an enumeration, whose signature is Python's own",
    "tf.VariableAggregation": "an enumeration, whose signature is Python's own",
    "tf.VariableSynchronization": "an enumeration, whose signature is Python's own",
    "tf.distribute.ReduceOp": "an enumeration, whose signature is Python's own",
    "tf.distribute.Strategy": "TensorFlow's takes an extension, of which there are none here",
    "tf.random.Algorithm": "an enumeration, whose signature is Python's own",
    "tf.DType": "the dtypes are there already; nobody makes one",
    "tf.dtypes.DType": "the dtypes are there already; nobody makes one",
    "tf.Tensor": "tensors are made by operations",
    "tf.function": "has one more, `strict`, by name only",
    "tf.Variable": "TensorFlow hides its parameters behind *args and **kwargs",
}

TAPES = ("tf.GradientTape", "tf.autodiff.GradientTape")
OWN = {"lines", "memory_limit", "on_none"}  # keywords that TensorFlow does not have
BEYOND = dict.fromkeys(TAPES, OWN)


def find(name):
    """What retrograde has under a name of TensorFlow's, or `None`."""
    parts = name.split(".")[1:]
    return functools.reduce(lambda found, part: getattr(found, part, None), parts, retrograde)


PRESENT = [name for name in RECORDED if find(name) is not None and name not in OTHERWISE]


def test_there_is_something_to_compare():
    assert len(PRESENT) > 250


@pytest.mark.parametrize("name", PRESENT)
def test_parameters_are_those_of_tensorflow(name):
    own = BEYOND.get(name, ())
    parameters = [p for p in inspect.signature(find(name)).parameters.values() if p.name not in own]

    assert [_written(p) for p in parameters] == [
        _placeless(p) for p in RECORDED[name] if p != ["*"]
    ]


@pytest.mark.parametrize("name", BEYOND)
def test_parameters_of_our_own_are_given_by_keyword(name):
    parameters = inspect.signature(find(name)).parameters

    assert {parameters[own].kind for own in BEYOND[name]} == {inspect.Parameter.KEYWORD_ONLY}


def _placeless(parameter):
    """A function that is a default is printed with its place in memory."""
    return [ADDRESS.sub("", part) for part in parameter]


def _written(parameter):
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    name = stars + parameter.name
    if parameter.default is parameter.empty:
        return [name]
    return _placeless([name, repr(parameter.default)])
