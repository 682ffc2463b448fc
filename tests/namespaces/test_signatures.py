"""Every public callable has TensorFlow's parameters, with the same names, order and defaults."""

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

EXCEPTIONS = {
    "tf.UnconnectedGradients": "the signature of an enumeration comes from Python",
    "tf.VariableAggregation": "the signature of an enumeration comes from Python",
    "tf.VariableSynchronization": "the signature of an enumeration comes from Python",
    "tf.data.experimental.AutoShardPolicy": "the signature of an enumeration comes from Python",
    "tf.distribute.DistributedDataset": "the program does not create one",
    "tf.distribute.DistributedValues": "the program does not create one",
    "tf.distribute.InputReplicationMode": "the signature of an enumeration comes from Python",
    "tf.distribute.StrategyExtended": "the program does not create one",
    "tf.distribute.experimental.CollectiveCommunication": "an enumeration",
    "tf.distribute.experimental.CommunicationImplementation": "an enumeration",
    "tf.distribute.experimental.CommunicationOptions": "TensorFlow declares *args, **kwargs",
    "tf.distribute.experimental.MultiWorkerMirroredStrategy": "has the parameters of the new name",
    "tf.distribute.ReduceOp": "the signature of an enumeration comes from Python",
    "tf.distribute.Strategy": "TensorFlow's strategy requires an extension object",
    "tf.random.Algorithm": "the signature of an enumeration comes from Python",
    "tf.DType": "dtypes are predefined constants",
    "tf.dtypes.DType": "dtypes are predefined constants",
    "tf.Tensor": "tensors are created by operations",
    "tf.function": "has one more, the keyword-only `strict`",
    "tf.Variable": "TensorFlow declares only *args and **kwargs",
}

TAPES = ("tf.GradientTape", "tf.autodiff.GradientTape")
ADDITIONAL = {tape: {"lines", "memory_limit", "on_none"} for tape in TAPES}  # not in TensorFlow


def find(name):
    """Returns the object with this name of TensorFlow in retrograde, or `None`."""
    parts = name.split(".")[1:]
    return functools.reduce(lambda parent, part: getattr(parent, part, None), parts, retrograde)


PRESENT = [name for name in RECORDED if find(name) is not None and name not in EXCEPTIONS]


def test_many_signatures_are_compared():
    assert len(PRESENT) > 250


@pytest.mark.parametrize("name", PRESENT)
def test_parameters_agree_with_tensorflow(name):
    additional = ADDITIONAL.get(name, ())
    signature = inspect.signature(find(name))
    parameters = [p for p in signature.parameters.values() if p.name not in additional]

    assert [_format_parameter(p) for p in parameters] == [
        _without_address(p) for p in RECORDED[name] if p != ["*"]
    ]


@pytest.mark.parametrize("name", ADDITIONAL)
def test_additional_parameters_are_keyword_only(name):
    parameters = inspect.signature(find(name)).parameters

    assert {parameters[p].kind for p in ADDITIONAL[name]} == {inspect.Parameter.KEYWORD_ONLY}


def _without_address(parameter):
    """Removes the memory address from the repr of a default that is a function."""
    return [ADDRESS.sub("", part) for part in parameter]


def _format_parameter(parameter):
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    name = stars + parameter.name
    if parameter.default is parameter.empty:
        return [name]
    return _without_address([name, repr(parameter.default)])
