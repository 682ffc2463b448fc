"""Sums computed as products with ones agree with NumPy's sums."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrograde.ops._sums import as_product, ones, sum_floats

FLOATS = [np.dtype(np.float32), np.dtype(np.float64)]


@st.composite
def sums(draw):
    shape = tuple(draw(st.lists(st.integers(0, 5), min_size=1, max_size=4)))
    axis = draw(st.sets(st.integers(0, len(shape) - 1)))
    return shape, tuple(sorted(axis)), draw(st.booleans()), draw(st.sampled_from(FLOATS))


@given(sums())
def test_all_axes_of_all_shapes(case):
    shape, axis, keepdims, dtype = case
    x = np.arange(np.prod(shape), dtype=dtype).reshape(shape)

    y = sum_floats(x, dtype, axis, keepdims)

    expected = np.add.reduce(x, axis=axis, keepdims=keepdims)  # integers: no rounding
    assert (y.shape, y.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("axis", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("layout", ["transposed", "strided", "reversed"])
def test_other_memory_layouts(axis, layout):
    x = np.arange(48.0).reshape(6, 8)
    x = {"transposed": x.T, "strided": x[::2, ::2], "reversed": x[::-1, ::-1]}[layout]

    np.testing.assert_array_equal(sum_floats(x, x.dtype, axis, False), np.add.reduce(x, axis=axis))


PAIRS = list(itertools.combinations([1.0, np.inf, -np.inf, np.nan], 2))


@pytest.mark.parametrize("values", PAIRS)
@pytest.mark.parametrize("axis", [(0,), (1,), (0, 1)])
def test_non_finite_values_are_propagated(values, axis):
    x = np.ones((5, 7), np.float32)
    x[2, 3], x[4, 3] = values
    with np.errstate(invalid="ignore"):
        expected = np.add.reduce(x, axis=axis)
        np.testing.assert_array_equal(sum_floats(x, x.dtype, axis, False), expected)


def test_long_rows_use_pairwise_summation():
    x = np.random.default_rng(0).random((2, 1_000_000), np.float32)

    y = sum_floats(x, x.dtype, (1,), False)

    np.testing.assert_allclose(y, np.add.reduce(x, axis=1, dtype=np.float64), rtol=1e-6)
    assert as_product(x.shape, x.dtype, (1,), False) is None


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(4096, 8), (300, 300), (1000, 4, 5)])
def test_products_are_as_precise_as_sums(shape, dtype):
    x = np.random.default_rng(1).standard_normal(shape).astype(dtype)
    exact = np.add.reduce(x, axis=0, dtype=np.longdouble)
    scale = np.finfo(dtype).eps * np.abs(x).sum(axis=0)

    assert np.all(np.abs(sum_floats(x, dtype, (0,), False) - exact) <= scale)


def test_the_shared_ones_are_read_only():
    row = ones(3, "f")

    with pytest.raises(ValueError, match="read-only"):
        row[0] = 2
    assert row.tolist() == [1.0, 1.0, 1.0]
    assert ones(2000, "f").tolist() == [1.0] * 2000
