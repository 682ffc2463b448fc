"""Products with one BLAS thread give the same results and restore the process setting."""

import threading

import numpy as np
import pytest
import threadpoolctl

import retrograde as tf
from retrograde.fusion import blas_threads, blocks
from tests.interrupts import CallAtInstruction, interrupt

SHAPES = [
    (64, 64, 64),
    (70, 80, 90),
    (128, 128, 128),
    (400, 300, 500),
    (700, 300, 500),
    (300, 300, 800),
    (1, 9, 1),
]


def thread_counts():
    pools = threadpoolctl.threadpool_info()
    return [i["num_threads"] for i in pools if i["user_api"] == "blas" and "numpy" in i["filepath"]]


def matrices(*shape, dtype=np.float32):
    rng = np.random.default_rng(1)
    *stack, m, k, n = shape
    return (rng.standard_normal((*stack, *s)).astype(dtype) for s in ((m, k), (k, n)))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("transposed", [False, True])
def test_products(shape, transposed):
    a, b = matrices(*shape, dtype=np.float64)
    if transposed:
        a, b = b.T, a.T

    np.testing.assert_allclose(
        blas_threads.dot(a, b), np.einsum("ij,jk->ik", a, b), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("stack", [(3,), (200,), (2, 5), (0,)], ids=str)
def test_products_of_stacks(stack):
    a, b = matrices(*stack, 128, 64, 96, dtype=np.float64)
    expected = np.einsum("...ij,...jk->...ik", a, b)

    np.testing.assert_allclose(blas_threads.matmul_stacks(a, b), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        blas_threads.matmul_stacks(a, b[:1]),
        np.einsum("...ij,...jk->...ik", a, b[:1]),
        rtol=1e-9,
        atol=1e-9,
    )
    swapped = blas_threads.matmul_stacks(b.swapaxes(-1, -2), a.swapaxes(-1, -2))
    np.testing.assert_allclose(swapped, expected.swapaxes(-1, -2), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "shape", [(100, 90, 80), (128, 128, 128), (32, 128, 64, 96), (99, 128, 128, 96)], ids=str
)
def test_results_do_not_depend_on_the_number_of_threads(monkeypatch, shape):
    a, b = matrices(*shape)
    multiply = blas_threads.dot if a.ndim == 2 else blas_threads.matmul_stacks
    results = []
    for count in (1, 2, 3):
        monkeypatch.setattr(blocks, "threads", lambda count=count: count)
        with threadpoolctl.threadpool_limits(count, "blas"):
            results.append(multiply(a, b))

    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


@pytest.mark.parametrize("shape", [(30, 20), (1000, 600), (25_088, 64), (512, 4096)], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_replayed_sums_are_identical_to_eager_sums(shape, axis):
    x = tf.constant(np.random.default_rng(1).standard_normal(shape).astype(np.float32))
    expected = tf.reduce_sum(x, axis)
    f = tf.function(tf.reduce_sum)

    np.testing.assert_allclose(expected, x.numpy().sum(axis, np.float64), rtol=1e-4, atol=1e-3)
    for _ in range(3):
        np.testing.assert_array_equal(f(x, axis), expected)


@pytest.mark.parametrize("count", [1, 2])
def test_the_process_setting_is_restored(count):
    a, b = matrices(128, 128, 128)
    with threadpoolctl.threadpool_limits(count, "blas"):
        with blas_threads.ONE_THREAD:
            assert set(thread_counts()) <= {1}
        assert set(thread_counts()) <= {count}
        blas_threads.dot(a, b)
        assert set(thread_counts()) <= {count}


def test_the_setting_is_restored_if_a_product_fails_or_is_interrupted():
    a, b = matrices(128, 128, 128)
    with threadpoolctl.threadpool_limits(2, "blas"):
        with pytest.raises(ValueError):
            blas_threads.dot(a, b[1:])
        for n in range(1, 80):
            try:
                with CallAtInstruction(n, interrupt, [blas_threads.__file__], realistic=True):
                    blas_threads.dot(a, b)
            except KeyboardInterrupt:
                pass
            blas_threads.dot(a, b)
            assert set(thread_counts()) <= {2}


def test_threads_share_the_setting():
    a, b = matrices(128, 128, 128)
    expected, wrong = blas_threads.dot(a, b), []

    def work():
        for _ in range(50):
            if not np.array_equal(blas_threads.dot(a, b), expected):
                wrong.append(1)

    with threadpoolctl.threadpool_limits(2, "blas"):
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(thread_counts()) <= {2}
    assert not wrong
