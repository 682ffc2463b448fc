"""Primitive and apply: dtypes are checked, kernels run, recorders are told, errors explained."""

import numpy as np
import pytest

import retrograde as tf
from retrograde.core.apply import PRIMITIVES, Primitive, apply, tensor_of
from retrograde.values import dtypes
from retrograde.values.errors import InvalidArgumentError, NotFoundError


@pytest.fixture
def make():
    """Makes primitives that are gone after the test."""
    made = []

    def primitive(kernel, **options):
        options = {"vjps": None, "batch": None} | options
        made.append(Primitive(f"made {len(made)} for a test", kernel, **options))
        return made[-1]

    yield primitive
    for each in made:
        del PRIMITIVES[each.name]


def test_names_are_unique(make):
    primitive = make("negative")

    with pytest.raises(ValueError, match="There is a primitive named"):
        Primitive(primitive.name, "negative", vjps=None, batch=None)
    assert repr(primitive) == f"<primitive {primitive.name}>"


def test_a_kernel_may_be_a_name_that_numpy_knows(make):
    primitive = make("hypot")

    y = apply(primitive, (tf.constant([3.0]), tf.constant([4.0])))

    assert isinstance(y, tf.Tensor)
    assert y.numpy().tolist() == [5.0]


def test_raw_arrays_go_through_the_kernel_alone(make):
    primitive = make(lambda xp, x, *, by: xp.multiply(x, by))

    assert type(primitive(np.array([1.0, 2.0]), by=3.0)) is np.ndarray
    assert isinstance(primitive(tf.constant([1.0, 2.0]), by=3.0), tf.Tensor)


def test_one_tensor_among_arrays_makes_a_tensor(make):
    primitive = make("add")

    y = primitive(np.array([1.0], np.float32), tf.constant([2.0]))

    assert isinstance(y, tf.Tensor)
    assert y.numpy().tolist() == [3.0]


def test_tensor_of():
    x = tf.constant(1.0)

    assert tensor_of(x) is x
    assert tensor_of(np.ones(2)).numpy().tolist() == [1.0, 1.0]


def test_every_call_makes_a_tensor_of_its_own(make):
    primitive = make(lambda _, x: x)
    x = tf.constant([1.0])

    y = apply(primitive, (x,))

    assert y is not x
    assert y._id != x._id


def test_several_outputs(make):
    primitive = make(lambda xp, x: (xp.negative(x), xp.abs(x)), outputs=True)

    a, b = apply(primitive, (tf.constant([-1.0]),))

    assert (float(a[0]), float(b[0])) == (1.0, 1.0)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_dtypes_that_are_not_accepted(make, count):
    primitive = make(lambda _, *xs: xs[0], accepts=dtypes.FLOATING)

    with pytest.raises(
        InvalidArgumentError, match=r"dtype int32 is not supported. Expected one of"
    ):
        apply(primitive, (tf.constant([1]),) * count)


@pytest.mark.parametrize("position", [1, 2])
def test_all_inputs_have_one_dtype(make, position):
    primitive = make(lambda _, *xs: xs[0], accepts=dtypes.NUMERIC)
    inputs = [tf.constant([1.0])] * 3
    inputs[position] = tf.constant([1.0], tf.float64)

    with pytest.raises(InvalidArgumentError, match=rf"input #{position}\(zero-based\)"):
        apply(primitive, tuple(inputs[: position + 1]))


def test_a_failing_kernel_is_worded_by_its_primitive(make):
    def fail(*_, **__):
        raise ValueError("what NumPy says")

    worded = make(fail, complain=lambda x, *, n: f"wrong: {x.shape}, {n}")
    general = make(fail, complain=lambda _: None)

    with pytest.raises(InvalidArgumentError) as raised:
        apply(worded, (tf.constant([1.0]),), {"n": 3})
    assert str(raised.value) == "wrong: (1,), 3"
    with pytest.raises(InvalidArgumentError) as raised:
        apply(general, (tf.constant([1.0]),))
    assert str(raised.value) == f"{general.name}: what NumPy says. Received: (1,) float32."


@pytest.mark.parametrize(
    "error",
    [NotFoundError(None, None, "m"), LookupError("m"), RuntimeError("m")],
    ids=lambda e: type(e).__name__,
)
def test_other_errors_pass_as_they_are(make, error):
    def fail(*_):
        raise error

    with pytest.raises(type(error)) as raised:
        apply(make(fail), (tf.constant([1.0]),))
    assert raised.value is error


@pytest.mark.parametrize("kind", [ZeroDivisionError, OverflowError])
def test_errors_of_arithmetic_are_invalid_arguments(make, kind):
    def fail(*_):
        raise kind("too large")

    primitive = make(fail)
    with pytest.raises(InvalidArgumentError) as raised:
        apply(primitive, (tf.constant([1.0]),))
    assert str(raised.value) == f"{primitive.name}: too large. Received: (1,) float32."


def test_interruptions_pass(make):
    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        apply(make(interrupt), (tf.constant([1.0]),))


def test_a_kernel_may_call_operations(make):
    """As signal handlers and finalisers do, in the midst of a kernel."""
    primitive = make(lambda _, x: (tf.constant(x) / 0.0).numpy())

    with np.errstate(all="raise"):
        assert apply(primitive, (tf.constant([1.0]),)).numpy().tolist() == [np.inf]


def test_rules_are_checked_when_they_are_first_needed(make):
    primitive = make("negative", vjps=(lambda g: -g,))
    x = tf.Variable([1.0])

    with tf.GradientTape(), pytest.raises(TypeError, match=r"Expected y and 1 inputs"):
        apply(primitive, (x._read(),))
