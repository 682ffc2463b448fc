"""tf.test: a TestCase for tensors, and gradient checks by finite differences."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import platform
import random as python_random
import re
import tempfile
import unittest
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograde import random
from retrograde._api.lazy import from_all
from retrograde.core.indexed_slices import IndexedSlices, dense
from retrograde.core.tape import GradientTape
from retrograde.core.tensor import Tensor
from retrograde.ops.conversion import as_tensor, holds_tensor
from retrograde.sparse.tensor import SparseTensor
from retrograde.toplevel.devices import DeviceSpec
from retrograde.values import dtypes, nest
from retrograde.values.arguments import as_float, shown
from retrograde.values.composites import CompositeTensor
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import OpError
from retrograde.values.shapes import TensorShape

__all__ = [
    "TestCase",
    "compute_gradient",
    "disable_with_predicate",
    "gpu_device_name",
    "is_built_with_cuda",
    "is_built_with_gpu_support",
    "is_built_with_rocm",
    "is_built_with_xla",
    "is_cpu_target_available",
    "is_gpu_available",
    "main",
]

__path__: list[str] = []  # makes `import tensorflow.test` work
__getattr__, __dir__ = from_all(__name__)

_SEED = 87654321  # the same as in TensorFlow


# Gradients


class SparseTensorValue(NamedTuple):
    """The arrays of a sparse tensor, which `TestCase.evaluate` returns."""

    indices: np.ndarray
    values: np.ndarray
    dense_shape: np.ndarray


def compute_gradient(
    f: Callable, x: Sequence[Any], delta: float | None = None
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Computes the Jacobians of `f` at the arguments `x`, by its gradient and numerically.

    Returns two lists with one matrix per argument; the second is from central differences. A matrix
    has one row per element of the result and one column per element of the argument. A complex
    number counts as two elements.

    >>> exact, numerical = tf.test.compute_gradient(lambda x: x * x, [tf.constant([1.0, 2.0])])
    >>> exact[0].tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    if not isinstance(x, (list, tuple)):
        raise ValueError(
            "`x` must be a list or tuple of values convertible to a Tensor (arguments to `f`), not "
            f"a {type(x)}"
        )
    xs = [Tensor(as_tensor(value)._array) for value in x]
    for i, tensor in enumerate(xs):
        if tensor._spec.dtype not in dtypes.INEXACT:
            raise ValueError(
                f"compute_gradient: argument {i} has dtype {tensor.dtype.name}. Expected a "
                "floating-point or complex dtype."
            )
    step = 1 / 1024 if delta is None else as_float(delta, "compute_gradient: delta")
    exact = [_exact_jacobian(f, xs, i) for i in range(len(xs))]
    return exact, [_numerical_jacobian(f, xs, i, step) for i in range(len(xs))]


def _value(f: Callable, xs: Sequence[Tensor]) -> Tensor:
    y = f(*xs)
    y = dense(y) if isinstance(y, IndexedSlices) else y
    if tensor_or_variable(y) is None:
        raise ValueError(
            f"compute_gradient: expected `f` to return one tensor. Received: {shown(y)}."
        )
    return tensor_or_variable(y)._read()


def _parts(array: Any) -> np.ndarray:
    """Flattens `array`; complex numbers become real and imaginary parts."""
    flat = np.ravel(array)
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


def _units(like: np.ndarray) -> Iterator[np.ndarray]:
    """Yields the unit arrays with the shape of `like`; for complex dtypes, also those with 1j."""
    for i in range(_parts(like).size):
        unit = np.zeros(like.size, like.dtype)
        _parts(unit)[i] = 1
        yield unit.reshape(like.shape)


def _matrix(lines: list[np.ndarray], shape: tuple[int, int], like: np.ndarray) -> np.ndarray:
    return np.array(lines, _parts(like).dtype).reshape(shape)


def _exact_jacobian(f: Callable, xs: list[Tensor], argument: int) -> np.ndarray:
    with GradientTape(persistent=True) as tape:
        tape.watch(xs[argument])
        y = _value(f, xs)
    x = np.asarray(xs[argument]._array)
    rows = []
    for unit in _units(np.asarray(y._array)):
        g = tape.gradient(y, xs[argument], Tensor(unit), unconnected_gradients="zero")
        rows.append(_parts((dense(g) if isinstance(g, IndexedSlices) else g)._array))
    return _matrix(rows, (_parts(y._array).size, _parts(x).size), x)


def _numerical_jacobian(f: Callable, xs: list[Tensor], argument: int, step: float) -> np.ndarray:
    x = np.asarray(xs[argument]._array)

    def value_at(new: np.ndarray) -> np.ndarray:
        args = [*xs[:argument], Tensor(new.astype(x.dtype)), *xs[argument + 1 :]]
        return np.array(_parts(_value(f, args)._array))

    columns = [(value_at(x + step * u) - value_at(x - step * u)) / (2 * step) for u in _units(x)]
    size = _parts(_value(f, xs)._array).size
    return _matrix(columns, (_parts(x).size, size), x).T


# Build and device information


def is_built_with_cuda() -> bool:
    """Returns False: GPUs are used only through XLA."""
    return False


def is_built_with_rocm() -> bool:
    """Returns False: GPUs are used only through XLA."""
    return False


def is_built_with_gpu_support() -> bool:
    """Returns False: GPUs are used only through XLA."""
    return False


def is_built_with_xla() -> bool:
    """Returns whether JAX, which provides XLA, is installed."""
    return importlib.util.find_spec("jax") is not None


def is_gpu_available(
    cuda_only: bool = False, min_cuda_compute_capability: tuple[int, int] | None = None
) -> bool:
    """Returns False: operations run on the CPU."""
    return False


def gpu_device_name() -> str:
    """Returns an empty string: operations run on the CPU."""
    return ""


def is_cpu_target_available(target: str) -> bool:
    """Returns whether the CPU is `target`: "aarch64", "arm", "ppc" or "x86"."""
    machine = platform.machine().lower()
    prefixes = {
        "aarch64": ("aarch64", "arm64"),
        "arm": ("arm",),
        "ppc": ("ppc",),
        "x86": ("x86", "amd64", "i386", "i686"),
    }
    return machine.startswith(prefixes.get(target, (target,)))


def disable_with_predicate(pred: Callable[[], bool], skip_message: str) -> Callable:
    """Returns a decorator that skips a test if `pred()` is true when it runs."""

    def decorate(test: Callable) -> Callable:
        @functools.wraps(test)
        def run(self: unittest.TestCase, *args: Any, **kwargs: Any) -> Any:
            if pred():
                self.skipTest(skip_message)
            return test(self, *args, **kwargs)

        return run

    return decorate


def main(argv: list[str] | None = None) -> None:
    """Runs all tests of the main program."""
    unittest.main(argv=argv)


# Assertions


class _Session:
    """A replacement for TensorFlow 1 sessions: operations have run eagerly already."""

    def __init__(self, test: TestCase) -> None:
        self._test = test

    def run(self, fetches: Any, *args: Any, **kwargs: Any) -> Any:
        """Returns the values of `fetches`."""
        return self._test.evaluate(fetches)


class TestCase(unittest.TestCase):
    """A `unittest.TestCase` with assertions for tensors, arrays and nested structures of them.

    All random seeds are set before each test.
    """

    def setUp(self) -> None:
        """Sets the random seeds."""
        python_random.seed(_SEED)
        np.random.seed(_SEED)
        random.set_seed(_SEED)

    # Values

    def evaluate(self, tensors: Any) -> Any:
        """Converts a nested structure of tensors to NumPy arrays and scalars."""
        if callable(tensors) and tensor_or_variable(tensors) is None:
            return self.evaluate(tensors())
        leaves, pack = nest.flatten_with_pack(tensors)
        return pack([self._evaluate_leaf(leaf) for leaf in leaves])

    def _evaluate_leaf(self, leaf: Any) -> Any:
        tensor = tensor_or_variable(leaf)
        if leaf is None or isinstance(leaf, np.ndarray | np.generic):
            return leaf
        if isinstance(leaf, IndexedSlices):
            parts = (leaf.values, leaf.indices, leaf.dense_shape)
            return IndexedSlices(*(self._evaluate_leaf(part) for part in parts))
        if isinstance(leaf, SparseTensor):
            parts = (leaf.indices, leaf.values, leaf.dense_shape)
            return SparseTensorValue(*(self._evaluate_leaf(part) for part in parts))
        if isinstance(leaf, CompositeTensor):
            return leaf
        if tensor is None:
            raise ValueError(f"Unsupported type {type(leaf).__name__!r}. Expected a tensor.")
        return tensor._read().numpy()

    @contextlib.contextmanager
    def session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = True, force_gpu: bool = False
    ) -> Iterator[_Session]:
        """Returns a context manager with a session that only evaluates tensors."""
        yield _Session(self)

    cached_session = session

    def get_temp_dir(self) -> str:
        """Returns a directory for files of this test, which is removed afterwards."""
        if not hasattr(self, "_temp_dir"):
            directory = tempfile.TemporaryDirectory()
            self.addCleanup(directory.cleanup)
            self._temp_dir = directory.name
        return self._temp_dir

    def _array(self, a: Any) -> np.ndarray:
        if isinstance(a, IndexedSlices):
            a = dense(a)
        elif hasattr(a, "dense_shape"):
            from retrograde.sparse import to_dense

            a = to_dense(a)
        return np.asarray(as_tensor(a) if holds_tensor(a) else a)

    # All elements

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Fails unless `a` and `b` have the same shape and the same elements; NaN equals NaN."""
        if hasattr(a, "to_list") or hasattr(b, "to_list"):
            self.assertEqual(_rows(a), _rows(b), msg)
            return
        a, b = map(_as_bytes, (self._array(a), self._array(b)))
        self.assertEqual(a.shape, b.shape, self._formatMessage(msg, "Shape mismatch"))
        np.testing.assert_array_equal(_wide(a), _wide(b), err_msg=msg or "")

    def assertNotAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Fails if `a` and `b` are equal at all elements."""
        try:
            self.assertAllEqual(a, b)
        except AssertionError:
            return
        self.fail(self._formatMessage(msg, "The two values are equal at all elements."))

    def assertAllClose(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """Fails unless `abs(a - b) <= atol + rtol * abs(b)` for all elements.

        `a` and `b` may be nested structures; the types of their containers may differ.
        """
        if hasattr(a, "to_list") or hasattr(b, "to_list"):
            a, b = _rows(a), _rows(b)
        if isinstance(a, Mapping) or isinstance(b, Mapping):
            self.assertIsInstance(a, Mapping, msg)
            self.assertIsInstance(b, Mapping, msg)
            self.assertEqual(set(a), set(b), self._formatMessage(msg, "mismatched keys"))
            for key in a:
                self.assertAllClose(a[key], b[key], rtol, atol, msg)
        elif _is_structure(a) or _is_structure(b):
            self.assertEqual(len(a), len(b), self._formatMessage(msg, "Length mismatch"))
            for one, other in zip(a, b, strict=True):
                self.assertAllClose(one, other, rtol, atol, msg)
        else:
            self._assert_arrays_close(self._array(a), self._array(b), rtol, atol, msg)

    def _assert_arrays_close(
        self, a: np.ndarray, b: np.ndarray, rtol: float, atol: float, msg: str | None
    ) -> None:
        self.assertEqual(a.shape, b.shape, self._formatMessage(msg, "Shape mismatch"))
        np.testing.assert_allclose(_wide(a), _wide(b), rtol, atol, err_msg=msg or "")

    def assertNotAllClose(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """Fails if `a` and `b` are close at all elements."""
        try:
            self.assertAllClose(a, b, rtol, atol)
        except AssertionError:
            return
        self.fail(self._formatMessage(msg, "The two values are close at all elements."))

    def assertAllCloseAccordingToType(
        self,
        a: Any,
        b: Any,
        rtol: float = 1e-6,
        atol: float = 1e-6,
        float_rtol: float = 1e-6,
        float_atol: float = 1e-6,
        half_rtol: float = 1e-3,
        half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2,
        msg: str | None = None,
    ) -> None:
        """Calls `assertAllClose` with the tolerances of the narrower of the two dtypes."""
        dtypes = {self._array(a).dtype.name, self._array(b).dtype.name}
        for names, wider_rtol, wider_atol in (
            ({"float32", "complex64"}, float_rtol, float_atol),
            ({"float16"}, half_rtol, half_atol),
            ({"bfloat16"}, bfloat16_rtol, bfloat16_atol),
        ):
            if dtypes & names:
                rtol, atol = max(rtol, wider_rtol), max(atol, wider_atol)
        self.assertAllClose(a, b, rtol, atol, msg)

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:
        """Fails unless all elements are greater than a number."""
        self.assertGreater(self._array(a).min(), comparison_target)

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:
        """Fails unless all elements are at least a number."""
        self.assertGreaterEqual(self._array(a).min(), comparison_target)

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:
        """Fails unless all elements are less than a number."""
        self.assertLess(self._array(a).max(), comparison_target)

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:
        """Fails unless all elements are at most a number."""
        self.assertLessEqual(self._array(a).max(), comparison_target)

    def assertAllInRange(
        self,
        target: Any,
        lower_bound: Any,
        upper_bound: Any,
        open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:
        """Fails unless all elements lie between two numbers; NaN does not."""
        array = self._array(target)
        above = array > lower_bound if open_lower_bound else array >= lower_bound
        below = array < upper_bound if open_upper_bound else array <= upper_bound
        outside = np.argwhere(~(above & below))
        if outside.size or (not array.ndim and not (above & below)):
            ends = f"{'(' if open_lower_bound else '['}{lower_bound}, {upper_bound}"
            indices = [tuple(map(int, index)) for index in outside]
            self.fail(
                f"{len(indices)} of the {array.size} element(s) are outside the range "
                f"{ends}{')' if open_upper_bound else ']'}. Their indices: {indices}."
            )

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:
        """Fails unless all elements are in a set."""
        unexpected = set(np.ravel(self._array(target)).tolist()) - set(expected_set)
        if unexpected:
            self.fail(
                f"{len(unexpected)} unique element(s) are not in the set {expected_set}: "
                f"{unexpected}"
            )

    # Numbers, shapes, dtypes

    def assertNear(self, f1: Any, f2: Any, err: float, msg: str | None = None) -> None:
        """Fails unless two numbers differ by no more than `err`."""
        words = f"{f1} != {f2} +/- {err} (difference: {abs(f1 - f2)})"
        self.assertTrue(f1 == f2 or abs(f1 - f2) <= err, self._formatMessage(msg, words))

    def assertArrayNear(
        self, farray1: Any, farray2: Any, err: float, msg: str | None = None
    ) -> None:
        """Fails unless two lists of numbers have the same length and differ by at most `err`."""
        self.assertEqual(len(farray1), len(farray2), msg)
        for f1, f2 in zip(farray1, farray2, strict=True):
            self.assertNear(float(f1), float(f2), err, msg)

    def assertNDArrayNear(
        self, ndarray1: Any, ndarray2: Any, err: float, msg: str | None = None
    ) -> None:
        """Fails unless the norm of the difference of two arrays is below `err`."""
        distance = np.linalg.norm(self._array(ndarray1) - self._array(ndarray2))
        self.assertLess(distance, err, msg)

    def assertShapeEqual(self, input_a: Any, input_b: Any, msg: str | None = None) -> None:
        """Fails unless two tensors or arrays have the same shape."""
        self.assertEqual(TensorShape(input_a.shape), TensorShape(input_b.shape), msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
        """Fails unless a tensor or an array has a certain dtype."""
        self.assertEqual(dtypes.of(self._array(target).dtype), dtypes.as_dtype(expected_dtype))

    def assertDeviceEqual(self, device1: Any, device2: Any, msg: str | None = None) -> None:
        """Fails unless two names refer to the same device."""
        specs = [DeviceSpec.from_string(d) if isinstance(d, str) else d for d in (device1, device2)]
        self.assertEqual(*specs, msg)

    # Errors

    @contextlib.contextmanager
    def assertRaisesWithPredicateMatch(
        self, exception_type: type[Exception], expected_err_re_or_predicate: Any
    ) -> Iterator[None]:
        """Fails unless the block raises an error that matches a predicate or a pattern."""
        matches = expected_err_re_or_predicate
        if not callable(matches):
            pattern = re.compile(matches)

            def matches(error: Exception) -> Any:
                return pattern.search(str(error))

        with self.assertRaises(exception_type) as caught:
            yield
        self.assertTrue(
            matches(caught.exception),
            f"Exception of type {type(caught.exception)}: {caught.exception} does not match.",
        )

    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> Any:
        """Fails unless the block raises a matching error of `tf.errors`."""
        return self.assertRaisesWithPredicateMatch(OpError, expected_err_re_or_predicate)

    def assertStartsWith(self, actual: str, expected_start: str, msg: str | None = None) -> None:
        """Fails unless a string starts with another."""
        words = f"{actual!r} does not start with {expected_start!r}"
        self.assertTrue(actual.startswith(expected_start), self._formatMessage(msg, words))

    def assertLen(self, container: Any, expected_len: int, msg: str | None = None) -> None:
        """Fails unless a container has a certain number of elements."""
        self.assertEqual(len(container), expected_len, msg)

    def assertEmpty(self, container: Any, msg: str | None = None) -> None:
        """Fails unless a container has no elements."""
        self.assertEqual(len(container), 0, msg)

    def assertNotEmpty(self, container: Any, msg: str | None = None) -> None:
        """Fails if a container has no elements."""
        self.assertGreater(len(container), 0, msg)


def _wide(array: np.ndarray) -> np.ndarray:
    """Converts `array` to a dtype that NumPy's comparisons support."""
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def _as_bytes(array: np.ndarray) -> np.ndarray:
    """Converts string arrays to arrays of bytes objects, as in tensors."""
    if array.dtype.kind not in "US":
        return array
    return np.asarray(as_tensor(array.tolist())._array)


def _is_structure(value: Any) -> bool:
    """Returns whether `value` is a list or tuple with containers, tensors or arrays in it."""
    return isinstance(value, (list, tuple)) and any(
        isinstance(v, (list, tuple, Mapping)) or getattr(v, "ndim", 0) for v in value
    )


def _rows(value: Any) -> Any:
    """Returns a ragged tensor, a tensor or an array as nested lists; strings are bytes."""
    if not hasattr(value, "to_list"):
        tensor = tensor_or_variable(value)
        return _encode_strings(value if tensor is None else tensor._read().numpy())
    return _encode_strings(value.to_list())


def _encode_strings(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_encode_strings(part) for part in value]
    return value.encode() if isinstance(value, str) else value
