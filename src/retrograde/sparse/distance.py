"""tf.edit_distance, of sequences held in sparse tensors."""

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
    """How many elements to insert, delete or replace to get from one sequence to the other.

    Sequences lie along the last axis. With `normalize` the number is divided by the length of the
    true one; it is infinite if that is empty and the other is not.

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
    found, expected = _sequences(hypothesis), _sequences(truth)
    y = np.zeros(np.maximum(*(shape[:-1] for shape in shapes)), np.float32)
    for place in found.keys() | expected.keys():
        a, b = found.get(place, []), expected.get(place, [])
        distance = _distance(a, b)
        if normalize:
            distance = distance / len(b) if b else (np.inf if a else 0.0)
        y[place] = distance
    return Tensor(y)


def _sequences(x: SparseTensor) -> dict[tuple[int, ...], list]:
    rows: dict[tuple[int, ...], list] = {}
    values = np.asarray(x.values).tolist()
    for place, value in zip(map(tuple, indices_array(x)[:, :-1].tolist()), values, strict=True):
        rows.setdefault(place, []).append(value)
    return rows


def _distance(a: Sequence, b: Sequence) -> int:
    """Row by row of the table of distances between all beginnings of `a` and of `b`."""
    before = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b):
            row.append(min(before[j + 1] + 1, row[j] + 1, before[j] + (x != y)))
        before = row
    return before[-1]
