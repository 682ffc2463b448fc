from retrograde.math import approx_max_k as approx_max_k
from retrograde.math import approx_min_k as approx_min_k
from retrograde.math import in_top_k as in_top_k
from retrograde.math import l2_normalize as l2_normalize
from retrograde.math import log_softmax as log_softmax
from retrograde.math import sigmoid as sigmoid
from retrograde.math import softmax as softmax
from retrograde.math import softplus as softplus
from retrograde.math import softsign as softsign
from retrograde.math import tanh as tanh
from retrograde.math import top_k as top_k
from retrograde.math import zero_fraction as zero_fraction
from retrograde.nn import experimental as experimental
from retrograde.nn.activations import crelu as crelu
from retrograde.nn.activations import elu as elu
from retrograde.nn.activations import gelu as gelu
from retrograde.nn.activations import leaky_relu as leaky_relu
from retrograde.nn.activations import relu as relu
from retrograde.nn.activations import relu6 as relu6
from retrograde.nn.activations import selu as selu
from retrograde.nn.activations import silu as silu
from retrograde.nn.activations import swish as swish
from retrograde.nn.convolutions import atrous_conv2d as atrous_conv2d
from retrograde.nn.convolutions import atrous_conv2d_transpose as atrous_conv2d_transpose
from retrograde.nn.convolutions import conv1d as conv1d
from retrograde.nn.convolutions import conv1d_transpose as conv1d_transpose
from retrograde.nn.convolutions import conv2d as conv2d
from retrograde.nn.convolutions import conv2d_transpose as conv2d_transpose
from retrograde.nn.convolutions import conv3d as conv3d
from retrograde.nn.convolutions import conv3d_transpose as conv3d_transpose
from retrograde.nn.convolutions import conv_transpose as conv_transpose
from retrograde.nn.convolutions import convolution as convolution
from retrograde.nn.ctc import collapse_repeated as collapse_repeated
from retrograde.nn.ctc import ctc_loss as ctc_loss
from retrograde.nn.ctc import ctc_unique_labels as ctc_unique_labels
from retrograde.nn.ctc_decoding import ctc_beam_search_decoder as ctc_beam_search_decoder
from retrograde.nn.ctc_decoding import ctc_greedy_decoder as ctc_greedy_decoder
from retrograde.nn.depthwise import depthwise_conv2d as depthwise_conv2d
from retrograde.nn.depthwise import (
    depthwise_conv2d_backprop_filter as depthwise_conv2d_backprop_filter,
)
from retrograde.nn.depthwise import (
    depthwise_conv2d_backprop_input as depthwise_conv2d_backprop_input,
)
from retrograde.nn.depthwise import separable_conv2d as separable_conv2d
from retrograde.nn.embeddings import embedding_lookup as embedding_lookup
from retrograde.nn.embeddings import embedding_lookup_sparse as embedding_lookup_sparse
from retrograde.nn.embeddings import safe_embedding_lookup_sparse as safe_embedding_lookup_sparse
from retrograde.nn.fractional_pooling import fractional_avg_pool as fractional_avg_pool
from retrograde.nn.fractional_pooling import fractional_max_pool as fractional_max_pool
from retrograde.nn.isotonic import isotonic_regression as isotonic_regression
from retrograde.nn.loss_reduction import compute_average_loss as compute_average_loss
from retrograde.nn.loss_reduction import scale_regularization_loss as scale_regularization_loss
from retrograde.nn.losses import l2_loss as l2_loss
from retrograde.nn.losses import log_poisson_loss as log_poisson_loss
from retrograde.nn.losses import (
    sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits,
)
from retrograde.nn.losses import (
    softmax_cross_entropy_with_logits as softmax_cross_entropy_with_logits,
)
from retrograde.nn.losses import (
    sparse_softmax_cross_entropy_with_logits as sparse_softmax_cross_entropy_with_logits,
)
from retrograde.nn.losses import (
    weighted_cross_entropy_with_logits as weighted_cross_entropy_with_logits,
)
from retrograde.nn.morphology import dilation2d as dilation2d
from retrograde.nn.morphology import erosion2d as erosion2d
from retrograde.nn.normalization import (
    batch_norm_with_global_normalization as batch_norm_with_global_normalization,
)
from retrograde.nn.normalization import batch_normalization as batch_normalization
from retrograde.nn.normalization import bias_add as bias_add
from retrograde.nn.normalization import local_response_normalization as local_response_normalization
from retrograde.nn.normalization import lrn as lrn
from retrograde.nn.normalization import moments as moments
from retrograde.nn.normalization import normalize_moments as normalize_moments
from retrograde.nn.normalization import sufficient_statistics as sufficient_statistics
from retrograde.nn.normalization import weighted_moments as weighted_moments
from retrograde.nn.pooling import avg_pool as avg_pool
from retrograde.nn.pooling import avg_pool1d as avg_pool1d
from retrograde.nn.pooling import avg_pool2d as avg_pool2d
from retrograde.nn.pooling import avg_pool3d as avg_pool3d
from retrograde.nn.pooling import max_pool as max_pool
from retrograde.nn.pooling import max_pool1d as max_pool1d
from retrograde.nn.pooling import max_pool2d as max_pool2d
from retrograde.nn.pooling import max_pool3d as max_pool3d
from retrograde.nn.pooling import max_pool_with_argmax as max_pool_with_argmax
from retrograde.nn.pooling import pool as pool
from retrograde.nn.regularization import dropout as dropout
from retrograde.nn.sampled_losses import compute_accidental_hits as compute_accidental_hits
from retrograde.nn.sampled_losses import nce_loss as nce_loss
from retrograde.nn.sampled_losses import sampled_softmax_loss as sampled_softmax_loss
from retrograde.nn.spatial_blocks import depth_to_space as depth_to_space
from retrograde.nn.spatial_blocks import space_to_batch as space_to_batch
from retrograde.nn.spatial_blocks import space_to_depth as space_to_depth
from retrograde.nn.spatial_blocks import with_space_to_batch as with_space_to_batch
from retrograde.random.candidate_sampling import all_candidate_sampler as all_candidate_sampler
from retrograde.random.candidate_sampling import (
    fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler,
)
from retrograde.random.candidate_sampling import (
    learned_unigram_candidate_sampler as learned_unigram_candidate_sampler,
)
