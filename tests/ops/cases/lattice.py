"""Paths through a lattice of time and states."""

from __future__ import annotations

import itertools

import numpy as np

from tests.ops.cases._table import between, case


def _matrix(weights):
    """Returns the weights as one matrix, between all pairs of time and state."""
    _, time, states = weights.shape
    matrix = np.zeros((time, states, time, states))
    for k, t, s in itertools.product(range(3), range(1, time), range(states)):
        if s >= k:
            matrix[t, s, t - 1, s - k] = weights[k, t, s]
    return matrix.reshape(time * states, time * states)


def _recurrence(weights, x, *, reverse):
    """Solves one linear system for all times."""
    y = np.empty_like(x)
    for row in np.ndindex(x.shape[1:-1]):
        key = (slice(None), *row)
        matrix = _matrix(weights[(slice(None), *key)])
        matrix = matrix.T if reverse else matrix
        solved = np.linalg.solve(np.eye(len(matrix)) - matrix, x[key].ravel())
        y[key] = solved.reshape(x[key].shape)
    return y


SHAPES = {"rows": (4, 2, 5), "one_row": (3, 4), "short": (1, 2, 1), "empty": (0, 2)}
for reverse in (False, True):
    for label, shape in SHAPES.items():
        inputs = [between(0.1, 0.6, 3, *shape), between(-1, 1, *shape)]
        label += "_reverse" * reverse
        case("lattice_recurrence", inputs, label, _recurrence, attrs={"reverse": reverse})


def _path_log_sums(x, penalty):
    """Enumerates all paths."""
    y = np.full(x.shape, -np.inf)
    for t, *row in np.ndindex(x.shape[:-1]):
        for steps in itertools.product(range(3), repeat=t + 1):
            path = np.cumsum(steps)
            if path[-1] < x.shape[-1]:
                cost = sum(penalty[(k, *row, s)] for k, s in zip(steps, path, strict=True))
                total = sum(x[(i, *row, s)] for i, s in enumerate(path)) + cost
                key = (t, *row, path[-1])
                y[key] = np.logaddexp(y[key], total)
    return y


def _penalty(*shape):
    """Returns random penalties that exclude paths from before the first state."""
    penalty = between(-1, 0, 3, *shape)
    penalty[1, ..., :1] = penalty[2, ..., :2] = -50
    return penalty


case("path_log_sums", [between(-2, 0, 4, 2, 3), _penalty(2, 3)], "rows", _path_log_sums)
case("path_log_sums", [between(-2, 0, 5, 3), _penalty(3)], "one_row", _path_log_sums)
case("path_log_sums", [between(-2, 0, 0, 2, 3), _penalty(2, 3)], "empty", _path_log_sums)
