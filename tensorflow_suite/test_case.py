"""The parts of `test_util` and `googletest` that TensorFlow's tests use, in eager mode.

Error messages are not compared, because retrograde has its own messages.
"""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
import types
import unittest
from unittest import mock

import numpy as np
from absl.testing import parameterized

from tensorflow_suite.absent import Absent, NotApplicable, not_applicable
from tensorflow_suite.modules import TESTS, tf


class EagerSession:
    """A session whose `run` evaluates eager tensors."""

    def __init__(self, case):
        self.case = case
        self.graph = Absent("Graph", "of graph mode")

    def run(self, fetches, *arguments, feed_dict=None, **keywords):
        """Evaluates `fetches`."""
        if feed_dict or arguments:
            not_applicable()
        return self.case.evaluate(fetches)

    def close(self):
        """Does nothing."""

    def as_default(self):
        """Returns a context manager."""
        return contextlib.nullcontext(self)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return not_applicable()


class TestCase(tf.test.TestCase):
    """The library's test case, with the methods of TensorFlow's internal one."""

    @contextlib.contextmanager
    def session(self, *arguments, **keywords):
        """Yields a session for eager tensors."""
        yield EagerSession(self)

    cached_session = test_session = session

    def assertRaisesRegex(self, error, regex, *arguments, **keywords):
        """Compares only the class."""
        return self.assertRaises(error, *arguments, **keywords)

    assertRaisesRegexp = assertRaisesWithLiteralMatch = assertRaisesRegex

    def assertRaisesWithPredicateMatch(self, error, predicate=None):
        """Compares only the class."""
        return self.assertRaises(error)

    def assertRaisesOpError(self, *arguments):
        """Compares only the class."""
        return self.assertRaises((tf.errors.OpError, ValueError))

    def assertRaisesIncompatibleShapesError(self, error=None, *arguments, **keywords):
        """Compares only the class."""
        return self.assertRaises(error or tf.errors.InvalidArgumentError)

    def assertWarnsRegex(self, category, regex, *arguments, **keywords):
        """Compares only the category."""
        return self.assertWarns(category, *arguments, **keywords)

    @contextlib.contextmanager
    def assertErrorHasMessage(self, *arguments):
        """Checks nothing."""
        yield

    def captureWritesToStream(self, stream):
        """Skips the test: it needs the log of TensorFlow's runtime."""
        not_applicable()

    def assertProtoEquals(self, *arguments, **keywords):
        """Skips the test: it needs protocol buffers of graphs."""
        not_applicable()

    def __getattr__(self, name):
        if name in HELPERS:
            return functools.partial(HELPERS[name], self)
        if name.startswith("assert") or name in ("checkedThread", "_eval_tensor", "_eval_helper"):
            raise NotApplicable(f"not applicable: TestCase.{name} is internal")
        raise AttributeError(name)


def _to_array(case, value):
    if isinstance(value, (tf.Tensor, tf.Variable)):
        value = case.evaluate(value)
    return value if isinstance(value, (np.ndarray, np.generic)) else np.array(value)


# Methods that only TensorFlow's test case has
HELPERS = {
    "_GetNdArray": _to_array,
    "evaluate_if_both_tensors": lambda case, a, b: (case.evaluate(a), case.evaluate(b)),
}


def unchanged(target=None, *arguments, **keywords):
    """Decorates with no effect, with or without arguments."""
    is_target = isinstance(target, (types.FunctionType, type, staticmethod, classmethod))
    return target if is_target and not arguments and not keywords else lambda function: function


def skipped(reason):
    """Returns a decorator that skips a test, with or without arguments."""
    skip = unittest.skip(f"not applicable: {reason}")

    def decorate(target=None, *arguments, **keywords):
        return skip(target) if isinstance(target, (types.FunctionType, type)) else skip

    return decorate


@contextlib.contextmanager
def no_context(*arguments, **keywords):
    """Has no effect."""
    yield


@contextlib.contextmanager
def run_functions_eagerly(run_eagerly=True):
    """Runs functions eagerly within a block."""
    previous = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(run_eagerly)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(previous)


def skip_if(condition):
    """Skips a test if `condition` is true, or returns true."""
    return lambda function: unittest.skipIf(
        condition() if callable(condition) else condition, "not applicable: skip_if"
    )(function)


def _transposer(orders):
    def transpose(value):
        if isinstance(value, tf.Tensor):
            return tf.transpose(value, orders[value.shape.ndims])
        return [value[i] for i in orders[len(value)]]

    return transpose


def max_error(theoretical, numeric):
    """Returns the largest difference between two lists of Jacobians."""
    pairs = [(a, b) for a, b in zip(theoretical, numeric, strict=True) if a.size or b.size]
    return max((np.fabs(a - b).max() for a, b in pairs), default=0)


def _true(*arguments, **keywords):
    return True


def _false(*arguments, **keywords):
    return False


def _nothing(*arguments, **keywords):
    return None


UNCHANGED = [
    "assert_no_garbage_created",
    "assert_no_new_pyobjects_executing_eagerly",
    "assert_no_new_tensors",
    "also_run_as_tf_function",
    "build_as_function_and_v1_graph",
    "deprecated_graph_mode_only",
    "disable_asan",
    "disable_all_xla",
    "disable_cudnn_autotune",
    "disable_eager_op_as_function",
    "disable_mlir_bridge",
    "disable_tfrt",
    "disable_tsan",
    "disable_xla",
    "enable_control_flow_v2",
    "enable_c_shapes",
    "enable_eager_op_as_function",
    "enable_output_all_intermediates",
    "enable_quantized_dtypes_training",
    "no_xla_auto_jit",
    "run_all_in_deprecated_graph_mode_only",
    "run_all_in_graph_and_eager_modes",
    "run_all_in_native_and_block_format",
    "run_all_without_tensor_float_32",
    "run_deprecated_v1",
    "run_in_graph_and_eager_modes",
    "run_v2_only",
    "run_without_tensor_float_32",
    "set_xla_env_flag",
    "with_control_flow_v2",
    "with_eager_op_as_function",
    "with_forward_compatibility_horizons",
    "xla_allow_fallback",
]
FALSE = [
    "GpuSupportsHalfMatMulAndConv",
    "IsBuiltWithNvcc",
    "IsBuiltWithROCm",
    "IsBuiltWithXLA",
    "IsMklEnabled",
    "is_asan_enabled",
    "is_gpu_available",
    "is_mlir_bridge_enabled",
    "is_msan_enabled",
    "is_tsan_enabled",
    "is_ubsan_enabled",
    "is_xla_enabled",
]

TEST_UTIL = {
    **dict.fromkeys(UNCHANGED, unchanged),
    **dict.fromkeys(FALSE, _false),
    **dict.fromkeys(("run_gpu_only", "run_cuda_only", "run_gpu_or_tpu"), skipped("needs a GPU")),
    **dict.fromkeys(("device", "force_cpu", "force_gpu", "skip_if_error", "use_gpu"), no_context),
    **dict.fromkeys(("get_gpu_device", "GetGpuDevice"), _nothing),
    "IsCPUTargetAvailable": _true,
    "NCHWToNHWC": _transposer({3: [0, 2, 1], 4: [0, 2, 3, 1], 5: [0, 2, 3, 4, 1]}),
    "NHWCToNCHW": _transposer({3: [0, 2, 1], 4: [0, 3, 1, 2], 5: [0, 4, 1, 2, 3]}),
    "TensorFlowTestCase": TestCase,
    "gpu_device_name": str,
    "matmul_without_tf32": tf.matmul,
    "numpy": np,
    "run_functions_eagerly": run_functions_eagerly,
    "run_v1_only": skipped("is for TensorFlow 1"),
    "skip_if": skip_if,
}

GOOGLETEST = {
    **dict.fromkeys(("is_gpu_available", "is_built_with_cuda", "is_built_with_rocm"), _false),
    **dict.fromkeys(("is_built_with_gpu_support", "is_built_with_xla"), _false),
    "Benchmark": type("Benchmark", (), {}),
    "TestCase": TestCase,
    "disable_with_predicate": lambda **keywords: lambda function: function,
    "get_temp_dir": lambda: tempfile.mkdtemp(dir=os.environ.get("SUITE_TEMPORARY")),
    "gpu_device_name": str,
    "main": _nothing,
    "mock": mock,
    "skipIf": unittest.skipIf,
    "test_src_dir_path": lambda path: str(TESTS.parent / path),
}

_decorate_with_parameters = parameterized._parameter_decorator


@functools.wraps(_decorate_with_parameters)
def _skip_without_parameters(naming_type, testcases):
    """Skips a test whose parameters came from an absent name, so that none are left."""
    try:
        return _decorate_with_parameters(naming_type, testcases)
    except parameterized.NoTestsError:
        return unittest.skip("not applicable: the parameters are internal")


parameterized._parameter_decorator = _skip_without_parameters
