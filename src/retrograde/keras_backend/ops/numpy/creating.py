"""Making tensors: of one value, of ranges, of diagonals and triangles; windows."""

from __future__ import annotations

import numpy as np

import retrograde as tf
from retrograde.core.tensor import Tensor
from retrograde.keras_backend.conversion import convert_to_tensor
from retrograde.keras_backend.ops._inputs import (
    FLOAT32,
    common_dtype,
    floatx,
    numpy_dtype,
    of_dtype,
    shape_of,
    single,
    tensor,
    whole,
    wholes,
)
from retrograde.keras_backend.ops.numpy.shaping import moveaxis, reshape
from retrograde.ops import casting
from retrograde.ops.arithmetic import log, power, sign
from retrograde.ops.casting import to_dtype
from retrograde.ops.elementary import exp, floor
from retrograde.ops.shaping import broadcast_to, concat, take_slice


def array(x, dtype=None):
    x = convert_to_tensor(x, dtype)
    return casting.identity(x)


# Of one value


def zeros(shape, dtype=None):
    return Tensor(np.zeros(wholes(shape), numpy_dtype(dtype)))


def ones(shape, dtype=None):
    return Tensor(np.ones(wholes(shape), numpy_dtype(dtype)))


empty = zeros


def full(shape, fill_value, dtype=None):
    value = of_dtype(fill_value, numpy_dtype(dtype))
    return broadcast_to(value, shape=wholes(shape))


def _own_or(dtype, x):
    return x._spec.dtype if dtype is None else numpy_dtype(dtype)


def zeros_like(x, dtype=None):
    x = tensor(x)
    return tf.zeros_like(x, _own_or(dtype, x))


def ones_like(x, dtype=None):
    x = tensor(x)
    return tf.ones_like(x, _own_or(dtype, x))


empty_like = zeros_like


def full_like(x, fill_value, dtype=None):
    x = tensor(x)
    value = of_dtype(fill_value, _own_or(dtype, x))
    return broadcast_to(value, shape=shape_of(x))


# Of ranges


def _kinds(*values):
    """What decides about the dtype: that of a tensor, or Python's type of a number."""
    return [type(v) if isinstance(v, (int, float)) else tensor(v)._spec.dtype for v in values]


def _number(value):
    """A number of Python, which may be given as a tensor."""
    return value if isinstance(value, (int, float)) else np.asarray(tensor(value)).item()


def arange(start, stop=None, step=None, dtype=None):
    given = [v for v in (start, stop, step) if v is not None]
    kind = common_dtype(*_kinds(*given)) if dtype is None else numpy_dtype(dtype)
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    ends = [_number(v) for v in (start, stop, step)]
    return Tensor(np.arange(*ends).astype(kind))


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    own = common_dtype(*_kinds(start, stop), float)
    y, step = _spaced(start, stop, whole(num), endpoint, own, axis)
    if dtype is not None:
        wanted = numpy_dtype(dtype)
        y = to_dtype(floor(y) if wanted.kind in "iu" else y, wanted)
    return (y, to_dtype(step, own)) if retstep else y


def _spaced(start, stop, num, endpoint, dtype, axis):
    """Numbers from `start` to `stop` along a new axis, and their distance; in float32 or wider."""
    wide = FLOAT32 if dtype.itemsize < 4 else dtype
    first, last = (of_dtype(v, wide) for v in (start, stop))
    intervals = num - 1 if endpoint else num
    step = (last - first) / Tensor(wide.type(intervals if intervals else np.nan))
    shape = shape_of(step)
    rows = Tensor(np.arange(num).astype(wide).reshape((-1,) + (1,) * len(shape)))
    by = step if intervals else tf.zeros_like(step)
    y = broadcast_to(first, shape=shape) + rows * by
    if endpoint and num > 1:  # the last is what was asked for, without rounding
        kept = take_slice(y, where=((0, num - 1, 1), *((0, n, 1) for n in shape)))
        end = reshape(broadcast_to(last, shape=shape), (1, *shape))
        y = concat(kept, end, axis=0)
    return to_dtype(moveaxis(y, 0, axis), dtype), step


def logspace(start, stop, num=50, endpoint=True, base=10, dtype=None, axis=0):
    own = common_dtype(*_kinds(start, stop), float)
    exponents, _ = _spaced(start, stop, whole(num), endpoint, own, axis)
    wide = single(exponents)
    y = power(of_dtype(base, wide._spec.dtype), wide)
    return to_dtype(y, own if dtype is None else numpy_dtype(dtype))


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    """Numbers each of which is the same multiple of the one before, of either sign."""
    wanted = numpy_dtype(dtype)
    own = common_dtype(*_kinds(start, stop), float)
    first, last = (single(of_dtype(v, own)) for v in (start, stop))
    side = sign(first)
    ends = [log(v * side) for v in (first, last)]
    exponents, _ = _spaced(*ends, whole(num), endpoint, first._spec.dtype, axis)
    return to_dtype(exp(exponents) * side, wanted)


# Of diagonals and triangles


def _matrix(make):
    """Returns the function of sizes, a diagonal and a dtype that makes a matrix of 0 and 1."""

    def function(N, M=None, k=0, dtype=None):
        columns = None if M is None else whole(M)
        return Tensor(make(whole(N), columns, whole(k), dtype=bool).astype(numpy_dtype(dtype)))

    return function


eye = _matrix(np.eye)
tri = _matrix(np.tri)


def identity(n, dtype=None):
    return eye(n, dtype=dtype)


# Windows


def _window(make):
    """Returns the function that makes a window of so many numbers."""
    return lambda x: Tensor(make(int(_number(x))).astype(floatx()))


bartlett = _window(np.bartlett)
blackman = _window(np.blackman)
hamming = _window(np.hamming)
hanning = _window(np.hanning)


def kaiser(x, beta):
    return _window(lambda length: np.kaiser(length, _number(beta)))(x)
