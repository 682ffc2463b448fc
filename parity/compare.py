"""Compares the results of two libraries to a call."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from parity.evaluation import from_json

STAGES = ("value", "gradient", "second")

SAME = "same"
DIFFERENT = "different"
LISTED = "listed"  # different, but on purpose
BEYOND = "beyond"  # TensorFlow raised an error, and retrograde has a result
NOTHING = "nothing"  # there is nothing to compare

CRASH = "crash"  # the class of the error if a call crashed the process

# Relative and absolute tolerances; the first are relative to the largest element. In single
# precision, the difference of TensorFlow's result from its result in double precision estimates the
# rounding error. Without that, the tolerance is larger.
DOUBLE, AT_LEAST_DOUBLE = 1e-7, 1e-12
SINGLE, AT_LEAST_SINGLE = 2e-5, 1e-6
SINGLE_ALONE = 2e-4
HALF = {"float16": 4e-3, "bfloat16": 3e-2}
TIMES_LOST = 20


class Finding(NamedTuple):
    """The result of comparing one stage of one call."""

    kind: str
    why: str = ""


def is_random(function: str) -> bool:
    """Returns whether a function draws random numbers, so that values cannot be compared."""
    words = ("random", "dropout", "fractional", "candidate_sampler", "sample_distorted")
    return any(word in function for word in words)


def compare(theirs: dict, ours: dict, theirs_in_double: dict | None = None) -> dict[str, Finding]:
    """Returns a finding for each stage; `theirs` are TensorFlow's results.

    For random functions, only shapes, dtypes and the existence of gradients are compared.
    """
    return {stage: _stage(stage, theirs, ours, theirs_in_double or {}) for stage in STAGES}


def _stage(stage: str, theirs: dict, ours: dict, in_double: dict) -> Finding:
    if stage not in theirs:
        return _compare_errors(stage, theirs, ours)
    if stage not in ours:
        if "error" in ours:
            return Finding(DIFFERENT, f"raises {_format_error(ours)}")
        return _accept_missing(theirs[stage])
    random = is_random(theirs["function"])
    why = _leaves(theirs[stage], ours[stage], in_double.get(stage), theirs["precision"], random)
    if stage == "value" and "sources" in theirs:  # the two may not have run the same call
        why = why or _leaves(theirs["sources"], ours["sources"], None, theirs["precision"], False)
    return Finding(DIFFERENT, why) if why else Finding(SAME)


def _compare_errors(stage: str, theirs: dict, ours: dict) -> Finding:
    """Compares the exception classes if TensorFlow raised an error."""
    if theirs.get("error", [""])[0] != stage:
        return Finding(NOTHING)
    if any(leaf is not None for leaf in ours.get(stage, [])):
        return Finding(BEYOND, _format_error(theirs))
    if stage != "value" or theirs["error"][1] == CRASH:
        return Finding(NOTHING)
    expected, actual = (result.get("error", ["", "nothing"])[1] for result in (theirs, ours))
    if expected == actual:
        return Finding(SAME)
    return Finding(DIFFERENT, f"raises {actual}, expected {_format_error(theirs)}")


def _leaves(expected: list, actual: list, wide: Any, precision: str, random: bool) -> str:
    """Describes the first difference of several leaves, or returns an empty string."""
    if len(actual) != len(expected):
        return f"{len(actual)} results, expected {len(expected)}"
    if wide is None or len(wide) != len(expected):
        wide = [None] * len(expected)
    for place, trio in enumerate(zip(expected, actual, wide, strict=True)):
        why = _leaf(*trio, precision, random)
        if why:
            return why if len(expected) == 1 else f"{place}: {why}"
    return ""


def _accept_missing(expected: list) -> Finding:
    """Accepts missing second derivatives if all of TensorFlow's are `None`."""
    if all(leaf is None for leaf in expected):
        return Finding(SAME)
    return Finding(DIFFERENT, f"nothing, expected {_short(expected)}")


def _format_error(result: dict) -> str:
    _, kind, message = result["error"]
    return f"{kind}: {message.splitlines()[0] if message else ''}"


def _leaf(expected: Any, actual: Any, wide: Any, precision: str, random: bool) -> str:
    """Describes the difference, or returns an empty string."""
    tensors = [isinstance(leaf, dict) for leaf in (expected, actual)]
    if tensors != [True, True]:
        plain = not any(tensors) and expected == actual
        return "" if plain else f"{_short(actual)}, expected {_short(expected)}"
    for key in ("dtype", "shape"):
        if expected[key] != actual[key]:
            return f"{key} {actual[key]}, expected {expected[key]}"
    if random or expected == actual:
        return ""
    if "data" not in expected:
        return f"{_short(actual)}, expected {_short(expected)}"
    return _numbers(expected, actual, wide, precision)


def _numbers(expected: dict, actual: dict, wide: Any, precision: str) -> str:
    a, b = from_json(expected), from_json(actual)
    if a.dtype.kind not in "fc":
        wrong = a != b
    else:
        finite = np.isfinite(a) & np.isfinite(b)
        with np.errstate(all="ignore"):
            bound = _bound(a, b, wide, precision)
            wrong = np.where(finite, ~(np.abs(a - b) <= bound), ~_same_nonfinite(a, b))
    if not wrong.any():
        return ""
    index = tuple(np.argwhere(wrong)[0].tolist())
    return f"{b[index]!r} at {list(index)}, expected {a[index]!r}"


def _same_nonfinite(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns where both are NaN or the same infinity."""
    return (a == b) | (np.isnan(a) & np.isnan(b))


def _bound(a: np.ndarray, b: np.ndarray, wide: Any, precision: str) -> float:
    scale = float(np.max(np.abs(a), initial=0, where=np.isfinite(a)))
    if precision == "float64" and not _is_single(a) and not _is_single(b):
        return DOUBLE * scale + AT_LEAST_DOUBLE
    exact = from_json(wide) if isinstance(wide, dict) and wide["shape"] == list(a.shape) else a
    lost = np.max(np.abs(a - exact), initial=0, where=np.isfinite(a) & np.isfinite(exact))
    share = HALF.get(precision) or (SINGLE_ALONE if _is_single(exact) else SINGLE)
    return share * scale + TIMES_LOST * float(lost) + AT_LEAST_SINGLE


def _is_single(x: np.ndarray) -> bool:
    """Returns whether all values are representable in single precision."""
    narrow = np.complex64 if x.dtype.kind == "c" else np.float32
    return np.array_equal(x, x.astype(narrow), equal_nan=True)


def _short(leaf: Any) -> str:
    if isinstance(leaf, dict) and "data" in leaf:
        return f"{leaf['dtype']} {from_json(leaf).reshape(-1)[:4].tolist()}"
    return "None" if leaf is None else str(leaf)[:120]
