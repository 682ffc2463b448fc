"""tf.edit_distance between sequences in sparse tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops.host_functions import host_function
from retrograde.sparse._indices import check_same_dtype, indices_array, shape_of
from retrograde.sparse.tensor import SparseTensor
from retrograde.values.arguments import shown
from retrograde.values.errors import invalid


@host_function(dynamic_shapes=True)
def edit_distance(
    hypothesis: SparseTensor,
    truth: SparseTensor,
    normalize: bool = True,
    name: str | None = "edit_distance",
) -> Tensor:
    """Computes the Levenshtein distance (insertions, deletions, substitutions) between sequences.

    Sequences are along the last axis. With `normalize`, the distance is divided by the length of
    the true sequence; it is infinite if only the true sequence is empty.

    >>> a, b = tf.sparse.from_dense([[1, 2, 3]]), tf.sparse.from_dense([[1, 3]])
    >>> tf.edit_distance(a, b, normalize=False).numpy()
    array([1.], dtype=float32)
    """
    for x, role in ((hypothesis, "Hypothesis"), (truth, "Truth")):
        if not isinstance(x, SparseTensor):
            raise TypeError(f"{role} must be a SparseTensor. Received: {shown(x)}.")
    check_same_dtype("edit_distance", hypothesis.values, truth.values)
    shapes = shape_of(hypothesis), shape_of(truth)
    if len(shapes[0]) != len(shapes[1]) or len(shapes[0]) < 2:
        raise invalid(
            f"edit_distance: expected equal ranks of at least 2. Received: shapes {shapes[0]} and "
            f"{shapes[1]}."
        )
    actual, expected = _sequences(hypothesis), _sequences(truth)
    y = np.zeros(np.maximum(*(shape[:-1] for shape in shapes)), np.float32)
    for index in actual.keys() | expected.keys():
        a, b = actual.get(index, []), expected.get(index, [])
        distance = _distance(a, b)
        if normalize:
            distance = distance / len(b) if b else (np.inf if a else 0.0)
        y[index] = distance
    return Tensor(y)


def _sequences(x: SparseTensor) -> dict[tuple[int, ...], list]:
    rows: dict[tuple[int, ...], list] = {}
    values = np.asarray(x.values).tolist()
    for index, value in zip(map(tuple, indices_array(x)[:, :-1].tolist()), values, strict=True):
        rows.setdefault(index, []).append(value)
    return rows


def _distance(a: Sequence, b: Sequence) -> int:
    """Computes the distance by dynamic programming over prefixes of `a` and `b`."""
    previous = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b):
            row.append(min(previous[j + 1] + 1, row[j] + 1, previous[j] + (x != y)))
        previous = row
    return previous[-1]
