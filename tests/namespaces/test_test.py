"""tf.test: the assertions of TestCase, and compute_gradient."""

import os
import random
import subprocess
import sys
import unittest

import numpy as np
import pytest

import retrograde as tf
from tests.namespaces.helpers import assert_raises

# compute_gradient


def jacobians(f, *xs, **options):
    return tf.test.compute_gradient(f, list(xs), **options)


@pytest.mark.parametrize(
    ("f", "xs", "expected"),
    [
        (lambda x: x * x, [[1.0, 2.0]], [[[2, 0], [0, 4]]]),
        (lambda x, y: x * y, [[1.0, 2.0], 3.0], [[[3, 0], [0, 3]], [[1], [2]]]),
        (lambda x: tf.reduce_sum(x * x), [[[1.0], [2.0]]], [[[2, 4]]]),
        (lambda x: tf.gather(x, [0]), [[1.0, 2.0]], [[[1, 0]]]),
        (lambda x: x * x, [tf.constant([1 + 2j])], [[[2, -4], [4, 2]]]),
        (lambda x: tf.math.conj(x) * x, [tf.constant([1 + 2j])], [[[2, 4], [0, 0]]]),
        (tf.math.real, [tf.constant([1 + 2j])], [[[1, 0]]]),
        (lambda x: tf.complex(x, 2.0 * x), [[1.0]], [[[1], [2]]]),
        (lambda x: x * x, [tf.Variable([3.0])], [[[6]]]),
    ],
)
def test_gradient_and_finite_differences_give_the_jacobian(f, xs, expected):
    exact, numerical = jacobians(f, *xs)

    for jacobian, from_tape, from_differences in zip(expected, exact, numerical, strict=True):
        np.testing.assert_allclose(from_tape, jacobian, rtol=1e-6)
        np.testing.assert_allclose(from_differences, jacobian, rtol=1e-3, atol=1e-6)


def test_a_jacobian_has_the_dtype_of_the_argument_and_may_be_empty():
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        exact, numerical = jacobians(lambda x: x * x, tf.constant([1.0], dtype))
        assert exact[0].dtype == numerical[0].dtype == tf.as_dtype(dtype).numpy_dtype
    exact, numerical = jacobians(lambda x: x * x, tf.zeros([0]))
    assert exact[0].shape == numerical[0].shape == (0, 0)


def test_a_wrong_gradient_differs_from_the_numerical_one():
    exact, numerical = jacobians(tf.stop_gradient, [1.0])

    assert exact[0].tolist() == [[0.0]]
    assert numerical[0].tolist() == [[1.0]]


def test_delta_is_the_step_of_the_differences():
    _, numerical = jacobians(lambda x: x**3, tf.constant([1.0], tf.float64), delta=0.1)

    np.testing.assert_allclose(numerical[0], [[3.01]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: tf.test.compute_gradient(tf.square, 3.0),
            "`x` must be a list or tuple of values convertible to a Tensor (arguments to `f`), not "
            "a <class 'float'>",
        ),
        (
            lambda: jacobians(tf.square, 1),
            "compute_gradient: argument 0 has dtype int32. Expected a floating-point or complex "
            "dtype.",
        ),
        (
            lambda: jacobians(lambda _: 3, 1.0),
            "compute_gradient: expected `f` to return one tensor. Received: 3.",
        ),
    ],
)
def test_error_message(call, message):
    assert_raises(call, ValueError, message)


# TestCase

CASE = tf.test.TestCase()
SLICES = tf.IndexedSlices(tf.constant([1.0]), tf.constant([1]), tf.constant([2]))


@pytest.mark.parametrize(
    ("name", "passing", "failing"),
    [
        ("assertAllEqual", ([1, 2], tf.constant([1, 2])), ([1, 2], [1, 3])),
        ("assertAllEqual", (np.nan, np.nan), ([1, 2], [1, 2, 3])),
        ("assertAllEqual", (["a"], tf.constant(["a"])), (["a"], [b"b"])),
        ("assertAllEqual", (tf.constant([1.0], tf.bfloat16), [1.0]), ([1], [[1]])),
        ("assertAllEqual", (SLICES, [0.0, 1.0]), (SLICES, [0.0, 2.0])),
        ("assertNotAllEqual", ([1, 2], [1, 3]), ([1, 2], tf.constant([1, 2]))),
        ("assertAllClose", ([1.0, 2.0], [1.0, 2.0000001]), ([1.0, 2.0], [1.0, 2.1])),
        ("assertAllClose", (tf.Variable(1.0), 1.0), (tf.constant(1.0), np.nan)),
        ("assertAllClose", (np.nan, np.nan), ([1.0], [1.0, 2.0])),
        ("assertAllClose", ({"a": 1.0}, {"a": tf.constant(1.0)}), ({"a": 1.0}, {"b": 1.0})),
        ("assertAllClose", ({"a": [1.0]}, {"a": [1.0]}), ({"a": 1.0}, {"a": [1.0]})),
        ("assertAllClose", ([[1.0], [2.0, 3.0]], [[1.0], [2.0, 3.0]]), ([[1.0]], [[1.0], [2.0]])),
        ("assertAllClose", ([tf.ones([2]), 3.0], [[1.0, 1.0], 3.0]), ({"a": 1.0}, 1.0)),
        ("assertAllClose", (tf.ones([2, 1]), [[1.0], [1.0]]), (tf.ones([2, 1]), [[1.0], [2.0]])),
        ("assertAllClose", (1.0, 1.1, 0.2), (tf.constant(1.0, tf.bfloat16), 1.01)),
        ("assertNotAllClose", ([1.0], [1.1]), ([1.0], [1.0])),
        (
            "assertAllCloseAccordingToType",
            (tf.constant(1.0, tf.float16), 1.0005),
            (tf.constant(1.0), 1.0005),
        ),
        (
            "assertAllCloseAccordingToType",
            (tf.constant(1.0, tf.bfloat16), 1.005),
            (tf.constant(1.0, tf.float16), 1.005),
        ),
        ("assertAllGreater", (tf.constant([1, 2]), 0), ([1, 2], 1)),
        ("assertAllGreaterEqual", ([1, 2], 1), ([1, 2], 2)),
        ("assertAllLess", ([1, 2], 3), ([1, 2], 2)),
        ("assertAllLessEqual", ([1, 2], 2), ([1, 2], 1)),
        ("assertAllInRange", (tf.constant([1, 2]), 1, 2), ([1, 2], 1, 2, True)),
        ("assertAllInRange", (1.5, 1, 2), (np.nan, 1, 2)),
        ("assertAllInSet", ([1, 2, 1], {1, 2}), (tf.constant([1, 2]), [1])),
        ("assertNear", (1.0, 1.1, 0.2), (1.0, 1.3, 0.2)),
        ("assertArrayNear", ([1.0], [1.1], 0.2), ([1.0], [1.0, 2.0], 0.2)),
        ("assertNDArrayNear", (np.ones(2), np.ones(2), 0.1), (np.ones(2), np.zeros(2), 0.1)),
        ("assertShapeEqual", (np.ones(2), tf.ones([2])), (np.ones(2), tf.ones([3]))),
        ("assertDTypeEqual", (tf.ones([2]), np.float32), (tf.ones([2]), tf.float64)),
        ("assertDeviceEqual", ("/cpu:0", "/device:CPU:0"), ("/cpu:0", "/cpu:1")),
        ("assertStartsWith", ("abc", "ab"), ("abc", "b")),
        ("assertLen", ([1, 2], 2), ([1, 2], 3)),
        ("assertEmpty", ([],), ([1],)),
        ("assertNotEmpty", ([1],), ([],)),
    ],
)
def test_assertion(name, passing, failing):
    check = getattr(CASE, name)

    check(*passing)
    with pytest.raises(AssertionError):
        check(*failing)


def test_all_in_range_reports_the_indices_outside():
    assert_raises(
        lambda: CASE.assertAllInRange([1, 2], 1, 2, open_upper_bound=True),
        AssertionError,
        "1 of the 2 element(s) are outside the range [1, 2). Their indices: [(1,)].",
    )


def test_assert_raises_matches_patterns_and_predicates():
    with CASE.assertRaisesOpError("shapes"):
        tf.ones([2]) + tf.ones([3])
    with CASE.assertRaisesWithPredicateMatch(ValueError, lambda e: "x" in str(e)):
        raise ValueError("x")
    with pytest.raises(AssertionError), CASE.assertRaisesOpError("no such words"):
        tf.ones([2]) + tf.ones([3])
    with pytest.raises(AssertionError), CASE.assertRaisesOpError("nothing is raised"):
        pass


def test_evaluate():
    result = CASE.evaluate([tf.constant(1), {"a": tf.Variable([2.0]), "b": None}])
    assert result == [1, {"a": [2.0], "b": None}]
    assert type(result[0]) is np.int32
    assert CASE.evaluate(lambda: tf.constant(1)) == 1
    assert CASE.evaluate(SLICES).values.tolist() == [1.0]
    with CASE.session() as session, CASE.cached_session():
        assert session.run(tf.constant(3)) == 3
    assert_raises(
        lambda: CASE.evaluate("a"), ValueError, "Unsupported type 'str'. Expected a tensor."
    )


def test_test_cases_set_seeds_and_have_temporary_directories():
    drawn, directories = [], []

    class Example(tf.test.TestCase):
        def test_one(self):
            drawn.append((random.random(), np.random.rand(), float(tf.random.uniform([]))))
            directories.append(self.get_temp_dir())
            assert os.path.isdir(self.get_temp_dir())

        @tf.test.disable_with_predicate(lambda: True, "not today")
        def test_skipped(self):
            raise AssertionError

    for _ in range(2):
        result = unittest.TestResult()
        unittest.defaultTestLoader.loadTestsFromTestCase(Example).run(result)
        assert (result.testsRun, len(result.skipped)) == (2, 1)
        assert result.wasSuccessful()
    assert drawn[0] == drawn[1]
    assert not any(map(os.path.exists, directories))


def test_main_runs_the_tests_of_the_main_program():
    program = (
        "import retrograde as tf\n"
        "class T(tf.test.TestCase):\n"
        "    def test_it(self):\n"
        "        self.assertAllEqual(tf.constant([1]), [1])\n"
        "tf.test.main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )

    assert result.returncode == 0
    assert "Ran 1 test" in result.stderr


def test_build_and_device_information():
    assert tf.test.gpu_device_name() == ""
    assert tf.test.is_built_with_xla()
    assert not tf.test.is_gpu_available()
    assert not tf.test.is_built_with_cuda()
    assert not tf.test.is_built_with_rocm()
    assert not tf.test.is_built_with_gpu_support()
    assert not tf.test.is_cpu_target_available("banana")
    assert sum(map(tf.test.is_cpu_target_available, ("x86", "aarch64", "ppc"))) <= 1


def test_the_module_is_imported_lazily():
    program = (
        "import sys, retrograde as tf; before = 'unittest' in sys.modules; tf.test.main; "
        "print(before, 'unittest' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )

    assert result.stdout.split() == ["False", "True"]
    with pytest.raises(AttributeError, match="module 'retrograde' has no attribute 'banana'"):
        _ = tf.banana
