"""Candidate sampling: random classes and their expected counts."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.io.files import to_tensorflow_error
from retrograde.ops import random_state
from retrograde.ops.conversion import as_tensor
from retrograde.ops.host_functions import host_function
from retrograde.ops.random_state import Draw
from retrograde.random._sampling import generator_of, words_of
from retrograde.strings._numbers import parse_number
from retrograde.values import dtypes
from retrograde.values.arguments import as_float, as_text, shown
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import NotFoundError, invalid, reports_out_of_memory, to_list
from retrograde.values.locks import fork_safe_lock

_INT64 = dtypes.int64.numpy_dtype


class Sample(NamedTuple):
    """Sampled classes, and the expected counts of the true and the sampled classes.

    An expected count is how often a class occurs in the number of tries made. For unique sampling,
    it is the probability that the class occurs at all.
    """

    sampled_candidates: Tensor
    true_expected_count: Tensor
    sampled_expected_count: Tensor


def uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Sample:
    """Samples `num_sampled` classes uniformly from 0 up to `range_max`.

    `true_classes`, of shape `(batch, num_true)`, only affect the expected counts. With `unique`, no
    class is sampled twice.

    >>> sample = tf.random.uniform_candidate_sampler([[1], [2]], 1, 3, False, range_max=6)
    >>> sample.true_expected_count.numpy()
    array([[0.5],
           [0.5]], dtype=float32)
    """
    op_name = "uniform_candidate_sampler"
    _check_range(range_max, op_name)

    def draw(generator: np.random.Generator, count: int) -> np.ndarray:
        return generator.integers(0, range_max, count)

    def probability(classes: np.ndarray) -> np.ndarray:
        return np.full(classes.shape, 1 / range_max)

    true = _true_classes(true_classes, num_true, num_sampled, range_max, op_name)
    key = random_state.draw_key(seed)
    return _sample(key, draw, probability, range_max, true, num_sampled, unique)


def log_uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Sample:
    """Samples classes from a log-uniform (Zipfian) distribution, frequent classes first.

    The probability of class k is `(log(k + 2) - log(k + 1)) / log(range_max + 1)`.
    """
    op_name = "log_uniform_candidate_sampler"
    _check_range(range_max, op_name)
    log_range = np.log1p(range_max)

    def draw(generator: np.random.Generator, count: int) -> np.ndarray:
        # Rounding may carry a number close to 1 beyond the last class.
        classes = np.expm1(generator.random(count) * log_range).astype(_INT64)
        return np.minimum(classes, range_max - 1)

    def probability(classes: np.ndarray) -> np.ndarray:
        return np.log1p(1 / (classes + 1.0)) / log_range

    true = _true_classes(true_classes, num_true, num_sampled, range_max, op_name)
    key = random_state.draw_key(seed)
    return _sample(key, draw, probability, range_max, true, num_sampled, unique)


_learned: dict[tuple, np.ndarray] = {}
_learned_lock = fork_safe_lock()


@reports_out_of_memory("learned_unigram_candidate_sampler")
def learned_unigram_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Sample:
    """Samples classes with probabilities learned from the true classes.

    All classes start equally likely. Each call counts its `true_classes` for later calls with the
    same `seed` and the same other arguments. Without a `seed`, nothing is learned.
    `tf.random.set_seed` resets the counts.
    """
    op_name = "learned_unigram_candidate_sampler"
    _check_range(range_max, op_name)
    true = _true_classes(true_classes, num_true, num_sampled, range_max, op_name)
    key = (seed, num_true, num_sampled, bool(unique), range_max)
    with _learned_lock:
        previous = _learned.get(key)
        weights = np.ones(range_max) if previous is None else previous
        if seed is not None:
            _learned[key] = weights + np.bincount(np.asarray(true).ravel(), minlength=range_max)
    draw_key = random_state.draw_key(seed)
    return _sample(draw_key, *_weighted_sampler(weights), true, num_sampled, unique)


def reset_learned() -> None:
    """Clears all learned probabilities."""
    with _learned_lock:
        _learned.clear()


@reports_out_of_memory("fixed_unigram_candidate_sampler")
def fixed_unigram_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str = "",
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Sequence[float] = (),
    seed: int | None = None,
    name: str | None = None,
) -> Sample:
    """Samples classes with probabilities proportional to given weights.

    The weights are `unigrams`, or the numbers after the last comma in the lines of `vocab_file`,
    each to the power of `distortion`. The first `num_reserved_ids` classes precede them and are
    never sampled. With several shards, only classes k with `k % num_shards == shard` are used.

    >>> tf.random.fixed_unigram_candidate_sampler(
    ...     [[1]], 1, 2, False, range_max=3, unigrams=[1.0, 2.0, 1.0]
    ... ).true_expected_count.numpy()
    array([[1.]], dtype=float32)
    """
    op_name = "fixed_unigram_candidate_sampler"
    _check_range(range_max, op_name)
    if isinstance(unigrams, range):  # `len` fails for very long ranges
        unigrams = to_list(op_name, unigrams)
    if bool(vocab_file) == bool(len(unigrams)):
        raise invalid(
            f"{op_name}: expected one of vocab_file and unigrams. Received: "
            f"vocab_file={shown(vocab_file)} and unigrams={shown(list(unigrams))}."
        )
    values = unigrams or _read_weights(vocab_file, op_name)
    exponent = as_float(distortion, f"{op_name}: distortion")
    with np.errstate(all="ignore"):  # checked below
        powers = np.asarray(as_tensor(values, np.dtype(np.float64))) ** exponent
    if powers.ndim != 1:
        raise invalid(
            f"{op_name}: unigrams must be a list of numbers. Received: {as_text(unigrams)}."
        )
    weights = np.concatenate([np.zeros(num_reserved_ids), powers])[shard::num_shards]
    if len(weights) != range_max:
        raise invalid(
            f"{op_name}: range_max must be the number of weights. Received: "
            f"range_max={as_text(range_max)}, and {len(weights)} weights."
        )
    if not (np.isfinite(weights).all() and np.all(weights >= 0) and weights.any()):
        raise invalid(
            f"{op_name}: weights must be finite, non-negative and not all 0. Received: {weights}."
        )
    true = _true_classes(true_classes, num_true, num_sampled, range_max, op_name)
    draw_key = random_state.draw_key(seed)
    return _sample(draw_key, *_weighted_sampler(weights), true, num_sampled, unique)


def _read_weights(vocab_file: str, op_name: str) -> list[float]:
    try:
        with open(os.fspath(vocab_file), "rb") as lines:  # os.fspath rejects file descriptors
            return [
                _parse_weight(line, n, op_name) for n, line in enumerate(lines, 1) if line.strip()
            ]
    except FileNotFoundError:
        raise NotFoundError(
            None, None, f"{op_name}: no such vocab_file: {shown(vocab_file)}."
        ) from None
    except OSError as error:
        raise to_tensorflow_error(error, os.fspath(vocab_file)) from None


def _parse_weight(line: bytes, number: int, op_name: str) -> float:
    """Parses the number at the end of a line."""
    word = line.rpartition(b",")[2]
    weight = parse_number(word, dtypes.float64)
    if weight is None:
        raise invalid(
            f"{op_name}: line {number} of vocab_file ends in {word.strip()[:80]!r}. Expected a "
            "number."
        )
    return weight


@reports_out_of_memory("all_candidate_sampler")
def all_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    seed: int | None = None,
    name: str | None = None,
) -> Sample:
    """Returns all classes from 0 up to `num_sampled`, each once; for tests of samplers.

    >>> tf.random.all_candidate_sampler([[1]], 1, 3, True).sampled_candidates.numpy()
    array([0, 1, 2])
    """
    op_name = "all_candidate_sampler"
    true = _true_classes(true_classes, num_true, num_sampled, num_sampled, op_name)
    counts = [np.ones(shape, np.float32) for shape in (true._spec.shape, (num_sampled,))]
    return Sample(Tensor(np.arange(num_sampled)), *map(Tensor, counts))


def _check_integers(op_name: str, **arguments: Any) -> None:
    for name, value in arguments.items():
        if not isinstance(value, int):
            raise TypeError(f"{op_name}: {name} must be an int. Received: {shown(value)}.")


def _check_range(range_max: int, op_name: str) -> None:
    _check_integers(op_name, range_max=range_max)
    if range_max < 1:
        raise invalid(f"{op_name}: range_max must be at least 1. Received: {range_max}.")


def _true_classes(
    true_classes: Any, num_true: int, num_sampled: int, range_max: int, op_name: str
) -> Tensor:
    _check_integers(op_name, num_true=num_true, num_sampled=num_sampled)
    true = class_matrix(true_classes, num_true, "true_classes", op_name)
    if num_sampled < 1:
        raise invalid(f"{op_name}: num_sampled must be at least 1. Received: {num_sampled}.")
    return _check_classes(true, range_max, op_name)


@host_function
def _check_classes(true: Tensor, range_max: int, op_name: str) -> Tensor:
    classes = np.asarray(true)
    outside = (classes < 0) | (classes >= range_max)
    if outside.any():
        raise invalid(
            f"{op_name}: true classes must be in [0, {range_max}). Received: {classes[outside][0]}."
        )
    return Tensor(classes)


def class_matrix(classes: Any, num_true: int, argument: str, op_name: str) -> Tensor:
    """Converts `classes`, `num_true` in each row, to an int64 tensor."""
    tensor = as_tensor(classes, None if tensor_or_variable(classes) is not None else _INT64)
    shape = tensor._spec.shape
    if tensor._spec.dtype != _INT64:
        raise invalid(
            f"{op_name}: `{argument}` has dtype {tensor.dtype.name}. Expected int64. Use tf.cast."
        )
    if num_true < 1 or len(shape) != 2 or shape[1] != num_true:
        raise invalid(
            f"{op_name}: `{argument}` must be a matrix with num_true >= 1 columns. Received: shape "
            f"{shape}, num_true={as_text(num_true)}."
        )
    return tensor


def _weighted_sampler(weights: np.ndarray) -> tuple[Callable, Callable, int]:
    """Returns a sampler for `weights`, the probabilities and the number of nonzero weights."""
    probabilities = weights / weights.sum()
    ends = np.cumsum(probabilities)
    last = np.flatnonzero(weights)[-1]

    def draw(generator: np.random.Generator, count: int) -> np.ndarray:
        # Rounding may leave the last cumulative probability below 1.
        return np.minimum(ends.searchsorted(generator.random(count), side="right"), last)

    return draw, probabilities.__getitem__, np.count_nonzero(weights)


def _sample(
    key: Draw,
    draw: Callable,
    probability: Callable,
    num_classes: int,
    true: Tensor,
    num_sampled: int,
    unique: bool,
) -> Sample:
    if key.levels:
        generator_of(key)  # raises for batches
    return _sample_now(words_of(key), draw, probability, num_classes, true, num_sampled, unique)


@host_function
def _sample_now(
    words: Tensor,
    draw: Callable,
    probability: Callable,
    num_classes: int,
    true: Tensor,
    num_sampled: int,
    unique: bool,
) -> Sample:
    generator = generator_of(Draw.from_words(np.asarray(words)))
    tries = num_sampled
    if not unique:
        sampled = draw(generator, num_sampled).astype(_INT64)
    elif num_sampled > num_classes:
        raise invalid(
            f"unique candidates: cannot draw {num_sampled} distinct classes from {num_classes}."
        )
    else:
        sampled, tries = _draw_unique(lambda: draw(generator, num_sampled), num_sampled)

    def expected_count(classes: np.ndarray) -> Tensor:
        p = probability(classes)
        count = p * tries if tries == num_sampled else -np.expm1(tries * np.log1p(-p))
        return Tensor(count.astype(np.float32))

    return Sample(Tensor(sampled), expected_count(np.asarray(true)), expected_count(sampled))


def _draw_unique(draw: Callable, count: int) -> tuple[np.ndarray, int]:
    """Returns the first `count` distinct classes in order of occurrence, and the tries made."""
    drawn = np.empty(0, _INT64)
    while True:
        drawn = np.concatenate([drawn, draw()])
        _, first = np.unique(drawn, return_index=True)
        if len(first) >= count:
            indices = np.sort(first)[:count]
            return drawn[indices].astype(_INT64), int(indices[-1]) + 1
