"""Random number generators with explicit state."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from retrograde.core.batching import mapped
from retrograde.core.recorders import thread
from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable
from retrograde.ops.arguments import integer, integer_array, shape_from
from retrograde.ops.host_functions import register_function
from retrograde.ops.random_state import Draw, fork_word
from retrograde.random import _distributions as distributions
from retrograde.random._sampling import (
    GENERATOR_STREAM,
    WORD_MODULUS,
    Algorithm,
    check_algorithm,
    draw_from,
    full_range,
    unit_normal,
    unit_truncated_normal,
)
from retrograde.values import dtypes
from retrograde.values.arguments import expect, shown
from retrograde.values.locks import fork_safe_lock


class Generator:
    """A random number generator with explicit state.

    The state, three integers, is a variable: it can be saved, assigned and shared. Several threads
    can draw from one generator.

    >>> a, b = tf.random.Generator.from_seed(1), tf.random.Generator.from_seed(1)
    >>> bool(tf.reduce_all(a.normal([3]) == b.normal([3])))
    True
    """

    def __init__(
        self, copy_from: Generator | None = None, state: Any = None, alg: Any = None
    ) -> None:
        if (copy_from is None) == (state is None):
            raise ValueError("Generator: expected exactly one of `copy_from` and `state`.")
        if alg is not None:
            check_algorithm(alg)
        if state is None:
            state = expect(copy_from, Generator, "Generator", "a tf.random.Generator").state
        self._state = Variable(_state_array(state), trainable=False, name="StateVar")
        self._lock = fork_safe_lock()

    @classmethod
    def from_state(cls, state: Any, alg: Any = None) -> Generator:
        """Creates a generator that continues from `state`."""
        return cls(state=state, alg=alg)

    @classmethod
    def from_seed(cls, seed: Any, alg: Any = None) -> Generator:
        """Creates a generator from `seed`."""
        return cls(state=_state_from_seed(seed), alg=alg)

    @classmethod
    def from_key_counter(cls, key: Any, counter: Any, alg: Any = None) -> Generator:
        """Creates a generator with `key` that has made `counter` draws."""
        return cls(state=_state_from_key_counter(key, counter), alg=alg)

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """Creates a generator that is different in each run."""
        return cls.from_seed(int.from_bytes(os.urandom(8), "little") - WORD_MODULUS // 2, alg)

    def _trackable_children(self) -> dict[str, Any]:
        return {"_state_var": self._state}

    @property
    def state(self) -> Variable:
        """The number of draws made, and the key."""
        return self._state

    @property
    def key(self) -> Tensor:
        """The key."""
        return self._state[2]

    @property
    def algorithm(self) -> int:
        """The number of the algorithm, Philox."""
        return Algorithm.PHILOX.value

    def reset(self, state: Any) -> None:
        """Sets the state of the generator."""
        self._state.assign(_state_array(state))

    def reset_from_seed(self, seed: Any) -> None:
        """Resets the generator to the start of the numbers of `seed`."""
        self._state.assign(_state_from_seed(seed))

    def reset_from_key_counter(self, key: Any, counter: Any) -> None:
        """Resets the generator to `key` and `counter` draws made."""
        self._state.assign(_state_from_key_counter(key, counter))

    def skip(self, delta: Any) -> Tensor:
        """Advances the generator by `delta` draws. Returns the previous state."""
        steps = integer(delta, "skip")
        with self._lock:
            before = self._state.value()
            self._state.assign_add([steps, 0, 0])
        return before

    def _draw(self) -> Draw:
        state = self.skip(1)
        if thread.recorders.tracer is None:
            return _draw_of(np.asarray(state))._replace(levels=mapped())
        return draw_from(_draw_of, state)._replace(levels=mapped())

    def normal(
        self,
        shape: Any,
        mean: Any = 0.0,
        stddev: Any = 1.0,
        dtype: Any = dtypes.float32,
        name: Any = None,
    ) -> Tensor:
        """Draws random numbers from a normal distribution."""
        return distributions.draw_scaled(unit_normal, self._draw(), shape, mean, stddev, dtype)

    def truncated_normal(
        self,
        shape: Any,
        mean: Any = 0.0,
        stddev: Any = 1.0,
        dtype: Any = dtypes.float32,
        name: Any = None,
    ) -> Tensor:
        """Draws random numbers from a normal distribution truncated at two `stddev`."""
        return distributions.draw_scaled(
            unit_truncated_normal, self._draw(), shape, mean, stddev, dtype
        )

    def uniform(
        self,
        shape: Any,
        minval: Any = 0,
        maxval: Any = None,
        dtype: Any = dtypes.float32,
        name: Any = None,
    ) -> Tensor:
        """Draws uniform random numbers in [`minval`, `maxval`).

        Integers come from the full range of `dtype` if both are `None`.
        """
        return distributions.uniform_or_full_range(self._draw(), shape, minval, maxval, dtype)

    def binomial(
        self,
        shape: Any,
        counts: Any,
        probs: Any,
        dtype: Any = dtypes.int32,
        name: Any = None,
    ) -> Tensor:
        """Draws the number of successes in `counts` trials with probability `probs`.

        `shape` ends with the broadcast shape of the parameters.
        """
        return distributions.binomial(self._draw(), shape, counts, probs, dtype, "binomial")

    def uniform_full_int(self, shape: Any, dtype: Any = dtypes.uint64, name: Any = None) -> Tensor:
        """Draws integers uniformly from the full range of `dtype`."""
        op_name = "uniform_full_int"
        numpy_type = distributions.check_dtype(
            dtype, ("int32", "int64", "uint32", "uint64"), op_name
        )
        return full_range(self._draw(), shape_from(shape, op_name), numpy_type)

    def make_seeds(self, count: int = 1) -> Tensor:
        """Creates seeds for stateless functions, one in each column."""
        shape = shape_from([2, integer(count, "make_seeds")], "make_seeds")
        return full_range(self._draw(), shape, np.dtype(np.int64))

    def split(self, count: int = 1) -> list[Generator]:
        """Creates `count` independent generators."""
        keys = np.asarray(self.make_seeds(count))
        return [Generator(state=np.array([0, high, key])) for key, high in keys.T]


@register_function
def _draw_of(state: np.ndarray) -> Draw:
    counter, high, key = state.tolist()
    return Draw(
        (key % WORD_MODULUS, high % WORD_MODULUS), (counter % WORD_MODULUS, GENERATOR_STREAM)
    )


def _state_array(state: Any) -> np.ndarray:
    array = integer_array(state, "Generator")
    if array.shape != (3,):
        raise ValueError(f"Generator: expected a state of 3 integers. Received: {array.shape}.")
    return array


def create_rng_state(seed: Any, alg: Any) -> Tensor:
    """Returns the initial state of a generator created from `seed`: three integers.

    >>> tf.random.create_rng_state(7, "philox").numpy()
    array([0, 0, 7])
    """
    check_algorithm(alg)
    return Tensor(_state_from_seed(seed))


def _state_from_seed(seed: Any) -> np.ndarray:
    if type(seed) is int:  # seeds may have more than 64 bits
        low, high = (_as_signed(seed >> shift) for shift in (0, 64))
        return np.array([0, high if abs(seed) >= WORD_MODULUS else 0, low])
    numbers = integer_array(seed, "seed").reshape(-1).tolist()
    if len(numbers) not in (1, 2):
        raise ValueError(
            f"Generator: expected a seed of one or two integers. Received: {shown(seed)}."
        )
    return np.array([0, 0, *numbers] if len(numbers) == 1 else [0, *reversed(numbers)])


def _as_signed(number: int) -> int:
    """Returns the last 64 bits of `number` as a signed integer."""
    return (number + WORD_MODULUS // 2) % WORD_MODULUS - WORD_MODULUS // 2


def _state_from_key_counter(key: Any, counter: Any) -> np.ndarray:
    words = np.atleast_1d(integer_array(counter, "counter")).tolist()
    if len(words) not in (1, 2):
        raise ValueError(
            f"Generator: expected a counter of one or two integers. Received: {shown(counter)}."
        )
    return np.array([*words, *[0] * (2 - len(words)), integer(key, "key")])


_global_lock = fork_safe_lock()
_global: Generator | None = None


def get_global_generator() -> Generator:
    """Returns the global generator; it is created, with a random seed, on first use."""
    global _global
    with _global_lock:
        if _global is None:
            _global = Generator.from_non_deterministic_state()
        return _global


def _fork_global() -> None:
    """Changes the key of the global generator in a forked child, so that streams differ."""
    if _global is not None:
        *counter, key = np.asarray(_global.state).tolist()
        _global.reset([*counter, _as_signed(key ^ fork_word())])


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_fork_global)


def set_global_generator(generator: Generator) -> None:
    """Replaces the global generator."""
    global _global
    if not isinstance(generator, Generator):
        raise TypeError(f"Expected a tf.random.Generator. Received: {shown(generator)}.")
    with _global_lock:
        _global = generator
