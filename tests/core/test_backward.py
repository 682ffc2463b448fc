"""Tests the backward pass: sparse gradients, skipped rules, sums of cotangents."""

import numpy as np
import pytest

import retrograde as tf
from retrograde.core.apply import LARGE_ARRAY_SIZE, PRIMITIVES, Primitive, apply

# IndexedSlices


@pytest.fixture
def table():
    return tf.Variable([[1.0], [2.0], [3.0]])


def dense(gradient):
    return tf.convert_to_tensor(gradient).numpy().ravel().tolist()


def test_the_gradient_of_gather_is_indexed_slices(table):
    with tf.GradientTape() as tape:
        y = tf.gather(table, [2, 0, 2]) ** 2

    gradient = tape.gradient(y, table)

    assert isinstance(gradient, tf.IndexedSlices)
    assert gradient.indices.numpy().tolist() == [2, 0, 2]
    assert gradient.values.numpy().tolist() == [[6.0], [2.0], [6.0]]
    assert gradient.dense_shape.numpy().tolist() == [3, 1]
    assert gradient.shape == [3, 1]
    assert gradient.dtype is tf.float32


def test_the_sum_of_indexed_slices_is_indexed_slices(table):
    with tf.GradientTape() as tape:
        y = tf.gather(table, [2]) + tf.gather(table, [0]) + 10.0 * tf.gather(table, [2])

    gradient = tape.gradient(y, table)

    assert isinstance(gradient, tf.IndexedSlices)
    assert sorted(gradient.indices.numpy().tolist()) == [0, 2, 2]
    assert dense(gradient) == [1.0, 0.0, 11.0]


@pytest.mark.parametrize("first", [True, False])
def test_the_sum_of_indexed_slices_and_a_dense_gradient_is_dense(table, first):
    with tf.GradientTape() as tape:
        parts = [tf.reduce_sum(tf.gather(table, [0, 2])), tf.reduce_sum(table * table)]
        y = parts[0] + parts[1] if first else parts[1] + parts[0]

    gradient = tape.gradient(y, table)

    assert isinstance(gradient, tf.Tensor)
    assert dense(gradient) == [3.0, 4.0, 7.0]


def test_indexed_slices_become_dense_in_the_next_gradient_rule(table):
    with tf.GradientTape() as tape:
        doubled = table * 2.0
        y = tf.gather(doubled, [0, 2])

    gradient_of_table, gradient_of_doubled = tape.gradient(y, [table, doubled])

    assert isinstance(gradient_of_table, tf.Tensor)
    assert dense(gradient_of_table) == [2.0, 0.0, 2.0]
    assert isinstance(gradient_of_doubled, tf.IndexedSlices)


def test_second_derivative_of_gather(table):
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(tf.gather(table, [0, 2, 2]) ** 3)
        first = inner.gradient(y, table)
        dense_first = tf.convert_to_tensor(first)

    assert isinstance(first, tf.IndexedSlices)
    assert dense(first) == [3.0, 0.0, 54.0]
    assert dense(outer.gradient(dense_first, table)) == [6.0, 0.0, 36.0]
    assert dense(outer.gradient(first.values, table)) == [6.0, 0.0, 36.0]


def test_gradient_of_gather_from_a_watched_tensor():
    x = tf.constant([1.0, 2.0, 3.0])

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.gather(x, [1, 1])

    assert dense(tape.gradient(y, x)) == [0.0, 2.0, 0.0]


# Rules run only when their results are needed


@pytest.fixture
def calls():
    """Returns the list of input positions for which the vjp rule of `product` ran."""
    return []


@pytest.fixture
def product(calls):
    def rule_for(position):
        def rule(g, _y, x1, x2):
            calls.append(position)
            return g * (x2, x1)[position]

        return rule

    primitive = Primitive(
        "test product",
        lambda xp, x1, x2: xp.multiply(x1, x2),
        vjps=(rule_for(0), rule_for(1)),
        batch=None,
    )
    yield lambda x1, x2: apply(primitive, (tf.convert_to_tensor(x1), tf.convert_to_tensor(x2)))
    del PRIMITIVES[primitive.name]


def test_rules_run_only_for_the_requested_sources(product, calls):
    x, w = tf.Variable(2.0), tf.Variable(3.0)

    with tf.GradientTape() as tape:
        y = product(x, w)

    assert float(tape.gradient(y, w)) == 2.0
    assert calls == [1]


def test_rules_do_not_run_for_constants(product, calls):
    w = tf.Variable(3.0)

    with tf.GradientTape() as tape:
        y = product(tf.constant(2.0), w)

    assert float(tape.gradient(y, w)) == 2.0
    assert calls == [1]


def test_the_backward_pass_skips_branches_without_a_target_or_a_source(product, calls):
    x, w = tf.Variable(2.0), tf.Variable(3.0)

    with tf.GradientTape() as tape:
        product(product(x, w), w)
        y = product(x, x)
        z = y + product(w, w)

    assert float(tape.gradient(z, x)) == 4.0
    assert calls == [0, 1]


def test_a_rule_runs_once_if_its_output_is_used_several_times(product, calls):
    x = tf.Variable(2.0)

    with tf.GradientTape() as tape:
        y = product(x, tf.constant(3.0))
        z = y * y + y + y

    assert float(tape.gradient(z, x)) == 42.0
    assert calls == [0]


# Large cotangents are summed in the memory of the first one, unless something else references it


def large(seed):
    return tf.constant(
        np.random.default_rng(seed).uniform(-1.0, 1.0, LARGE_ARRAY_SIZE).astype(np.float32)
    )


def record_add_outputs(monkeypatch):
    """Returns a list that collects the address of each `out` argument of add, or False."""
    out_addresses = []
    original = PRIMITIVES["add"].on_many

    def add(a, b, out=None):
        out_addresses.append(out is not None and out.ctypes.data)
        return original(a, b, out=out)

    monkeypatch.setattr(PRIMITIVES["add"], "on_many", add)
    return out_addresses


def test_large_cotangents_are_summed_in_place(monkeypatch):
    x = large(0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.sin(x * x) * tf.exp(x)
    out_addresses = record_add_outputs(monkeypatch)

    gradient = tape.gradient(y, x)

    assert out_addresses == [gradient._array.ctypes.data] * 2
    x64 = x.numpy().astype(np.float64)
    expected = np.exp(x64) * (np.sin(x64 * x64) + 2 * x64 * np.cos(x64 * x64))
    np.testing.assert_allclose(gradient.numpy(), expected, atol=1e-5)


def test_cotangents_that_are_referenced_elsewhere_are_not_modified():
    x, weights = large(0), large(1)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        e = tf.exp(x)
        targets = [tf.sin(x), tf.identity(x), tf.reduce_sum(e)]
    referenced = [weights, e]
    before = [t.numpy().copy() for t in referenced]

    first, second = (
        tape.gradient(targets, x, output_gradients=[weights, weights, tf.constant(1.0)])
        for _ in range(2)
    )

    np.testing.assert_array_equal(first.numpy(), second.numpy())
    expected = weights * tf.cos(x) + weights + e
    np.testing.assert_allclose(first.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)
    for t, array in zip(referenced, before, strict=True):
        np.testing.assert_array_equal(t.numpy(), array)
