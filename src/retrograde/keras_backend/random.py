"""Implements `keras.random` with stateless random numbers.

The seed is the state that Keras draws from a `SeedGenerator`, two integers. The same seed produces
the same numbers eagerly, in NumPy replay and under XLA.
"""

from keras.src.backend.config import floatx
from keras.src.random.seed_generator import SeedGenerator, draw_seed, make_default_seed

from retrograde.core.apply import apply
from retrograde.keras_backend.conversion import cast, convert_to_tensor, numpy_dtype
from retrograde.keras_backend.ops._inputs import to_int
from retrograde.ops import arithmetic as ar
from retrograde.ops import normalization, random_state, reduction, scan
from retrograde.ops import random_numbers as rn
from retrograde.ops.casting import identity, zeros_like
from retrograde.ops.indexing import argsort, gather
from retrograde.ops.sampling import implicit_gamma
from retrograde.ops.shaping import reshape

__all__ = [
    "SeedGenerator",
    "beta",
    "binomial",
    "categorical",
    "draw_seed",
    "dropout",
    "gamma",
    "make_default_seed",
    "normal",
    "randint",
    "shuffle",
    "truncated_normal",
    "uniform",
]


def _sizes(shape):
    return tuple(map(to_int, shape))


def _sample(primitive, seed, shape, dtype):
    attrs = {"shape": _sizes(shape), "dtype": numpy_dtype(dtype)}
    return apply(primitive, (_next_seed(seed),), attrs)


def _next_seed(seed):
    """Returns the next seed, which differs between replicas unless the program passes one."""
    next_seed, replica = draw_seed(seed), random_state.replica()
    if not replica or not (seed is None or isinstance(seed, SeedGenerator)):
        return next_seed
    return next_seed + convert_to_tensor(
        [replica * _REPLICA_OFFSET % (1 << 32), 0], next_seed.dtype.name
    )


_REPLICA_OFFSET = 0x3C6EF372  # far from the seeds that programs use


def _scale(unit, factor, shift):
    """Computes `unit * factor + shift`; skips a factor of 1 and a shift of 0."""
    dtype = unit.dtype.name
    if not (isinstance(factor, (int, float)) and factor == 1):
        unit = unit * convert_to_tensor(factor, dtype)
    if not (isinstance(shift, (int, float)) and shift == 0):
        unit = unit + convert_to_tensor(shift, dtype)
    return unit


def normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    """Samples from a normal distribution."""
    return _scale(_sample(rn.random_normal, seed, shape, dtype or floatx()), stddev, mean)


def truncated_normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    """Samples from a normal distribution truncated to two `stddev` around `mean`."""
    unit = _sample(rn.random_truncated_normal, seed, shape, dtype or floatx())
    return _scale(unit, stddev, mean)


def uniform(shape, minval=0.0, maxval=1.0, dtype=None, seed=None):
    """Samples uniformly from [minval, maxval)."""
    unit = _sample(rn.random_uniform, seed, shape, dtype or floatx())
    if isinstance(minval, (int, float)) and isinstance(maxval, (int, float)):
        return _scale(unit, maxval - minval, minval)
    low, high = (convert_to_tensor(v, unit.dtype.name) for v in (minval, maxval))
    return unit * (high - low) + low


def randint(shape, minval, maxval, dtype="int32", seed=None):
    """Samples integers uniformly from [minval, maxval)."""
    bounds = (cast(v, "int64") for v in (minval, maxval))
    attrs = {"shape": _sizes(shape), "dtype": numpy_dtype(dtype)}
    return apply(rn.random_integers, (_next_seed(seed), *bounds), attrs)


def categorical(logits, num_samples, dtype="int64", seed=None):
    """Samples classes with probabilities proportional to `exp(logits)`, for each row.

    It inverts the cumulative distribution at uniform random numbers.
    """
    x = convert_to_tensor(logits)
    x = cast(x, "float64" if x.dtype.name == "float64" else "float32")
    rows, classes = x._spec.shape
    p = apply(normalization.softmax, (x,), {"axis": 1})
    ends = apply(scan.cumsum, (p,), {"axis": 1, "exclusive": False, "reverse": False})
    u = _sample(rn.random_uniform, seed, (rows, num_samples), x.dtype.name)
    u = u * reshape(ends[:, -1], shape=(rows, 1))  # the sum may round to less than 1
    below = reshape(u, shape=(rows, num_samples, 1)) >= reshape(ends, shape=(rows, 1, classes))
    attrs = {"axis": (2,), "keepdims": False}
    indices = apply(reduction.sum, (cast(below, "int32"),), attrs)
    last = convert_to_tensor(classes - 1, "int32")
    return cast(apply(ar.minimum, (indices, last)), dtype)


def dropout(inputs, rate, noise_shape=None, seed=None):
    """Sets a random fraction `rate` of `inputs` to 0 and scales the rest by `1 / (1 - rate)`."""
    x = convert_to_tensor(inputs)
    if rate == 1.0:
        return zeros_like(x)
    if rate == 0.0:
        return identity(x)
    shape = x._spec.shape
    if noise_shape is not None:
        pairs = zip(shape, noise_shape, strict=True)
        shape = tuple(n if noise is None else int(noise) for n, noise in pairs)
    keep = _sample(rn.random_uniform, seed, shape, "float32") >= float(rate)
    return apply(ar.mask, (x * (1 / (1 - rate)), keep))


def shuffle(x, axis=0, seed=None):
    """Shuffles the slices of `x` along `axis`."""
    x = convert_to_tensor(x)
    axis %= x.ndim
    keys = _sample(rn.random_uniform, seed, (x.shape[axis],), "float32")
    order = apply(argsort, (keys,), {"axis": 0, "descending": False})
    return apply(gather, (x, order), {"axis": axis})


def gamma(shape, alpha, dtype=None, seed=None):
    """Samples from gamma distributions. Implicit reparameterization gradients flow to `alpha`."""
    return _gamma(_next_seed(seed), _sizes(shape), alpha, dtype or floatx())


def _gamma(seed, shape, alpha, dtype):
    wide = "float64" if dtype == "float64" else "float32"
    alpha = convert_to_tensor(alpha, wide)
    attrs = {"shape": shape, "dtype": numpy_dtype(wide)}
    samples = apply(rn.random_gamma, (seed, alpha), attrs)
    return cast(apply(implicit_gamma, (samples, alpha)), dtype)


def binomial(shape, counts, probabilities, dtype=None, seed=None):
    """Samples from binomial distributions."""
    parameters = (convert_to_tensor(v, "float64") for v in (counts, probabilities))
    attrs = {"shape": _sizes(shape), "dtype": numpy_dtype(dtype or floatx())}
    return apply(rn.random_binomial, (_next_seed(seed), *parameters), attrs)


_SEED_OFFSET = 1 << 30  # far from the seeds drawn before or after


def beta(shape, alpha, beta, dtype=None, seed=None):
    """Samples from beta distributions, as the ratio `g1 / (g1 + g2)` of two gamma samples."""
    dtype, shape = dtype or floatx(), _sizes(shape)
    seed = _next_seed(seed)
    wide = "float64" if dtype == "float64" else "float32"
    first = _gamma(seed, shape, alpha, wide)
    second = _gamma(seed + convert_to_tensor([0, _SEED_OFFSET], seed.dtype.name), shape, beta, wide)
    return cast(first / (first + second), dtype)
