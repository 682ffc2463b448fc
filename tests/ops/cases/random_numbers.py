"""Random numbers as functions of a seed, compared with NumPy's Philox."""

from __future__ import annotations

import numpy as np
import scipy.stats

from tests.ops.cases._table import FLOATS, INTEGERS, case

STREAM = 1 << 62
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


def _generators(seed):
    """Returns a flat list with one NumPy generator for each seed."""
    keys = [tuple(int(n) % (1 << 64) for n in pair) for pair in np.reshape(seed, (-1, 2))]
    return [
        np.random.Generator(np.random.Philox(key=low | high << 64, counter=STREAM << 192))
        for low, high in keys
    ]


def _draw(seed, shape, draw):
    rows = [draw(generator) for generator in _generators(seed)]
    return np.reshape(rows, (*np.shape(seed)[:-1], *shape))


def _uniform(seed, *, shape, dtype):
    if dtype.itemsize >= 4:
        return _draw(seed, shape, lambda g: g.random(shape, dtype))
    steps = 1 << {"float16": 11, "bfloat16": 8}[dtype.name]
    return np.floor(_draw(seed, shape, lambda g: g.random(shape, np.float32)) * steps) / steps


def _integers(seed, shape, dtype):
    bits = 8 * dtype.itemsize
    return _draw(
        seed, shape, lambda g: g.integers(0, 1 << bits, shape, np.dtype(f"u{dtype.itemsize}"))
    ).astype(object)


def _normal_between(seed, shape, dtype, tail_probability):
    """Applies SciPy's quantile function to all bits but the lowest, which is the sign."""
    bits, mantissa_bits = 8 * dtype.itemsize, {4: 23, 8: 52}[dtype.itemsize]
    words = _integers(seed, shape, dtype)
    p = np.asarray(
        (words // (1 << bits - mantissa_bits) + 0.5) / 2**mantissa_bits * (0.5 - tail_probability)
        + tail_probability,
        dtype,
    )
    signs = np.where(words % 2 == 1, 1, -1)
    return signs * scipy.stats.norm.ppf(p.astype(float))


def _normal(seed, *, shape, dtype):
    return _normal_between(seed, shape, dtype, 0)


def _truncated_normal(seed, *, shape, dtype):
    return _normal_between(seed, shape, dtype, scipy.stats.norm.cdf(-2))


def _random_integers(seed, low, high, *, shape, dtype):
    words = _integers(seed, shape, FLOAT64)
    return (words % (high - low).astype(object) + low.astype(object)).astype(dtype)


SEED = np.array([12, -7])
SEEDS = np.array([[1, 2], [3, 1 << 40]])

for label, seed in {"one": SEED, "batch": SEEDS, "none": SEEDS[:0]}.items():
    for shape in ((2, 3), (), (0, 2)):
        attrs = {"shape": shape, "dtype": FLOAT64}
        label_of_shape = "x".join(map(str, shape)) or "scalar"
        case("random_uniform", seed, f"{label}_{label_of_shape}", _uniform, attrs=attrs,
             dtypes=INTEGERS)  # fmt: skip
        case("random_normal", seed, f"{label}_{label_of_shape}", _normal, attrs=attrs,
             dtypes=INTEGERS)  # fmt: skip
        case("random_truncated_normal", seed, f"{label}_{label_of_shape}", _truncated_normal,
             attrs=attrs, dtypes=INTEGERS)  # fmt: skip

for dtype in FLOATS:
    case("random_uniform", SEED, dtype.name, _uniform, attrs={"shape": (7,), "dtype": dtype},
         dtypes=INTEGERS)  # fmt: skip

BOUNDS = [np.array([-5, 0, 10]), np.array([[1, 2, 11], [12, 1 << 30, 70]])]
case("random_integers", [SEED, *BOUNDS], "bounds", _random_integers,
     attrs={"shape": (2, 3), "dtype": np.dtype(np.int32)}, dtypes=INTEGERS)  # fmt: skip


def _gamma(seed, alpha, *, shape, dtype):
    alpha = np.broadcast_to(alpha, shape)
    return _draw(seed, shape, lambda g: g.standard_gamma(alpha)).astype(dtype)


def _binomial(seed, counts, probabilities, *, shape, dtype):
    n, p = (np.broadcast_to(x, shape) for x in (counts, probabilities))
    return _draw(seed, shape, lambda g: g.binomial(n.astype(int), p)).astype(dtype)


case("random_gamma", [SEED, np.array([0.5, 2.0, 30.0])], "alpha", _gamma,
     attrs={"shape": (2, 3), "dtype": FLOAT64}, dtypes=(FLOAT32, FLOAT64))  # fmt: skip
case("random_binomial", [SEED, np.array([[3.0], [40.0]]), np.array([0.1, 0.5, 0.9])], "counts",
     _binomial, attrs={"shape": (2, 3), "dtype": FLOAT64},
     dtypes=(FLOAT32, FLOAT64))  # fmt: skip
