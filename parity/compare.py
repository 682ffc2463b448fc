"""Whether two libraries gave the same answer to a call."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from parity.answers import array_of

STAGES = ("value", "gradient", "second")

SAME = "same"
DIFFERENT = "different"
LISTED = "listed"  # different, but on purpose
BEYOND = "beyond"  # TensorFlow raised something, retrograde has an answer
NOTHING = "nothing"  # there is nothing to compare

CRASH = "crash"  # the class of the error, where a call ended the process

# How far apart two numbers may be, as parts of the largest of their array, and at least. In single
# precision the distance of TensorFlow's own answer from the one in double precision tells how
# much is lost on the way; where there is none, more is allowed.
DOUBLE, AT_LEAST_DOUBLE = 1e-7, 1e-12
SINGLE, AT_LEAST_SINGLE = 2e-5, 1e-6
SINGLE_ALONE = 2e-4
HALF = {"float16": 4e-3, "bfloat16": 3e-2}
TIMES_LOST = 20


class Finding(NamedTuple):
    """What came of one stage of one call."""

    kind: str
    why: str = ""


def is_random(function: str) -> bool:
    """Whether a function draws random numbers, whose values nobody can compare."""
    words = ("random", "dropout", "fractional", "candidate_sampler", "sample_distorted")
    return any(word in function for word in words)


def compare(theirs: dict, ours: dict, theirs_in_double: dict | None = None) -> dict[str, Finding]:
    """A finding for each stage; `theirs` are TensorFlow's answers.

    Of random functions only shapes and dtypes are compared, and whether there is a gradient.
    """
    return {stage: _stage(stage, theirs, ours, theirs_in_double or {}) for stage in STAGES}


def _stage(stage: str, theirs: dict, ours: dict, in_double: dict) -> Finding:
    if stage not in theirs:
        return _unanswered(stage, theirs, ours)
    if stage not in ours:
        if "error" in ours:
            return Finding(DIFFERENT, f"raises {_raised(ours)}")
        return _absent(theirs[stage])
    random = is_random(theirs["function"])
    why = _leaves(theirs[stage], ours[stage], in_double.get(stage), theirs["precision"], random)
    if stage == "value" and "sources" in theirs:  # the two may not have run the same call
        why = why or _leaves(theirs["sources"], ours["sources"], None, theirs["precision"], False)
    return Finding(DIFFERENT, why) if why else Finding(SAME)


def _unanswered(stage: str, theirs: dict, ours: dict) -> Finding:
    """Where TensorFlow raised something: a mistake raises the same class here."""
    if theirs.get("error", [""])[0] != stage:
        return Finding(NOTHING)
    if any(leaf is not None for leaf in ours.get(stage, [])):
        return Finding(BEYOND, _raised(theirs))
    if stage != "value" or theirs["error"][1] == CRASH:
        return Finding(NOTHING)
    expected, actual = (answer.get("error", ["", "nothing"])[1] for answer in (theirs, ours))
    if expected == actual:
        return Finding(SAME)
    return Finding(DIFFERENT, f"raises {actual}, expected {_raised(theirs)}")


def _leaves(expected: list, actual: list, wide: Any, precision: str, random: bool) -> str:
    """What is wrong with one of several leaves; nothing, if they are the same."""
    if len(actual) != len(expected):
        return f"{len(actual)} results, expected {len(expected)}"
    if wide is None or len(wide) != len(expected):
        wide = [None] * len(expected)
    for place, trio in enumerate(zip(expected, actual, wide, strict=True)):
        why = _leaf(*trio, precision, random)
        if why:
            return why if len(expected) == 1 else f"{place}: {why}"
    return ""


def _absent(expected: list) -> Finding:
    """Second derivatives may be missing altogether, if there is no first one."""
    if all(leaf is None for leaf in expected):
        return Finding(SAME)
    return Finding(DIFFERENT, f"nothing, expected {_short(expected)}")


def _raised(answer: dict) -> str:
    _, kind, message = answer["error"]
    return f"{kind}: {message.splitlines()[0] if message else ''}"


def _leaf(expected: Any, actual: Any, wide: Any, precision: str, random: bool) -> str:
    """What is wrong with `actual`; nothing, if it is the same."""
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
    a, b = array_of(expected), array_of(actual)
    if a.dtype.kind not in "fc":
        wrong = a != b
    else:
        finite = np.isfinite(a) & np.isfinite(b)
        with np.errstate(all="ignore"):
            bound = _bound(a, b, wide, precision)
            wrong = np.where(finite, ~(np.abs(a - b) <= bound), ~_alike(a, b))
    if not wrong.any():
        return ""
    at = tuple(np.argwhere(wrong)[0].tolist())
    return f"{b[at]!r} at {list(at)}, expected {a[at]!r}"


def _alike(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where both are not a number, or the same infinity."""
    return (a == b) | (np.isnan(a) & np.isnan(b))


def _bound(a: np.ndarray, b: np.ndarray, wide: Any, precision: str) -> float:
    scale = float(np.max(np.abs(a), initial=0, where=np.isfinite(a)))
    if precision == "float64" and not _is_single(a) and not _is_single(b):
        return DOUBLE * scale + AT_LEAST_DOUBLE
    exact = array_of(wide) if isinstance(wide, dict) and wide["shape"] == list(a.shape) else a
    lost = np.max(np.abs(a - exact), initial=0, where=np.isfinite(a) & np.isfinite(exact))
    share = HALF.get(precision) or (SINGLE_ALONE if _is_single(exact) else SINGLE)
    return share * scale + TIMES_LOST * float(lost) + AT_LEAST_SINGLE


def _is_single(x: np.ndarray) -> bool:
    """Whether numbers were computed in single precision, whatever their dtype says."""
    narrow = np.complex64 if x.dtype.kind == "c" else np.float32
    return np.array_equal(x, x.astype(narrow), equal_nan=True)


def _short(leaf: Any) -> str:
    if isinstance(leaf, dict) and "data" in leaf:
        return f"{leaf['dtype']} {array_of(leaf).reshape(-1)[:4].tolist()}"
    return "None" if leaf is None else str(leaf)[:120]
