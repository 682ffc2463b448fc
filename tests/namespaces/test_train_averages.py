"""tf.train.ExponentialMovingAverage."""

import numpy as np
import pytest

import retrograde as tf
from tests.namespaces.helpers import assert_raises

Average = tf.train.ExponentialMovingAverage


def test_averages_start_at_the_values():
    v, w = tf.Variable([1.0, 2.0], name="v"), tf.Variable(3.0, name="w")
    average = Average(0.9)
    assert average.average(v) is None
    assert average.apply([v, w]) is None
    v.assign([2.0, 4.0])
    average.apply([v])
    np.testing.assert_allclose(average.average(v).numpy(), [1.1, 2.2], rtol=1e-6)
    assert float(average.average(w)) == 3.0
    assert not average.average(v).trainable
    assert average.apply() is None
    assert (average.name, average.average_name(v)) == (
        "ExponentialMovingAverage",
        "v/ExponentialMovingAverage",
    )
    assert average.average(v).name == "v/ExponentialMovingAverage:0"
    assert list(average.variables_to_restore()) == [
        "v/ExponentialMovingAverage",
        "w/ExponentialMovingAverage",
    ]
    assert average.variables_to_restore([w])["w/ExponentialMovingAverage"] is w


@pytest.mark.parametrize(("updates", "expected"), [(1, [31 / 11, 35 / 11]), (None, [2.01, 3.99])])
def test_decay_depends_on_num_updates(updates, expected):
    v = tf.Variable([2.0, 4.0])
    average = Average(0.99, num_updates=updates)
    average.apply([v])
    v.assign([3.0, 3.0])
    average.apply([v])
    np.testing.assert_allclose(average.average(v).numpy(), expected, rtol=1e-6)


def test_num_updates_can_be_a_variable():
    v, updates = tf.Variable([3.0, 3.0]), tf.Variable(0)
    average = Average(0.99, num_updates=updates)
    average.apply([v])
    v.assign([6.0, 6.0])
    updates.assign(5)
    average.apply([v])
    np.testing.assert_allclose(average.average(v).numpy(), [4.8, 4.8], rtol=1e-6)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float64])
def test_averages_have_the_dtype_of_the_variable(dtype):
    v = tf.Variable(tf.cast(2.0, dtype))
    average = Average(0.5)
    average.apply([v])
    v.assign(tf.cast(4.0, dtype))
    average.apply([v])
    assert average.average(v).dtype == dtype
    assert float(average.average(v)) == 3.0


def test_averages_in_a_function_and_in_a_checkpoint(tmp_path):
    v = tf.Variable(0.0)
    average = Average(0.5)
    average.apply([v])

    @tf.function
    def step():
        v.assign_add(1.0)
        average.apply([v])

    for _ in range(3):
        step()
    assert float(average.average(v)) == 0.5**3 * 1 + 0.5**2 * 2 + 0.5 * 3
    path = tf.train.Checkpoint(v=v, average=average).write(tmp_path / "a")
    w, other = tf.Variable(0.0), Average(0.5)
    other.apply([w])
    tf.train.Checkpoint(v=w, average=other).read(path).assert_consumed()
    assert float(other.average(w)) == float(average.average(v))


def test_invalid_variables_raise():
    assert_raises(
        lambda: Average(0.9).apply([tf.Variable(3, name="i")]),
        TypeError,
        "The variables must be half, float, or double: i:0",
    )
    x = tf.constant(1.0)
    assert_raises(
        lambda: Average(0.9).apply([x]),
        TypeError,
        "tf.train.ExponentialMovingAverage does not support non-Variable tensors when eager "
        f"execution is enabled. Received: {x!r}.",
    )
