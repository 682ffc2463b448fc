"""tf.sparse: tensors of which only the elements that are not zero are kept."""

from retrograde._api.lazy import speaking
from retrograde.sparse.arithmetic import (
    add,
    map_values,
    maximum,
    minimum,
    reduce_max,
    reduce_sum,
    sampled_addmm,
    softmax,
    sparse_dense_matmul,
)
from retrograde.sparse.counting import bincount, cross, cross_hashed, to_indicator
from retrograde.sparse.making import eye, from_dense, to_dense
from retrograde.sparse.segments import segment_mean, segment_sqrt_n, segment_sum
from retrograde.sparse.shaping import (
    concat,
    expand_dims,
    fill_empty_rows,
    mask,
    reorder,
    reset_shape,
    reshape,
    retain,
    slice,
    split,
    transpose,
)
from retrograde.sparse.tensor import SparseTensor

__all__ = [
    "SparseTensor",
    "add",
    "bincount",
    "concat",
    "cross",
    "cross_hashed",
    "expand_dims",
    "eye",
    "fill_empty_rows",
    "from_dense",
    "map_values",
    "mask",
    "maximum",
    "minimum",
    "reduce_max",
    "reduce_sum",
    "reorder",
    "reset_shape",
    "reshape",
    "retain",
    "sampled_addmm",
    "segment_mean",
    "segment_sqrt_n",
    "segment_sum",
    "slice",
    "softmax",
    "sparse_dense_matmul",
    "split",
    "to_dense",
    "to_indicator",
    "transpose",
]

__getattr__ = speaking(__name__)
