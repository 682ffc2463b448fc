"""Values become tensors, by Keras's rules for dtypes."""

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
from retrograde.values import dtypes

_INT32 = range(-(2**31), 2**31)
_ALL = (*dtypes.ALL, dtypes.float8_e4m3fn, dtypes.float8_e5m2)
_NUMPY_DTYPES = {d.name: d.numpy_dtype for d in _ALL}


def numpy_dtype(dtype):
    """The NumPy dtype behind a dtype as Keras writes it; `None` means its default float."""
    found = _NUMPY_DTYPES.get(dtype) if type(dtype) is str else None
    return _NUMPY_DTYPES[standardize_dtype(dtype)] if found is None else found


def convert_to_tensor(x, dtype=None, sparse=None, ragged=None):
    """`x` as a tensor of `dtype`, cast if it has another; without `dtype`, of its own."""
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
    """`x` as a tensor of `dtype`."""
    return convert_to_tensor(x, dtype)


def _cast(x, dtype):
    own = x._spec.dtype
    if own == dtype:
        return x
    if dtype.kind in "iu" and dtype.itemsize < 4 and own in dtypes.FLOATING:
        x = _within(x, np.iinfo(dtype))
    return casting.cast(x, dtype=dtype)


def _within(x, bounds):
    """Floats that small integers can hold, as XLA casts them; Keras's quantizers rely on that."""
    if x._spec.dtype.itemsize < 4:  # half precision does not have all bounds
        x = casting.cast(x, dtype=_NUMPY_DTYPES["float32"])
    own = x._spec.dtype.type
    x = apply(arithmetic.maximum, (x, wrap(own(bounds.min))))
    return apply(arithmetic.minimum, (x, wrap(own(bounds.max))))


def _from_value(x, dtype):
    if isinstance(x, (bool, int, float, complex)):
        return Tensor((_dtype_of_number(x) if dtype is None else numpy_dtype(dtype)).type(x))
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind not in "OSU":
        wanted = x.dtype if dtype is None else numpy_dtype(dtype)
        return Tensor(x.astype(wanted))
    if isinstance(x, IndexedSlices):
        x = dense(x)
    elif isinstance(x, (list, tuple)) and not holds_tensor(x):
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
    """`x` as a NumPy array that may be written into."""
    return np.array(x)


def is_tensor(x):
    """Whether `x` is a tensor of this backend."""
    return isinstance(x, Tensor)
