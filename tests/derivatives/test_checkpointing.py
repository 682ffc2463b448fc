"""A tape with a memory limit computes bit-for-bit identical gradients with less memory."""

import gc
import tracemalloc
import weakref

import numpy as np
import pytest

import retrograde as tf
from retrograde.derivatives import checkpointing
from retrograde.derivatives.checkpointing import is_freed, parse_bytes
from tests.namespaces.helpers import assert_raises

rng = np.random.default_rng(5)
KB = 1 << 10
Exhausted = tf.errors.ResourceExhaustedError


def arrays(*shapes):
    return [tf.Variable((rng.standard_normal(s) * 0.3).astype(np.float32)) for s in shapes]


def dense():
    weights = arrays(*[(16, 16)] * 12)
    x = tf.constant(rng.standard_normal((64, 16)).astype(np.float32))

    def loss():
        h = x
        for w in weights:
            h = tf.nn.dropout(tf.tanh(h @ w) * 1.5, 0.2)
        return tf.reduce_mean(h * h)

    return weights, loss


def convolutional():
    weights = arrays((3, 3, 2, 4), (3, 3, 4, 4), (3, 3, 4, 4), (64, 3))
    x = tf.constant(rng.standard_normal((4, 8, 8, 2)).astype(np.float32))

    def loss():
        h = tf.nn.relu(tf.nn.conv2d(x, weights[0], 1, "SAME"))
        for w in weights[1:3]:
            y = tf.nn.conv2d(h, w, 1, "SAME")
            mean, variance = tf.nn.moments(y, [0, 1, 2])
            h = h + tf.nn.relu(tf.nn.batch_normalization(y, mean, variance, None, None, 1e-3))
        h = tf.nn.max_pool2d(h, 2, 2, "VALID")
        return tf.reduce_sum(tf.nn.softmax(tf.reshape(h, [4, 64]) @ weights[3]) ** 2)

    return weights, loss


def branching():
    weights = arrays((60, 80), (80,), (40, 60))

    def loss():
        w, b, v = weights
        parts = tf.split(tf.exp(w) * b, 2, axis=1)
        joined = tf.concat([tf.sin(parts[0]), tf.transpose(v) * parts[1]], axis=1)
        picked = tf.gather(joined, [0, 2, 2, 5])
        values, _ = tf.math.top_k(picked, 3)
        total = tf.cumsum(tf.sqrt(tf.abs(tf.reshape(values, [2, 6])) + 1.0))
        return tf.reduce_sum(total / tf.reduce_logsumexp(total))

    return weights, loss


def gradients(program, **options):
    weights, loss = program
    tf.random.set_seed(1)
    with tf.GradientTape(**options) as tape:
        y = loss()
    result = tape.gradient(y, weights)
    return [tf.convert_to_tensor(g).numpy() for g in result], tape


def smallest_limit(program):
    """Returns the smallest limit that can be met, in steps of a kilobyte."""
    for limit in range(KB, 1 << 20, KB):
        try:
            return gradients(program, memory_limit=limit)[1]._ledger.limit
        except Exhausted:
            continue
    raise AssertionError


@pytest.mark.parametrize("make", [dense, convolutional, branching])
def test_gradients_are_bit_for_bit_identical(make):
    program = make()
    expected, _ = gradients(program)
    lowest = smallest_limit(program)

    for limit in (lowest, 2 * lowest, "1GB"):
        actual, tape = gradients(program, memory_limit=limit)
        for a, b in zip(actual, expected, strict=True):
            np.testing.assert_array_equal(a, b)
        assert (tape._ledger.recomputed > 0) == (tape._ledger.dropped > 0)
        assert tape._ledger.dropped > 0 or limit != lowest
    assert tape._ledger.dropped == 0


@pytest.mark.parametrize("make", [dense, convolutional, branching])
def test_memory_is_always_under_the_limit(make, monkeypatch):
    program = make()
    limit = smallest_limit(program)
    seen = []

    class Watched(checkpointing.LimitedEntries):
        __slots__ = ()

        def limit_last(self, values, location):
            super().limit_last(values, location)
            seen.append(self.ledger.held)

        def pop(self):
            entry = super().pop()
            seen.append(self.ledger.held)
            return entry

    monkeypatch.setattr("retrograde.diagnose.tape_options.LimitedEntries", Watched)
    _, tape = gradients(program, memory_limit=limit)

    assert max(seen) <= limit
    assert seen[-1] == 0
    assert not (tape._ledger._steps or tape._ledger._producers or tape._ledger._given)


def test_measured_memory_stays_under_the_limit():
    weights, x = arrays(*[(64, 64)] * 10), tf.constant(np.ones((256, 64), np.float32))

    def held(**options):
        gc.collect()
        tracemalloc.start()
        try:
            with tf.GradientTape(**options) as tape:
                h = x
                for w in weights:
                    h = tf.tanh(h @ w)
                loss = tf.reduce_sum(h)
            del h
            now = tracemalloc.get_traced_memory()[0]
            assert tape.gradient(loss, weights) is not None
            return now
        finally:
            tracemalloc.stop()

    layer = 4 * 256 * 64
    assert held() > 10 * layer
    assert held(memory_limit=4 * layer) < 4 * layer + 40_000


def test_dropped_values_are_freed():
    (w,) = arrays((100, 100))
    with tf.GradientTape(memory_limit=3 * 40_000) as tape:
        h = w
        seen = []
        for _ in range(6):
            h = tf.tanh(h)
            seen.append(weakref.ref(h._array))
        y = tf.reduce_sum(h)
    del h

    alive = [ref() is not None for ref in seen]
    assert sum(alive) == 3
    assert any(is_freed(x) for entry in tape._entries for x in entry[3])
    assert tape.gradient(y, w) is not None
    assert [ref() for ref in seen] == [None] * 6


def test_random_numbers_are_drawn_once_and_state_is_updated_once():
    (w,) = arrays((50, 50))
    count = tf.Variable(0.0, trainable=False)

    def run(**options):
        tf.random.set_seed(3)
        count.assign(0.0)
        with tf.GradientTape(**options) as tape:
            h = w
            for _ in range(5):
                h = tf.tanh(h) * tf.random.uniform([50, 50])
                count.assign_add(1.0)
            y = tf.reduce_sum(h)
        g = tape.gradient(y, w).numpy()
        return g, float(count), tf.random.uniform([]).numpy()

    limited, unlimited = run(memory_limit="80kB"), run()
    np.testing.assert_array_equal(limited[0], unlimited[0])
    assert limited[1:] == unlimited[1:]


def test_rematerialization_uses_the_old_values_of_variables():
    w, v = arrays((40, 40), (40, 40))

    def run(**options):
        before = v.numpy()
        with tf.GradientTape(**options) as tape:
            h = tf.tanh(tf.tanh(w @ v) @ v)
            v.assign_add(tf.ones_like(v))
            y = tf.reduce_sum(tf.exp(tf.sin(h)))
            v.assign_add(tf.ones_like(v))
        g = [x.numpy() for x in tape.gradient(y, [w, v])]
        v.assign(before)
        return g, tape

    limited, tape = run(memory_limit=2 * 6400 + 100)
    unlimited, _ = run()
    assert tape._ledger.recomputed > 0
    for a, b in zip(limited, unlimited, strict=True):
        np.testing.assert_array_equal(a, b)


def test_functions_with_a_custom_gradient():
    @tf.custom_gradient
    def cube(x):
        return x**3, lambda g: g * 3.0 * x**2

    (w,) = arrays((30, 30))

    def run(**options):
        with tf.GradientTape(**options) as tape:
            y = tf.reduce_sum(tf.sin(cube(tf.tanh(tf.exp(tf.sin(w))))))
        return tape.gradient(y, w).numpy(), tape

    limited, tape = run(memory_limit=3 * 3600)
    np.testing.assert_array_equal(limited, run()[0])
    assert tape._ledger.dropped > 0


DERIVATIVES = [
    lambda tape, y, x: tape.gradient(y, x),
    lambda tape, y, x: tape.jacobian(y, x),
    lambda tape, y, x: tape.jvp(y, x, tf.ones_like(x)),
    lambda tape, y, x: tape.gradient(y, x, per_example=True),
]


@pytest.mark.parametrize("derive", DERIVATIVES)
@pytest.mark.parametrize("persistent", [False, True])
def test_other_derivatives_work_under_a_limit(derive, persistent):
    x = tf.Variable(rng.standard_normal((5, 3)))

    def run(**options):
        with tf.GradientTape(persistent=persistent, **options) as tape:
            y = tf.reduce_sum(tf.sin(tf.exp(tf.tanh(x) * 0.5)) * x, axis=1)
        return [derive(tape, y, x) for _ in range(2 if persistent else 1)], tape

    limited, tape = run(memory_limit=250)
    assert tape._ledger.dropped > 0
    for a, b in zip(limited, run()[0], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


@pytest.mark.parametrize("name", ["hessian", "hvp"])
def test_second_derivatives_work_under_a_limit(name):
    x = tf.Variable(rng.standard_normal(20))

    def run(**options):
        with tf.GradientTape(**options) as tape:
            y = tf.reduce_sum(tf.sin(tf.exp(tf.tanh(x) * 0.5)) * x)
        more = [tf.ones_like(x)] if name == "hvp" else []
        return getattr(tape, name)(y, x, *more).numpy(), tape

    limited, tape = run(memory_limit=350)
    assert tape._ledger.dropped > 0
    np.testing.assert_allclose(limited, run()[0], rtol=1e-14)


def test_an_outer_tape_differentiates_through():
    x = tf.Variable(rng.standard_normal(20))

    def run(**options):
        with tf.GradientTape() as outer:
            with tf.GradientTape(**options) as inner:
                y = tf.reduce_sum(tf.sin(tf.exp(tf.tanh(x))))
            g = inner.gradient(y, x)
        return outer.gradient(g, x).numpy(), inner

    limited, inner = run(memory_limit=200)
    assert inner._ledger.dropped > 0
    np.testing.assert_array_equal(limited, run()[0])


# The `memory_limit` argument


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (1000, 1000),
        ("1000", 1000),
        ("2GB", 2 * 10**9),
        ("1.5 MiB", 3 << 19),
        ("64kb", 64_000),
        (np.int64(7), 7),
    ],
)
def test_limits_with_units(limit, expected):
    assert parse_bytes(limit) == expected


@pytest.mark.parametrize("limit", ["much", "2 apples", "-1", True, None, "1.2.3GB"])
def test_invalid_limits(limit):
    if limit is None:
        assert tf.GradientTape(memory_limit=None)._ledger is None
        return
    assert_raises(
        lambda: tf.GradientTape(memory_limit=limit),
        ValueError,
        "GradientTape: expected a number of bytes for `memory_limit`, or a string like '2GB' or "
        f"'500MiB'. Received: {limit!r}.",
    )


def test_a_limit_that_cannot_be_met_names_the_largest_arrays():
    (w,) = arrays((10, 10))
    constant = tf.constant(rng.standard_normal((10, 10)).astype(np.float32))
    with tf.GradientTape(memory_limit=300), pytest.raises(Exhausted) as caught:
        tf.exp(w) * constant
    first, second = str(caught.value).splitlines()

    assert first == (
        "GradientTape: the memory_limit of 300 bytes cannot be met. The tape holds 400 bytes that "
        "cannot be rematerialized. The largest arrays are:"
    )
    assert second.startswith("  400 bytes: float32[10, 10], an input, at ")
    assert "test_checkpointing.py:" in second


def test_lines_and_a_limit_cannot_be_combined():
    assert_raises(
        lambda: tf.GradientTape(lines=True, memory_limit="1GB"),
        ValueError,
        "GradientTape: `lines=True` keeps all values, so it cannot be combined with "
        "`memory_limit`.",
    )


def test_a_tape_that_is_entered_again_starts_over():
    (w,) = arrays((30, 30))
    tape = tf.GradientTape(memory_limit=2 * 3600)
    gradients = []
    for _ in range(2):
        with tape:
            y = tf.reduce_sum(tf.sin(tf.exp(tf.tanh(w))))
        gradients.append(tape.gradient(y, w).numpy())

    np.testing.assert_array_equal(*gradients)


def test_memory_reports_the_limit():
    (w,) = arrays((100, 100))
    with tf.GradientTape(memory_limit="85kB") as tape:
        h = w
        for _ in range(4):
            h = tf.tanh(h)
        y = tf.reduce_sum(h)
    del h
    before = tape.memory()
    tape.gradient(y, w)
    after = tape.memory()

    assert (before.limit, before.dropped, before.outputs, before.recomputed) == (
        85_000,
        80_000,
        80_000,
        0,
    )
    assert (after.dropped, after.held) == (80_000, 0)
    assert after.recomputed >= 2
    assert str(after).splitlines()[-3:-1] == [
        "  memory_limit           85.0 kB",
        "  dropped                80.0 kB",
    ]
    assert (
        str(after).splitlines()[-1].startswith(f"  recomputed             {after.recomputed} calls")
    )
