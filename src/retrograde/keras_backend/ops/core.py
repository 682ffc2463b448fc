"""The functions behind `keras.ops.core`."""

from retrograde.devices import device as device_scope
from retrograde.keras_backend.conversion import (
    cast,
    convert_to_numpy,
    convert_to_tensor,
    is_tensor,
)
from retrograde.keras_backend.symbolic import compute_output_spec
from retrograde.keras_backend.variable import Variable
from retrograde.vectorizing import vectorized_map as _vectorized_map

SUPPORTS_SPARSE_TENSORS = False
SUPPORTS_RAGGED_TENSORS = False
SUPPORTS_COMPLEX_DTYPES = True
IS_THREAD_SAFE = True

__all__ = [
    "IS_THREAD_SAFE",
    "SUPPORTS_COMPLEX_DTYPES",
    "SUPPORTS_RAGGED_TENSORS",
    "SUPPORTS_SPARSE_TENSORS",
    "Variable",
    "cast",
    "compute_output_spec",
    "cond",
    "convert_to_numpy",
    "convert_to_tensor",
    "device_scope",
    "is_tensor",
    "random_seed_dtype",
    "shape",
    "vectorized_map",
]


def shape(x):
    """The shape, a tuple."""
    return tuple(x.shape)


def random_seed_dtype():
    """The dtype in which seeds are kept."""
    return "uint32"


def cond(pred, true_fn, false_fn):
    """What `true_fn()` returns if `pred` is true, else what `false_fn()` returns."""
    return true_fn() if convert_to_tensor(pred) else false_fn()


def vectorized_map(function, elements):
    """`function` of each of `elements`, run on all of them at once."""
    return _vectorized_map(function, elements)
