"""Converts values to tensors by Keras's dtype rules."""

import numpy as np
from keras.src import tree
from keras.src.backend.common import KerasVariable, standardize_dtype
from keras.src.backend.common.dtypes import result_type
from keras.src.backend.config import floatx

from retrograde.core.apply import apply
from retrograde.core.indexed_slices import IndexedSlices, dense
from retrograde.core.tensor import Tensor, wrap
from retrograde.ops import arithmetic, casting
from retrograde.ops.conversion import as_tensor, holds_tensor
from retrograde.shape_inference.abstract_array import array_of_sizes
from retrograde.values import dtypes
from retrograde.values.sizes import Size, has_size

_INT32 = range(-(2**31), 2**31)
_ALL = (*dtypes.ALL, dtypes.float8_e4m3fn, dtypes.float8_e5m2)
_NUMPY_DTYPES = {d.name: d.numpy_dtype for d in _ALL}


def numpy_dtype(dtype):
    """Returns the NumPy dtype of a Keras dtype; `None` means the default float."""
    known = _NUMPY_DTYPES.get(dtype) if type(dtype) is str else None
    return _NUMPY_DTYPES[standardize_dtype(dtype)] if known is None else known


def convert_to_tensor(x, dtype=None, sparse=None, ragged=None):
    """Converts `x` to a tensor and casts it to `dtype` if that is given."""
    if not isinstance(x, Tensor):
        if sparse:
            raise ValueError("`sparse=True` is not supported with the retrograde backend")
        if ragged:
            raise ValueError("`ragged=True` is not supported with the retrograde backend")
        if not isinstance(x, KerasVariable):
            return _from_value(x, dtype)
        x = x.value
    if dtype is None:
        return x
    return _cast(x, numpy_dtype(dtype))


def cast(x, dtype):
    """Converts `x` to a tensor of `dtype`."""
    return convert_to_tensor(x, dtype)


def _cast(x, dtype):
    source = x._spec.dtype
    if source == dtype:
        return x
    if dtype.kind in "iu" and dtype.itemsize < 4 and source in dtypes.FLOATING:
        x = _clip_to_range(x, np.iinfo(dtype))
    return casting.cast(x, dtype=dtype)


def _clip_to_range(x, bounds):
    """Clips floats to the range of a small integer dtype, as XLA does; quantizers rely on it."""
    if x._spec.dtype.itemsize < 4:  # half precision cannot represent all bounds
        x = casting.cast(x, dtype=_NUMPY_DTYPES["float32"])
    source = x._spec.dtype.type
    x = apply(arithmetic.maximum, (x, wrap(source(bounds.min))))
    return apply(arithmetic.minimum, (x, wrap(source(bounds.max))))


def _from_value(x, dtype):
    if type(x) is Size:
        return Tensor(array_of_sizes(x, numpy_dtype(dtype or "int32")))
    if isinstance(x, (bool, int, float, complex)):
        return Tensor((_dtype_of_number(x) if dtype is None else numpy_dtype(dtype)).type(x))
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind not in "OSU":
        target = x.dtype if dtype is None else numpy_dtype(dtype)
        return Tensor(x.astype(target))
    if isinstance(x, IndexedSlices):
        x = dense(x)
    elif isinstance(x, (list, tuple)) and not (holds_tensor(x) or has_size(x)):
        x = Tensor(_from_list(x, dtype))
    else:
        x = as_tensor(x)
    return x if dtype is None else _cast(x, numpy_dtype(dtype))


def _dtype_of_number(x):
    if isinstance(x, bool):
        return _NUMPY_DTYPES["bool"]
    if isinstance(x, int):
        return _NUMPY_DTYPES["int32" if x in _INT32 else "int64"]
    return _NUMPY_DTYPES[floatx() if isinstance(x, float) else "complex64"]


def _from_list(x, dtype):
    if dtype is None:
        dtype = result_type(*[getattr(leaf, "dtype", type(leaf)) for leaf in tree.flatten(x)])
    return np.array(x, numpy_dtype(dtype))


def convert_to_numpy(x):
    """Converts `x` to a writable NumPy array."""
    return np.array(x)


def is_tensor(x):
    """Returns whether `x` is a tensor of this backend."""
    return isinstance(x, Tensor)
