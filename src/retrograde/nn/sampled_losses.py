"""Losses over many classes that evaluate only a sample of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.nn.embeddings import embedding_lookup
from retrograde.nn.losses import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
)
from retrograde.ops import arithmetic as ar
from retrograde.ops import reduction
from retrograde.ops.casting import stop_gradient, to_dtype
from retrograde.ops.contraction import matmul
from retrograde.ops.conversion import as_tensor
from retrograde.ops.host_functions import host_function
from retrograde.ops.shaping import concat, reshape
from retrograde.random.candidate_sampling import Sample, class_matrix, log_uniform_candidate_sampler
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.errors import invalid

_INT64 = dtypes.int64.numpy_dtype
_LOWEST = np.finfo(np.float32).min


def nce_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    name: str | None = "nce_loss",
) -> Tensor:
    """Computes the noise-contrastive estimation loss of each row of `inputs`.

    The logits are computed from `weights`, with one row per class, and `biases`, for the `num_true`
    classes in each row of `labels` and for `num_sampled` other classes. These are drawn by
    `log_uniform_candidate_sampler`, unless `sampled_values` holds the result of a sampler. The
    gradients of weights and biases are IndexedSlices.
    """
    true = _true_classes(labels, inputs, num_true)
    if sampled_values is None:
        sampled_values = _sample_classes(true, num_true, num_sampled, num_classes)
    table = (weights, biases)
    logits, targets = _sampled_logits(table, true, inputs, sampled_values, remove_accidental_hits)
    losses = sigmoid_cross_entropy_with_logits(targets, logits)
    return apply(reduction.sum, (losses,), {"axis": (1,), "keepdims": False})


def sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    seed: int | None = None,
    name: str | None = "sampled_softmax_loss",
) -> Tensor:
    """Computes the cross entropy of a softmax over the true and some sampled classes.

    The arguments are the same as for `nce_loss`. Use it for training only: it does not compute the
    full softmax.
    """
    true = _true_classes(labels, inputs, num_true)
    if sampled_values is None:
        sampled_values = _sample_classes(true, num_true, num_sampled, num_classes, seed)
    table = (weights, biases)
    logits, targets = _sampled_logits(table, true, inputs, sampled_values, remove_accidental_hits)
    return softmax_cross_entropy_with_logits(targets, logits)


def _true_classes(labels: Any, inputs: Any, num_true: int) -> Tensor:
    true, x = to_dtype(as_tensor(labels), _INT64), as_tensor(inputs)
    if x.ndim != 2:
        raise invalid(f"expected `inputs` to be a matrix. Received: shape {x._spec.shape}.")
    shape = (x._spec.shape[0], num_true)
    if true._spec.shape != shape:
        raise invalid(
            f"expected labels of shape {shape}: num_true labels for each row of the inputs. "
            f"Received: shape {true._spec.shape}."
        )
    return true


def _sample_classes(
    true: Tensor, num_true: int, num_sampled: int, num_classes: int, seed: int | None = None
) -> Sample:
    return log_uniform_candidate_sampler(true, num_true, num_sampled, True, num_classes, seed)


def _sampled_logits(
    table: tuple[Any, Any], true: Tensor, inputs: Any, sample: Any, remove_accidental_hits: bool
) -> tuple[Tensor, Tensor]:
    """Returns the logits of true and sampled classes minus log(expected count), and the targets."""
    x = as_tensor(inputs)
    dtype, (batch, size), num_true = x._spec.dtype, x._spec.shape, true._spec.shape[1]
    if isinstance(sample, range) or len(sample) != 3:
        raise ValueError(
            "expected sampled_values to be three tensors: the classes and two expected counts. "
            f"Received: {shown(sample)}."
        )
    sampled, *counts = (stop_gradient(as_tensor(v)) for v in sample)
    sampled = to_dtype(sampled, _INT64)
    split = batch * num_true
    classes = concat(reshape(true, shape=(split,)), sampled, axis=0)
    rows, shifts = (embedding_lookup(part, classes) for part in table)
    if rows.ndim != 2:
        shape = rows._spec.shape[1:]
        raise invalid(f"expected `weights` to be a matrix. Received: rows of shape {shape}.")
    true_rows = reshape(rows[:split], shape=(batch, num_true, size))
    products = reshape(x, shape=(batch, 1, size)) * true_rows
    true_logits = apply(reduction.sum, (products,), {"axis": (2,), "keepdims": False})
    true_logits = true_logits + reshape(shifts[:split], shape=(batch, num_true))
    sampled_logits = matmul(x, rows[split:], transpose_b=True) + shifts[split:]
    if remove_accidental_hits:
        sampled_logits = sampled_logits + to_dtype(_mask_hits(true, sampled), dtype)
    logits = [
        part - to_dtype(apply(ar.log, (count,)), dtype)
        for part, count in zip((true_logits, sampled_logits), counts, strict=True)
    ]
    targets = np.zeros((batch, num_true + sampled._spec.size), dtype)
    targets[:, :num_true] = 1 / num_true
    return concat(*logits, axis=1), Tensor(targets)


@host_function
def _mask_hits(true: Tensor, sampled: Tensor) -> Tensor:
    """Returns offsets that remove sampled classes that are true classes from the logits."""
    hits = _hits(np.asarray(true), np.asarray(sampled)).any(1)
    return Tensor(np.where(hits, _LOWEST, np.float32(0)))


def _hits(true: np.ndarray, sampled: np.ndarray) -> np.ndarray:
    """Returns, for each true class of each row, which candidates are equal to it."""
    return true[:, :, None] == sampled


@host_function(dynamic_shapes=True)
def compute_accidental_hits(
    true_classes: Any,
    sampled_candidates: Any,
    num_true: int,
    seed: int | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Finds the candidates that are among the true classes of a row.

    Returns the rows, the indices of the candidates, and for each hit the lowest float32. Adding it
    to the logit removes the candidate from a softmax.

    >>> candidates = tf.constant([5, 3], tf.int64)
    >>> rows, indices, _ = tf.nn.compute_accidental_hits([[1], [3]], candidates, 1)
    >>> rows.numpy(), indices.numpy()
    (array([1], dtype=int32), array([1]))
    """
    op_name = "compute_accidental_hits"
    true = class_matrix(true_classes, num_true, "true_classes", op_name)
    sampled = as_tensor(sampled_candidates)
    if sampled._spec.ndim != 1 or sampled._spec.dtype != _INT64:
        raise invalid(
            f"{op_name}: sampled_candidates must be a vector of int64. Received: shape "
            f"{sampled._spec.shape}, {sampled.dtype.name}."
        )
    rows, _, indices = np.nonzero(_hits(np.asarray(true), np.asarray(sampled)))
    weights = np.full(len(rows), _LOWEST, np.float32)
    return Tensor(rows.astype(np.int32)), Tensor(indices), Tensor(weights)
