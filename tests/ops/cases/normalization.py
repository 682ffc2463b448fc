"""Softmax and cross entropies."""

from __future__ import annotations

import numpy as np

from tests.ops.cases._table import FLOATS, between, case, integers


def _softmax(x, *, axis):
    return np.exp(x) / np.sum(np.exp(x), axis=axis, keepdims=True)


def _log_softmax(x, *, axis):
    return x - np.log(np.sum(np.exp(x), axis=axis, keepdims=True))


for name, reference in {"softmax": _softmax, "log_softmax": _log_softmax}.items():
    case(name, between(-2, 2, 2, 3), "last", reference, attrs={"axis": 1})
    case(name, between(-2, 2, 3, 2), "first", reference, attrs={"axis": 0})
    case(name, between(-2, 2, 0, 3), "empty", reference, attrs={"axis": 1})
    case(name, between(-2, 2, 2, 0), "no_classes", reference, attrs={"axis": 1})


def _sparsemax(x, *, axis):
    """Projects onto the probability simplex by bisection."""
    low, high = (x.max(axis, keepdims=True, initial=-np.inf) - shift for shift in (1, 0))
    for _ in range(60):
        middle = (low + high) / 2
        large = np.maximum(x - middle, 0).sum(axis, keepdims=True) > 1
        low, high = np.where(large, middle, low), np.where(large, high, middle)
    return np.maximum(x - low, 0)


SCORES = np.array([[0.3, 1.1, 0.9, -1.0], [2.0, 0.1, 0.2, 0.4], [0.11, 0.13, 0.18, 0.04]])
case(
    "sparsemax", SCORES, "last", _sparsemax, attrs={"axis": 1}, jax_rule=False
)  # non-differentiable points
case("sparsemax", SCORES.T.copy(), "first", _sparsemax, attrs={"axis": 0}, jax_rule=False)
case("sparsemax", SCORES[:0], "empty", _sparsemax, attrs={"axis": 1})


def _cross_entropy(labels, logits):
    return -np.sum(labels * _log_softmax(logits, axis=-1), axis=-1)


def _sparse_cross_entropy(labels, logits):
    return _cross_entropy(np.eye(logits.shape[-1])[labels], logits)


def _residual(labels, logits):
    return _softmax(logits, axis=-1) - np.eye(logits.shape[-1])[labels]


for label, shape in {"matrix": (2, 3), "vector": (3,), "cube": (2, 2, 3), "empty": (0, 3)}.items():
    logits = between(-2, 2, *shape)
    case("softmax_cross_entropy", [between(0.1, 1, *shape), logits], label, _cross_entropy)
    labels = integers(0, 3, *shape[:-1], dtype="int64" if label == "matrix" else "int32")
    case("sparse_softmax_cross_entropy", [labels, logits], label, _sparse_cross_entropy,
         dtypes=FLOATS)  # fmt: skip
    case("softmax_residual", [labels, logits], label, _residual, dtypes=FLOATS)
