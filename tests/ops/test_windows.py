"""Convolution and pooling on NumPy with random windows, compared with plain loops."""

import numpy as np
import pytest
import threadpoolctl

from retrograde.fusion import blocks
from retrograde.ops import _numpy_convolution, convolution, pooling
from retrograde.ops._windows import Windows
from tests.ops.cases import convolution as plain_convolution
from tests.ops.cases import pooling as plain_pooling

SEEDS = range(40)


def draw(rng, low, high, count):
    return tuple(int(n) for n in rng.integers(low, high, count))


def random_windows(rng, ndim):
    size, strides, dilations = (draw(rng, 1, high, ndim) for high in (5, 4, 4))
    padding = tuple(draw(rng, 0, 4, 2) for _ in range(ndim))
    return Windows(size, strides, padding, dilations)


def share_images(monkeypatch):
    """Makes threads share the images of small convolutions."""
    for name in ("MIN_SHARED_CONVOLUTION_WORK", "MIN_CONVOLUTION_SHARE_WORK", "MIN_PRODUCT_ROWS"):
        monkeypatch.setattr(f"retrograde.ops._numpy_convolution.{name}", 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_convolutions_over_any_windows_agree_with_loops(seed, monkeypatch):
    rng = np.random.default_rng([1, seed])
    ndim, groups, channels, results = draw(rng, 1, 4, 4)
    for name in ("MAX_LINES_BYTES", "MAX_TAPS_BYTES"):  # one image at a time, a few, or all
        monkeypatch.setattr(
            f"retrograde.ops._numpy_convolution.{name}", int(rng.choice([1, 2000, 1 << 20]))
        )
    if seed % 2:
        share_images(monkeypatch)
    windows, space = random_windows(rng, ndim), draw(rng, 1, 7, ndim)
    x = rng.standard_normal((3, *space, groups * channels))
    w = rng.standard_normal((*windows.size, channels, groups * results))
    g = rng.standard_normal((3, *windows.positions(space), groups * results))
    attrs = {"windows": windows, "groups": groups}

    for primitive, plain, inputs, more in [
        (convolution.convolve, plain_convolution.convolve, (x, w), {}),
        (
            convolution.convolve_transposed,
            plain_convolution.convolve_transpose,
            (g, w),
            {"space": space},
        ),
        (convolution.convolve_filter, plain_convolution.filter_gradient, (x, g), {}),
    ]:
        actual = primitive.kernel(np, *inputs, **attrs, **more)
        np.testing.assert_allclose(actual, plain(*inputs, **attrs, **more), atol=1e-11)


@pytest.mark.parametrize("size", [1, 3])
def test_convolutions_do_not_depend_on_the_number_of_threads(monkeypatch, size):
    rng = np.random.default_rng(size)
    windows = Windows((size, size), (1, 1), ((size // 2,) * 2,) * 2, (1, 1))
    x, g = (rng.standard_normal((24, 28, 28, n)).astype(np.float32) for n in (64, 48))
    w = rng.standard_normal((size, size, 64, 48)).astype(np.float32)
    attrs = {"windows": windows, "groups": 1}
    _, is_shared = _numpy_convolution._Lines(x, windows, all_taps=False).parts(48)
    assert is_shared

    results = []
    for count in (1, 2, 3):
        monkeypatch.setattr(blocks, "threads", lambda count=count: count)
        with threadpoolctl.threadpool_limits(count, "blas"):
            results.append(
                [
                    convolution.convolve.kernel(np, x, w, **attrs),
                    convolution.convolve_transposed.kernel(np, g, w, space=(28, 28), **attrs),
                    convolution.convolve_filter.kernel(np, x, g, **attrs),
                ]
            )
    for others in zip(*results, strict=True):
        np.testing.assert_array_equal(others[0], others[1])
        np.testing.assert_array_equal(others[0], others[2])


@pytest.mark.parametrize("seed", SEEDS)
def test_pools_over_any_windows_agree_with_loops_also_at_ties(seed):
    rng = np.random.default_rng([2, seed])
    (ndim,) = draw(rng, 1, 4, 1)
    drawn, space = random_windows(rng, ndim), draw(rng, 4, 8, ndim)
    padding = tuple((min(low, k - 1), min(high, k - 1))
                    for k, (low, high) in zip(drawn.size, drawn.padding, strict=True))  # fmt: skip
    windows = drawn._replace(padding=padding, dilations=(1,) * ndim)
    x = rng.integers(-2, 3, (2, *space, 2)).astype(np.float64)
    g = rng.standard_normal((2, *windows.positions(space), 2))

    for name, inputs in [
        ("max_pool_gather", (-x, x)),
        ("max_pool_scatter", (g, x)),
        ("max_pool_index", (x,)),
        ("average_pool", (x,)),
    ]:
        actual = getattr(pooling, name).kernel(np, *inputs, windows=windows)
        expected = getattr(plain_pooling, name)(*inputs, windows=windows)
        np.testing.assert_allclose(actual, expected, atol=1e-12)
