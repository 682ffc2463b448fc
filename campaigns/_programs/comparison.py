"""Compares the results of a program in two modes."""

from __future__ import annotations

import numpy as np

from campaigns._programs.runner import Outcome, Result

# Relative to the largest element, by the least precise dtype of a program: for different kernels,
# and for sums of the same numbers in a different order.
_OTHER_KERNELS = {"bfloat16": 0.15, "float16": 0.1, "float32": 2e-4, "complex64": 2e-4}
_OTHER_ORDER = {"bfloat16": 0.03, "float16": 0.004, "float32": 5e-6, "complex64": 5e-6}
_DOUBLE = 1e-8, 1e-12


def difference(
    expected: Outcome,
    actual: Outcome,
    tolerance: float = 0.0,
    noise: Outcome | None = None,
    exact: frozenset[str] = frozenset(),
) -> str | None:
    """Describes the first difference, if there is one.

    With a `tolerance` of 0, results must be bit-for-bit identical. Results with `exact` labels
    always must be. `noise` is the outcome of a run with slightly perturbed data. Results may differ
    by a multiple of its effect.
    """
    if _class_of(expected) != _class_of(actual) and _in_function(expected) != _class_of(actual):
        return f"{_describe(expected)}, but {_describe(actual)}"
    if len(expected.results) != len(actual.results):
        return f"{len(expected.results)} results, but {len(actual.results)}"
    others = [None] * len(expected.results) if noise is None else noise.results
    if len(others) != len(expected.results):
        return None  # the data is close to another branch
    for number, (a, b, c) in enumerate(zip(expected.results, actual.results, others, strict=True)):
        problem = _compare_results(a, b, c, 0.0 if a.label in exact else tolerance)
        if problem is not None:
            return f"result {number} ({a.label}): {problem}"
    return None


def _class_of(outcome: Outcome) -> str | None:
    return None if outcome.error is None else type(outcome.error).__name__


def _in_function(outcome: Outcome) -> str | None:
    """Returns the class of the same error inside a function."""
    kind = getattr(outcome.error, "in_function", None)
    return None if kind is None else kind.__name__


def _describe(outcome: Outcome) -> str:
    error = outcome.error
    return "no error" if error is None else f"{type(error).__name__}: {str(error)[:300]}"


def _compare_results(a: Result, b: Result, c: Result | None, tolerance: float) -> str | None:
    if tolerance and a.value is None and b.value is not None and not b.value.any():
        return None  # a function with several results returns zeros, as in TensorFlow
    shapes = [None if x.value is None else x.value.shape for x in (a, b)]
    if a.dtype != b.dtype or shapes[0] != shapes[1]:
        return f"{a.dtype} {shapes[0]}, but {b.dtype} {shapes[1]}"
    if a.value is None or are_same(a.value, b.value) or _may_differ(a, b, c, tolerance):
        return None
    return f"{a.dtype}\n{a.value!r}\nbut\n{b.value!r}{_distance(a, b)}"


def _may_differ(a: Result, b: Result, c: Result | None, tolerance: float) -> bool:
    if not tolerance:
        return False
    if c is not None and (c.value is None or c.value.shape != a.value.shape):
        return True
    if not a.dtype.startswith(("float", "bfloat", "complex")):
        return c is not None and not np.array_equal(a.value, c.value)
    return _are_close(_wide(a.value), _wide(b.value), _wide((c or a).value), tolerance)


def are_same(a: np.ndarray, b: np.ndarray) -> bool:
    """Returns whether all elements are equal, including signs of zeros. All NaNs are equal."""
    if a.tobytes() == b.tobytes():
        return True
    if a.dtype.kind in "biu":
        return False
    parts = [(a.real, b.real), (a.imag, b.imag)] if a.dtype.kind == "c" else [(a, b)]
    for x, y in parts:
        x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
        nan = np.isnan(x)
        same = (nan & np.isnan(y)) | ((x == y) & (np.signbit(x) == np.signbit(y)))
        if not same.all():
            return False
    return True


def _wide(x: np.ndarray) -> np.ndarray:
    return np.asarray(x, np.complex128 if x.dtype.kind == "c" else np.float64)


def _are_close(x: np.ndarray, y: np.ndarray, z: np.ndarray, tolerance: float) -> bool:
    finite = np.isfinite(x)
    if not np.array_equal(finite, np.isfinite(y)):
        return not np.array_equal(finite, np.isfinite(z))
    x, y, z = x[finite], y[finite], np.nan_to_num(z[finite])
    scale = max(1.0, float(np.abs(x).max(initial=0.0)))
    noise = float(np.abs(x - z).max(initial=0.0))
    return bool(np.abs(x - y).max(initial=0.0) <= tolerance * scale + 30 * noise)


def _distance(a: Result, b: Result) -> str:
    if a.dtype == "bool" or not a.value.size:
        return ""
    x, y = _wide(a.value), _wide(b.value)
    with np.errstate(all="ignore"):
        return f"\n(largest difference {np.abs(x - y).max()})"


def adapt_zeros(actual: Outcome, expected: Outcome) -> Outcome:
    """Returns `actual` with NaN-safe zero cotangents and tangents, which TensorFlow lacks."""
    if len(actual.results) != len(expected.results):
        return actual
    pairs = zip(actual.results, expected.results, strict=True)
    return actual._replace(results=[_adapt_zeros(a, b) for a, b in pairs])


def _adapt_zeros(actual: Result, expected: Result) -> Result:
    x, y = actual.value, expected.value
    if x is None and y is not None and not y.any() and actual.label == "jvp":
        return expected
    if x is None or y is None or x.shape != y.shape or x.dtype.kind != "f":
        return actual
    return actual._replace(value=np.where(np.isnan(x), y.astype(x.dtype), x))


def tolerance_of(source: str, same_kernels: bool) -> float:
    """Returns the tolerance for a program, by its least precise dtype."""
    table = _OTHER_ORDER if same_kernels else _OTHER_KERNELS
    tolerances = [tolerance for dtype, tolerance in table.items() if dtype in source]
    return max(tolerances, default=_DOUBLE[same_kernels])
