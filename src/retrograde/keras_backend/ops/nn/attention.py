"""Dot-product attention."""

import math

import numpy as np

from retrograde.core.apply import apply
from retrograde.keras_backend.conversion import cast, convert_to_tensor
from retrograde.keras_backend.ops._inputs import at_least_float32, promote
from retrograde.ops import arithmetic as ar
from retrograde.ops import normalization
from retrograde.ops.contraction import matmul
from retrograde.ops.shaping import reshape, transpose
from retrograde.shape_inference.inference import created_from_sizes

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
    """Computes scaled dot-product attention.

    Inputs have shape `(batch, time, heads, features)`. Several query heads may share one head of
    keys and values. The softmax is computed in float32 or float64.
    """
    if flash_attention:
        raise ValueError("Flash attention is not supported with the retrograde backend.")
    query, key, value = promote(query, key, value)
    if query.ndim != 4:
        raise ValueError(
            f"`dot_product_attention` only supports 4D inputs. Received: query.shape={query.shape},"
            f" key.shape={key.shape}, value.shape={value.shape}."
        )
    dtype = query.dtype.name
    scale = 1 / math.sqrt(key.shape[-1]) if scale is None else scale
    query, key, value = (transpose(x, perm=_HEADS_SECOND) for x in (query, key, value))
    shape = (*query._spec.shape[:3], key.shape[2])
    query = _group_heads(query, key.shape[1])
    logits = reshape(apply(matmul, (query, key), {"transpose_b": True}), shape=shape)
    logits = at_least_float32(logits) * scale
    wide = logits.dtype.name
    if bias is not None:
        logits = logits + convert_to_tensor(bias, wide)
    mask = _combined_mask(mask, is_causal, logits._spec.shape[-2:])
    if mask is not None:
        masked_value = convert_to_tensor(-0.7 * float(np.finfo(np.float32).max), wide)
        logits = apply(ar.select, (mask, logits, masked_value))
    weights = apply(normalization.softmax, (logits,), {"axis": 3})
    weights = _group_heads(cast(weights, dtype), value.shape[1])
    y = reshape(apply(matmul, (weights, value)), shape=(*shape[:3], value.shape[3]))
    return transpose(y, perm=_HEADS_SECOND)


def _group_heads(x, kv_heads):
    """Concatenates along time the query heads that share one of the `kv_heads`."""
    batch, query_heads, time, features = x._spec.shape
    if query_heads == kv_heads:
        return x
    return reshape(x, shape=(batch, kv_heads, query_heads // kv_heads * time, features))


def _combined_mask(mask, is_causal, shape):
    """Returns `mask` combined with the causal mask, or `None` if there is neither."""
    mask = None if mask is None else cast(mask, "bool")
    if not is_causal:
        return mask
    causal = created_from_sizes(_causal_mask, shape)
    causal = _causal_mask(shape) if causal is None else causal
    return causal if mask is None else apply(ar.logical_and, (mask, causal))


def _causal_mask(shape):
    return convert_to_tensor(np.tril(np.ones(shape, bool)))
