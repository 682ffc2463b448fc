"""tf.random: numbers that are a function of a seed and of how often it was drawn from.

The numbers come from a counter-based generator (`numpy.random.Philox`). The same seed
gives the same numbers again; they are not those of TensorFlow.
"""

from __future__ import annotations

import enum
import os
import threading
from typing import Any

import numpy as np

from retrograde.arrays._arguments import integer_array, shape_from
from retrograde.core import dtypes, random_state
from retrograde.core.conversion import held_by
from retrograde.core.errors import invalid
from retrograde.core.random_state import Draw
from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable
from retrograde.ops import casting, indexing
from retrograde.ops.conversion import as_tensor, numpy_dtype

__all__ = [
    "Algorithm",
    "Generator",
    "categorical",
    "fold_in",
    "get_global_generator",
    "normal",
    "set_global_generator",
    "set_seed",
    "shuffle",
    "split",
    "stateless_categorical",
    "stateless_normal",
    "stateless_truncated_normal",
    "stateless_uniform",
    "truncated_normal",
    "uniform",
]

_WORD = 1 << 64
_STATELESS, _GENERATOR = 1 << 62, 1 << 61  # keep their streams apart from those of threads


class Algorithm(enum.Enum):
    """Accepted where TensorFlow takes it; there is one algorithm here, Philox."""

    PHILOX = 1
    THREEFRY = 2
    AUTO_SELECT = 3


def set_seed(seed: int) -> None:
    """Starts the random numbers of this process anew.

    >>> tf.random.set_seed(7)
    >>> first = tf.random.uniform([2])
    >>> tf.random.set_seed(7)
    >>> bool(tf.reduce_all(first == tf.random.uniform([2])))
    True
    """
    random_state.set_seed(None if seed is None else int(seed))


# Raw numbers for one draw


def _bits(draw: Draw) -> np.random.Generator:
    low, high = draw.key
    count, stream = draw.counter
    philox = np.random.Philox(key=low | high << 64, counter=(count << 128) | (stream << 192))
    return np.random.Generator(philox)


_BITS_OF_FRACTION = {dtypes.float16.numpy_dtype: 11, dtypes.bfloat16.numpy_dtype: 8}


def _unit_uniform(draw: Draw, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """From 0 up to but without 1."""
    if dtype in _BITS_OF_FRACTION:  # rounding a float32 down to these could give 1
        steps = 1 << _BITS_OF_FRACTION[dtype]
        return (_bits(draw).integers(0, steps, shape) / np.float32(steps)).astype(dtype)
    return np.asarray(_bits(draw).random(shape, dtype))


def _unit_normal(draw: Draw, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    return _normal_from(_bits(draw), shape, dtype)


def _normal_from(generator: np.random.Generator, shape: Any, dtype: np.dtype) -> np.ndarray:
    wide = dtype if dtype in (np.float32, np.float64) else np.dtype(np.float32)
    return np.asarray(generator.standard_normal(shape, wide)).astype(dtype)


def _unit_truncated_normal(draw: Draw, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """What lies further out than two standard deviations is drawn again."""
    generator = _bits(draw)
    values = _normal_from(generator, shape, dtype)
    while (far := np.abs(values) > 2).any():
        values[far] = _normal_from(generator, int(far.sum()), dtype)
    return values


def _integers(draw: Draw, shape: tuple[int, ...], low: Any, high: Any, dtype: np.dtype) -> Any:
    if np.any(low >= high):
        raise invalid(f"uniform: need minval < maxval. Received: {low} and {high}.")
    whole = np.broadcast_shapes(shape, low.shape, high.shape)
    return np.asarray(_bits(draw).integers(low, high, whole, dtype))


# Distributions, on top of one draw


def _scaled(kind: Any, draw: Draw, shape: Any, mean: Any, stddev: Any, dtype: Any) -> Tensor:
    """Unit random numbers times `stddev` plus `mean`, through which gradients flow."""
    wanted = _floating(dtype)
    unit = Tensor(kind(draw, shape_from(shape, "random"), wanted)[()])
    return unit * _parameter(stddev, wanted) + _parameter(mean, wanted)


def _uniform(draw: Draw, shape: Any, minval: Any, maxval: Any, dtype: Any) -> Tensor:
    wanted, sizes = numpy_dtype(dtype), shape_from(shape, "random")
    if wanted.kind in "iu":
        if maxval is None:
            raise ValueError(f"Must specify maxval for integer dtype {dtypes.of(wanted).name}.")
        low, high = (np.asarray(as_tensor(v)).astype(wanted) for v in (minval, maxval))
        return Tensor(_integers(draw, sizes, low, high, wanted)[()])
    unit = Tensor(_unit_uniform(draw, sizes, _floating(dtype))[()])
    low, high = (_parameter(v, wanted) for v in (minval, 1 if maxval is None else maxval))
    return unit * (high - low) + low


def _floating(dtype: Any) -> np.dtype:
    wanted = numpy_dtype(dtype)
    if wanted not in dtypes.FLOATING:
        raise ValueError(
            f"Argument `dtype` got invalid value {dtypes.of(wanted).name}. Expected a real float "
            "dtype, or an integer one for uniform numbers."
        )
    return wanted


def _parameter(value: Any, dtype: np.dtype) -> Tensor:
    return as_tensor(value, None if held_by(value) is not None else dtype)


def _categorical(draw: Draw, logits: Any, num_samples: Any, dtype: Any) -> Tensor:
    """By the largest of the logits with Gumbel noise."""
    array = np.asarray(as_tensor(logits))
    if array.ndim != 2:
        raise invalid(f"categorical: logits should be a matrix. Received: shape {array.shape}.")
    noise = _bits(draw).gumbel(size=(array.shape[0], int(num_samples), array.shape[1]))
    return Tensor((array[:, None, :] + noise).argmax(-1).astype(numpy_dtype(dtype) or np.int64))


# Stateful


def uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: Any = None,
) -> Tensor:
    """Random numbers from `minval` up to but without `maxval`, all equally likely.

    `maxval` is 1 for floats, and has to be given for integers.
    """
    return _uniform(random_state.draw_key(seed), shape, minval, maxval, dtype)


def normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: Any = None,
) -> Tensor:
    """Random numbers from a normal distribution."""
    return _scaled(_unit_normal, random_state.draw_key(seed), shape, mean, stddev, dtype)


def truncated_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: Any = None,
) -> Tensor:
    """Random numbers from a normal distribution, none further than two `stddev` from `mean`."""
    draw = random_state.draw_key(seed)
    return _scaled(_unit_truncated_normal, draw, shape, mean, stddev, dtype)


def categorical(
    logits: Any, num_samples: Any, dtype: Any = None, seed: int | None = None, name: Any = None
) -> Tensor:
    """Classes drawn with probabilities proportional to `exp(logits)`, for each row."""
    return _categorical(random_state.draw_key(seed), logits, num_samples, dtype)


def shuffle(value: Any, seed: int | None = None, name: Any = None) -> Tensor:
    """The rows of a tensor in random order. No gradient flows, as in TensorFlow."""
    x = casting.stop_gradient(as_tensor(value))
    if not x._array.ndim:
        return x
    order = _bits(random_state.draw_key(seed)).permutation(x._array.shape[0])
    return indexing.gather(x, Tensor(order), axis=0)


# Stateless: the numbers depend on `seed` alone, a pair of integers


def _stateless(seed: Any) -> Draw:
    pair = integer_array(seed, "seed")
    if pair.shape != (2,):
        raise invalid(f"seed must have shape [2]. Received: shape {pair.shape}.")
    first, second = (int(n) % _WORD for n in pair)
    return Draw((first, second), (0, _STATELESS))


def stateless_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    name: Any = None,
    alg: Any = "auto_select",
) -> Tensor:
    """As `tf.random.uniform`; the same `seed`, a pair of integers, gives the same numbers.

    >>> a, b = (tf.random.stateless_uniform([2], seed=[1, 2]) for _ in range(2))
    >>> bool(tf.reduce_all(a == b))
    True
    """
    return _uniform(_stateless(seed), shape, minval, maxval, dtype)


def stateless_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    name: Any = None,
    alg: Any = "auto_select",
) -> Tensor:
    """As `tf.random.normal`; the same `seed`, a pair of integers, gives the same numbers."""
    return _scaled(_unit_normal, _stateless(seed), shape, mean, stddev, dtype)


def stateless_truncated_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    name: Any = None,
    alg: Any = "auto_select",
) -> Tensor:
    """As `tf.random.truncated_normal`; the same `seed` gives the same numbers."""
    return _scaled(_unit_truncated_normal, _stateless(seed), shape, mean, stddev, dtype)


def stateless_categorical(
    logits: Any, num_samples: Any, seed: Any, dtype: Any = dtypes.int64, name: Any = None
) -> Tensor:
    """As `tf.random.categorical`; the same `seed` gives the same classes."""
    return _categorical(_stateless(seed), logits, num_samples, dtype)


def split(seed: Any, num: int = 2, alg: Any = "auto_select") -> Tensor:
    """`num` new seeds out of one."""
    return _new_seeds(_stateless(seed), (num, 2), as_tensor(seed)._array.dtype)


def fold_in(seed: Any, data: Any, alg: Any = "auto_select") -> Tensor:
    """A new seed out of one and an integer."""
    draw = _stateless(seed)
    number = int(integer_array(data, "fold_in")) % _WORD
    return _new_seeds(Draw(draw.key, (number, _STATELESS + 1)), (2,), as_tensor(seed)._array.dtype)


def _new_seeds(draw: Draw, shape: tuple[int, ...], dtype: np.dtype) -> Tensor:
    limits = np.iinfo(dtype)
    return Tensor(_bits(draw).integers(limits.min, limits.max, shape, dtype, endpoint=True))


class Generator:
    """A stream of random numbers of its own.

    The state, three integers, is a variable: it can be saved, assigned and shared. Several
    threads may draw from one generator.

    >>> a, b = tf.random.Generator.from_seed(1), tf.random.Generator.from_seed(1)
    >>> bool(tf.reduce_all(a.normal([3]) == b.normal([3])))
    True
    """

    def __init__(
        self, copy_from: Generator | None = None, state: Any = None, alg: Any = None
    ) -> None:
        if (copy_from is None) == (state is None):
            raise ValueError("Generator: expected exactly one of `copy_from` and `state`.")
        source = copy_from.state if state is None else state
        self._state = Variable(_state_array(source), trainable=False, name="StateVar")
        self._lock = threading.Lock()

    @classmethod
    def from_state(cls, state: Any, alg: Any = None) -> Generator:
        """A generator that goes on where another with this state would."""
        return cls(state=state)

    @classmethod
    def from_seed(cls, seed: Any, alg: Any = None) -> Generator:
        """A generator whose numbers follow from `seed`."""
        return cls(state=_state_from_seed(seed))

    @classmethod
    def from_key_counter(cls, key: Any, counter: Any, alg: Any = None) -> Generator:
        """A generator that has drawn `counter` times with `key`."""
        return cls(state=_state_from_key_counter(key, counter))

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """A generator that is different in each run."""
        return cls.from_seed(int.from_bytes(os.urandom(8), "little") - _WORD // 2)

    @property
    def state(self) -> Variable:
        """How often the generator was drawn from, and its key."""
        return self._state

    @property
    def key(self) -> Tensor:
        """The key."""
        return self._state[2]

    @property
    def algorithm(self) -> int:
        """Philox."""
        return Algorithm.PHILOX.value

    def reset(self, state: Any) -> None:
        """Puts the generator into another state."""
        self._state.assign(_state_array(state))

    def reset_from_seed(self, seed: Any) -> None:
        """Puts the generator at the start of the numbers of `seed`."""
        self._state.assign(_state_from_seed(seed))

    def reset_from_key_counter(self, key: Any, counter: Any) -> None:
        """Puts the generator where it has drawn `counter` times with `key`."""
        self._state.assign(_state_from_key_counter(key, counter))

    def skip(self, delta: Any) -> Tensor:
        """Goes on as if `delta` draws had been made. Returns the state before."""
        with self._lock:
            before = self._state.value()
            self._state.assign_add([int(delta), 0, 0])
        return before

    def _draw(self) -> Draw:
        drawn, high, key = np.asarray(self.skip(1)).tolist()
        return Draw((key % _WORD, high % _WORD), (drawn % _WORD, _GENERATOR))

    def normal(
        self,
        shape: Any,
        mean: Any = 0.0,
        stddev: Any = 1.0,
        dtype: Any = dtypes.float32,
        name: Any = None,
    ) -> Tensor:
        """Random numbers from a normal distribution."""
        return _scaled(_unit_normal, self._draw(), shape, mean, stddev, dtype)

    def truncated_normal(
        self,
        shape: Any,
        mean: Any = 0.0,
        stddev: Any = 1.0,
        dtype: Any = dtypes.float32,
        name: Any = None,
    ) -> Tensor:
        """Random numbers from a normal distribution, none further than two `stddev` off."""
        return _scaled(_unit_truncated_normal, self._draw(), shape, mean, stddev, dtype)

    def uniform(
        self,
        shape: Any,
        minval: Any = 0,
        maxval: Any = None,
        dtype: Any = dtypes.float32,
        name: Any = None,
    ) -> Tensor:
        """Random numbers from `minval` up to but without `maxval`, all equally likely."""
        return _uniform(self._draw(), shape, minval, maxval, dtype)

    def uniform_full_int(self, shape: Any, dtype: Any = dtypes.uint64, name: Any = None) -> Tensor:
        """Integers from the whole range of `dtype`, all equally likely."""
        return _new_seeds(self._draw(), shape_from(shape, "random"), numpy_dtype(dtype))

    def make_seeds(self, count: int = 1) -> Tensor:
        """Seeds for stateless functions, one in each column."""
        return _new_seeds(self._draw(), (2, count), np.dtype(np.int64))

    def split(self, count: int = 1) -> list[Generator]:
        """New generators, that share nothing with this one and with each other."""
        keys = np.asarray(self.make_seeds(count))
        return [Generator(state=np.array([0, high, key])) for key, high in keys.T]


def _state_array(state: Any) -> np.ndarray:
    array = integer_array(state, "Generator")
    if array.shape != (3,):
        raise ValueError(f"Generator: expected a state of 3 integers. Received: {array.shape}.")
    return array


def _state_from_seed(seed: Any) -> np.ndarray:
    numbers = integer_array(seed, "seed").reshape(-1).tolist()
    if len(numbers) not in (1, 2):
        raise ValueError(f"Generator: expected a seed of one or two integers. Received: {seed!r}.")
    return np.array([0, 0, *numbers] if len(numbers) == 1 else [0, *reversed(numbers)])


def _state_from_key_counter(key: Any, counter: Any) -> np.ndarray:
    drawn = np.atleast_1d(integer_array(counter, "counter"))
    return np.array([drawn[0], 0, int(integer_array(key, "key"))])


_global_lock = threading.Lock()
_global: Generator | None = None


def get_global_generator() -> Generator:
    """The generator that the process shares; made, different in each run, when first asked for."""
    global _global
    with _global_lock:
        if _global is None:
            _global = Generator.from_non_deterministic_state()
        return _global


def set_global_generator(generator: Generator) -> None:
    """Puts `generator` in the place of the one that the process shares."""
    global _global
    with _global_lock:
        _global = generator
