"""Where numpy and jax.numpy really differ, and how both compute with half precision."""

from __future__ import annotations

import numpy as np

from retrograde.core.rules import Spec
from retrograde.ops import _row_sums as rows
from retrograde.ops._callbacks import called_back
from retrograde.ops._sums import total as total_of_floats
from retrograde.values import dtypes
from retrograde.values.dtypes import SINGLE_AND_DOUBLE
from retrograde.values.scipy_import import import_scipy
from retrograde.values.thresholds import FEW

HALF = frozenset({dtypes.float16.numpy_dtype, dtypes.bfloat16.numpy_dtype})


_ZEROS = {d.numpy_dtype: np.zeros((), d.numpy_dtype) for d in dtypes.ALL}
_ONES = {dtype: np.ones((), dtype) for dtype in _ZEROS if dtype.kind != "O"}


def zero(dtype):
    """The zero of a dtype, without axes."""
    return _ZEROS[dtype]


def one(dtype):
    """The one of a dtype of numbers, without axes."""
    return _ONES[dtype]


_BITS = {np.dtype(np.float32): np.dtype(np.int32), np.dtype(np.float64): np.dtype(np.int64)}


# NumPy's `where` guesses each truth value. On many that are random, arithmetic with the bits of the
# numbers takes a tenth of the time, and gives the same for inf, nan and -0 too.


def kept_where(xp, keep, x, out=None):
    """`x` where `keep` is true, else 0."""
    if out is not None:
        return np.multiply(bits(x), keep, bits(out)).view(x.dtype)
    if xp is np and keep.size > FEW and x.dtype in _BITS:
        return (bits(x) * keep).view(x.dtype)
    return xp.where(keep, x, zero(x.dtype))


def chosen_where(xp, condition, x1, x2, out=None):
    """`x1` where `condition` is true, else `x2`."""
    many = xp is np and condition.size > FEW and x1.dtype in _BITS and condition.dtype == bool
    if not many and out is None:
        return xp.where(condition, x1, x2)
    y = np.bitwise_xor(bits(x1), bits(x2), None if out is None else bits(out))
    y = over(np.multiply, condition, y, out)
    return over(np.bitwise_xor, bits(x2), y, out).view(x1.dtype)


def bits(x):
    """The bits of float32 or float64 numbers, as integers."""
    return x.view(_BITS[x.dtype])


# Kernels that can write into an array take it as `out`. The first step of such a kernel writes
# there; the others go on `over` what is there, or over the array that the first step made.


def over(ufunc, x1, x2, out=None):
    """`ufunc(x1, x2)`, written over the second, which is nobody else's, where it fits.

    It does so for certain where `out` is given, which is the second then.
    """
    if out is not None or (
        type(x2) is np.ndarray and type(ufunc) is np.ufunc and (not x1.ndim or x1.shape == x2.shape)
    ):
        return ufunc(x1, x2, x2)
    return ufunc(x1, x2)


def wide(dtype):
    """The dtype to add up in: float32 for the half-precision ones, else the same."""
    return np.dtype(np.float32) if dtype in HALF else dtype


def widened(x):
    """`x` in the dtype to compute in; a copy only for half precision."""
    return x.astype(np.float32) if x.dtype in HALF else x


def taken(xp, x, indices, axis):
    """Returns `jax.numpy.take` of x, indices outside clipped.

    JAX returns a wrong shape where x is empty along the axis and nothing is taken.
    """
    if x.shape[axis] == 0 and 0 in indices.shape:
        return xp.zeros((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)
    return xp.take(x, indices, axis, mode="clip")


def scalar(value, like):
    """`value` in the dtype of `like`: beside a Python float, bfloat16 would become float32."""
    return plain_dtype(like).type(value)


def plain_dtype(x):
    """The NumPy dtype of an array, or of a tensor."""
    return getattr(x.dtype, "numpy_dtype", x.dtype)


def total(xp, x, axis, keepdims=False):
    """The sum over a tuple of axes, added up in `wide` precision, in the dtype of `x`."""
    dtype = x.dtype
    if xp is np:
        if dtype in SINGLE_AND_DOUBLE:
            return total_of_floats(x, dtype, axis, keepdims)
        if dtype not in HALF:  # past the wrappers of np.sum
            return np.add.reduce(x, axis=axis, dtype=dtype, keepdims=keepdims)
    return xp.sum(x, axis=axis, dtype=wide(dtype), keepdims=keepdims).astype(dtype)


def largest(xp, x, axis, keepdims=False):
    """The maximum over `axis`, which must not be empty."""
    if xp is np:
        return np.maximum.reduce(x, axis=axis, keepdims=keepdims)
    return xp.max(x, axis=axis, keepdims=keepdims)


_OPERATIONS = {  # public functions whose names differ from those of SciPy
    "gammaln": "lgamma", "gammainc": "igamma", "gammaincc": "igammac", "expi": "expint",
    **{name: f"bessel_{name}" for name in ("i0", "i1", "i0e", "i1e")},
    **{name: f"bessel_{name}" for name in ("j0", "j1", "y0", "y1", "k0", "k1", "k0e", "k1e")},
}  # fmt: skip


def special(xp, name):
    """A function of `scipy.special`, or of its twin in JAX."""
    if xp is np:
        return getattr(import_scipy("special", _OPERATIONS.get(name, name)), name)
    import jax.scipy.special

    in_jax = getattr(jax.scipy.special, name, None)
    if in_jax is not None:
        return in_jax
    # JAX before 0.10.2 does not have `dawsn`.
    in_scipy = special(np, name)

    def kernel(x):
        spec = Spec(x.shape, x.dtype)
        return on_host(xp, lambda x: in_scipy(widened(x)).astype(spec.dtype), spec, x)

    return kernel


def fourier(xp):
    """The module of Fourier transforms; SciPy's take half the time of NumPy's."""
    if xp is not np:
        return xp.fft
    return import_scipy("fft", "a Fourier transform")


def on_host(xp, f, results, *arrays):
    """`f(*arrays)` by NumPy or SciPy, which XLA calls back if it has nothing of its own for it.

    `results` is the Spec of what `f` returns, or a tuple of them. JAX cannot differentiate this;
    our own rules can.
    """
    if xp is np:
        return f(*arrays)
    if isinstance(results, Spec):
        return called_back(lambda *xs: (f(*xs),), (results,), arrays)[0]
    return called_back(f, results, arrays)


def sum_at(xp, values, indices, shape):
    """Zeros of `shape` with `values` added at `indices` of the first axis; repeated ones add up."""
    if xp is not np:
        return xp.zeros(shape, values.dtype).at[indices].add(values)
    wide = widened(values)
    if wide.dtype.kind == "O":  # strings are joined
        y = np.full(shape, b"", object)
        np.add.at(y, indices, wide)
        return y
    if rows.are_many(wide, indices):
        y = rows.sum_rows(wide, indices, shape[0])
    else:
        y = np.zeros(shape, wide.dtype)
        np.add.at(y, indices, wide)
    return y.astype(values.dtype, copy=False)


def write_at(xp, x, indices, values, how):
    """`x` with `values` written at `indices` of its first axis: "set", or the "max" or "min"."""
    if xp is not np:
        return getattr(x.at[indices], how)(values)
    y = x.copy()
    if how == "set":
        y[indices] = values
    else:
        {"max": np.maximum, "min": np.minimum}[how].at(y, indices, values)
    return y


def placed(xp, values, shape, key, background):
    """An array of `shape` that holds `values` at `key`, a tuple of slices, else `background`."""
    if xp is np:
        y = np.full(shape, background, values.dtype)
        y[key] = values
        return y
    from jax import lax

    config = [_margins(part, n) for part, n in zip(key, shape, strict=False)]
    config += [(0, 0, 0)] * (len(shape) - len(key))
    return lax.pad(values, values.dtype.type(background), config)


def _margins(part, n):
    """How many cells lie before, behind and between those of a slice of `n`."""
    cells = range(*part.indices(n))
    if not cells:
        return 0, n, 0
    return cells[0], n - 1 - cells[-1], cells.step - 1


def add_part(xp, y, key, values):
    """`y`, which is ours to change, with `values` added at `key`, a tuple of slices."""
    if xp is not np:  # not `at[key].add`: XLA for CPUs has compiled several in a row wrongly
        return y + placed(xp, values, y.shape, key, 0)
    y[key] += values
    return y


def sparse_matrix(values, rows, columns, shape):
    """SciPy's sparse matrix of NumPy arrays; values in one place add up."""
    sparse = import_scipy("sparse", "a product with a sparse matrix")
    return sparse.csr_array((values, (rows, columns)), shape=shape)


def along_time(xp, step, state, xs, reverse):
    """The results of `state, y = step(state, at)`, time by time; `at` holds each of `xs` then."""
    if xp is not np:
        import jax

        return jax.lax.scan(step, state, xs, reverse=reverse)[1]
    times = range(len(xs[0]))
    y = np.empty(xs[0].shape, xs[0].dtype)
    for t in reversed(times) if reverse else times:
        state, y[t] = step(state, tuple(x[t] for x in xs))
    return y
