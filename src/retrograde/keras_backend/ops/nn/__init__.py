"""Implements `keras.ops.nn`."""

from retrograde.keras_backend.ops.nn.activations import (
    celu,
    elu,
    gelu,
    glu,
    hard_shrink,
    hard_sigmoid,
    hard_silu,
    hard_tanh,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_shrink,
    softmax,
    softplus,
    softsign,
    sparse_plus,
    sparse_sigmoid,
    sparsemax,
    squareplus,
    tanh,
    tanh_shrink,
    threshold,
)
from retrograde.keras_backend.ops.nn.attention import dot_product_attention
from retrograde.keras_backend.ops.nn.convolutions import (
    conv,
    conv_transpose,
    depthwise_conv,
    separable_conv,
)
from retrograde.keras_backend.ops.nn.ctc import ctc_decode, ctc_loss
from retrograde.keras_backend.ops.nn.losses import (
    binary_crossentropy,
    categorical_crossentropy,
    multi_hot,
    one_hot,
    psnr,
    sparse_categorical_crossentropy,
)
from retrograde.keras_backend.ops.nn.normalization import batch_normalization, moments
from retrograde.keras_backend.ops.nn.patches import depth_to_space, fold, space_to_depth, unfold
from retrograde.keras_backend.ops.nn.pooling import (
    adaptive_average_pool,
    adaptive_max_pool,
    average_pool,
    max_pool,
)
