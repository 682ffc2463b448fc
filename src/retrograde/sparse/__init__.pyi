from retrograde.sparse.arithmetic import (
    add as add,
    map_values as map_values,
    maximum as maximum,
    minimum as minimum,
    reduce_max as reduce_max,
    reduce_sum as reduce_sum,
    sampled_addmm as sampled_addmm,
    softmax as softmax,
    sparse_dense_matmul as sparse_dense_matmul,
)
from retrograde.sparse.counting import (
    bincount as bincount,
    cross as cross,
    cross_hashed as cross_hashed,
    to_indicator as to_indicator,
)
from retrograde.sparse.making import eye as eye, from_dense as from_dense, to_dense as to_dense
from retrograde.sparse.segments import (
    segment_mean as segment_mean,
    segment_sqrt_n as segment_sqrt_n,
    segment_sum as segment_sum,
)
from retrograde.sparse.shaping import (
    concat as concat,
    expand_dims as expand_dims,
    fill_empty_rows as fill_empty_rows,
    mask as mask,
    reorder as reorder,
    reset_shape as reset_shape,
    reshape as reshape,
    retain as retain,
    slice as slice,
    split as split,
    transpose as transpose,
)
from retrograde.sparse.tensor import SparseTensor as SparseTensor
