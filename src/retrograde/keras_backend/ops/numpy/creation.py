"""Tensor creation: constants, ranges, matrices and window functions."""

from __future__ import annotations

import numpy as np

import retrograde as tf
from retrograde.core.tensor import Tensor
from retrograde.keras_backend.conversion import convert_to_tensor
from retrograde.keras_backend.ops._inputs import (
    FLOAT32,
    at_least_float32,
    common_dtype,
    floatx,
    numpy_dtype,
    of_dtype,
    shape_of,
    tensor,
    to_int,
    to_ints,
)
from retrograde.keras_backend.ops.numpy.manipulation import moveaxis, reshape
from retrograde.ops import casting
from retrograde.ops.arithmetic import log, power, sign
from retrograde.ops.casting import to_dtype
from retrograde.ops.elementary import exp, floor
from retrograde.ops.shaping import broadcast_to, concat, take_slice
from retrograde.shape_inference.inference import created_from_sizes
from retrograde.values.sizes import has_size


def array(x, dtype=None):
    x = convert_to_tensor(x, dtype)
    return casting.identity(x)


# Constants


def zeros(shape, dtype=None):
    return tf.zeros(to_ints(shape), numpy_dtype(dtype))


def ones(shape, dtype=None):
    return tf.ones(to_ints(shape), numpy_dtype(dtype))


empty = zeros


def full(shape, fill_value, dtype=None):
    value = of_dtype(fill_value, numpy_dtype(dtype))
    return broadcast_to(value, shape=to_ints(shape))


def _dtype_or_default(dtype, x):
    return x._spec.dtype if dtype is None else numpy_dtype(dtype)


def zeros_like(x, dtype=None):
    x = tensor(x)
    return tf.zeros_like(x, _dtype_or_default(dtype, x))


def ones_like(x, dtype=None):
    x = tensor(x)
    return tf.ones_like(x, _dtype_or_default(dtype, x))


empty_like = zeros_like


def full_like(x, fill_value, dtype=None):
    x = tensor(x)
    value = of_dtype(fill_value, _dtype_or_default(dtype, x))
    return broadcast_to(value, shape=shape_of(x))


# Ranges


def _dtype_keys(*values):
    """Returns what determines the promoted dtype: tensor dtypes or Python types of numbers."""
    return [type(v) if isinstance(v, (int, float)) else tensor(v)._spec.dtype for v in values]


def _number(value):
    """Converts a scalar tensor to a Python number."""
    return value if isinstance(value, (int, float)) else np.asarray(tensor(value)).item()


def arange(start, stop=None, step=None, dtype=None):
    values = [v for v in (start, stop, step) if v is not None]
    kind = common_dtype(*_dtype_keys(*values)) if dtype is None else numpy_dtype(dtype)
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    abstract = created_from_sizes(_arange, start, stop, step, kind)
    return _arange(start, stop, step, kind) if abstract is None else abstract


def _arange(start, stop, step, dtype):
    ends = [_number(v) for v in (start, stop, step)]
    return Tensor(np.arange(*ends).astype(dtype))


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    result_dtype = common_dtype(*_dtype_keys(start, stop), float)
    y, step = _linspace(start, stop, to_int(num), endpoint, result_dtype, axis)
    if dtype is not None:
        target = numpy_dtype(dtype)
        y = to_dtype(floor(y) if target.kind in "iu" else y, target)
    return (y, to_dtype(step, result_dtype)) if retstep else y


def _linspace(start, stop, num, endpoint, dtype, axis):
    """Returns evenly spaced numbers along a new axis, and the step, in at least float32."""
    wide = FLOAT32 if dtype.itemsize < 4 else dtype
    first, last = (of_dtype(v, wide) for v in (start, stop))
    intervals = num - 1 if endpoint else num
    step = (last - first) / Tensor(wide.type(intervals if intervals else np.nan))
    shape = shape_of(step)
    rows = Tensor(np.arange(num).astype(wide).reshape((-1,) + (1,) * len(shape)))
    increment = step if intervals else tf.zeros_like(step)
    y = broadcast_to(first, shape=shape) + rows * increment
    if endpoint and num > 1:  # make the last number exactly `stop`
        all_but_last = take_slice(y, where=((0, num - 1, 1), *((0, n, 1) for n in shape)))
        end = reshape(broadcast_to(last, shape=shape), (1, *shape))
        y = concat(all_but_last, end, axis=0)
    return to_dtype(moveaxis(y, 0, axis), dtype), step


def logspace(start, stop, num=50, endpoint=True, base=10, dtype=None, axis=0):
    result_dtype = common_dtype(*_dtype_keys(start, stop), float)
    exponents, _ = _linspace(start, stop, to_int(num), endpoint, result_dtype, axis)
    wide = at_least_float32(exponents)
    y = power(of_dtype(base, wide._spec.dtype), wide)
    return to_dtype(y, result_dtype if dtype is None else numpy_dtype(dtype))


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    """Returns numbers evenly spaced on a log scale, of either sign."""
    target = numpy_dtype(dtype)
    result_dtype = common_dtype(*_dtype_keys(start, stop), float)
    first, last = (at_least_float32(of_dtype(v, result_dtype)) for v in (start, stop))
    sign_of_start = sign(first)
    ends = [log(v * sign_of_start) for v in (first, last)]
    exponents, _ = _linspace(*ends, to_int(num), endpoint, first._spec.dtype, axis)
    return to_dtype(exp(exponents) * sign_of_start, target)


# Matrices


def _matrix(make):
    """Returns a function `(N, M, k, dtype)` that creates a matrix of zeros and ones."""

    def function(N, M=None, k=0, dtype=None):
        columns = None if M is None else to_int(M)
        shape = (to_int(N), to_int(N) if columns is None else columns)
        if has_size(shape):
            return zeros(shape, dtype)
        return Tensor(make(to_int(N), columns, to_int(k), dtype=bool).astype(numpy_dtype(dtype)))

    return function


eye = _matrix(np.eye)
tri = _matrix(np.tri)


def identity(n, dtype=None):
    return eye(n, dtype=dtype)


# Window functions


def _window(make):
    """Returns a function that creates a window of the given length."""
    return lambda x: Tensor(make(int(_number(x))).astype(floatx()))


bartlett = _window(np.bartlett)
blackman = _window(np.blackman)
hamming = _window(np.hamming)
hanning = _window(np.hanning)


def kaiser(x, beta):
    return _window(lambda length: np.kaiser(length, _number(beta)))(x)
