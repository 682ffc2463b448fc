"""The attributes of ConcreteFunction. Expected values are results of TensorFlow 2.21."""

import inspect

import pytest

import retrograde as tf


@pytest.fixture
def concrete():
    @tf.function
    def f(x, n, *, k):
        return {"a": x * 2, "b": (x + k, n)}

    return f.get_concrete_function(tf.TensorSpec([None]), 3, k=tf.constant(1.0))


def test_inputs_and_outputs_are_flat(concrete):
    assert concrete.inputs == [
        tf.TensorSpec([None], name="x"),
        tf.TensorSpec([], name="k"),
    ]
    assert concrete.outputs == [
        tf.TensorSpec([None]),
        tf.TensorSpec([None]),
        tf.TensorSpec([], tf.int32),
    ]


def test_structured_signature_and_results(concrete):
    assert concrete.structured_input_signature == (
        (tf.TensorSpec([None]), 3),
        {"k": tf.TensorSpec([])},
    )
    assert concrete.structured_outputs == {
        "a": tf.TensorSpec([None]),
        "b": (tf.TensorSpec([None]), tf.TensorSpec([], tf.int32)),
    }


def test_inputs_of_structures_are_numbered():
    function = tf.function(lambda pair: pair["a"] + pair["b"])
    spec = {"a": tf.TensorSpec([2]), "b": tf.TensorSpec([2], name="other")}
    inputs = function.get_concrete_function(spec).inputs
    assert [x.name for x in inputs] == ["pair", "other"]


def test_captured_variables_are_inputs():
    v = tf.Variable(3.0, name="v")
    concrete = tf.function(lambda x: x * v).get_concrete_function(tf.TensorSpec([2], name="foo"))
    named, captured = concrete.inputs
    assert named == tf.TensorSpec([2], name="foo")
    assert (captured.dtype, captured.name) == (tf.resource, v.name)
    assert list(concrete.function_type.captures.values()) == [tf.TensorSpec([], tf.resource)]


def test_function_type_is_a_signature(concrete):
    function_type = concrete.function_type
    assert isinstance(function_type, tf.types.experimental.FunctionType)
    assert isinstance(function_type, inspect.Signature)
    assert list(function_type.parameters) == ["x", "n", "k"]
    assert function_type.parameters["x"].type_constraint == tf.TensorSpec([None])
    assert function_type.output == concrete.structured_outputs
    assert str(function_type) == (
        "(x: TensorSpec(shape=(None,), dtype=tf.float32, name=None), n: Literal[3], *, "
        "k: TensorSpec(shape=(), dtype=tf.float32, name=None)) -> "
        "Dict[['a', TensorSpec(shape=(None,), dtype=tf.float32, name=None)], "
        "['b', Tuple[TensorSpec(shape=(None,), dtype=tf.float32, name=None), "
        "TensorSpec(shape=(), dtype=tf.int32, name=None)]]]"
    )
    assert repr(function_type) == concrete.pretty_printed_signature()


def test_types_of_functions(concrete):
    types = tf.types.experimental
    assert isinstance(concrete, types.ConcreteFunction)
    assert isinstance(concrete, types.Callable)
    assert isinstance(tf.function(abs), types.GenericFunction)
    assert isinstance(tf.function(abs), types.PolymorphicFunction)


def test_graph_attributes_say_that_there_are_no_graphs(concrete):
    with pytest.raises(AttributeError, match="retrograde does not build graphs"):
        concrete.graph  # noqa: B018


def test_a_concrete_function_is_created_by_a_function():
    message = (
        r"Create a ConcreteFunction with tf\.function\(f\)\.get_concrete_function\(\.\.\.\)\. "
        r"Received a function of type int\."
    )
    with pytest.raises(TypeError, match=message):
        tf.types.experimental.ConcreteFunction(1, (), {}, None)
