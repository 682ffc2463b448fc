"""Exports the names that Keras imports from a backend."""

from keras.src.backend.common.name_scope import name_scope

from retrograde.core.tensor import add_attributes
from retrograde.keras_backend import random
from retrograde.keras_backend.ops import core, image, linalg, math, nn, numpy
from retrograde.keras_backend.ops.core import (
    IS_THREAD_SAFE,
    SUPPORTS_COMPLEX_DTYPES,
    SUPPORTS_RAGGED_TENSORS,
    SUPPORTS_SPARSE_TENSORS,
    Variable,
    cast,
    compute_output_spec,
    cond,
    convert_to_numpy,
    convert_to_tensor,
    device_scope,
    is_tensor,
    random_seed_dtype,
    shape,
    vectorized_map,
)
from retrograde.keras_backend.rnn import (
    bidirectional_gru,
    bidirectional_lstm,
    cudnn_ok,
    gru,
    lstm,
    rnn,
)

add_attributes("_keras_mask", "_keras_logits")

__all__ = [
    "IS_THREAD_SAFE",
    "SUPPORTS_COMPLEX_DTYPES",
    "SUPPORTS_RAGGED_TENSORS",
    "SUPPORTS_SPARSE_TENSORS",
    "Variable",
    "bidirectional_gru",
    "bidirectional_lstm",
    "cast",
    "compute_output_spec",
    "cond",
    "convert_to_numpy",
    "convert_to_tensor",
    "core",
    "cudnn_ok",
    "device_scope",
    "gru",
    "image",
    "is_tensor",
    "linalg",
    "lstm",
    "math",
    "name_scope",
    "nn",
    "numpy",
    "random",
    "random_seed_dtype",
    "rnn",
    "shape",
    "vectorized_map",
]
