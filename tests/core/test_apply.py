"""Tests Primitive and apply: dtype checks, kernels, outputs and error messages."""

import numpy as np
import pytest

import retrograde as tf
from retrograde.core.apply import PRIMITIVES, Primitive, apply, tensor_of
from retrograde.values import dtypes
from retrograde.values.errors import InvalidArgumentError, NotFoundError


@pytest.fixture
def make_primitive():
    """Returns a function that creates primitives and removes them after the test."""
    created = []

    def create(kernel, **options):
        options = {"vjps": None, "batch": None} | options
        created.append(Primitive(f"test primitive {len(created)}", kernel, **options))
        return created[-1]

    yield create
    for primitive in created:
        del PRIMITIVES[primitive.name]


def test_primitive_names_are_unique(make_primitive):
    primitive = make_primitive("negative")

    with pytest.raises(ValueError, match="There is a primitive named"):
        Primitive(primitive.name, "negative", vjps=None, batch=None)
    assert repr(primitive) == f"<primitive {primitive.name}>"


def test_a_kernel_can_be_the_name_of_a_numpy_function(make_primitive):
    primitive = make_primitive("hypot")

    y = apply(primitive, (tf.constant([3.0]), tf.constant([4.0])))

    assert isinstance(y, tf.Tensor)
    assert y.numpy().tolist() == [5.0]


def test_arrays_give_arrays_and_tensors_give_tensors(make_primitive):
    primitive = make_primitive(lambda xp, x, *, factor: xp.multiply(x, factor))

    assert type(primitive(np.array([1.0, 2.0]), factor=3.0)) is np.ndarray
    assert isinstance(primitive(tf.constant([1.0, 2.0]), factor=3.0), tf.Tensor)


def test_an_array_and_a_tensor_give_a_tensor(make_primitive):
    primitive = make_primitive("add")

    y = primitive(np.array([1.0], np.float32), tf.constant([2.0]))

    assert isinstance(y, tf.Tensor)
    assert y.numpy().tolist() == [3.0]


def test_tensor_of():
    x = tf.constant(1.0)

    assert tensor_of(x) is x
    assert tensor_of(np.ones(2)).numpy().tolist() == [1.0, 1.0]


def test_every_call_returns_a_new_tensor(make_primitive):
    primitive = make_primitive(lambda _, x: x)
    x = tf.constant([1.0])

    y = apply(primitive, (x,))

    assert y is not x
    assert y._id != x._id


def test_multiple_outputs(make_primitive):
    primitive = make_primitive(lambda xp, x: (xp.negative(x), xp.abs(x)), outputs=True)

    a, b = apply(primitive, (tf.constant([-1.0]),))

    assert (float(a[0]), float(b[0])) == (1.0, 1.0)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_unsupported_dtypes_raise(make_primitive, count):
    primitive = make_primitive(lambda _, *xs: xs[0], accepts=dtypes.FLOATING)

    with pytest.raises(
        InvalidArgumentError, match=r"dtype int32 is not supported. Expected one of"
    ):
        apply(primitive, (tf.constant([1]),) * count)


@pytest.mark.parametrize("position", [1, 2])
def test_inputs_of_different_dtypes_raise(make_primitive, position):
    primitive = make_primitive(lambda _, *xs: xs[0], accepts=dtypes.NUMERIC)
    inputs = [tf.constant([1.0])] * 3
    inputs[position] = tf.constant([1.0], tf.float64)

    with pytest.raises(InvalidArgumentError, match=rf"input #{position}\(zero-based\)"):
        apply(primitive, tuple(inputs[: position + 1]))


def test_a_primitive_can_reword_the_errors_of_its_kernel(make_primitive):
    def fail(*_, **__):
        raise ValueError("a NumPy message")

    custom = make_primitive(fail, error_message=lambda x, *, n: f"wrong: {x.shape}, {n}")
    default = make_primitive(fail, error_message=lambda _: None)

    with pytest.raises(InvalidArgumentError) as raised:
        apply(custom, (tf.constant([1.0]),), {"n": 3})
    assert str(raised.value) == "wrong: (1,), 3"
    with pytest.raises(InvalidArgumentError) as raised:
        apply(default, (tf.constant([1.0]),))
    assert str(raised.value) == f"{default.name}: a NumPy message. Received: (1,) float32."


@pytest.mark.parametrize(
    "error",
    [NotFoundError(None, None, "m"), LookupError("m"), RuntimeError("m")],
    ids=lambda e: type(e).__name__,
)
def test_other_errors_propagate_unchanged(make_primitive, error):
    def fail(*_):
        raise error

    with pytest.raises(type(error)) as raised:
        apply(make_primitive(fail), (tf.constant([1.0]),))
    assert raised.value is error


@pytest.mark.parametrize("error_type", [ZeroDivisionError, OverflowError])
def test_arithmetic_errors_become_invalid_argument_errors(make_primitive, error_type):
    def fail(*_):
        raise error_type("too large")

    primitive = make_primitive(fail)
    with pytest.raises(InvalidArgumentError) as raised:
        apply(primitive, (tf.constant([1.0]),))
    assert str(raised.value) == f"{primitive.name}: too large. Received: (1,) float32."


def test_keyboard_interrupts_propagate(make_primitive):
    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        apply(make_primitive(interrupt), (tf.constant([1.0]),))


def test_a_kernel_can_call_operations(make_primitive):
    """Signal handlers and finalizers do this while a kernel runs."""
    primitive = make_primitive(lambda _, x: (tf.constant(x) / 0.0).numpy())

    with np.errstate(all="raise"):
        assert apply(primitive, (tf.constant([1.0]),)).numpy().tolist() == [np.inf]


def test_vjp_signatures_are_checked_on_first_use(make_primitive):
    primitive = make_primitive("negative", vjps=(lambda g: -g,))
    x = tf.Variable([1.0])

    with tf.GradientTape(), pytest.raises(TypeError, match=r"Expected y and 1 inputs"):
        apply(primitive, (x._read(),))
