"""Tests GradientTape: watching, gradients and errors."""

import collections
import logging
import re

import numpy as np
import pytest

import retrograde as tf
from retrograde.core.recorders import thread
from retrograde.values import errors

Point = collections.namedtuple("Point", "x y")


class TensorWrapper:
    """Wraps a tensor or variable and converts to it."""

    def __init__(self, inner):
        self.inner = inner

    def __retrograde_tensor__(self):
        return self.inner


@pytest.fixture(autouse=True)
def _assert_no_active_recorders():
    yield
    assert thread.recorders == []


def floats(structure):
    return [None if g is None else float(g) for g in structure]


# Watching


def test_trainable_variables_are_watched_when_they_are_read():
    x, y = tf.Variable(2.0), tf.Variable(5.0)

    with tf.GradientTape() as tape:
        z = x * x * y

    assert floats(tape.gradient(z, [x, y])) == [20.0, 4.0]


def test_tensors_must_be_watched_explicitly():
    x, other = tf.constant(3.0), tf.constant(3.0)

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x * other

    assert floats(tape.gradient(y, [x, other])) == [18.0, None]


def test_operations_before_watch_are_not_recorded():
    x = tf.constant(3.0)

    with tf.GradientTape() as tape:
        before = x * x
        tape.watch(x)
        y = before * x

    assert float(tape.gradient(y, x)) == 9.0


def test_intermediate_results_can_be_watched():
    x = tf.Variable(3.0)

    with tf.GradientTape() as tape:
        y = x * x
        tape.watch(y)
        z = y * y

    assert floats(tape.gradient(z, [x, y])) == [108.0, 18.0]


@pytest.mark.parametrize(
    "structure",
    [
        lambda x, y: [x, y],
        lambda x, y: (x, [y]),
        lambda x, y: {"a": x, "b": {"c": y}},
        lambda x, y: Point(x, y),
        lambda x, y: [TensorWrapper(x), TensorWrapper(TensorWrapper(y))],
    ],
    ids=["list", "nested", "dict", "namedtuple", "wrapped"],
)
def test_nested_structures_can_be_watched(structure):
    x, y = tf.constant(2.0), tf.Variable(3.0, trainable=False)

    with tf.GradientTape() as tape:
        tape.watch(structure(x, y))
        z = x * y

    assert floats(tape.gradient(z, [x, y])) == [3.0, 2.0]
    assert len(tape.watched_variables()) == 1


@pytest.mark.parametrize("value", [3.0, np.ones(2), "a", None, [3.0], object()])
def test_only_tensors_and_variables_can_be_watched(value):
    with tf.GradientTape() as tape, pytest.raises(ValueError, match="Passed in object"):
        tape.watch(value)


def test_a_failed_watch_has_no_effect():
    v = tf.Variable(1.0, trainable=False)

    with tf.GradientTape() as tape, pytest.raises(ValueError, match="Passed in object"):
        tape.watch([v, 3.0])

    assert tape.watched_variables() == ()


def test_watching_integers_logs_a_warning(caplog):
    x = tf.constant(3)

    with caplog.at_level(logging.WARNING, "retrograde"), tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.cast(x, tf.float32) * 2.0

    assert tape.gradient(y, x) is None
    assert "must be floating" in caplog.text


def test_complex_and_half_precision_tensors_are_watched():
    for dtype in (tf.complex64, tf.float16, tf.bfloat16):
        x = tf.constant(3, dtype)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        gradient = tape.gradient(y, x)
        assert gradient.dtype is dtype
        assert complex(gradient.numpy()) == 6.0


def test_non_trainable_and_integer_variables_are_not_watched():
    frozen, counter = tf.Variable(3.0, trainable=False), tf.Variable(3)

    with tf.GradientTape() as tape:
        y = frozen * tf.cast(counter, tf.float32)

    assert floats(tape.gradient(y, [frozen, counter])) == [None, None]


def test_watch_accessed_variables_false():
    x, y = tf.Variable(2.0), tf.Variable(3.0)

    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(x)
        z = x * y

    assert floats(tape.gradient(z, [x, y])) == [3.0, None]
    assert tape.watched_variables() == (x,)


def test_watched_variables_are_unique_and_in_the_order_of_creation():
    x, y, z = tf.Variable(1.0), tf.Variable(2.0), tf.Variable(3.0)

    with tf.GradientTape() as tape:
        _ = y * x * y

    watched = tape.watched_variables()
    assert len(watched) == 2
    assert watched[0] is x
    assert watched[1] is y
    assert all(v is not z for v in watched)


@pytest.mark.parametrize(
    "read",
    [
        lambda v: v.value(),
        lambda v: v.read_value(),
        lambda v: v[0],
        lambda v: tf.convert_to_tensor(v),
        lambda v: v + 1.0,
        lambda v: 1.0 + v,
        lambda v: np.ones(2, np.float32) + v,
        lambda v: tf.reduce_sum(v),
        lambda v: next(iter(v)),
        lambda v: v.sparse_read([0]),
        lambda v: tf.concat([v, v], 0),
        lambda v: tf.stack([v, v]),
    ],
)
def test_every_read_of_a_variable_watches_it(read):
    v = tf.Variable([1.0, 2.0])

    with tf.GradientTape() as tape:
        read(v)

    assert tape.watched_variables()[0] is v


# Gradients


def test_targets_and_sources_can_be_nested():
    x, y = tf.Variable(2.0), tf.Variable(3.0)

    with tf.GradientTape(persistent=True) as tape:
        a, b = x * x, x * y

    assert floats(tape.gradient([a, b], [x, y])) == [7.0, 2.0]
    assert floats(tape.gradient({"a": a, "b": [b]}, (x, y))) == [7.0, 2.0]
    assert float(tape.gradient(Point(a, b), Point(x, y)).y) == 2.0
    nested = tape.gradient(b, {"k": [x, (y,)], "j": x})
    assert set(nested) == {"j", "k"}
    assert type(nested["k"][1]) is tuple
    assert floats([nested["j"], nested["k"][0], nested["k"][1][0]]) == [3.0, 3.0, 2.0]


def test_empty_structures():
    x = tf.Variable(2.0)

    with tf.GradientTape(persistent=True) as tape:
        y = x * x

    assert tape.gradient(y, []) == []
    assert tape.gradient(y, {}) == {}
    assert tape.gradient([], x) is None


def test_repeated_targets_are_summed():
    x = tf.Variable(3.0)

    with tf.GradientTape() as tape:
        y = x * x

    assert float(tape.gradient([y, y], x)) == 12.0


def test_a_target_that_is_a_source():
    x, v = tf.constant(2.0), tf.Variable([1.0, 2.0])

    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x

    assert float(tape.gradient(x, x)) == 1.0
    assert tape.gradient(v, v).numpy().tolist() == [1.0, 1.0]
    assert floats(tape.gradient(y, [x, y])) == [4.0, 1.0]
    assert floats(tape.gradient([y, x], [x])) == [5.0]


def test_intermediate_results_can_be_sources():
    x = tf.Variable(2.0)

    with tf.GradientTape() as tape:
        y = x * x
        z = y * y + y

    assert floats(tape.gradient(z, [x, y, z])) == [36.0, 9.0, 1.0]


def test_repeated_sources():
    x = tf.Variable(2.0)

    with tf.GradientTape() as tape:
        y = x * x

    assert floats(tape.gradient(y, [x, x])) == [4.0, 4.0]


def test_the_elements_of_a_target_are_summed():
    x = tf.Variable([1.0, 2.0])

    with tf.GradientTape() as tape:
        y = x[:, None] * x[None, :]

    assert tape.gradient(y, x).numpy().tolist() == [6.0, 6.0]


def test_output_gradients():
    x = tf.Variable([1.0, 2.0])

    with tf.GradientTape(persistent=True) as tape:
        y, z = x * x, 3.0 * x

    weights = tf.constant([10.0, 100.0])
    assert tape.gradient(y, x, weights).numpy().tolist() == [20.0, 400.0]
    assert tape.gradient(y, x, weights.numpy()).numpy().tolist() == [20.0, 400.0]
    assert tape.gradient(y, x, [10, 100]).numpy().tolist() == [20.0, 400.0]
    assert tape.gradient(y, x, tf.Variable(weights)).numpy().tolist() == [20.0, 400.0]
    assert tape.gradient(y, x, tf.constant(2.0)).numpy().tolist() == [4.0, 8.0]
    assert tape.gradient([y, z], x, [weights, None]).numpy().tolist() == [23.0, 403.0]
    gradient = tape.gradient({"y": y, "z": z}, x, {"y": weights, "z": weights})
    assert gradient.numpy().tolist() == [50.0, 700.0]
    for nested_weights in ([weights], (weights,), {"y": weights}, [weights.numpy()]):
        assert tape.gradient(y, x, nested_weights).numpy().tolist() == [20.0, 400.0]


def test_output_gradients_can_be_indexed_slices():
    x = tf.Variable([1.0, 2.0])

    with tf.GradientTape() as tape:
        y = x * x
    slices = tf.IndexedSlices(tf.constant([10.0, 5.0]), tf.constant([1, 1]), tf.constant([2]))

    assert tape.gradient(y, x, slices).numpy().tolist() == [0.0, 60.0]


def test_integer_and_bool_targets_that_are_sources():
    i, b, s = tf.constant([1, 2]), tf.constant([True]), tf.constant("a")
    x = tf.Variable(3.0)

    with tf.GradientTape(persistent=True) as tape:
        y, j = x * x, tf.cast(x, tf.int32)

    gradients = tape.gradient([y, i, i], [i, x, j])
    assert gradients[0].dtype == tf.int32
    assert (gradients[0].numpy().tolist(), float(gradients[1]), gradients[2]) == ([2, 2], 6.0, None)
    assert tape.gradient(i, i, tf.constant([3, 4])).numpy().tolist() == [3, 4]
    assert tape.gradient(b, b).numpy().tolist() == [True]
    assert tape.gradient(s, s) is None
    assert tape.gradient(j, x) is None


def test_unconnected_sources():
    x, v, i = tf.Variable(2.0), tf.Variable([1.0, 2.0]), tf.Variable([1, 2])

    with tf.GradientTape(persistent=True) as tape:
        y = x * x

    for none in ("none", tf.UnconnectedGradients.NONE):
        assert tape.gradient(y, [v, i], unconnected_gradients=none) == [None, None]
    for zero in ("zero", tf.UnconnectedGradients.ZERO):
        zeros = tape.gradient(y, [v, i], unconnected_gradients=zero)
        assert [z.numpy().tolist() for z in zeros] == [[0.0, 0.0], [0, 0]]
        assert [z.dtype for z in zeros] == [tf.float32, tf.int32]
        assert float(tape.gradient(y, x, unconnected_gradients=zero)) == 4.0


def test_integer_targets_have_no_gradient():
    x = tf.Variable(2.5)

    with tf.GradientTape() as tape:
        y = tf.cast(x, tf.int32)

    assert tape.gradient(y, x) is None


def test_operations_after_the_block_are_not_recorded():
    x = tf.Variable(2.0)

    with tf.GradientTape() as tape:
        y = x * x
    z = y * x

    assert tape.gradient(z, x) is None


def test_unused_outputs_have_zero_cotangents():
    x = tf.Variable([1.0, 2.0, 3.0])

    with tf.GradientTape(persistent=True) as tape:
        a, b, c = tf.unstack(x)
        y = a * c

    assert tape.gradient(y, x).numpy().tolist() == [3.0, 0.0, 1.0]
    assert tape.gradient([b, c], x).numpy().tolist() == [0.0, 1.0, 1.0]
    assert floats(tape.gradient(y, [a, b, c])) == [3.0, None, 1.0]


def test_contributions_of_repeated_uses_are_summed():
    x = tf.Variable([1.0, 2.0])

    with tf.GradientTape() as tape:
        y = x
        for _ in range(10):
            y = y + x * x

    assert tape.gradient(y, x).numpy().tolist() == [21.0, 41.0]


def test_gradients_that_share_an_array_are_accumulated_separately():
    x, y = tf.Variable([1.0, 1.0]), tf.Variable([1.0, 1.0])

    with tf.GradientTape() as tape:
        z = x + y
        z = z + x
        z = z + x
        z = z + y

    assert [g.numpy().tolist() for g in tape.gradient(z, [x, y])] == [[3.0, 3.0], [2.0, 2.0]]


def test_output_gradients_are_not_modified():
    x = tf.Variable([1.0, 1.0])
    weights = tf.constant([5.0, 7.0])

    with tf.GradientTape() as tape:
        y = x + x + x + x
        z = y + x
    tape.gradient([y, z, x], x, [weights, weights, weights])

    assert weights.numpy().tolist() == [5.0, 7.0]


# Errors


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda t, _, y: t.gradient(y, 3.0), TypeError, "A source of gradient"),
        (lambda t, x, y: t.gradient(y, [x, None]), TypeError, "A source of gradient"),
        (lambda t, _, y: t.gradient(y, np.ones(2)), TypeError, "A source of gradient"),
        (lambda t, x, _: t.gradient(None, x), TypeError, "A target of gradient"),
        (lambda t, x, y: t.gradient([y, 3.0], x), TypeError, "A target of gradient"),
        (lambda t, x, y: t.gradient(y, x, unconnected_gradients="nil"), ValueError, "'nil'"),
        (lambda t, x, y: t.gradient([y, y], x, [1.0]), ValueError, "1 output_gradients for 2"),
        (
            lambda t, x, y: t.gradient(y, x, tf.constant([1.0, 2.0, 3.0])),
            errors.InvalidArgumentError,
            "incompatible shapes",
        ),
        (
            lambda t, x, y: t.gradient(y, x, tf.constant([1, 2])),
            errors.InvalidArgumentError,
            "dtype int32",
        ),
        (lambda t, x, y: t.gradient(y, x, "a"), errors.InvalidArgumentError, "dtype string"),
    ],
)
def test_the_tape_is_usable_after_an_error(call, error, message):
    x = tf.Variable([1.0, 2.0])

    for inside in (False, True):
        with tf.GradientTape() as tape:
            y = x * x
            if inside:
                with pytest.raises(error, match=message):
                    call(tape, x, y)
                y = y * x
        if not inside:
            with pytest.raises(error, match=message):
                call(tape, x, y)

        assert tape.gradient(y, x).numpy().tolist() == ([3.0, 12.0] if inside else [2.0, 4.0])


def test_a_second_gradient_call_raises():
    x = tf.Variable(2.0)

    with tf.GradientTape() as tape:
        y = x * x
    tape.gradient(y, x)  # the first call
    line = _line_of("# the first call")

    for _ in range(2):
        with pytest.raises(RuntimeError) as raised:
            tape.gradient(y, x)

        assert str(raised.value) == (
            "A non-persistent GradientTape can only be used to compute one set of gradients (or "
            f"jacobians), and this one was used at {__file__}:{line}: "
            "tape.gradient(y, x)  # the first call.\n"
            "Compute all gradients in one call, gradient(target, [source_1, source_2, ...]), or "
            "create the tape with tf.GradientTape(persistent=True)."
        )


def _line_of(comment):
    with open(__file__) as file:
        return next(i for i, line in enumerate(file, 1) if line.rstrip().endswith(comment))


def test_the_outer_tape_is_usable_after_an_error_in_a_rule():
    @tf.custom_gradient
    def fail_in_gradient(x):
        def grad(_):
            raise ZeroDivisionError

        return x * x, grad

    x = tf.Variable(2.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            y = fail_in_gradient(x)
        with pytest.raises(ZeroDivisionError):
            tape.gradient(y, x)
        z = x * x

    assert float(outer.gradient(z, x)) == 4.0


def test_a_second_gradient_call_raises_without_source_code():
    scope = {"tf": tf}
    exec(
        "x = tf.Variable(2.0)\n"
        "with tf.GradientTape() as tape:\n"
        "    y = x * x\n"
        "tape.gradient(y, x)\n",
        scope,
    )

    with pytest.raises(RuntimeError, match=re.escape("used at <string>:4.\n")):
        scope["tape"].gradient(scope["y"], scope["x"])
