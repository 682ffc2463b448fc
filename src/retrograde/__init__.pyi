from retrograde import (
    autodiff as autodiff,
    autograph as autograph,
    bitwise as bitwise,
    compat as compat,
    config as config,
    data as data,
    debugging as debugging,
    distribute as distribute,
    dtypes as dtypes,
    errors as errors,
    experimental as experimental,
    image as image,
    io as io,
    keras as keras,
    linalg as linalg,
    math as math,
    nest as nest,
    nn as nn,
    optimize as optimize,
    ragged as ragged,
    random as random,
    saved_model as saved_model,
    signal as signal,
    sparse as sparse,
    strings as strings,
    summary as summary,
    sysconfig as sysconfig,
    test as test,
    train as train,
    types as types,
    version as version,
)
from retrograde.core.custom_gradient import (
    custom_gradient as custom_gradient,
    grad_pass_through as grad_pass_through,
)
from retrograde.core.indexed_slices import (
    IndexedSlices as IndexedSlices,
    IndexedSlicesSpec as IndexedSlicesSpec,
)
from retrograde.core.tape import GradientTape as GradientTape
from retrograde.core.tape_arguments import UnconnectedGradients as UnconnectedGradients
from retrograde.core.tensor import Tensor as Tensor
from retrograde.core.variable import (
    Variable as Variable,
    VariableAggregation as VariableAggregation,
    VariableSynchronization as VariableSynchronization,
)
from retrograde.debugging import (
    Assert as Assert,
    assert_equal as assert_equal,
    assert_greater as assert_greater,
    assert_less as assert_less,
    assert_rank as assert_rank,
)
from retrograde.derivatives.recompute_grad import recompute_grad as recompute_grad
from retrograde.keras import (
    initializers as initializers,
    losses as losses,
    metrics as metrics,
    optimizers as optimizers,
)
from retrograde.linalg import (
    eig as eig,
    eigvals as eigvals,
    einsum as einsum,
    matmul as matmul,
    norm as norm,
    tensordot as tensordot,
)
from retrograde.linalg.functions import matrix_square_root as matrix_square_root
from retrograde.math import (
    abs as abs,
    acos as acos,
    acosh as acosh,
    add as add,
    add_n as add_n,
    argmax as argmax,
    argmin as argmin,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atan2 as atan2,
    atanh as atanh,
    cos as cos,
    cosh as cosh,
    cumsum as cumsum,
    divide as divide,
    equal as equal,
    exp as exp,
    floor as floor,
    greater as greater,
    greater_equal as greater_equal,
    less as less,
    less_equal as less_equal,
    logical_and as logical_and,
    logical_not as logical_not,
    logical_or as logical_or,
    maximum as maximum,
    minimum as minimum,
    multiply as multiply,
    negative as negative,
    not_equal as not_equal,
    pow as pow,
    reduce_all as reduce_all,
    reduce_any as reduce_any,
    reduce_logsumexp as reduce_logsumexp,
    reduce_max as reduce_max,
    reduce_mean as reduce_mean,
    reduce_min as reduce_min,
    reduce_prod as reduce_prod,
    reduce_sum as reduce_sum,
    round as round,
    scalar_mul as scalar_mul,
    sigmoid as sigmoid,
    sign as sign,
    sin as sin,
    sinh as sinh,
    sqrt as sqrt,
    square as square,
    subtract as subtract,
    tan as tan,
    tanh as tanh,
    truediv as truediv,
    truncatediv as truncatediv,
    truncatemod as truncatemod,
)
from retrograde.math.arithmetic import realdiv as realdiv
from retrograde.math.counting import (
    approx_top_k as approx_top_k,
    histogram_fixed_width as histogram_fixed_width,
    histogram_fixed_width_bins as histogram_fixed_width_bins,
)
from retrograde.nn.blocks import (
    batch_to_space as batch_to_space,
    required_space_to_batch_paddings as required_space_to_batch_paddings,
    space_to_batch as space_to_batch,
    space_to_batch_nd as space_to_batch_nd,
)
from retrograde.nn.convolutions import conv as conv
from retrograde.nn.depthwise import (
    conv2d_backprop_filter_v2 as conv2d_backprop_filter_v2,
    conv2d_backprop_input_v2 as conv2d_backprop_input_v2,
)
from retrograde.nn.patches import extract_volume_patches as extract_volume_patches
from retrograde.program.function import function as function
from retrograde.ragged.filling import (
    ragged_fill_empty_rows as ragged_fill_empty_rows,
    ragged_fill_empty_rows_grad as ragged_fill_empty_rows_grad,
)
from retrograde.ragged.spec import RaggedTensorSpec as RaggedTensorSpec
from retrograde.ragged.tensor import RaggedTensor as RaggedTensor
from retrograde.random.shuffling import random_index_shuffle as random_index_shuffle
from retrograde.signal.at_top_level import (
    fftnd as fftnd,
    ifftnd as ifftnd,
    irfftnd as irfftnd,
    rfftnd as rfftnd,
)
from retrograde.sparse.distance import edit_distance as edit_distance
from retrograde.sparse.tensor import (
    SparseTensor as SparseTensor,
    SparseTensorSpec as SparseTensorSpec,
)
from retrograde.strings.basics import as_string as as_string, fingerprint as fingerprint
from retrograde.tensorflow_shim.finder import install_as_tensorflow as install_as_tensorflow
from retrograde.toplevel.clipping import (
    clip_by_global_norm as clip_by_global_norm,
    clip_by_norm as clip_by_norm,
    clip_by_value as clip_by_value,
)
from retrograde.toplevel.control_flow import (
    case as case,
    cond as cond,
    foldl as foldl,
    foldr as foldr,
    map_fn as map_fn,
    scan as scan,
    switch_case as switch_case,
    while_loop as while_loop,
)
from retrograde.toplevel.creating import (
    constant as constant,
    convert_to_tensor as convert_to_tensor,
    eye as eye,
    fill as fill,
    linspace as linspace,
    meshgrid as meshgrid,
    one_hot as one_hot,
    ones as ones,
    ones_like as ones_like,
    range as range,
    sequence_mask as sequence_mask,
    zeros as zeros,
    zeros_like as zeros_like,
)
from retrograde.toplevel.describing import (
    broadcast_dynamic_shape as broadcast_dynamic_shape,
    broadcast_static_shape as broadcast_static_shape,
    ensure_shape as ensure_shape,
    get_static_value as get_static_value,
    is_tensor as is_tensor,
    rank as rank,
    shape as shape,
    shape_n as shape_n,
    size as size,
    type_spec_from_value as type_spec_from_value,
)
from retrograde.toplevel.devices import device as device
from retrograde.toplevel.graph_gradients import gradients as gradients, hessians as hessians
from retrograde.toplevel.initializers import (
    constant_initializer as constant_initializer,
    ones_initializer as ones_initializer,
    random_normal_initializer as random_normal_initializer,
    random_uniform_initializer as random_uniform_initializer,
    zeros_initializer as zeros_initializer,
)
from retrograde.toplevel.module import Module as Module
from retrograde.toplevel.pass_through import (
    guarantee_const as guarantee_const,
    parallel_stack as parallel_stack,
    tuple as tuple,
)
from retrograde.toplevel.picking import (
    argsort as argsort,
    boolean_mask as boolean_mask,
    dynamic_partition as dynamic_partition,
    dynamic_stitch as dynamic_stitch,
    gather as gather,
    gather_nd as gather_nd,
    newaxis as newaxis,
    reverse_sequence as reverse_sequence,
    scatter_nd as scatter_nd,
    searchsorted as searchsorted,
    slice as slice,
    sort as sort,
    strided_slice as strided_slice,
    tensor_scatter_nd_add as tensor_scatter_nd_add,
    tensor_scatter_nd_max as tensor_scatter_nd_max,
    tensor_scatter_nd_min as tensor_scatter_nd_min,
    tensor_scatter_nd_sub as tensor_scatter_nd_sub,
    tensor_scatter_nd_update as tensor_scatter_nd_update,
    unique as unique,
    unique_with_counts as unique_with_counts,
    unravel_index as unravel_index,
    where as where,
)
from retrograde.toplevel.printing import print as print
from retrograde.toplevel.python_functions import (
    numpy_function as numpy_function,
    py_function as py_function,
)
from retrograde.toplevel.registration import (
    RegisterGradient as RegisterGradient,
    no_gradient as no_gradient,
    register_tensor_conversion_function as register_tensor_conversion_function,
)
from retrograde.toplevel.runtime import (
    AggregationMethod as AggregationMethod,
    CriticalSection as CriticalSection,
    get_logger as get_logger,
    is_symbolic_tensor as is_symbolic_tensor,
    timestamp as timestamp,
)
from retrograde.toplevel.scopes import (
    control_dependencies as control_dependencies,
    executing_eagerly as executing_eagerly,
    get_current_name_scope as get_current_name_scope,
    group as group,
    init_scope as init_scope,
    inside_function as inside_function,
    name_scope as name_scope,
    no_op as no_op,
    variable_creator_scope as variable_creator_scope,
)
from retrograde.toplevel.shaping import (
    bitcast as bitcast,
    broadcast_to as broadcast_to,
    cast as cast,
    complex as complex,
    concat as concat,
    expand_dims as expand_dims,
    identity as identity,
    identity_n as identity_n,
    pad as pad,
    repeat as repeat,
    reshape as reshape,
    reverse as reverse,
    roll as roll,
    saturate_cast as saturate_cast,
    split as split,
    squeeze as squeeze,
    stack as stack,
    stop_gradient as stop_gradient,
    tile as tile,
    transpose as transpose,
    unstack as unstack,
)
from retrograde.toplevel.tensor_array import (
    TensorArray as TensorArray,
    TensorArraySpec as TensorArraySpec,
)
from retrograde.toplevel.vectorized_map import vectorized_map as vectorized_map
from retrograde.values.bool_dtype import bool as bool
from retrograde.values.device_spec import DeviceSpec as DeviceSpec
from retrograde.values.dtypes import (
    DType as DType,
    as_dtype as as_dtype,
    bfloat16 as bfloat16,
    complex64 as complex64,
    complex128 as complex128,
    double as double,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    half as half,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    qint8 as qint8,
    qint16 as qint16,
    qint32 as qint32,
    quint8 as quint8,
    quint16 as quint16,
    resource as resource,
    string as string,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
    variant as variant,
)
from retrograde.values.shapes import TensorShape as TensorShape
from retrograde.values.specs import TensorSpec as TensorSpec, TypeSpec as TypeSpec
from retrograde.version import __version__ as __version__
