"""Array helpers that hide the differences of numpy and jax.numpy, and widen half precision."""

from __future__ import annotations

import numpy as np

from retrograde.core.rules import Spec
from retrograde.ops import _row_sums as rows
from retrograde.ops._callbacks import call_on_host
from retrograde.ops._sums import sum_floats
from retrograde.values import dtypes
from retrograde.values.dtypes import SINGLE_AND_DOUBLE
from retrograde.values.scipy_import import import_scipy
from retrograde.values.thresholds import SMALL_ARRAY_SIZE

HALF = frozenset({dtypes.float16.numpy_dtype, dtypes.bfloat16.numpy_dtype})


_ZEROS = {d.numpy_dtype: np.zeros((), d.numpy_dtype) for d in dtypes.ALL}
_ONES = {dtype: np.ones((), dtype) for dtype in _ZEROS if dtype.kind != "O"}


def zero(dtype):
    """Returns the scalar zero of a dtype."""
    return _ZEROS[dtype]


def one(dtype):
    """Returns the scalar one of a numeric dtype."""
    return _ONES[dtype]


_BITS = {np.dtype(np.float32): np.dtype(np.int32), np.dtype(np.float64): np.dtype(np.int64)}


# NumPy's `where` branches on every element, and random conditions are mispredicted. Integer
# arithmetic on the bits of the floats takes a tenth of the time and returns the same results, also
# for Inf, NaN and -0.


def fast_mask(xp, keep, x, out=None):
    """Returns `x` where `keep` is true, else 0."""
    if out is not None:
        return np.multiply(bits(x), keep, bits(out)).view(x.dtype)
    if xp is np and keep.size > SMALL_ARRAY_SIZE and x.dtype in _BITS:
        return (bits(x) * keep).view(x.dtype)
    return xp.where(keep, x, zero(x.dtype))


def fast_where(xp, condition, x1, x2, out=None):
    """Returns `x1` where `condition` is true, else `x2`."""
    is_large = (
        xp is np
        and condition.size > SMALL_ARRAY_SIZE
        and x1.dtype in _BITS
        and condition.dtype == bool
    )
    if not is_large and out is None:
        return xp.where(condition, x1, x2)
    y = np.bitwise_xor(bits(x1), bits(x2), None if out is None else bits(out))
    y = in_place(np.multiply, condition, y, out)
    return in_place(np.bitwise_xor, bits(x2), y, out).view(x1.dtype)


def bits(x):
    """Returns a view of float32 or float64 numbers as integers."""
    return x.view(_BITS[x.dtype])


# Kernels that can write into a given array accept it as `out`. The first step of such a kernel
# writes into `out`. Later steps work in place on it, or on the array that the first step created.


def in_place(ufunc, x1, x2, out=None):
    """Returns `ufunc(x1, x2)`, written into `x2` if the shapes allow.

    The caller must own `x2`. If `out` is given, it must be `x2`, and is always written.
    """
    if out is not None or (
        type(x2) is np.ndarray and type(ufunc) is np.ufunc and (not x1.ndim or x1.shape == x2.shape)
    ):
        return ufunc(x1, x2, x2)
    return ufunc(x1, x2)


def compute_dtype(dtype):
    """Returns the dtype to accumulate in: float32 for half precision, else `dtype`."""
    return np.dtype(np.float32) if dtype in HALF else dtype


def widen(x):
    """Returns `x` cast to its `compute_dtype`; copies only half precision."""
    return x.astype(np.float32) if x.dtype in HALF else x


def take(xp, x, indices, axis):
    """Returns `jax.numpy.take(x, indices, axis)` with out-of-range indices clipped.

    If both `x` (along the axis) and `indices` are empty, JAX returns a wrong shape.
    """
    if x.shape[axis] == 0 and 0 in indices.shape:
        return xp.zeros((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)
    return xp.take(x, indices, axis, mode="clip")


def scalar(value, like):
    """Returns `value` in the dtype of `like`. With a Python float, bfloat16 becomes float32."""
    return numpy_dtype_of(like).type(value)


def numpy_dtype_of(x):
    """Returns the NumPy dtype of an array or tensor."""
    return getattr(x.dtype, "numpy_dtype", x.dtype)


def array_sum(xp, x, axis, keepdims=False):
    """Returns the sum over a tuple of axes in the dtype of `x`, accumulated in `compute_dtype`."""
    dtype = x.dtype
    if xp is np:
        if dtype in SINGLE_AND_DOUBLE:
            return sum_floats(x, dtype, axis, keepdims)
        if dtype not in HALF:  # faster than np.sum
            return np.add.reduce(x, axis=axis, dtype=dtype, keepdims=keepdims)
    return xp.sum(x, axis=axis, dtype=compute_dtype(dtype), keepdims=keepdims).astype(dtype)


def array_max(xp, x, axis, keepdims=False):
    """Returns the maximum over `axis`, which must not be empty."""
    if xp is np:
        return np.maximum.reduce(x, axis=axis, keepdims=keepdims)
    return xp.max(x, axis=axis, keepdims=keepdims)


_PUBLIC_NAMES = {  # of functions that SciPy names differently
    "gammaln": "lgamma", "gammainc": "igamma", "gammaincc": "igammac", "expi": "expint",
    **{name: f"bessel_{name}" for name in ("i0", "i1", "i0e", "i1e")},
    **{name: f"bessel_{name}" for name in ("j0", "j1", "y0", "y1", "k0", "k1", "k0e", "k1e")},
}  # fmt: skip


def special_function(xp, name):
    """Returns a function of `scipy.special`, or of `jax.scipy.special`."""
    if xp is np:
        return getattr(import_scipy("special", _PUBLIC_NAMES.get(name, name)), name)
    import jax.scipy.special

    in_jax = getattr(jax.scipy.special, name, None)
    if in_jax is not None:
        return in_jax
    # JAX before 0.10.2 does not have `dawsn`.
    in_scipy = special_function(np, name)

    def kernel(x):
        spec = Spec(x.shape, x.dtype)
        return on_host(xp, lambda x: in_scipy(widen(x)).astype(spec.dtype), spec, x)

    return kernel


def fft_module(xp):
    """Returns the module of Fourier transforms. SciPy's are twice as fast as NumPy's."""
    if xp is not np:
        return xp.fft
    return import_scipy("fft", "a Fourier transform")


def on_host(xp, f, results, *arrays):
    """Returns `f(*arrays)`, computed by NumPy or SciPy; under XLA, by a host callback.

    `results` is the Spec of the result of `f`, or a tuple of Specs. JAX cannot differentiate a
    callback, so the primitive needs vjp rules.
    """
    if xp is np:
        return f(*arrays)
    if isinstance(results, Spec):
        return call_on_host(lambda *xs: (f(*xs),), (results,), arrays)[0]
    return call_on_host(f, results, arrays)


def sum_at(xp, values, indices, shape):
    """Returns zeros of `shape` with `values` added at `indices` of the first axis.

    Values at repeated indices are summed.
    """
    if xp is not np:
        return xp.zeros(shape, values.dtype).at[indices].add(values)
    wide = widen(values)
    if wide.dtype.kind == "O":  # strings are concatenated
        y = np.full(shape, b"", object)
        np.add.at(y, indices, wide)
        return y
    if rows.is_faster(wide, indices):
        y = rows.sum_rows(wide, indices, shape[0])
    else:
        y = np.zeros(shape, wide.dtype)
        np.add.at(y, indices, wide)
    return y.astype(values.dtype, copy=False)


def write_at(xp, x, indices, values, mode):
    """Returns `x` with `values` written at `indices` of its first axis.

    `mode` is "set", "max" or "min".
    """
    if xp is not np:
        return getattr(x.at[indices], mode)(values)
    y = x.copy()
    if mode == "set":
        y[indices] = values
    else:
        {"max": np.maximum, "min": np.minimum}[mode].at(y, indices, values)
    return y


def full_with_slice(xp, values, shape, key, fill_value):
    """Returns an array of `shape` with `values` at `key`, a tuple of slices, else `fill_value`."""
    if xp is np:
        y = np.full(shape, fill_value, values.dtype)
        y[key] = values
        return y
    from jax import lax

    config = [_pad_config(part, n) for part, n in zip(key, shape, strict=False)]
    config += [(0, 0, 0)] * (len(shape) - len(key))
    return lax.pad(values, values.dtype.type(fill_value), config)


def _pad_config(part, n):
    """Returns how many elements a slice of `n` leaves out before, after and between its own."""
    indices = range(*part.indices(n))
    if not indices:
        return 0, n, 0
    return indices[0], n - 1 - indices[-1], indices.step - 1


def add_to_slice(xp, y, key, values):
    """Returns `y` with `values` added at `key`, a tuple of slices. `y` may be overwritten."""
    if xp is not np:  # not `at[key].add`: XLA for CPUs miscompiles several in a row
        return y + full_with_slice(xp, values, y.shape, key, 0)
    y[key] += values
    return y


def sparse_matrix(values, rows, columns, shape):
    """Returns a SciPy sparse matrix. Values with the same row and column are summed."""
    sparse = import_scipy("sparse", "a product with a sparse matrix")
    return sparse.csr_array((values, (rows, columns)), shape=shape)


def scan_over_time(xp, step, state, xs, reverse):
    """Returns the stacked results `y` of `state, y = step(state, [x[t] for x in xs])`."""
    if xp is not np:
        import jax

        return jax.lax.scan(step, state, xs, reverse=reverse)[1]
    times = range(len(xs[0]))
    y = np.empty(xs[0].shape, xs[0].dtype)
    for t in reversed(times) if reverse else times:
        state, y[t] = step(state, tuple(x[t] for x in xs))
    return y
