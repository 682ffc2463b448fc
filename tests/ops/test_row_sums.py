"""Sums of rows agree with NumPy's `add.at`."""

import numpy as np
import pytest

import retrograde as tf
from retrograde.ops import _row_sums as rows

SHAPES = {
    "rows": ((1000,), (5,)),
    "matrices": ((300,), (3, 4)),
    "indices_in_a_matrix": ((20, 30), (7,)),
}


def random_rows(kind, dtype="float32", index_dtype="int32"):
    rng = np.random.default_rng(3)
    indices, rest = SHAPES[kind]
    values = rng.normal(size=(*indices, *rest)).astype(dtype)
    return values, rng.integers(0, 40, indices).astype(index_dtype)


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("index_dtype", ["int16", "int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_sums_are_bit_for_bit_identical(kind, dtype, index_dtype):
    values, indices = random_rows(kind, dtype, index_dtype)
    expected = np.zeros((40, *SHAPES[kind][1]), dtype)
    np.add.at(expected, indices, values)

    assert rows.is_faster(values, indices)
    actual = rows.sum_rows(values, indices, 40)

    assert actual.dtype == dtype
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize(("method", "sign"), [("scatter_add", 1), ("scatter_sub", -1)])
def test_scatter_methods_of_variables(kind, method, sign):
    values, indices = random_rows(kind, "float64")
    start = np.random.default_rng(4).normal(size=(40, *SHAPES[kind][1]))
    variable = tf.Variable(start)
    getattr(variable, method)(tf.IndexedSlices(tf.constant(values), tf.constant(indices)))

    expected = start.copy()
    np.add.at(expected, indices, sign * values)
    np.testing.assert_allclose(variable, expected, rtol=1e-13, atol=1e-13)


def test_other_rows_are_not_changed():
    array = np.full((5, 3000), -0.0)
    rows.add_at(array, np.array([1, 3]), np.zeros((2, 3000)))

    assert np.signbit(array[[0, 2, 4]]).all()


@pytest.mark.parametrize("size", [1000, 100_000])
def test_adding_to_small_and_large_tables(size):
    values, indices = np.ones((500, 8)), np.arange(500) * 7 % 90 * (size // 100)
    array = np.zeros((size, 8))
    rows.add_at(array, indices, values)

    np.testing.assert_array_equal(array[:, 3], np.bincount(indices, minlength=size))


def test_numpy_handles_few_rows_integers_and_broadcasts():
    ones = np.ones((2000, 2))
    assert not rows.is_faster(ones[:3], np.zeros(3, int))
    assert not rows.is_faster(ones.astype(int), np.zeros(2000, int))
    assert not rows.is_faster(np.ones(4000), np.zeros(4000, int))
    array = np.zeros((3, 2))
    rows.add_at(array, np.zeros(2000, int), np.float64(1.0))
    rows.subtract_at(array, np.ones(2000, int), ones)

    assert array.tolist() == [[2000, 2000], [-2000, -2000], [0, 0]]
