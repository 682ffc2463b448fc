"""CTC decoding: label sequences from the outputs of a network. No gradient flows."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.math._inputs import check_dtype
from retrograde.nn.ctc import blank_class
from retrograde.ops.conversion import as_tensor
from retrograde.ops.host_functions import host_function
from retrograde.sparse.tensor import SparseTensor
from retrograde.values.arguments import as_text
from retrograde.values.errors import FailedPreconditionError, invalid


@host_function(dynamic_shapes=True)
def ctc_greedy_decoder(
    inputs: Any,
    sequence_length: Any,
    merge_repeated: bool = True,
    blank_index: int | None = None,
) -> tuple[list[SparseTensor], Tensor]:
    """Decodes the most likely class at each time step, without blanks, and returns the cost.

    `inputs` has the shape `(time, batch, classes)`. With `merge_repeated`, consecutive equal labels
    count once. The blank is the last class unless `blank_index` is given. The cost is the negative
    sum of the largest logits, of shape `(batch, 1)`.

    >>> logits = tf.one_hot([[1], [1], [2], [0]], 3)
    >>> (labels,), cost = tf.nn.ctc_greedy_decoder(logits, [4], blank_index=2)
    >>> labels.values.numpy(), cost.numpy()
    (array([1, 0]), array([[-4.]], dtype=float32))
    """
    op_name = "ctc_greedy_decoder"
    x, lengths = _check_inputs(inputs, sequence_length, op_name)
    time, batch, num_classes = x.shape
    blank = blank_class(-1 if blank_index is None else blank_index, num_classes, op_name)
    best = x.argmax(2)
    within = np.arange(time)[:, None] < lengths
    new = within & (best != blank)
    if merge_repeated:
        new[1:] &= best[1:] != best[:-1]
    cost = -np.where(within, x.max(2), 0).sum(0, dtype=x.dtype)
    return [_sparse([best[new[:, b], b] for b in range(batch)])], Tensor(cost[:, None])


@host_function(dynamic_shapes=True)
def ctc_beam_search_decoder(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[SparseTensor], Tensor]:
    """Returns the `top_paths` most likely label sequences, best first, and their log probabilities.

    `inputs` has the shape `(time, batch, classes)`; the last class is the blank. At each time step
    only the `beam_width` most likely prefixes are kept. The log probabilities have the shape
    `(batch, top_paths)`.

    >>> logits = tf.one_hot([[1], [1], [2], [0]], 3) * 9.0
    >>> (labels,), _ = tf.nn.ctc_beam_search_decoder(logits, [4])
    >>> labels.values.numpy()
    array([1, 0])
    """
    op_name = "ctc_beam_search_decoder"
    x, lengths = _check_inputs(inputs, sequence_length, op_name)
    if min(beam_width, top_paths) < 1 or top_paths > beam_width:
        raise invalid(
            f"{op_name}: expected 1 <= top_paths <= beam_width. Received: "
            f"top_paths={as_text(top_paths)} and beam_width={as_text(beam_width)}."
        )
    if not x.shape[2]:
        raise invalid(f"{op_name}: expected at least one class. Received: shape {x.shape}.")
    with np.errstate(invalid="ignore"):  # inputs may be infinite
        logs = x - np.logaddexp.reduce(x, 2, keepdims=True)
        decoded = [beam_search(logs[:n, b], beam_width, top_paths) for b, n in enumerate(lengths)]
    fewest = min((len(paths) for paths, _ in decoded), default=top_paths)
    if fewest < top_paths:
        raise invalid(
            f"{op_name}: found only {fewest} sequences of labels. Expected at least "
            f"top_paths={as_text(top_paths)}."
        )
    paths = [_sparse([paths[k] for paths, _ in decoded]) for k in range(top_paths)]
    scores = np.array([scores for _, scores in decoded], x.dtype).reshape(len(decoded), top_paths)
    return paths, Tensor(scores)


def _check_inputs(inputs: Any, sequence_length: Any, op_name: str) -> tuple[np.ndarray, np.ndarray]:
    tensor, length = as_tensor(inputs), as_tensor(sequence_length)
    check_dtype(tensor, ("float32", "float64"), "inputs", op_name)
    check_dtype(length, ("int32",), "sequence_length", op_name)
    x, lengths = np.asarray(tensor), np.asarray(length)
    if x.ndim != 3:
        raise invalid(f"{op_name}: inputs must have 3 axes. Received: shape {x.shape}.")
    if lengths.shape != x.shape[1:2] or np.any((lengths < 0) | (lengths > x.shape[0])):
        raise FailedPreconditionError(
            None,
            None,
            f"{op_name}: expected a sequence_length from 0 to {x.shape[0]} for each of the "
            f"{x.shape[1]} batch elements. Received: {lengths.tolist()}.",
        )
    return x, lengths


def _sparse(rows: list) -> SparseTensor:
    """Converts rows of labels to a SparseTensor as wide as the longest row."""
    lengths = [len(row) for row in rows]
    indices = [(i, k) for i, length in enumerate(lengths) for k in range(length)]
    values = np.array([label for row in rows for label in row], np.int64)
    shape = [len(rows), max(lengths, default=0)]
    return SparseTensor(np.array(indices, np.int64).reshape(-1, 2), values, shape)


class _Prefixes:
    """The label prefixes found so far, numbered, with the parent and the last label of each."""

    def __init__(self) -> None:
        self.parents, self.labels = [-1], [-1]
        self.numbers: dict[tuple[int, int], int] = {}

    def extend(self, prefix: int, label: int) -> int:
        """Returns the number of `prefix` with one more label."""
        key = (prefix, label)
        if key not in self.numbers:
            self.numbers[key] = len(self.parents)
            self.parents.append(prefix)
            self.labels.append(label)
        return self.numbers[key]

    def labels_of(self, prefix: int) -> list[int]:
        """Returns all labels of a prefix."""
        labels = []
        while prefix:
            labels.append(self.labels[prefix])
            prefix = self.parents[prefix]
        return labels[::-1]


def beam_search(logs: np.ndarray, width: int, count: int) -> tuple[list, np.ndarray]:
    """Returns the best `count` label sequences, or fewer if fewer exist, and their scores.

    Each prefix has two log probabilities: of ending in its last label (`ending`) and of ending in a
    blank (`blank`). A label that repeats the last one requires a blank in between.
    """
    prefixes, beam = _Prefixes(), [0]
    blank, ending = np.zeros(1), np.full(1, -np.inf)
    for step in logs.astype(np.float64):
        last = np.array([prefixes.labels[p] for p in beam], np.int64)
        total = np.logaddexp(blank, ending)
        extensions = total[:, None] + step[:-1]
        nonempty = np.flatnonzero(last >= 0)
        extensions[nonempty, last[nonempty]] = blank[nonempty] + step[last[nonempty]]
        ending[nonempty] += step[last[nonempty]]
        positions = {prefix: position for position, prefix in enumerate(beam)}
        for position in nonempty:  # a prefix can also be an extension of another in the beam
            parent = positions.get(prefixes.parents[beam[position]])
            if parent is not None:
                ending[position] = np.logaddexp(
                    ending[position], extensions[parent, last[position]]
                )
                extensions[parent, last[position]] = -np.inf
        blank = total + step[-1]
        scores = np.concatenate([np.logaddexp(blank, ending), extensions.ravel()])
        order = np.argsort(-scores, kind="stable")[:width]
        order = order[scores[order] > -np.inf]
        kept, extension = order < len(beam), order - len(beam)
        parents, labels = extension // extensions.shape[1], extension % extensions.shape[1]
        beam = [
            beam[position] if keep else prefixes.extend(beam[parent], int(label))
            for position, keep, parent, label in zip(order, kept, parents, labels, strict=True)
        ]
        ending = np.where(kept, np.append(ending, 0)[np.where(kept, order, -1)], scores[order])
        blank = np.where(kept, np.append(blank, 0)[np.where(kept, order, -1)], -np.inf)
    scores = np.logaddexp(blank, ending)
    best = np.argsort(-scores, kind="stable")[:count]
    return [prefixes.labels_of(beam[position]) for position in best], scores[best]
