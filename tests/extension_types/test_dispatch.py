"""Dispatch to user-defined types. Expected values are results of TensorFlow 2.21."""

from typing import Union

import numpy as np
import pytest

import retrograde as tf
from tests.namespaces.helpers import assert_raises

E = tf.experimental


class Masked(E.ExtensionType):
    values: tf.Tensor
    mask: tf.Tensor


def masked():
    return Masked([1.0, -2.0], [True, False])


@pytest.fixture
def register():
    """Returns a function that applies a decorator. Implementations are removed after the test."""
    registered = []

    def apply(decorator, function):
        registered.append(decorator(function))
        return function

    yield apply
    for function in registered:
        E.unregister_dispatch_for(function)


def values(x):
    return x.values.numpy().tolist()


def test_unary_elementwise_functions(register):
    register(
        E.dispatch_for_unary_elementwise_apis(Masked), lambda f, x: Masked(f(x.values), x.mask)
    )
    x = masked()
    assert values(tf.abs(x)) == values(tf.math.abs(x)) == [1.0, 2.0]
    assert values(tf.nn.relu(x)) == [1.0, 0.0]
    assert values(tf.nn.leaky_relu(x, alpha=0.5)) == [1.0, -1.0]
    assert values(tf.cast(x, tf.int32)) == [1, -2]
    assert values(tf.clip_by_value(x, -1.0, 1.0)) == [1.0, -1.0]
    assert values(tf.zeros_like(x)) == [0.0, 0.0]
    assert float(tf.abs(-1.0)) == 1.0
    assert tf.abs(tf.constant([-1.0])).numpy().tolist() == [1.0]
    message = r"A unary elementwise dispatch handler .* has already been registered for"
    with pytest.raises(ValueError, match=message):
        E.dispatch_for_unary_elementwise_apis(Masked)(lambda _f, x: x)


def test_binary_elementwise_functions(register):
    early = tf.math.maximum  # stored before there was an implementation

    def both(function, x, y):
        return Masked(function(x.values, y.values), x.mask & y.mask)

    register(E.dispatch_for_binary_elementwise_apis(Masked, Masked), both)
    x = masked()
    assert values(tf.add(x, x)) == values(tf.add(x=x, y=x)) == [2.0, -4.0]
    assert values(tf.maximum(x, x)) == values(early(x, x)) == [1.0, -2.0]
    assert values(tf.equal(x, x)) == [True, True]
    with pytest.raises(ValueError, match="Attempt to convert a value"):
        tf.add(x, 1.0)
    register(
        E.dispatch_for_binary_elementwise_apis(Masked, Union[tf.Tensor, float]),  # noqa: UP007
        lambda f, x, y: Masked(f(x.values, y), x.mask),
    )
    register(
        E.dispatch_for_binary_elementwise_apis(tf.Tensor, Masked),
        lambda f, x, y: Masked(f(x, y.values), y.mask),
    )
    assert values(tf.pow(x, 2.0)) == [1.0, 4.0]
    assert values(tf.constant(1.0) - x) == [0.0, 3.0]
    with pytest.raises(ValueError, match="Attempt to convert a value"):
        tf.add(1.0, x)


def test_assertions(register):
    register(
        E.dispatch_for_binary_elementwise_assert_apis(Masked, Masked),
        lambda f, x, y: f(x.values, y.values),
    )
    tf.debugging.assert_equal(masked(), masked())
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.debugging.assert_less(masked(), masked())


def test_lists_of_values(register):
    def stack(values, axis=0):
        return Masked(
            tf.stack([x.values for x in values], axis), tf.stack([x.mask for x in values], axis)
        )

    register(E.dispatch_for_api(tf.stack, {"values": list[Masked]}), stack)
    assert values(tf.stack([masked(), masked()])) == [[1.0, -2.0], [1.0, -2.0]]
    assert values(tf.stack([masked(), masked()], axis=1)) == [[1.0, 1.0], [-2.0, -2.0]]
    assert tf.stack([1, 2]).numpy().tolist() == [1, 2]
    with pytest.raises(ValueError, match="Attempt to convert a value"):
        tf.stack([masked(), tf.constant([1.0, 2.0])])


def test_annotations_are_the_signature(register):
    def masked_sum(input_tensor: Masked, axis=None, keepdims=False, name=None):  # noqa: ARG001
        return tf.reduce_sum(tf.where(input_tensor.mask, input_tensor.values, 0.0), axis, keepdims)

    register(E.dispatch_for_api(tf.reduce_sum), masked_sum)
    assert float(tf.reduce_sum(masked())) == 1.0
    assert float(tf.function(lambda x: tf.reduce_sum(x) + 1.0)(masked())) == 2.0
    x = masked()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.math.reduce_sum(x) * 3.0
    np.testing.assert_array_equal(tape.gradient(y, x.values), [3.0, 0.0])


def test_functions_without_implementations_are_restored():
    original = tf.shape

    @E.dispatch_for_api(tf.shape)
    def shape(input: Masked, out_type=tf.int32):
        return tf.shape(input.values, out_type)

    assert tf.shape is not original
    assert tf.shape(masked(), out_type=tf.int64).dtype == tf.int64
    E.unregister_dispatch_for(shape)
    assert tf.shape is original
    with pytest.raises(ValueError, match="Attempt to convert a value"):
        tf.shape(masked())
    assert_raises(
        lambda: E.unregister_dispatch_for(shape),
        ValueError,
        f"Function {shape} was not registered using a `@dispatch_for_*` decorator.",
    )


def two(values, axis):
    return values, axis


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: E.dispatch_for_api(tf.concat, {"values": list[Masked]})(lambda x: x),
            "Dispatch function's signature (x) does not match API's signature (values, axis, "
            "name).",
        ),
        (
            lambda: E.dispatch_for_api(tf.concat, {"z": Masked}),
            "signature includes annotation for unknown parameter 'z'.",
        ),
        (
            lambda: E.dispatch_for_api(tf.concat)(two),
            "The dispatch_for_api decorator must be called with at least one signature, or applied "
            "to a function that has type annotations on its parameters.",
        ),
        (
            lambda: E.dispatch_for_api(print, {"x": Masked}),
            "<built-in function print> does not support dispatch.",
        ),
        (
            lambda: E.dispatch_for_api(tf.concat, {"values": 3}),
            "Type annotation 3 is not currently supported by dispatch. Supported annotations: "
            "type objects, List[...], and Union[...]",
        ),
    ],
)
def test_invalid_implementations(call, message):
    assert_raises(call, ValueError, message)
