"""Raw random numbers, determined by a seed and the number of draws made."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core import namespaces
from retrograde.core.apply import apply
from retrograde.core.batching import Batched, CannotBatch
from retrograde.core.recorders import thread
from retrograde.core.tensor import Tensor
from retrograde.devices.scopes import compiles_all
from retrograde.ops import random_numbers
from retrograde.ops.arguments import integer, integer_array
from retrograde.ops.host_callbacks import CallbackDescription, HostCallback, call_host
from retrograde.ops.host_functions import CALLBACK_BUILDERS, register_function, registered_name
from retrograde.ops.random_numbers import STATELESS
from retrograde.ops.random_state import Draw
from retrograde.shape_inference.abstract_array import AbstractArray
from retrograde.values import dtypes
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import allocate, invalid
from retrograde.values.sizes import has_size

WORD_MODULUS = 1 << 64  # words have 64 bits
GENERATOR_STREAM = 1 << 61  # for `tf.random.Generator`; threads and STATELESS use other streams


class Algorithm(enum.Enum):
    """Accepted for compatibility with TensorFlow; Philox is the only algorithm."""

    PHILOX = 1
    THREEFRY = 2
    AUTO_SELECT = 3


_ALGORITHMS = {a.name.lower(): a for a in Algorithm} | {a.value: a for a in Algorithm}


def check_algorithm(alg: Any) -> None:
    """Raises an error unless `alg` names an algorithm of TensorFlow."""
    if isinstance(alg, Algorithm):
        return
    if not isinstance(alg, str):
        alg = integer(alg, "alg", TypeError)
    if alg not in _ALGORITHMS:
        raise ValueError(
            f"Argument `alg` got unsupported value {alg}. Expected 'philox', 'threefry' or "
            "'auto_select', or 1, 2 or 3 for these."
        )


def stateless_draw(seed: Any, alg: Any = Algorithm.AUTO_SELECT) -> Draw:
    """Returns the draw of a stateless function. It depends only on `seed`, a pair of integers."""
    check_algorithm(alg)
    seed_tensor = tensor_or_variable(seed)
    if (
        thread.recorders.tracer is not None
        and seed_tensor is not None
        and seed_tensor._spec.shape == (2,)
    ):
        return draw_from(_stateless, seed_tensor._read())
    pair = integer_array(seed, "seed")
    if pair.shape != (2,):
        raise invalid(f"seed must have shape [2]. Received: shape {pair.shape}.")
    return _stateless(pair)


@register_function
def _stateless(pair: np.ndarray) -> Draw:
    first, second = (int(n) % WORD_MODULUS for n in pair)
    return Draw((first, second), (0, STATELESS))


def draw_from(make_draw: Callable, *sources: Tensor) -> Draw:
    """Returns the draw `make_draw(*sources)`, computed again in each call to a traced function."""
    words = call_host(_seed_callback(make_draw, None), sources)
    return Draw.from_words(words._array)._replace(words=words)


def _seed_callback(make_draw: Callable, values: None) -> HostCallback:
    description = CallbackDescription("seed", registered_name(make_draw), values)
    return HostCallback(
        "seed", lambda *x: make_draw(*x).as_words(), pure=True, description=description
    )


CALLBACK_BUILDERS["seed"] = _seed_callback


def generator_of(draw: Draw) -> np.random.Generator:
    """Returns the NumPy generator of one draw; while tracing, it is valid for that call only."""
    if draw.words is not None:
        np.asarray(draw.words)  # converts it to NumPy, so the trace checks its value in each call
    if draw.levels:
        raise CannotBatch("These random numbers are drawn one example at a time.")
    low, high = draw.key
    count, stream = draw.counter
    philox = np.random.Philox(key=low | high << 64, counter=(count << 128) | (stream << 192))
    return np.random.Generator(philox)


def draw_unit(sampler: Callable, draw: Draw, shape: tuple[int, ...], dtype: np.dtype) -> Tensor:
    """Draws standard random numbers with `sampler`. The examples of a batch get different ones."""
    if namespaces.foreign and has_size(shape):
        return Tensor(AbstractArray(shape, dtype))
    sizes = tuple(level.size for level in draw.levels)
    full_shape = (*sizes, *shape)
    unbatched = draw._replace(levels=())
    if compiles_all():
        seed = call_each_time(_seed_on_device, unbatched)
        primitive = _ON_DEVICE[sampler.__name__]
        value = apply(primitive, (seed,), {"shape": full_shape, "dtype": dtype})
    else:
        value = call_each_time(sampler, unbatched, shape=full_shape, dtype=dtype)
    for level in draw.levels:
        value = Tensor(Batched(value if draw.words is not None else value._array, level))
    return value


def call_each_time(f: Callable, draw: Draw, *inputs: Tensor, **values: Any) -> Tensor:
    """Returns `f(draw, *arrays, **values)`; a traced function computes it in each call.

    `f` is registered with `register_function`, and `values` are plain values, so that traces can be
    saved.
    """
    if namespaces.foreign and has_size(values):
        size = values.get("size")
        shape, dtype = (values["shape"], values["dtype"]) if size is None else ((size,), np.int64)
        return Tensor(AbstractArray(shape, np.dtype(dtype)))
    if thread.recorders.tracer is None:
        arrays = [np.asarray(x) for x in inputs]
        return Tensor(allocate("random numbers", f, draw, *arrays, **values)[()])
    return call_host(_random_callback(f, values), (words_of(draw), *inputs))


def _random_callback(f: Callable, values: dict) -> HostCallback:
    def run(words: Any, *arrays: Any) -> Any:
        return f(Draw.from_words(words), *map(np.asarray, arrays), **values)[()]

    return HostCallback(
        "random",
        run,
        pure=True,
        description=CallbackDescription("random", registered_name(f), values),
    )


CALLBACK_BUILDERS["random"] = _random_callback


@register_function
def permutation(draw: Draw, size: int) -> np.ndarray:
    """Returns a random permutation of the numbers below `size`."""
    return generator_of(draw).permutation(size)


def words_of(draw: Draw) -> Tensor:
    """Returns the key and counter of a draw; they change in each call to a traced function."""
    return Tensor(draw.as_words()) if draw.words is None else draw.words


_FRACTION_BITS = {dtypes.float16.numpy_dtype: 11, dtypes.bfloat16.numpy_dtype: 8}


# Maps the names of the NumPy samplers to the primitives that draw on an accelerator.
_ON_DEVICE = {
    "unit_uniform": random_numbers.random_uniform,
    "unit_normal": random_numbers.random_normal,
    "unit_truncated_normal": random_numbers.random_truncated_normal,
}


@register_function
def _seed_on_device(draw: Draw) -> np.ndarray:
    """Returns the seed of random numbers that are drawn on an accelerator."""
    limits = np.iinfo(np.int32)
    return generator_of(draw).integers(limits.min, limits.max, 2, np.int32, endpoint=True)


@register_function
def unit_uniform(draw: Draw, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Draws uniform numbers in [0, 1)."""
    if dtype in _FRACTION_BITS:  # rounding a float32 to one of these dtypes could give 1
        steps = 1 << _FRACTION_BITS[dtype]
        return (generator_of(draw).integers(0, steps, shape) / np.float32(steps)).astype(dtype)
    return np.asarray(generator_of(draw).random(shape, dtype))


@register_function
def unit_normal(draw: Draw, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Draws standard normal numbers."""
    return _normal_from(generator_of(draw), shape, dtype)


def _normal_from(generator: np.random.Generator, shape: Any, dtype: np.dtype) -> np.ndarray:
    wide = dtype if dtype in (np.float32, np.float64) else np.dtype(np.float32)
    return np.asarray(generator.standard_normal(shape, wide)).astype(dtype)


@register_function
def unit_truncated_normal(draw: Draw, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Draws standard normal numbers and redraws those beyond two standard deviations."""
    generator = generator_of(draw)
    values = _normal_from(generator, shape, dtype)
    while (far := np.abs(values) > 2).any():
        values[far] = _normal_from(generator, int(far.sum()), dtype)
    return values


def full_range(draw: Draw, shape: tuple[int, ...], dtype: np.dtype) -> Tensor:
    """Draws integers uniformly from the full range of `dtype`."""
    return call_each_time(_integers, draw, shape=shape, dtype=dtype)


@register_function
def _integers(draw: Draw, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    limits = np.iinfo(dtype)
    return np.asarray(
        generator_of(draw).integers(limits.min, limits.max, shape, dtype, endpoint=True)
    )
