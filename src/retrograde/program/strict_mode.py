"""Strict mode: compares a replay with the Python function."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.values import nest
from retrograde.values.conversion import as_array, tensor_or_variable


def check_equal(
    expected: Any,
    actual: Any,
    eager_tensors: list[Tensor],
    replayed_tensors: list[Tensor],
    names: list[str],
    function: str,
) -> None:
    """Raises an error if the results, or the variables called `names`, differ."""
    expected_arrays = [_array(x) for x in nest.leaves(expected, expand_composites=True)]
    actual_arrays = [_array(x) for x in nest.leaves(actual, expand_composites=True)]
    pairs = [
        (f"result {i}", a, b)
        for i, (a, b) in enumerate(zip(expected_arrays, actual_arrays, strict=True))
    ]
    values = [(x._array, y._array) for x, y in zip(eager_tensors, replayed_tensors, strict=True)]
    pairs += [(name, a, b) for name, (a, b) in zip(names, values, strict=True)]
    for name, a, b in pairs:
        if not _is_close(a, b):
            raise RuntimeError(
                f"{function}: a replay differs from the Python function in {name}. The function "
                f"returns {a}, the replay {b}. The function depends on a value that is neither an "
                "argument nor a tensor, such as a Python variable that has changed since tracing, "
                "or random numbers of NumPy."
            )


def _array(leaf: Any) -> Any:
    tensor = tensor_or_variable(leaf)
    if tensor is not None:
        return tensor._array
    try:
        return as_array(leaf)
    except (TypeError, ValueError):
        return None


def _is_close(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind in "biuO":
        return bool(np.all(a == b))
    tolerance = np.sqrt(np.finfo(a.dtype).eps) if a.dtype.kind in "fc" else 0.1
    wide_dtype = np.complex128 if a.dtype.kind == "c" else np.float64
    a, b = a.astype(wide_dtype), b.astype(wide_dtype)
    scale = np.max(np.abs(a[np.isfinite(a)]), initial=0.0)
    return bool(
        np.allclose(a, b, rtol=float(tolerance), atol=float(tolerance * scale), equal_nan=True)
    )
