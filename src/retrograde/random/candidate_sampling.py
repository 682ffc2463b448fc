"""Classes drawn as candidates beside the true ones, and how often each was to be expected."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.io.files import as_tensorflow
from retrograde.ops import random_state
from retrograde.ops.conversion import as_tensor
from retrograde.ops.host_functions import host_function
from retrograde.ops.random_state import Draw
from retrograde.random._sampling import bits, words_of
from retrograde.strings._numbers import parse_number
from retrograde.values import dtypes
from retrograde.values.arguments import as_float, as_text, shown
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import NotFoundError, invalid, reports_out_of_memory, to_list
from retrograde.values.locks import fork_safe_lock

_INT64 = dtypes.int64.numpy_dtype


class Sample(NamedTuple):
    """Classes that were drawn, and the expected counts of the true ones and of these.

    An expected count is how often a class comes up in as many tries as were made. Where each class
    counts once, it is the probability that it comes up at all.
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
    """Draws `num_sampled` of the classes from 0 up to `range_max`, all equally likely.

    `true_classes`, of shape `(batch, num_true)`, are only counted. With `unique`, no class is
    drawn twice.

    >>> sample = tf.random.uniform_candidate_sampler([[1], [2]], 1, 3, False, range_max=6)
    >>> sample.true_expected_count.numpy()
    array([[0.5],
           [0.5]], dtype=float32)
    """
    op_name = "uniform_candidate_sampler"
    _check_range(range_max, op_name)

    def draw(generator: np.random.Generator, count: int) -> np.ndarray:
        return generator.integers(0, range_max, count)

    def chance(classes: np.ndarray) -> np.ndarray:
        return np.full(classes.shape, 1 / range_max)

    true = _true_classes(true_classes, num_true, num_sampled, range_max, op_name)
    key = random_state.draw_key(seed)
    return _sample(key, draw, chance, range_max, true, num_sampled, unique)


def log_uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Sample:
    """As `uniform_candidate_sampler`, for classes that Zipf's law holds for, frequent ones first.

    The probability of class k is `(log(k + 2) - log(k + 1)) / log(range_max + 1)`.
    """
    op_name = "log_uniform_candidate_sampler"
    _check_range(range_max, op_name)
    whole = np.log1p(range_max)

    def draw(generator: np.random.Generator, count: int) -> np.ndarray:
        # Rounding may carry a number close to 1 over the end.
        classes = np.expm1(generator.random(count) * whole).astype(_INT64)
        return np.minimum(classes, range_max - 1)

    def chance(classes: np.ndarray) -> np.ndarray:
        return np.log1p(1 / (classes + 1.0)) / whole

    true = _true_classes(true_classes, num_true, num_sampled, range_max, op_name)
    key = random_state.draw_key(seed)
    return _sample(key, draw, chance, range_max, true, num_sampled, unique)


_learned: dict[tuple, np.ndarray] = {}
_learning = fork_safe_lock()


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
    """As `uniform_candidate_sampler`, with probabilities learned from the true classes.

    All classes start out equally likely; then each call with the same `seed` and the same numbers
    counts its `true_classes`, for the next. Without a `seed`, every call starts anew; so they all
    do after `tf.random.set_seed`.
    """
    op_name = "learned_unigram_candidate_sampler"
    _check_range(range_max, op_name)
    true = _true_classes(true_classes, num_true, num_sampled, range_max, op_name)
    key = (seed, num_true, num_sampled, bool(unique), range_max)
    with _learning:
        known = _learned.get(key)
        weights = np.ones(range_max) if known is None else known
        if seed is not None:
            _learned[key] = weights + np.bincount(np.asarray(true).ravel(), minlength=range_max)
    draw_key = random_state.draw_key(seed)
    return _sample(draw_key, *_weighted(weights), true, num_sampled, unique)


def forget_learned() -> None:
    """Lets all probabilities be learned anew."""
    with _learning:
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
    """As `uniform_candidate_sampler`, with probabilities proportional to given weights.

    They are those in `unigrams`, or the numbers after the last comma in the lines of `vocab_file`,
    each to the power of `distortion`; the first `num_reserved_ids` classes come before them and
    are never drawn. Of several shards only the classes k with `k % num_shards == shard` count.

    >>> tf.random.fixed_unigram_candidate_sampler(
    ...     [[1]], 1, 2, False, range_max=3, unigrams=[1.0, 2.0, 1.0]
    ... ).true_expected_count.numpy()
    array([[1.]], dtype=float32)
    """
    op_name = "fixed_unigram_candidate_sampler"
    _check_range(range_max, op_name)
    if isinstance(unigrams, range):  # which may be longer than `len` can tell
        unigrams = to_list(op_name, unigrams)
    if bool(vocab_file) == bool(len(unigrams)):
        raise invalid(
            f"{op_name}: expected one of vocab_file and unigrams. Received: "
            f"vocab_file={shown(vocab_file)} and unigrams={shown(list(unigrams))}."
        )
    found = unigrams or _weights_in(vocab_file, op_name)
    exponent = as_float(distortion, f"{op_name}: distortion")
    with np.errstate(all="ignore"):  # checked below
        given = np.asarray(as_tensor(found, np.dtype(np.float64))) ** exponent
    if given.ndim != 1:
        raise invalid(
            f"{op_name}: unigrams must be a list of numbers. Received: {as_text(unigrams)}."
        )
    weights = np.concatenate([np.zeros(num_reserved_ids), given])[shard::num_shards]
    if len(weights) != range_max:
        raise invalid(
            f"{op_name}: range_max must be the number of weights. Received: "
            f"range_max={as_text(range_max)}, and {len(weights)} weights."
        )
    if not (np.isfinite(weights).all() and np.all(weights >= 0) and weights.any()):
        raise invalid(
            f"{op_name}: weights must be finite and at least 0, and not all 0. Received: {weights}."
        )
    true = _true_classes(true_classes, num_true, num_sampled, range_max, op_name)
    draw_key = random_state.draw_key(seed)
    return _sample(draw_key, *_weighted(weights), true, num_sampled, unique)


def _weights_in(vocab_file: str, op_name: str) -> list[float]:
    try:
        with open(os.fspath(vocab_file), "rb") as lines:  # an integer would name an open file
            return [_weight(line, n, op_name) for n, line in enumerate(lines, 1) if line.strip()]
    except FileNotFoundError:
        raise NotFoundError(
            None, None, f"{op_name}: there is no vocab_file {shown(vocab_file)}."
        ) from None
    except OSError as error:
        raise as_tensorflow(error, os.fspath(vocab_file)) from None


def _weight(line: bytes, number: int, op_name: str) -> float:
    """Returns the number at the end of a line."""
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
    """All classes from 0 up to `num_sampled`, each once; for tests of what uses a sampler.

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
    return _inside(true, range_max, op_name)


@host_function
def _inside(true: Tensor, range_max: int, op_name: str) -> Tensor:
    classes = np.asarray(true)
    outside = (classes < 0) | (classes >= range_max)
    if outside.any():
        raise invalid(
            f"{op_name}: true classes must be in [0, {range_max}). Received: {classes[outside][0]}."
        )
    return Tensor(classes)


def class_matrix(classes: Any, num_true: int, argument: str, op_name: str) -> Tensor:
    """`classes`, of which there are `num_true` in each row, as a tensor of int64."""
    tensor = as_tensor(classes, None if tensor_or_variable(classes) is not None else _INT64)
    shape = tensor._spec.shape
    if tensor._spec.dtype != _INT64:
        raise invalid(
            f"{op_name}: `{argument}` has dtype {tensor.dtype.name}. Expected int64: use tf.cast."
        )
    if num_true < 1 or len(shape) != 2 or shape[1] != num_true:
        raise invalid(
            f"{op_name}: `{argument}` must be a matrix with num_true columns, at least one. "
            f"Received: shape {shape}, num_true={as_text(num_true)}."
        )
    return tensor


def _weighted(weights: np.ndarray) -> tuple[Callable, Callable, int]:
    """How to draw with probabilities proportional to `weights`; these; how many are not 0."""
    shares = weights / weights.sum()
    ends = np.cumsum(shares)
    last = np.flatnonzero(weights)[-1]

    def draw(generator: np.random.Generator, count: int) -> np.ndarray:
        # Rounding may leave the last end below 1.
        return np.minimum(ends.searchsorted(generator.random(count), side="right"), last)

    return draw, shares.__getitem__, np.count_nonzero(weights)


def _sample(
    key: Draw,
    draw: Callable,
    chance: Callable,
    possible: int,
    true: Tensor,
    num_sampled: int,
    unique: bool,
) -> Sample:
    if key.levels:
        bits(key)  # which refuses batches
    return _sampled(words_of(key), draw, chance, possible, true, num_sampled, unique)


@host_function
def _sampled(
    words: Tensor,
    draw: Callable,
    chance: Callable,
    possible: int,
    true: Tensor,
    num_sampled: int,
    unique: bool,
) -> Sample:
    generator = bits(Draw.from_words(np.asarray(words)))
    tries = num_sampled
    if not unique:
        sampled = draw(generator, num_sampled).astype(_INT64)
    elif num_sampled > possible:
        raise invalid(
            f"unique candidates: cannot draw {num_sampled} different ones from {possible} classes."
        )
    else:
        sampled, tries = _without_repeats(lambda: draw(generator, num_sampled), num_sampled)

    def expected(classes: np.ndarray) -> Tensor:
        share = chance(classes)
        count = share * tries if tries == num_sampled else -np.expm1(tries * np.log1p(-share))
        return Tensor(count.astype(np.float32))

    return Sample(Tensor(sampled), expected(np.asarray(true)), expected(sampled))


def _without_repeats(draw: Callable, count: int) -> tuple[np.ndarray, int]:
    """The first `count` different classes in the order they came up, and how many tries it took."""
    drawn = np.empty(0, _INT64)
    while True:
        drawn = np.concatenate([drawn, draw()])
        _, first = np.unique(drawn, return_index=True)
        if len(first) >= count:
            places = np.sort(first)[:count]
            return drawn[places].astype(_INT64), int(places[-1]) + 1
