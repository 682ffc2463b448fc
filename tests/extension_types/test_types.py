"""ExtensionType. Expected values are results of TensorFlow 2.21."""

import copy
import pickle
from collections.abc import Mapping
from typing import Any, Literal, Optional

import numpy as np
import pytest

import retrograde as tf
from tests.namespaces.helpers import assert_raises

E = tf.experimental


class Masked(E.ExtensionType):
    values: tf.Tensor
    mask: tf.Tensor
    label: str = "q"


class Node(E.ExtensionType):
    value: tf.Tensor
    child: Optional["Node"] = None


class Everything(E.ExtensionType):
    parts: tuple[tf.Tensor, ...]
    named: Mapping[str, tf.Tensor]
    number: int | tf.Tensor = 1
    maybe: tf.Tensor | None = None
    shape: tf.TensorShape = tf.TensorShape([2])
    dtype: tf.DType = tf.float32
    rows: tf.Tensor | tf.RaggedTensor = None


def masked(label="q"):
    return Masked([1.0, 2.0], [True, False], label)


def define(annotations, **attributes):
    """Creates an ExtensionType with the name Z."""
    return type("Z", (E.ExtensionType,), {"__annotations__": annotations, **attributes})


def test_fields_are_converted():
    value = masked()
    assert isinstance(value.values, tf.Tensor)
    assert value.mask.dtype == tf.bool
    assert repr(value) == (
        "Masked(values=<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], "
        "dtype=float32)>, mask=<tf.Tensor: shape=(2,), dtype=bool, numpy=array([ True, False])>, "
        "label='q')"
    )
    assert list(E.extension_type.as_dict(value)) == ["values", "mask", "label"]
    assert float(define({"x": tf.Tensor})(tf.Variable(2.0)).x) == 2.0


def test_all_kinds_of_fields():
    rows = tf.ragged.constant([[1], []])
    value = Everything([1, 2], {"b": 1, "a": 2}, rows=rows)
    assert [int(x) for x in value.parts] == [1, 2]
    assert repr(value.named).startswith("ImmutableDict({'b': <tf.Tensor")
    assert (value.number, value.maybe, value.shape, value.dtype) == (1, None, [2], tf.float32)
    # fields in order, mappings by key, then the components of the ragged tensor
    flat = tf.nest.flatten(value, expand_composites=True)
    assert [x.numpy().tolist() for x in flat] == [1, 2, 2, 1, [1], [0, 1, 1]]
    other = Everything([], {}, tf.constant(1.0), shape=[3, 4], dtype="int32", rows=5)
    assert isinstance(other.number, tf.Tensor)
    assert (other.shape, other.dtype, int(other.rows)) == ([3, 4], tf.int32, 5)


def test_recursive_types():
    value = Node(1, Node(2))
    assert int(value.child.value) == 2
    assert value.child.child is None


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Masked([1.0]), TypeError, "missing a required argument: 'mask'"),
        (
            lambda: Masked([1.0], [True], foo=3),
            TypeError,
            "got an unexpected keyword argument 'foo'",
        ),
        (lambda: Masked([1.0], [True], 3), TypeError, "label: expected 'str', got 'int'"),
        (lambda: Masked(object(), [True]), TypeError, "values: expected a Tensor, got 'object'"),
        (
            lambda: define({"x": tuple[int, str]})((1, 2)),
            TypeError,
            "x[1]: expected 'str', got 'int'",
        ),
        (
            lambda: define({"x": tuple[int, str]})((1,)),
            TypeError,
            "x: expected a tuple of 2 values, got 1",
        ),
        (lambda: define({"x": tuple[int, ...]})(1), TypeError, "x: expected a tuple, got 'int'"),
        (
            lambda: define({"x": Mapping[str, int]})(1),
            TypeError,
            "x: expected a mapping, got 'int'",
        ),
        (
            lambda: define({"x": int | str})(1.5),
            TypeError,
            "x: expected one of int, str, got 'float'",
        ),
        (lambda: define({"x": float})(1), TypeError, "x: expected 'float', got 'int'"),
        (
            lambda: define({"x": tf.DType})("number"),
            TypeError,
            "x: expected a DType, got 'str'",
        ),
        (
            lambda: define({"x": tf.TensorShape})("a"),
            TypeError,
            "x: expected a TensorShape, got 'str'",
        ),
        (
            lambda: define({"x": Masked})(1),
            TypeError,
            "x: expected 'Masked', got 'int'",
        ),
        (
            lambda: define({"x": int}, x="a"),
            TypeError,
            "default value for x: expected 'int', got 'str'",
        ),
        (
            lambda: define({"x": np.ndarray}),
            TypeError,
            "In field 'x': Unsupported type annotation 'ndarray'",
        ),
        (
            lambda: define({"x": Any}),
            TypeError,
            "In field 'x': Unsupported type annotation 'Any'",
        ),
        (
            lambda: define({"x": Literal["a"]}),
            TypeError,
            "In field 'x': Unsupported type annotation typing.Literal['a']",
        ),
        (
            lambda: define({"x": Mapping[tf.Tensor, int]}),
            TypeError,
            "In field 'x': expected Mapping[K, V] with plain keys.",
        ),
        (
            lambda: define({"Spec": int}),
            ValueError,
            "The field annotations for Z are invalid. Field 'Spec' is reserved.",
        ),
        (
            lambda: Masked.Spec(1, tf.TensorSpec([2]), "a"),
            TypeError,
            "values: expected a TypeSpec of Tensor, got 'int'",
        ),
        (
            lambda: setattr(masked(), "values", 1),
            AttributeError,
            "Cannot mutate attribute `values` outside the custom constructor of ExtensionType.",
        ),
        (
            lambda: delattr(masked(), "values"),
            AttributeError,
            "Cannot mutate attribute `values` outside the custom constructor of ExtensionType.",
        ),
    ],
)
def test_invalid_definitions_and_values(call, error, message):
    assert_raises(call, error, message)


def test_a_required_field_after_a_default_is_passed_by_keyword():
    value = define({"x": int, "y": int}, x=1)(y=2)
    assert (value.x, value.y) == (1, 2)


def test_custom_constructors():
    class Doubled(E.ExtensionType):
        a: tf.Tensor
        n: int

        def __init__(self, x):
            self.a = tf.convert_to_tensor(x) * 2
            self.n = 3

    class Incomplete(E.ExtensionType):
        a: tf.Tensor
        n: int

        def __init__(self, x):
            self.a = x

    class Extended(E.ExtensionType):
        a: tf.Tensor

        def __init__(self, x):
            self.a = x
            self.b = x

    class Derived(Doubled):
        extra: tf.Tensor

        def __init__(self, x):
            super().__init__(x)
            self.extra = 7

    assert int(Doubled(2).a) == 4
    assert (int(Derived(2).a), int(Derived(2).extra)) == (4, 7)
    assert_raises(lambda: Incomplete(2), ValueError, "Missing required fields: {'n'}")
    assert_raises(lambda: Extended(2), ValueError, "Got unexpected fields: {'b'}")


def test_validation():
    class Vector(E.ExtensionType):
        a: tf.Tensor

        def __validate__(self):
            self.a.shape.assert_has_rank(1)

    assert Vector([1]).a.shape == [1]
    with pytest.raises(ValueError, match=r"Shape .* must have rank 1"):
        Vector(1)


def test_subclasses_inherit_fields():
    class More(Masked):
        extra: int = 0

    value = More([1.0], [True], "a", 5)
    assert (value.label, value.extra) == ("a", 5)
    assert isinstance(value, Masked)


def test_equality():
    assert bool(masked() == masked())
    assert isinstance(masked() == masked(), tf.Tensor)
    assert not bool(masked() == Masked([1.0, 3.0], [True, False]))
    assert bool(masked() != Masked([1.0, 3.0], [True, False]))
    assert (masked() == 3) is False
    assert (masked() == Masked([1.0], [True])) is False
    assert (masked() != masked("other")) is True
    with pytest.raises(TypeError, match="unhashable type"):
        hash(masked())


def test_copies():
    value = masked()
    assert bool(copy.deepcopy(value) == value)
    assert bool(pickle.loads(pickle.dumps(value)) == value)
    spec = tf.type_spec_from_value(value)
    assert pickle.loads(pickle.dumps(spec)) == spec


# Specs


def test_specs_have_the_fields():
    spec = tf.type_spec_from_value(masked())
    values, mask = tf.TensorSpec([2]), tf.TensorSpec([2], tf.bool)
    assert spec == Masked.Spec(values, mask, "q") == Masked.Spec(values, mask, label="q")
    assert spec.values == values
    assert spec.value_type is Masked
    assert isinstance(spec, E.ExtensionTypeSpec)
    assert hash(spec) == hash(Masked.Spec(values, mask, "q"))
    assert repr(spec) == f"Masked.Spec(values={values}, mask={mask}, label='q')"
    assert_raises(
        lambda: Masked.Spec(values, mask), TypeError, "missing a required argument: 'label'"
    )


def test_specs_are_compared_by_field():
    wide = Masked.Spec(tf.TensorSpec(None), tf.TensorSpec(None, tf.bool), "q")
    assert wide.is_compatible_with(masked())
    assert not wide.is_compatible_with(masked("other"))
    assert tf.type_spec_from_value(masked()).is_subtype_of(wide)
    short = tf.type_spec_from_value(Masked([1.0], [True]))
    common = tf.type_spec_from_value(masked()).most_specific_common_supertype([short])
    assert common == Masked.Spec(tf.TensorSpec([None]), tf.TensorSpec([None], tf.bool), "q")
    other = tf.type_spec_from_value(masked("other"))
    assert short.most_specific_common_supertype([other]) is None
    assert Everything.Spec(
        (tf.TensorSpec([]),), {"a": tf.TensorSpec([])}, 1, None, [2], tf.int32, tf.TensorSpec([])
    ).named == {"a": tf.TensorSpec([])}


def test_a_class_can_define_the_constructor_of_its_spec():
    class Vector(E.ExtensionType):
        a: tf.Tensor

        class Spec:
            def __init__(self, shape, dtype=tf.float32):
                self.a = tf.TensorSpec(shape, dtype)

            @property
            def shape(self):
                return self.a.shape

    assert Vector.Spec([2]).shape == [2]
    assert Vector.Spec([2]).is_compatible_with(Vector([1.0, 2.0]))
    assert tf.type_spec_from_value(Vector([1.0])) == Vector.Spec([1])


# Functions, tapes and structures


def test_functions_accept_and_return_values():
    traces = []

    @tf.function
    def double(x):
        traces.append(x)
        return Masked(x.values * 2, x.mask, x.label + "x")

    for _ in range(3):
        y = double(masked())
        assert (y.values.numpy().tolist(), y.label) == ([2.0, 4.0], "qx")
    assert len(traces) == 1
    assert double(masked("other")).label == "otherx"
    assert len(traces) == 2
    spec = Masked.Spec(tf.TensorSpec([None]), tf.TensorSpec([None], tf.bool), "q")
    concrete = double.get_concrete_function(spec)
    assert concrete(masked()).values.numpy().tolist() == [2.0, 4.0]
    total = tf.function(lambda x: tf.reduce_sum(x.values), input_signature=[spec])
    assert float(total(masked())) == 3.0


def test_values_without_tensors_are_compared_by_fields():
    kind = define({"n": int})
    traces = []
    function = tf.function(lambda x, y: traces.append(1) or y * x.n)
    assert [float(function(kind(n), 2.0)) for n in (3, 3, 4)] == [6.0, 6.0, 8.0]
    assert len(traces) == 2


def test_gradients_of_tensors_in_values():
    value = masked()
    with tf.GradientTape() as tape:
        tape.watch(value)
        y = tf.reduce_sum(value.values**2)
    np.testing.assert_array_equal(tape.gradient(y, value.values), [2.0, 4.0])
    with tf.GradientTape() as tape:
        tape.watch(value)
        y = tf.function(lambda x: Masked(x.values**2, x.mask))(value)
    np.testing.assert_array_equal(tape.gradient(y.values, value.values), [2.0, 4.0])
    with tf.GradientTape() as tape, pytest.raises(ValueError, match="Type Masked is not supported"):
        tape.gradient(value.values, value)


def test_structures():
    value = masked()
    assert tf.nest.flatten(value) == [value]
    assert len(tf.nest.flatten(value, expand_composites=True)) == 2
    same = tf.nest.map_structure(tf.identity, value, expand_composites=True)
    assert bool(same == value)
    assert not tf.is_tensor(value)


def test_control_flow_and_identity():
    value = masked()
    assert bool(tf.cond(tf.constant(True), lambda: value, lambda: value) == value)
    _, y = tf.while_loop(
        lambda i, _: i < 2, lambda i, x: (i + 1, Masked(x.values * 2, x.mask)), [0, value]
    )
    assert y.values.numpy().tolist() == [4.0, 8.0]
    assert bool(tf.identity(value) == value)
    assert bool(tf.stop_gradient(value) == value)
    y = tf.py_function(lambda x: x.values, [value], tf.float32)
    assert y.numpy().tolist() == [1.0, 2.0]


def test_operations_refuse_values():
    message = "Pass one of its tensors, or define the operation with"
    for call in (
        lambda: tf.add(masked(), 1.0),
        lambda: tf.constant(1.0) + masked(),
        lambda: tf.convert_to_tensor(masked()),
        lambda: tf.Variable(masked()),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="unsupported operand"):
        masked() + masked()


def test_values_can_convert_themselves_to_tensors():
    class Simple(E.ExtensionType):
        value: tf.Tensor

        def __tf_tensor__(self, dtype=None, name=None):
            return self.value

    x = Simple([1.0, 2.0])
    assert tf.convert_to_tensor(x).numpy().tolist() == [1.0, 2.0]
    assert tf.add(x, 1.0).numpy().tolist() == (tf.constant(1.0) + x).numpy().tolist() == [2.0, 3.0]
    assert tf.stack([x, x]).numpy().tolist() == [[1.0, 2.0], [1.0, 2.0]]
    assert float(tf.function(lambda x: tf.reduce_sum(x))(x)) == 3.0
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(x) * 2.0
    assert tape.gradient(y, x.value).numpy().tolist() == [2.0, 2.0]


def test_optional_values():
    some, nothing = E.Optional.from_value((1, 2.0)), E.Optional.empty(tf.TensorSpec([]))
    assert [float(x) for x in some.get_value()] == [1.0, 2.0]
    assert bool(some.has_value()) is True
    assert bool(nothing.has_value()) is False
    assert some.element_spec == (tf.TensorSpec([], tf.int32), tf.TensorSpec([]))
    assert tf.type_spec_from_value(nothing) == tf.OptionalSpec(tf.TensorSpec([]))
    assert tf.OptionalSpec(tf.TensorSpec([])).value_type is E.Optional
    assert tf.NoneTensorSpec() == tf.NoneTensorSpec()


def test_as_dict_refuses_other_values():
    message = r"as_dict: expected an ExtensionType\. Received: 1 of type int\."
    with pytest.raises(TypeError, match=message):
        tf.experimental.extension_type.as_dict(1)


def test_the_base_class_of_specs_cannot_be_created():
    message = r"ExtensionTypeSpec is a base class\. Use the Spec class of an ExtensionType\."
    with pytest.raises(TypeError, match=message):
        tf.experimental.ExtensionTypeSpec()
