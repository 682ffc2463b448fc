"""tf.nn: activations, convolutions, losses, moments, lookups. `name` is accepted and ignored."""

from typing import TYPE_CHECKING

from retrograde._api.lazy import lazily
from retrograde._api.names import HOMES

if TYPE_CHECKING:
    from retrograde.math import (
        approx_max_k,
        approx_min_k,
        in_top_k,
        l2_normalize,
        log_softmax,
        sigmoid,
        softmax,
        softplus,
        softsign,
        tanh,
        top_k,
        zero_fraction,
    )
    from retrograde.nn import experimental
    from retrograde.nn.activations import (
        crelu,
        elu,
        gelu,
        leaky_relu,
        relu,
        relu6,
        selu,
        silu,
        swish,
    )
    from retrograde.nn.averaging import compute_average_loss, scale_regularization_loss
    from retrograde.nn.blocks import (
        depth_to_space,
        space_to_batch,
        space_to_depth,
        with_space_to_batch,
    )
    from retrograde.nn.convolutions import (
        atrous_conv2d,
        atrous_conv2d_transpose,
        conv1d,
        conv1d_transpose,
        conv2d,
        conv2d_transpose,
        conv3d,
        conv3d_transpose,
        conv_transpose,
        convolution,
    )
    from retrograde.nn.ctc import collapse_repeated, ctc_loss, ctc_unique_labels
    from retrograde.nn.decoding import ctc_beam_search_decoder, ctc_greedy_decoder
    from retrograde.nn.depthwise import (
        depthwise_conv2d,
        depthwise_conv2d_backprop_filter,
        depthwise_conv2d_backprop_input,
        separable_conv2d,
    )
    from retrograde.nn.embeddings import embedding_lookup_sparse, safe_embedding_lookup_sparse
    from retrograde.nn.fractional import fractional_avg_pool, fractional_max_pool
    from retrograde.nn.isotonic import isotonic_regression
    from retrograde.nn.lookups import dropout, embedding_lookup
    from retrograde.nn.losses import (
        l2_loss,
        log_poisson_loss,
        sigmoid_cross_entropy_with_logits,
        softmax_cross_entropy_with_logits,
        sparse_softmax_cross_entropy_with_logits,
        weighted_cross_entropy_with_logits,
    )
    from retrograde.nn.morphology import dilation2d, erosion2d
    from retrograde.nn.normalisation import (
        batch_norm_with_global_normalization,
        batch_normalization,
        bias_add,
        local_response_normalization,
        lrn,
        moments,
        normalize_moments,
        sufficient_statistics,
        weighted_moments,
    )
    from retrograde.nn.pooling import (
        avg_pool,
        avg_pool1d,
        avg_pool2d,
        avg_pool3d,
        max_pool,
        max_pool1d,
        max_pool2d,
        max_pool3d,
        max_pool_with_argmax,
        pool,
    )
    from retrograde.nn.sampled import compute_accidental_hits, nce_loss, sampled_softmax_loss
    from retrograde.random.candidates import (
        all_candidate_sampler,
        fixed_unigram_candidate_sampler,
        learned_unigram_candidate_sampler,
    )

__getattr__, __dir__ = lazily(__name__, HOMES[__name__])

__all__ = [
    "all_candidate_sampler",
    "approx_max_k",
    "approx_min_k",
    "atrous_conv2d",
    "atrous_conv2d_transpose",
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm_with_global_normalization",
    "batch_normalization",
    "bias_add",
    "collapse_repeated",
    "compute_accidental_hits",
    "compute_average_loss",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "conv_transpose",
    "convolution",
    "crelu",
    "ctc_beam_search_decoder",
    "ctc_greedy_decoder",
    "ctc_loss",
    "ctc_unique_labels",
    "depth_to_space",
    "depthwise_conv2d",
    "depthwise_conv2d_backprop_filter",
    "depthwise_conv2d_backprop_input",
    "dilation2d",
    "dropout",
    "elu",
    "embedding_lookup",
    "embedding_lookup_sparse",
    "erosion2d",
    "experimental",
    "fixed_unigram_candidate_sampler",
    "fractional_avg_pool",
    "fractional_max_pool",
    "gelu",
    "in_top_k",
    "isotonic_regression",
    "l2_loss",
    "l2_normalize",
    "leaky_relu",
    "learned_unigram_candidate_sampler",
    "local_response_normalization",
    "log_poisson_loss",
    "log_softmax",
    "lrn",
    "max_pool",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_pool_with_argmax",
    "moments",
    "nce_loss",
    "normalize_moments",
    "pool",
    "relu",
    "relu6",
    "safe_embedding_lookup_sparse",
    "sampled_softmax_loss",
    "scale_regularization_loss",
    "selu",
    "separable_conv2d",
    "sigmoid",
    "sigmoid_cross_entropy_with_logits",
    "silu",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softplus",
    "softsign",
    "space_to_batch",
    "space_to_depth",
    "sparse_softmax_cross_entropy_with_logits",
    "sufficient_statistics",
    "swish",
    "tanh",
    "top_k",
    "weighted_cross_entropy_with_logits",
    "weighted_moments",
    "with_space_to_batch",
    "zero_fraction",
]
