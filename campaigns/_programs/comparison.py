"""Compares the results of a program in two modes."""

from __future__ import annotations

import numpy as np

from campaigns._programs.runner import Kept, Outcome

# Relative to the largest element, by the least precise dtype of a program: for different kernels,
# and for sums of the same numbers in a different order.
_OTHER_KERNELS = {"bfloat16": 0.15, "float16": 0.1, "float32": 2e-4, "complex64": 2e-4}
_OTHER_ORDER = {"bfloat16": 0.03, "float16": 0.004, "float32": 5e-6, "complex64": 5e-6}
_DOUBLE = 1e-8, 1e-12


def difference(
    expected: Outcome,
    found: Outcome,
    tolerance: float = 0.0,
    noise: Outcome | None = None,
    exact: frozenset[str] = frozenset(),
) -> str | None:
    """Describes the first difference, if there is one.

    With a `tolerance` of 0, all bits have to agree, and always in results with `exact` labels.
    `noise` is what another run with slightly changed data did: results that it changed may differ
    by a multiple of that.
    """
    if _class_of(expected) != _class_of(found) and _in_function(expected) != _class_of(found):
        return f"{_describe(expected)}, but {_describe(found)}"
    if len(expected.kept) != len(found.kept):
        return f"{len(expected.kept)} results, but {len(found.kept)}"
    others = [None] * len(expected.kept) if noise is None else noise.kept
    if len(others) != len(expected.kept):
        return None  # the data is close to another branch
    for number, (a, b, c) in enumerate(zip(expected.kept, found.kept, others, strict=True)):
        problem = _of_results(a, b, c, 0.0 if a.label in exact else tolerance)
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


def _of_results(a: Kept, b: Kept, c: Kept | None, tolerance: float) -> str | None:
    if tolerance and a.value is None and b.value is not None and not b.value.any():
        return None  # a function with several results returns zeros, as in TensorFlow
    shapes = [None if x.value is None else x.value.shape for x in (a, b)]
    if a.dtype != b.dtype or shapes[0] != shapes[1]:
        return f"{a.dtype} {shapes[0]}, but {b.dtype} {shapes[1]}"
    if a.value is None or are_same(a.value, b.value) or _may_differ(a, b, c, tolerance):
        return None
    return f"{a.dtype}\n{a.value!r}\nbut\n{b.value!r}{_distance(a, b)}"


def _may_differ(a: Kept, b: Kept, c: Kept | None, tolerance: float) -> bool:
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


def _distance(a: Kept, b: Kept) -> str:
    if a.dtype == "bool" or not a.value.size:
        return ""
    x, y = _wide(a.value), _wide(b.value)
    with np.errstate(all="ignore"):
        return f"\n(largest difference {np.abs(x - y).max()})"


def adapted(found: Outcome, expected: Outcome) -> Outcome:
    """Returns `found` with NaN-safe zero cotangents and tangents, which TensorFlow lacks."""
    if len(found.kept) != len(expected.kept):
        return found
    pairs = zip(found.kept, expected.kept, strict=True)
    return found._replace(kept=[_adapted(a, b) for a, b in pairs])


def _adapted(found: Kept, expected: Kept) -> Kept:
    x, y = found.value, expected.value
    if x is None and y is not None and not y.any() and found.label == "jvp":
        return expected
    if x is None or y is None or x.shape != y.shape or x.dtype.kind != "f":
        return found
    return found._replace(value=np.where(np.isnan(x), y.astype(x.dtype), x))


def tolerance_of(source: str, same_kernels: bool) -> float:
    """Returns the tolerance for a program, by its least precise dtype."""
    table = _OTHER_ORDER if same_kernels else _OTHER_KERNELS
    found = [tolerance for dtype, tolerance in table.items() if dtype in source]
    return max(found, default=_DOUBLE[same_kernels])
