"""Connectionist temporal classification: labels that no one has aligned with time."""

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.keras_backend.conversion import cast, convert_to_tensor
from retrograde.keras_backend.ops._inputs import inexact, single
from retrograde.nn import ctc, ctc_decoding
from retrograde.ops import arithmetic as ar
from retrograde.ops import indexing, reduction
from retrograde.ops.shaping import concat, reshape


def ctc_loss(target, output, target_length, output_length, mask_index=0):
    """Minus the log probability of `target`, over all ways to align it with time.

    `output` are logits of `(batch, time, classes)`, `mask_index` is the class that is no label.
    """
    return ctc.ctc_loss(
        cast(target, "int32"),
        single(inexact(output)),
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
    """Labels read off logits of `(batch, time, classes)`, best first, and what they score.

    The labels are `(paths, batch, time)`, filled up with -1.
    """
    x = single(inexact(inputs))
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
    over = Tensor(np.arange(time, dtype=np.int32)) >= reshape(lengths, shape=(batch, 1))
    nothing = convert_to_tensor(-1, "int32")
    best = apply(reduction.argmax, (x,), {"axis": 2, "dtype": np.dtype(np.int32)})
    best = apply(ar.select, (over, convert_to_tensor(mask_index, "int32"), best))
    blank = best == mask_index
    if merge_repeated:
        first = Tensor(np.zeros((batch, 1), bool))
        blank = blank | concat(first, best[:, 1:] == best[:, :-1], axis=1)
    best = apply(ar.select, (blank, nothing, best))
    # Blanks go behind the labels, which stay in order.
    order = apply(indexing.argsort, (cast(blank, "int32"),), {"axis": 1, "descending": False})
    order = reshape(order, shape=(batch, time, 1))
    labels = apply(indexing.gather_nd, (best, order), {"batch_dims": 1})
    largest = apply(reduction.max, (x,), {"axis": (2,), "keepdims": False})
    largest = apply(ar.mask, (largest, apply(ar.logical_not, (over,))))
    scores = apply(reduction.sum, (largest,), {"axis": (1,), "keepdims": True})
    return reshape(labels, shape=(1, batch, time)), -scores


def _beam_search(x, lengths, width, count, mask_index):
    """On the host: how many sequences there are depends on the numbers."""
    x, lengths = np.asarray(x), np.asarray(lengths)
    batch, time, classes = x.shape
    others = np.delete(np.arange(classes), mask_index)
    x = x[:, :, [*others, mask_index]]
    logs = x - np.logaddexp.reduce(x, 2, keepdims=True)
    labels = np.full((count, batch, time), -1, np.int32)
    scores = np.full((batch, count), -np.inf, x.dtype)
    for row, length in enumerate(lengths):
        paths, found = ctc_decoding.beam_search(logs[row, :length], width, count)
        scores[row, : len(found)] = found
        for place, path in enumerate(paths):
            labels[place, row, : len(path)] = others[path]
    return Tensor(labels), Tensor(scores)
