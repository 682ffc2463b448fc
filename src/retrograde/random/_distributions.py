"""Random distributions. Gradients flow to the parameters as in TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.ops import sampling
from retrograde.ops.arguments import integer, shape_from
from retrograde.ops.arithmetic import maximum
from retrograde.ops.conversion import as_tensor, numpy_dtype
from retrograde.ops.host_functions import register_function
from retrograde.ops.random_state import Draw
from retrograde.random._sampling import (
    call_each_time,
    draw_unit,
    full_range,
    generator_of,
    unit_uniform,
)
from retrograde.values import dtypes
from retrograde.values.arguments import as_text
from retrograde.values.errors import invalid
from retrograde.values.scipy_import import import_scipy
from retrograde.values.shapes import broadcast

_COUNTS = ("float16", "float32", "float64", "int32", "int64")  # dtypes for counts
_HALF_TO_DOUBLE = ("float16", "float32", "float64")


def check_dtype(dtype: Any, allowed: tuple[str, ...], op_name: str) -> np.dtype:
    """Returns the NumPy dtype of `dtype`, or raises an error if it is not one of `allowed`."""
    numpy_type = dtypes.as_dtype(dtype).numpy_dtype
    name = dtypes.of(numpy_type).name
    if name not in allowed:
        raise invalid(
            f"{op_name}: dtype {name} is not supported. Expected one of {', '.join(allowed)}."
        )
    return numpy_type


def _check_sample_shape(
    shape: tuple[int, ...], parameters: tuple[Tensor, ...], op_name: str
) -> None:
    """Raises an error unless the parameters broadcast to the end of the sample `shape`."""
    common = broadcast(*(p._spec.shape for p in parameters))
    if common is None or shape[len(shape) - len(common) :] != tuple(common):
        shapes = " and ".join(str(tuple(p._spec.shape)) for p in parameters)
        raise invalid(
            f"{op_name}: the shape of the samples must end with the broadcast shape of the "
            f"parameters. Received: shape {shape}, parameters of shape {shapes}."
        )


# Normal and uniform


def draw_scaled(
    sampler: Callable, draw: Draw, shape: Any, mean: Any, stddev: Any, dtype: Any
) -> Tensor:
    """Draws unit random numbers times `stddev` plus `mean`; gradients flow to both."""
    numpy_type = _check_floating(dtype)
    unit = draw_unit(sampler, draw, shape_from(shape, "random"), numpy_type)
    return unit * as_tensor(stddev, numpy_type) + as_tensor(mean, numpy_type)


def uniform(draw: Draw, shape: Any, minval: Any, maxval: Any, dtype: Any) -> Tensor:
    """Draws uniform random numbers in [`minval`, `maxval`)."""
    numpy_type, sizes = dtypes.as_dtype(dtype).numpy_dtype, shape_from(shape, "random")
    if numpy_type.kind in "iu":
        if maxval is None:
            raise ValueError(f"Must specify maxval for integer dtype {dtypes.of(numpy_type).name}.")
        ends = [as_tensor(v, numpy_type) for v in (minval, maxval)]
        return call_each_time(_integers, draw, *ends, shape=sizes, dtype=numpy_type)
    unit = draw_unit(unit_uniform, draw, sizes, _check_floating(dtype))
    low, high = (as_tensor(v, numpy_type) for v in (minval, 1 if maxval is None else maxval))
    return unit * (high - low) + low


def uniform_or_full_range(draw: Draw, shape: Any, minval: Any, maxval: Any, dtype: Any) -> Tensor:
    """Draws like `uniform`, or over the full integer range if neither end is given."""
    numpy_type = dtypes.as_dtype(dtype).numpy_dtype
    if numpy_type.kind not in "iu":
        return uniform(draw, shape, minval, maxval, dtype)
    name = dtypes.of(numpy_type).name
    if (minval is None) != (maxval is None):
        raise ValueError(
            f"For dtype {name}, `minval` and `maxval` must both be given, or both be None. "
            f"Received: minval={as_text(minval)} and maxval={as_text(maxval)}."
        )
    if minval is None:
        return full_range(draw, shape_from(shape, "random"), numpy_type)
    if numpy_type.kind == "u":
        raise ValueError(
            f"Argument `dtype` got invalid value {name}. Expected a signed dtype if `minval` and "
            "`maxval` are given."
        )
    return uniform(draw, shape, minval, maxval, dtype)


@register_function
def _integers(draw: Draw, low: Any, high: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    if np.any(low >= high):
        raise invalid(
            f"uniform: expected minval < maxval. Received: {as_text(low)} and {as_text(high)}."
        )
    full_shape = broadcast(shape, low.shape, high.shape)
    if full_shape is None:
        raise invalid(
            f"uniform: minval and maxval of shapes {low.shape} and {high.shape} do not broadcast "
            f"to {shape}."
        )
    return np.asarray(generator_of(draw).integers(low, high, full_shape, dtype))


def _check_floating(dtype: Any) -> np.dtype:
    numpy_type = dtypes.as_dtype(dtype).numpy_dtype
    if numpy_type not in dtypes.FLOATING:
        raise ValueError(
            f"Argument `dtype` got invalid value {dtypes.of(numpy_type).name}. Expected a real "
            "float dtype, or an integer one for uniform numbers."
        )
    return numpy_type


def truncated_normal(draw: Draw, shape: Any, *parameters: Any) -> Tensor:
    """Draws truncated normal numbers by inverting the distribution function.

    `parameters` are the means, standard deviations, and lower and upper bounds.
    """
    op_name = "stateless_parameterized_truncated_normal"
    tensors = tuple(as_tensor(p) for p in parameters)
    dtype = check_dtype(tensors[0]._spec.dtype, _HALF_TO_DOUBLE, op_name)
    sizes = shape_from(shape, op_name)
    _check_sample_shape(sizes, tensors, op_name)
    x = call_each_time(_draw_truncated, draw, *tensors, shape=sizes, dtype=dtype, op_name=op_name)
    return apply(sampling.implicit_truncated_normal, (x, *tensors))


@register_function
def _draw_truncated(
    draw: Draw, *parameters: Any, shape: tuple, dtype: np.dtype, op_name: str
) -> Any:
    mean, stddev, low, high = (_real(p, op_name) for p in parameters)
    finite = np.isfinite(mean).all() and np.isfinite(stddev).all()
    if not (finite and np.all(stddev > 0) and np.all(low < high)):
        raise invalid(
            f"{op_name}: expected finite means, stddevs > 0 and minvals < maxvals. Received: "
            f"{mean}, {stddev}, {low} and {high}."
        )
    unit = _truncated_unit(
        generator_of(draw).random(shape), (low - mean) / stddev, (high - mean) / stddev
    )
    return np.clip((mean + stddev * unit).astype(dtype), low.astype(dtype), high.astype(dtype))


def _truncated_unit(u: Any, low: Any, high: Any) -> np.ndarray:
    """Returns the quantile at `u` of the standard normal distribution on [`low`, `high`].

    Intervals mostly to the right of 0 are mirrored, so that no probability is close to 1.
    """
    functions = import_scipy("special", "truncated_normal")
    log_ndtr, ndtri_exp = functions.log_ndtr, functions.ndtri_exp
    with np.errstate(all="ignore"):  # bounds may be infinite, and u may be 0
        right = low + high > 0
        left, end = np.where(right, -high, low), np.where(right, -low, high)
        parts = np.log1p(-u), np.log(u)
        at_left, at_end = (np.where(right, *pair) for pair in (parts[::-1], parts))
        below = np.logaddexp(log_ndtr(left) + at_left, log_ndtr(end) + at_end)
    x = ndtri_exp(below)
    return np.where(right, -x, x)


def _real(x: np.ndarray, op_name: str) -> np.ndarray:
    """Converts `x`, which must be real, to double precision."""
    if x.dtype not in dtypes.REAL:
        name = dtypes.of(x.dtype).name
        raise invalid(f"{op_name}: expected a real dtype. Received: {name}.")
    return np.asarray(x).astype(np.float64)


# Counts


def poisson(draw: Draw, shape: tuple[int, ...], lam: Any, dtype: Any, op_name: str) -> Tensor:
    """Draws Poisson numbers of the given `shape`; a negative rate counts as 0."""
    numpy_type = check_dtype(dtype, _COUNTS, op_name)
    return call_each_time(
        _draw_counts, draw, as_tensor(lam), shape=shape, dtype=numpy_type, op_name=op_name
    )


@register_function
def _draw_counts(draw: Draw, lam: np.ndarray, shape: tuple, dtype: np.dtype, op_name: str) -> Any:
    rates = _real(lam, op_name)
    if not np.all(rates < 2.0**62):
        raise invalid(f"{op_name}: expected rates below 2 ** 62. Received: {rates}.")
    return np.asarray(generator_of(draw).poisson(np.maximum(rates, 0), shape)).astype(dtype)


def stateless_poisson(draw: Draw, shape: Any, lam: Any, dtype: Any) -> Tensor:
    """Draws Poisson numbers of a `shape` that ends with the shape of the rates."""
    rates, sizes = as_tensor(lam), shape_from(shape, "stateless_poisson")
    _check_sample_shape(sizes, (rates,), "stateless_poisson")
    return poisson(draw, sizes, rates, dtype, "stateless_poisson")


def binomial(draw: Draw, shape: Any, counts: Any, probs: Any, dtype: Any, op_name: str) -> Tensor:
    """Draws the number of successes in `counts` trials with probability `probs`."""
    numpy_type, sizes = check_dtype(dtype, _COUNTS, op_name), shape_from(shape, op_name)
    trials, probabilities = as_tensor(counts), as_tensor(probs)
    _check_sample_shape(sizes, (trials, probabilities), op_name)
    return call_each_time(
        _draw_successes, draw, trials, probabilities, shape=sizes, dtype=numpy_type, op_name=op_name
    )


@register_function
def _draw_successes(
    draw: Draw, *parameters: Any, shape: tuple, dtype: np.dtype, op_name: str
) -> Any:
    n, p = (_real(x, op_name) for x in parameters)
    if not (np.all((n >= 0) & (n < 2.0**62)) and np.all((p >= 0) & (p <= 1))):
        raise invalid(
            f"{op_name}: expected counts from 0 to 2 ** 62 and probabilities from 0 to 1. "
            f"Received: {n} and {p}."
        )
    return np.asarray(generator_of(draw).binomial(n.astype(np.int64), p, shape)).astype(dtype)


def categorical(draw: Draw, logits: Any, num_samples: Any, dtype: Any, op_name: str) -> Tensor:
    """Draws classes by searching uniform numbers in the cumulative probabilities."""
    x, count = as_tensor(logits), integer(num_samples, op_name)
    numpy_type = np.dtype(np.int64) if dtype is None else numpy_dtype(dtype)
    if dtypes.of(numpy_type).name not in ("int32", "int64"):
        raise ValueError(
            f"Argument `dtype` got invalid value {dtypes.of(numpy_type).name}. Expected int32 or "
            "int64."
        )
    shape = x._spec.shape
    if len(shape) != 2 or not shape[1]:
        raise invalid(
            f"{op_name}: logits should be a matrix with at least one column, one for each class. "
            f"Received: shape {shape}."
        )
    if count < 0:
        raise invalid(f"{op_name}: num_samples should not be negative. Received: {count}.")
    return call_each_time(_draw_classes, draw, x, count=count, dtype=numpy_type, op_name=op_name)


@register_function
def _draw_classes(
    draw: Draw, logits: np.ndarray, count: int, dtype: np.dtype, op_name: str
) -> np.ndarray:
    x = _real(logits, op_name)
    with np.errstate(all="ignore"):  # all probabilities of a row may be 0
        ends = np.cumsum(np.exp(x - x.max(1, keepdims=True)), axis=1)
    u = generator_of(draw).random((len(x), count)) * ends[:, -1:]
    u = np.minimum(u, np.nextafter(ends[:, -1:], 0))  # rounding must not exceed the last end
    classes = [row.searchsorted(v, side="right") for row, v in zip(ends, u, strict=True)]
    return np.array(classes, dtype).reshape(len(x), count)


# Gamma


def gamma(draw: Draw, shape: Any, alpha: Any, beta: Any, dtype: Any) -> Tensor:
    """Draws `shape` gamma numbers for each of the parameters, which broadcast."""
    op_name = "gamma"
    numpy_type, sizes = check_dtype(dtype, _HALF_TO_DOUBLE, op_name), shape_from(shape, op_name)
    shapes, rates = _gamma_parameters(alpha, beta, numpy_type)
    parameters = tuple(p for p in (shapes, rates) if p is not None)
    common = broadcast(*(p._spec.shape for p in parameters))
    if common is None:
        raise invalid(
            f"{op_name}: the shapes of alpha and beta must broadcast. Received: "
            f"{shapes._spec.shape} and {rates._spec.shape}."
        )
    return _gamma(draw, (*sizes, *common), shapes, rates)


def stateless_gamma(draw: Draw, shape: Any, alpha: Any, beta: Any, dtype: Any) -> Tensor:
    """Draws gamma numbers of a `shape` that ends with the shape of the parameters."""
    op_name = "stateless_gamma"
    numpy_type, sizes = check_dtype(dtype, _HALF_TO_DOUBLE, op_name), shape_from(shape, op_name)
    shapes, rates = _gamma_parameters(alpha, beta, numpy_type)
    _check_sample_shape(sizes, tuple(p for p in (shapes, rates) if p is not None), op_name)
    return _gamma(draw, sizes, shapes, rates)


def _gamma_parameters(alpha: Any, beta: Any, dtype: np.dtype) -> tuple[Tensor, Tensor | None]:
    return as_tensor(alpha, dtype), None if beta is None else as_tensor(beta, dtype)


def _gamma(draw: Draw, shape: tuple[int, ...], alpha: Tensor, beta: Tensor | None) -> Tensor:
    """Draws gamma numbers, clipped to positive values because their logarithm is often taken."""
    dtype = alpha._spec.dtype
    standard = call_each_time(_standard_gamma, draw, alpha, shape=shape, dtype=dtype)
    x = apply(sampling.implicit_gamma, (standard, alpha))
    x = x if beta is None else x / beta
    return apply(maximum, (Tensor(dtype.type(dtypes.ml_dtypes.finfo(dtype).tiny)), x))


@register_function
def _standard_gamma(draw: Draw, alpha: np.ndarray, shape: tuple, dtype: np.dtype) -> np.ndarray:
    shapes = alpha.astype(np.float64)
    numbers = generator_of(draw).standard_gamma(np.where(shapes < 0, 1, shapes), shape)
    return np.where(shapes < 0, np.nan, numbers).astype(dtype)
