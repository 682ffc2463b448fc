"""Tests batched values, which have the shape of one example and hold many."""

import functools

import numpy as np
import pytest

import retrograde as tf
from retrograde.core import namespaces
from retrograde.core.batching import Batched, CannotBatch, batching, innermost
from retrograde.ops.elementary import exp
from tests.threads import run_concurrently

VALUES = np.arange(6.0).reshape(3, 2)


def test_a_batch_looks_like_one_example():
    with batching(3) as level:
        x = Batched(VALUES, level)

    assert (x.shape, x.ndim, x.size, x.dtype) == ((2,), 1, 2, np.dtype("float64"))
    assert x.nbytes == VALUES.nbytes
    assert repr(x) == "<3 examples of shape (2,), float64>"
    assert tf.Tensor(x).shape == (2,)


OPERATORS = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "power": lambda x, y: x**y,
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
    "equal": lambda x, y: x == y,
    "not_equal": lambda x, y: x != y,
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("other", [2.0, np.float64(2.0), np.array([3.0, 2.0])], ids=repr)
def test_operators_match_numpy_with_the_batch_on_either_side(name, other):
    operator = OPERATORS[name]
    with batching(3) as level:
        x = Batched(VALUES + 1, level)
        right, left = operator(x, other), operator(other, x)

    np.testing.assert_array_equal(right.value, operator(VALUES + 1, other))
    np.testing.assert_array_equal(left.value, operator(other, VALUES + 1))


def test_unary_and_bitwise_operators():
    with batching(3) as level:
        x = Batched(VALUES, level)
        mask = Batched(VALUES > 2, level)
        assert (-x).value.tolist() == (-VALUES).tolist()
        assert abs(-x).value.tolist() == VALUES.tolist()
        assert (~mask).value.tolist() == (VALUES <= 2).tolist()
        assert (mask & (VALUES[0] > 0)).value.tolist() == ((VALUES > 2) & (VALUES[0] > 0)).tolist()
        assert (mask | mask).value.tolist() == (mask ^ (~mask & mask)).value.tolist()


def test_the_innermost_level_is_the_last_one_entered():
    with batching(3) as outer, batching(2) as inner:
        a, b = Batched(VALUES, outer), Batched(np.ones((2, 2)), inner)

        assert innermost([np.ones(2), a]) is outer
        assert innermost([a, b, a]) is inner
        assert innermost([np.ones(2)]) is None
        product = a * b
        assert product.level is inner
        assert product.value.level is outer
        assert product.value.value.shape == (3, 2, 2)


def test_batches_cannot_be_converted_to_numpy_or_python():
    with batching(3) as level:
        x = Batched(VALUES, level)

        for convert in (np.asarray, np.sum, np.spacing, bool, float, int, len, list, "{:f}".format):
            with pytest.raises(CannotBatch):
                convert(x)
        with pytest.raises(CannotBatch, match=r"A value of shape \(2,\) differs"):
            x.tolist()


def test_a_primitive_without_a_batch_rule_raises(monkeypatch):
    monkeypatch.setattr(exp, "batch", None)
    with batching(3) as level, pytest.raises(CannotBatch, match="exp cannot run on a batch"):
        tf.exp(tf.Tensor(Batched(VALUES, level)))


def test_foreign_arrays_are_checked_for_only_while_batching():
    before = namespaces.foreign
    with batching(3):
        assert namespaces.foreign
        with pytest.raises(KeyError), batching(2):
            raise KeyError
        assert namespaces.foreign
    assert namespaces.foreign == before


def test_threads_batch_independently():
    x, results = tf.constant(np.linspace(0.1, 1, 20)), {}

    def work(k):
        for _ in range(20):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.sin(x) * k
            results[k] = np.diag(tape.jacobian(y, x))

    run_concurrently(*[functools.partial(work, k) for k in range(4)])

    for k in range(4):
        np.testing.assert_allclose(results[k], np.cos(x) * k, rtol=1e-12)
