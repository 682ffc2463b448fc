"""Tests that XLA's convolutions equal NumPy's, in each of the forms that are chosen on CPUs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from retrograde.ops import convolution
from retrograde.ops._windows import Windows
from retrograde.ops._xla_convolution import _Convolution

# (space, windows, groups, channels of a group, results of a group), and the form
CASES = {
    "depthwise": ((6, 5), Windows((3, 2), (1, 2), ((1, 1), (0, 1)), (1, 1)), 3, 1, 1),
    "multiplied": ((6, 5), Windows((3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1)), 3, 1, 2),
    "one result": ((7,), Windows((3,), (2,), ((2, 0),), (2,)), 2, 3, 1),
    "large filter": ((2, 2), Windows((3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1)), 1, 4, 5),
    "large and dilated": ((3,), Windows((4,), (2,), ((4, 5),), (2,)), 1, 2, 3),
    "grouped": ((5, 5), Windows((2, 2), (1, 1), ((0, 0), (0, 0)), (1, 1)), 2, 2, 2),
    "plain": ((5, 5), Windows((3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1)), 1, 2, 3),
}
FORMS = {
    "depthwise": "by_taps",
    "multiplied": "by_taps",
    "one result": "by_taps",
    "large filter": "by_product",
    "large and dilated": "by_product",
    "grouped": "general",
    "plain": "general",
}


def arrays(space, windows, groups, channels, results, dtype=np.float64):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, *space, groups * channels))
    w = rng.standard_normal((*windows.size, channels, groups * results))
    g = rng.standard_normal((2, *windows.positions(space), groups * results))
    return [a.astype(dtype) for a in (x, w, g)]


def kernels(case, dtype=np.float64):
    """Yields each kernel with its arrays and attributes."""
    space, windows, groups, *_ = case
    x, w, g = arrays(*case, dtype)
    attrs = {"windows": windows, "groups": groups}
    yield convolution._convolve_kernel, (x, w), attrs
    yield convolution._transposed_kernel, (g, w), attrs | {"space": space}
    yield convolution._filter_kernel, (x, g), attrs


@pytest.mark.parametrize("name", CASES)
def test_every_form_equals_numpy(name):
    for kernel, inputs, attrs in kernels(CASES[name]):
        expected = kernel(np, *inputs, **attrs)
        with jax.enable_x64(True):
            actual = jax.jit(lambda *xs, k=kernel, a=attrs: k(jnp, *xs, **a))(*inputs)
        assert actual.dtype == expected.dtype
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", FORMS)
def test_the_form_depends_on_groups_and_sizes(name):
    _, windows, groups, *_ = CASES[name]
    x, w, _ = map(jnp.asarray, arrays(*CASES[name], np.float32))
    form = _Convolution(windows, groups, (1,) * windows.ndim).on_cpu(x, w)
    assert form.__name__ == FORMS[name]


def test_16_bit_sums_are_rounded_once():
    case = CASES["depthwise"]
    for kernel, inputs, attrs in kernels(case, np.float16):
        wide = kernel(np, *[x.astype(np.float64) for x in inputs], **attrs)
        actual = jax.jit(lambda *xs, k=kernel, a=attrs: k(jnp, *xs, **a))(*inputs)
        assert actual.dtype == np.float16
        np.testing.assert_allclose(actual, wide, rtol=1e-3, atol=1e-3)
