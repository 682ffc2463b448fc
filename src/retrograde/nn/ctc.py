"""Connectionist temporal classification (CTC): losses of unaligned label sequences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.math._inputs import check_dtype
from retrograde.ops import arithmetic as ar
from retrograde.ops import normalization, reduction
from retrograde.ops._arrays import compute_dtype
from retrograde.ops.arguments import integer_array
from retrograde.ops.casting import to_dtype, zeros_like
from retrograde.ops.conversion import as_tensor
from retrograde.ops.host_functions import host_function
from retrograde.ops.indexing import gather_nd
from retrograde.ops.lattice import NEVER, path_log_sums
from retrograde.ops.shaping import broadcast_to, concat, reshape, stack, transpose
from retrograde.sparse.tensor import SparseTensor
from retrograde.values import dtypes
from retrograde.values.arguments import as_text
from retrograde.values.errors import invalid

_FLOATS = ("float16", "bfloat16", "float32", "float64")
_INT64 = dtypes.int64.numpy_dtype


def ctc_loss(
    labels: Any,
    logits: Any,
    label_length: Any,
    logit_length: Any,
    logits_time_major: bool = True,
    unique: Any = None,
    blank_index: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Computes the negative log likelihood of `labels`, summed over all alignments.

    `logits` has the shape `(time, batch, classes)`, or `(batch, time, classes)` without
    `logits_time_major`, and need not be normalized. `labels` is a matrix with `label_length` labels
    in each row, or a SparseTensor, which requires `blank_index` and ignores the lengths. The blank
    class is `blank_index`, 0 by default; negative numbers count from the end. If the labels do not
    fit into `logit_length`, the loss is infinite and no gradient flows. `unique` has no effect.

    >>> logits = tf.zeros([3, 1, 2])
    >>> np.exp(-tf.nn.ctc_loss([[1]], logits, [1], [3]).numpy()).round(4)  # 6 of 8 alignments
    array([0.75], dtype=float32)
    """
    x = as_tensor(logits)
    check_dtype(x, _FLOATS, "logits", "ctc_loss")
    if x.ndim != 3:
        raise invalid(f"ctc_loss: logits must have 3 axes. Received: shape {x._spec.shape}.")
    times = as_tensor(logit_length)
    if isinstance(labels, SparseTensor):
        if blank_index is None:
            raise ValueError("ctc_loss: `blank_index` must be given if labels are a SparseTensor.")
        labels, label_length = _dense_labels(labels, x._spec.shape[1 if logits_time_major else 0])
    else:
        labels, label_length = as_tensor(labels), as_tensor(label_length)
        limit = as_tensor(x._spec.shape[0 if logits_time_major else 1], times._spec.dtype)
        times = apply(ar.minimum, (times, limit))
    logs = normalization.log_softmax(to_dtype(x, compute_dtype(x._spec.dtype)), axis=2)
    logs = transpose(logs, perm=(1, 2, 0) if logits_time_major else (0, 2, 1))
    _check_labels(labels, label_length, times, logs)
    blank = blank_class(blank_index or 0, logs._spec.shape[1], "ctc_loss")
    lengths = [to_dtype(n, _INT64) for n in (label_length, times)]
    total = _log_probability(to_dtype(labels, _INT64), logs, *lengths, blank)
    impossible = apply(ar.less, (total, as_tensor(NEVER / 2, total._spec.dtype)))
    loss = apply(ar.select, (impossible, as_tensor(math.inf, total._spec.dtype), -total))
    return to_dtype(loss, x._spec.dtype)


def _check_labels(labels: Tensor, label_length: Tensor, times: Tensor, logs: Tensor) -> None:
    batch = logs._spec.shape[0]
    if labels._spec.ndim != 2 or labels._spec.shape[0] != batch:
        raise invalid(
            f"ctc_loss: expected one row of labels for each of the {batch} batch elements. "
            f"Received: shape {labels._spec.shape}."
        )
    for argument, lengths in (("label_length", label_length), ("logit_length", times)):
        if lengths._spec.shape != (batch,):
            raise invalid(
                f"ctc_loss: expected `{argument}` of shape ({batch},). Received: shape "
                f"{lengths._spec.shape}."
            )
        check_dtype(lengths, ("int32", "int64"), argument, "ctc_loss")
    check_dtype(labels, ("int32", "int64"), "labels", "ctc_loss")


def blank_class(blank_index: int, num_classes: int, op_name: str) -> int:
    """Returns the blank class as a non-negative integer."""
    if not -num_classes <= blank_index < num_classes:
        raise invalid(
            f"{op_name}: expected blank_index from {-num_classes} to {num_classes - 1}, because "
            f"there are {num_classes} classes. Received: {as_text(blank_index)}."
        )
    return blank_index % num_classes


@host_function(dynamic_shapes=True)
def _dense_labels(labels: SparseTensor, batch: int) -> tuple[Tensor, Tensor]:
    """Converts sparse labels to a matrix and the number of labels in each row."""
    rows, values = np.asarray(labels.indices)[:, 0], np.asarray(labels.values)
    order = np.argsort(rows, kind="stable")
    rows, values = rows[order], values[order]
    lengths = np.bincount(rows, minlength=batch)
    positions = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    dense = np.zeros((len(lengths), lengths.max(initial=0)), values.dtype)
    dense[rows, positions] = values
    return Tensor(dense), Tensor(lengths)


def _log_probability(
    labels: Tensor, logs: Tensor, label_length: Tensor, times: Tensor, blank: int
) -> Tensor:
    """Computes the log probability of `labels` under `logs`, of shape `(batch, classes, time)`.

    A path visits the labels with a blank before, between and after them. It may skip a blank
    between two different labels.
    """
    batch, count = labels._spec.shape
    used = apply(ar.less, (Tensor(np.arange(count)), reshape(label_length, shape=(batch, 1))))
    labels = apply(ar.select, (used, labels, as_tensor(blank, _INT64)))
    states = _interleave_blanks(labels, blank)
    indices = reshape(states, shape=(*states._spec.shape, 1))
    state_logs = apply(gather_nd, (logs, indices), {"batch_dims": 1})
    state_logs = transpose(state_logs, perm=(2, 0, 1))
    state_logs = apply(ar.maximum, (state_logs, as_tensor(NEVER, state_logs._spec.dtype)))
    sums = apply(path_log_sums, (state_logs, _penalties(labels, state_logs._spec.dtype)))
    return _sum_final_states(sums, label_length, times)


def _interleave_blanks(labels: Tensor, blank: Any) -> Tensor:
    """Inserts `blank` before each label and at the end."""
    batch, count = labels._spec.shape
    blanks = broadcast_to(as_tensor(blank, labels._spec.dtype), shape=(batch, count + 1))
    pairs = stack(blanks[:, :count], labels, axis=2)
    return concat(reshape(pairs, shape=(batch, 2 * count)), blanks[:, :1], axis=1)


def _penalties(labels: Tensor, dtype: np.dtype) -> Tensor:
    """Returns, for each state and steps of 0, 1 and 2 states, `NEVER` if no path takes the step."""
    batch, count = labels._spec.shape
    stay = np.zeros((batch, 2 * count + 1), dtype)
    advance = np.where(np.arange(2 * count + 1) < 1, NEVER, stay).astype(dtype)
    never = as_tensor(NEVER, dtype)
    same = apply(ar.equal, (labels[:, 1:], labels[:, :-1]))
    repeated = apply(ar.mask, (never, same))
    first = broadcast_to(never, shape=(batch, min(count, 1)))
    skip = _interleave_blanks(concat(first, repeated, axis=1), NEVER)
    return stack(Tensor(stay), Tensor(advance), skip, axis=0)


def _sum_final_states(sums: Tensor, label_length: Tensor, times: Tensor) -> Tensor:
    """Sums the log probabilities of paths that end in the last label or the final blank."""
    _, batch, states = sums._spec.shape
    dtype = sums._spec.dtype
    start = np.where(np.arange(states) > 0, NEVER, 0).astype(dtype)
    start = np.broadcast_to(start, (1, batch, states))
    sums = transpose(concat(Tensor(start), sums, axis=0), perm=(1, 0, 2))
    no_label = apply(ar.equal, (label_length, zeros_like(label_length)))
    ends = []
    for state in (label_length * 2, label_length * 2 - 1):
        state = apply(ar.maximum, (state, zeros_like(state)))
        ends.append(apply(gather_nd, (sums, stack(times, state, axis=1)), {"batch_dims": 1}))
    ends[1] = apply(ar.select, (no_label, as_tensor(NEVER, dtype), ends[1]))
    return apply(reduction.logsumexp, (stack(*ends, axis=0),), {"axis": (0,), "keepdims": False})


@host_function
def ctc_unique_labels(labels: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Returns the distinct labels of each row, zero-padded, and the index of each label in them.

    >>> unique, indices = tf.nn.ctc_unique_labels([[3, 4, 3]])
    >>> unique.numpy(), indices.numpy()
    (array([[3, 4, 0]]), array([[0, 1, 0]], dtype=int32))
    """
    x = integer_array(labels, "ctc_unique_labels")
    if x.ndim != 2:
        raise invalid(f"ctc_unique_labels: labels must be a matrix. Received: shape {x.shape}.")
    same = x[:, :, None] == x[:, None, :]
    first = same.argmax(2) if x.size else np.zeros(x.shape, np.int64)
    is_first = first == np.arange(x.shape[1])
    number = np.cumsum(is_first, 1) - 1
    unique = np.zeros_like(x)
    rows, columns = np.nonzero(is_first)
    unique[rows, number[rows, columns]] = x[rows, columns]
    positions = np.take_along_axis(number, first, 1)
    return Tensor(unique), Tensor(positions.astype(np.int32))


@host_function(dynamic_shapes=True)
def collapse_repeated(
    labels: Any, seq_length: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Merges repeated labels in each row, zero-padded, and returns the new lengths.

    Only the first `seq_length` labels of each row count.

    >>> merged, lengths = tf.nn.collapse_repeated([[1, 1, 2, 2, 1]], [4])
    >>> merged.numpy(), lengths.numpy()
    (array([[1, 2]], dtype=int32), array([2], dtype=int32))
    """
    tensor, length = as_tensor(labels), as_tensor(seq_length)
    x = np.asarray(tensor)
    if x.ndim != 2:
        raise invalid(f"collapse_repeated: labels must be a matrix. Received: shape {x.shape}.")
    if length._spec.shape != x.shape[:1]:
        raise invalid(
            f"collapse_repeated: expected seq_length to have shape {x.shape[:1]}. Received: "
            f"{length._spec.shape}."
        )
    keep = np.arange(x.shape[1]) < np.asarray(length)[:, None]
    keep[:, 1:] &= x[:, 1:] != x[:, :-1]
    lengths = keep.sum(1)
    merged = np.zeros((len(x), lengths.max(initial=0)), x.dtype)
    merged[np.arange(merged.shape[1]) < lengths[:, None]] = x[keep]
    return Tensor(merged), Tensor(lengths.astype(length._spec.dtype))
