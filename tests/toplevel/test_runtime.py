"""Registered conversions, critical sections and runtime queries."""

import logging
import threading
import time

import pytest

import retrograde as tf
from retrograde.values.conversion import CONVERSIONS
from tests.namespaces.helpers import assert_raises, gradient

# Conversion functions


class Meters:
    def __init__(self, value):
        self.value = value


def convert(x, dtype=None, name=None, as_ref=False):  # noqa: ARG001
    is_tensor = isinstance(x.value, tf.Tensor | tf.Variable)
    return tf.convert_to_tensor(x.value) if is_tensor else tf.constant(x.value, dtype)


@pytest.fixture
def registered():
    saved = list(CONVERSIONS)
    tf.register_tensor_conversion_function(Meters, convert)
    yield
    CONVERSIONS[:] = saved


@pytest.mark.usefixtures("registered")
class TestConversion:
    @pytest.mark.parametrize(
        ("call", "expected"),
        [
            (lambda: tf.convert_to_tensor(Meters(1.0)), 1.0),
            (lambda: tf.convert_to_tensor(Meters([1, 2]), tf.float32), [1.0, 2.0]),
            (lambda: tf.add(Meters([1.0, 2.0]), 1.0), [2.0, 3.0]),
            (lambda: tf.constant([1.0, 2.0]) + Meters([1, 2]), [2.0, 4.0]),
            (lambda: tf.reduce_sum(Meters([1.0, 2.0])), 3.0),
            (lambda: tf.concat([Meters([1.0]), tf.constant([2.0])], 0), [1.0, 2.0]),
            (lambda: tf.stack([Meters(1.0), 2.0]), [1.0, 2.0]),
            (lambda: tf.Variable(Meters(2.0)), 2.0),
        ],
    )
    def test_converted_objects_are_accepted_as_tensors(self, call, expected):
        y = call()

        assert y.dtype is tf.float32
        assert y.numpy().tolist() == expected

    def test_tapes_record_the_converted_tensor(self):
        assert gradient(lambda x: Meters(x) * tf.constant(3.0), 2.0) == [3.0]
        assert gradient(lambda x: tf.math.multiply(Meters(x), x), 2.0) == [4.0]

    def test_a_convertible_object_is_not_a_tensor(self):
        assert not tf.is_tensor(Meters(1.0))

    def test_functions_are_tried_by_priority(self):
        calls = []

        def function(name, result):
            def convert(x, dtype=None, name_=None, as_ref=False, **_):  # noqa: ARG001
                calls.append(name)
                return result

            return convert

        class Other(Meters):
            pass

        tf.register_tensor_conversion_function(Other, function("late", tf.constant(7.0)), 20)
        tf.register_tensor_conversion_function(Other, function("early", NotImplemented), 10)
        assert float(tf.convert_to_tensor(Other(1.0))) == 7.0
        assert calls == ["early", "late"]

    def test_a_conversion_must_return_the_requested_dtype(self):
        class Wrong:
            pass

        def wrong(x, **_):  # noqa: ARG001
            return 8.0

        tf.register_tensor_conversion_function(Wrong, wrong)
        assert_raises(
            lambda: tf.convert_to_tensor(Wrong()),
            RuntimeError,
            f"Conversion function {wrong} for type {Wrong} returned non-Tensor: 8.0",
        )
        assert_raises(
            lambda: tf.convert_to_tensor(Meters(tf.constant(1.0)), tf.int32),
            RuntimeError,
            f"Conversion function {convert} for type {Meters} returned incompatible dtype: "
            "requested = int32, actual = float32",
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, convert), "Argument `base_type` must be a type or a tuple of types. Obtained: 3"),
        (
            (int, convert),
            "Cannot register conversions for Python numeric types and NumPy scalars and arrays.",
        ),
        ((Meters, 3), "Argument `conversion_func` must be callable. Received 3."),
    ],
)
def test_registration_requires_a_type_and_a_function(arguments, message):
    assert_raises(lambda: tf.register_tensor_conversion_function(*arguments), TypeError, message)


def test_an_object_without_a_conversion_raises():
    with pytest.raises(ValueError, match="unsupported type"):
        tf.convert_to_tensor(Meters(1.0))


# Registered gradients


def test_a_gradient_can_be_registered_once():
    def f(op, g):  # noqa: ARG001
        return g

    assert tf.RegisterGradient("RuntimeTestA")(f) is f
    tf.no_gradient("RuntimeTestB")
    for name in ("RuntimeTestA", "RuntimeTestB"):
        message = repr(f"Registering two gradient with name '{name}'!")
        assert_raises(lambda n=name: tf.RegisterGradient(n)(f), KeyError, message)
        assert_raises(lambda n=name: tf.no_gradient(n), KeyError, message)
    assert_raises(lambda: tf.no_gradient(3), TypeError, "op_type must be a string. Received: 3.")


# Critical sections


def test_one_thread_at_a_time_is_in_a_section():
    section, entered, max_entered = tf.CriticalSection(), [], []

    def work():
        entered.append(1)
        max_entered.append(len(entered))
        time.sleep(0.005)
        entered.pop()
        return 1.0

    threads = [threading.Thread(target=section.execute, args=(work,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert max_entered == [1] * 4


def test_a_section_returns_tensors_and_is_released_after_an_error():
    section = tf.CriticalSection(name="s")
    result = section.execute(lambda: [1, {"a": tf.constant(2.0)}])

    assert [int(result[0]), float(result[1]["a"])] == [1, 2.0]
    with pytest.raises(ZeroDivisionError):
        section.execute(lambda: 1 / 0)
    assert int(section.execute(lambda: 3)) == 3
    assert section.name == "s"


def test_sections_with_a_shared_name_share_a_lock():
    first, second = (tf.CriticalSection(shared_name="shared by a test") for _ in range(2))
    other = threading.Thread(target=second.execute, args=(lambda: 1,))

    def work():
        other.start()
        other.join(0.02)
        return other.is_alive()

    assert bool(first.execute(work))
    other.join()


def test_a_section_is_not_reentrant():
    section = tf.CriticalSection()
    assert_raises(
        lambda: section.execute(lambda: section.execute(lambda: 1)),
        ValueError,
        "Attempting to lock a CriticalSection (critical_section) in which we are already running. "
        "This is illegal and may cause deadlocks.",
    )
    assert_raises(
        lambda: tf.CriticalSection(critical_section_def=1),
        ValueError,
        "Argument `critical_section_def` is not supported.",
    )


# Queries


def test_queries():
    assert abs(float(tf.timestamp()) - time.time()) < 60
    assert tf.timestamp().dtype is tf.float64
    assert not tf.is_symbolic_tensor(tf.constant(1.0))
    assert tf.get_logger() is logging.getLogger("retrograde")
    assert tf.AggregationMethod.DEFAULT == tf.AggregationMethod.ADD_N == 0
    assert tf.group(1, 2) is None
    assert tf.no_op() is None
    assert tf.executing_eagerly()
