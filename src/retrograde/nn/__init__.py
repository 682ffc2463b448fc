"""tf.nn: activations, cross entropies, moments and lookups. `name` is accepted and ignored."""

from retrograde.math import (
    l2_normalize,
    log_softmax,
    sigmoid,
    softmax,
    softplus,
    softsign,
    tanh,
    zero_fraction,
)
from retrograde.nn.activations import crelu, elu, gelu, leaky_relu, relu, relu6, selu, silu, swish
from retrograde.nn.lookups import dropout, embedding_lookup
from retrograde.nn.losses import (
    l2_loss,
    log_poisson_loss,
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
    weighted_cross_entropy_with_logits,
)
from retrograde.nn.normalisation import (
    batch_normalization,
    bias_add,
    moments,
    normalize_moments,
    sufficient_statistics,
    weighted_moments,
)

__all__ = [
    "batch_normalization",
    "bias_add",
    "crelu",
    "dropout",
    "elu",
    "embedding_lookup",
    "gelu",
    "l2_loss",
    "l2_normalize",
    "leaky_relu",
    "log_poisson_loss",
    "log_softmax",
    "moments",
    "normalize_moments",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "sigmoid_cross_entropy_with_logits",
    "silu",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softplus",
    "softsign",
    "sparse_softmax_cross_entropy_with_logits",
    "sufficient_statistics",
    "swish",
    "tanh",
    "weighted_cross_entropy_with_logits",
    "weighted_moments",
    "zero_fraction",
]
