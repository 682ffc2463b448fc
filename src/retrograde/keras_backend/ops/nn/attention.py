"""Attention."""

import math

import numpy as np

from retrograde.core.apply import apply
from retrograde.keras_backend.conversion import cast, convert_to_tensor
from retrograde.keras_backend.ops._inputs import promoted, single
from retrograde.ops import arithmetic as ar
from retrograde.ops import normalization
from retrograde.ops.contraction import matmul
from retrograde.ops.shaping import reshape, transpose

_HEADS_SECOND = (0, 2, 1, 3)


def dot_product_attention(
    query,
    key,
    value,
    bias=None,
    mask=None,
    scale=None,
    is_causal=False,
    flash_attention=None,
    attn_logits_soft_cap=None,
):
    """Sums of `value`, weighed by how well each `query` fits each `key`.

    All have axes for batch, time, heads and features; several heads of queries may share one of
    keys and values. The weights are computed in float32 or better.
    """
    if flash_attention:
        raise ValueError("Flash attention is not supported with the retrograde backend.")
    query, key, value = promoted(query, key, value)
    if query.ndim != 4:
        raise ValueError(
            f"`dot_product_attention` only supports 4D inputs. Received: query.shape={query.shape},"
            f" key.shape={key.shape}, value.shape={value.shape}."
        )
    dtype = query.dtype.name
    scale = 1 / math.sqrt(key.shape[-1]) if scale is None else scale
    query, key, value = (transpose(x, perm=_HEADS_SECOND) for x in (query, key, value))
    shape = (*query._spec.shape[:3], key.shape[2])
    query = _by_heads(query, key.shape[1])
    logits = reshape(apply(matmul, (query, key), {"transpose_b": True}), shape=shape)
    logits = single(logits) * scale
    wide = logits.dtype.name
    if bias is not None:
        logits = logits + convert_to_tensor(bias, wide)
    allowed = _allowed(mask, is_causal, logits._spec.shape[-2:])
    if allowed is not None:
        never = convert_to_tensor(-0.7 * float(np.finfo(np.float32).max), wide)
        logits = apply(ar.select, (allowed, logits, never))
    weights = apply(normalization.softmax, (logits,), {"axis": 3})
    weights = _by_heads(cast(weights, dtype), value.shape[1])
    y = reshape(apply(matmul, (weights, value)), shape=(*shape[:3], value.shape[3]))
    return transpose(y, perm=_HEADS_SECOND)


def _by_heads(x, heads):
    """`x` with `heads` heads: those of it that share one are laid end to end."""
    batch, own, time, features = x._spec.shape
    if own == heads:
        return x
    return reshape(x, shape=(batch, heads, own // heads * time, features))


def _allowed(mask, is_causal, shape):
    """What each query may attend to, or `None` if it may attend to all."""
    allowed = None if mask is None else cast(mask, "bool")
    if not is_causal:
        return allowed
    causal = convert_to_tensor(np.tril(np.ones(shape, bool)))
    return causal if allowed is None else apply(ar.logical_and, (allowed, causal))
