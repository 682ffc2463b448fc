"""Products with sparse matrices."""

import numpy as np

from tests.ops.cases._table import COMPLEXES, FLOATS, INTEGERS, between, case, complexes

INDICES = np.array([[0, 1], [2, 2], [1, 0], [2, 0], [0, 1]])  # one is repeated


def _matrix(values, indices, shape):
    a = np.zeros(shape, values.dtype)
    for value, (i, j) in zip(values, indices, strict=True):
        a[i, j] += value
    return a


def _sparse_matmul(values, b, indices, shape):
    return _matrix(values, indices, shape) @ b


def _sampled_matmul(a, b, indices):
    y = a @ b.T
    return np.array([y[i, j] for i, j in indices], y.dtype).reshape(len(indices))


def _cases(values, b, label, indices=INDICES):
    options = {"dtypes": FLOATS + COMPLEXES + INTEGERS}
    case(
        "sparse_matmul",
        [values, b, indices],
        label,
        _sparse_matmul,
        attrs={"shape": (3, 3)},
        **options,
    )
    case("sampled_matmul", [b, b[::-1] * 1.1, indices], label, _sampled_matmul, **options)


_cases(between(0.5, 1.5, 5), between(0.5, 1.5, 3, 2), "matrix")
_cases(complexes(5), complexes(3, 2), "complex")
_cases(between(0.5, 1.5, 5), between(0.5, 1.5, 3, 0), "no_columns")
_cases(between(0.5, 1.5, 0), between(0.5, 1.5, 3, 2), "no_values", INDICES[:0])
