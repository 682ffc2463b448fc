"""Connectionist temporal classification (CTC)."""

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.keras_backend.conversion import cast, convert_to_tensor
from retrograde.keras_backend.ops._inputs import at_least_float32, inexact
from retrograde.nn import ctc, ctc_decoding
from retrograde.ops import arithmetic as ar
from retrograde.ops import indexing, reduction
from retrograde.ops.shaping import concat, reshape


def ctc_loss(target, output, target_length, output_length, mask_index=0):
    """Computes the negative log-likelihood of `target`, summed over all alignments.

    `output` holds logits `(batch, time, classes)`; `mask_index` is the blank class.
    """
    return ctc.ctc_loss(
        cast(target, "int32"),
        at_least_float32(inexact(output)),
        cast(target_length, "int32"),
        cast(output_length, "int32"),
        logits_time_major=False,
        blank_index=mask_index,
    )


def ctc_decode(
    inputs,
    sequence_lengths,
    strategy="greedy",
    beam_width=100,
    top_paths=1,
    merge_repeated=True,
    mask_index=0,
):
    """Decodes logits `(batch, time, classes)`. Returns labels, best path first, and scores.

    The labels have shape `(paths, batch, time)` and are padded with -1.
    """
    x = at_least_float32(inexact(inputs))
    lengths = cast(sequence_lengths, "int32")
    mask_index = x.shape[-1] - 1 if mask_index is None else mask_index
    if strategy == "greedy":
        return _greedy(x, lengths, merge_repeated, mask_index)
    if strategy == "beam_search":
        return _beam_search(x, lengths, beam_width, top_paths, mask_index)
    raise ValueError(
        f"Invalid strategy {strategy}. Supported values are 'greedy' and 'beam_search'."
    )


def _greedy(x, lengths, merge_repeated, mask_index):
    batch, time, _ = x._spec.shape
    past_end = Tensor(np.arange(time, dtype=np.int32)) >= reshape(lengths, shape=(batch, 1))
    padding = convert_to_tensor(-1, "int32")
    best = apply(reduction.argmax, (x,), {"axis": 2, "dtype": np.dtype(np.int32)})
    best = apply(ar.select, (past_end, convert_to_tensor(mask_index, "int32"), best))
    blank = best == mask_index
    if merge_repeated:
        first = Tensor(np.zeros((batch, 1), bool))
        blank = blank | concat(first, best[:, 1:] == best[:, :-1], axis=1)
    best = apply(ar.select, (blank, padding, best))
    # Move blanks after the labels; a stable sort keeps the labels in order.
    order = apply(indexing.argsort, (cast(blank, "int32"),), {"axis": 1, "descending": False})
    order = reshape(order, shape=(batch, time, 1))
    labels = apply(indexing.gather_nd, (best, order), {"batch_dims": 1})
    largest = apply(reduction.max, (x,), {"axis": (2,), "keepdims": False})
    largest = apply(ar.mask, (largest, apply(ar.logical_not, (past_end,))))
    scores = apply(reduction.sum, (largest,), {"axis": (1,), "keepdims": True})
    return reshape(labels, shape=(1, batch, time)), -scores


def _beam_search(x, lengths, beam_width, top_paths, mask_index):
    """Runs beam search on the host: the number of sequences depends on the values."""
    x, lengths = np.asarray(x), np.asarray(lengths)
    batch, time, classes = x.shape
    labels_without_blank = np.delete(np.arange(classes), mask_index)
    x = x[:, :, [*labels_without_blank, mask_index]]
    logs = x - np.logaddexp.reduce(x, 2, keepdims=True)
    labels = np.full((top_paths, batch, time), -1, np.int32)
    scores = np.full((batch, top_paths), -np.inf, x.dtype)
    for row, length in enumerate(lengths):
        paths, path_scores = ctc_decoding.beam_search(logs[row, :length], beam_width, top_paths)
        scores[row, : len(path_scores)] = path_scores
        for rank, path in enumerate(paths):
            labels[rank, row, : len(path)] = labels_without_blank[path]
    return Tensor(labels), Tensor(scores)
