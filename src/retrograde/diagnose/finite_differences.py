"""Rules against finite differences: where they agree, where there is a kink, where a mistake."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Precision(NamedTuple):
    """How rule and differences are compared in a dtype.

    `steps` are relative to the size of each element. Rounding spoils the small ones, curvature and
    edges of domains the large ones: one that agrees is enough, since a wrong rule agrees with
    none. `near` says how well they have to agree, in proportion. `sides` are a wide and a close
    step at which to look to both sides for a kink.
    """

    steps: tuple[float, ...]
    near: float
    eps: float
    sides: tuple[float, float]


DOUBLE = Precision(
    (1e-4, 1e-5, 1e-3, 1e-6, 1e-7), 1e-5, float(np.finfo(np.float64).eps), (1e-4, 1e-6)
)
SINGLE = Precision((1e-2, 3e-2, 3e-3), 2e-2, float(np.finfo(np.float32).eps), (3e-2, 3e-3))

Function = Callable[[np.ndarray], list[np.ndarray]]


class Disagreement(NamedTuple):
    """An element of an input where the rule says something else than the differences.

    At a `kink` the slopes to both sides differ, and the rule is one of them or lies between.
    """

    index: tuple[int, ...]
    value: Any
    rule: Any
    slopes: tuple[float, float]
    kink: bool


def disagreements(probe: Probe, samples: int, elementwise: bool) -> list[Disagreement]:
    """Elements of an input at which a rule is not the slope of the function.

    All elements are moved at once along a random direction. If that disagrees, the elements are
    halved until one is found, which is then left out; at most `samples` are found so. Where the
    function goes element by element, all its kinks are left out from the start.
    """
    moves = _moves(probe.x, np.random.default_rng(0))
    found: list[Disagreement] = []
    mask = np.ones(probe.x.shape)
    if elementwise and not np.iscomplexobj(probe.x):
        kinks = probe.kinks(np.abs(moves))
        found += kinks[:samples]
        for kink in kinks:
            mask[kink.index] = 0
        samples += len(found)
    while len(found) < samples and not probe.agrees(moves * mask):
        index = _bisected(probe, moves, mask)
        mistake = probe.examined(index, abs(moves[index]))
        if mistake is not None:
            found.append(mistake)
            if not mistake.kink:
                break
        mask[index] = 0
    return found


def _moves(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """How far to move each element, before it is scaled by a step."""
    size = np.abs(x)
    typical = np.sqrt(np.mean(np.square(size))) if x.size and size.any() else 1.0
    size = np.where(size == 0, typical, size)
    signs = np.where(rng.random(x.shape) < 0.5, -1.0, 1.0)
    moves = signs * rng.uniform(0.5, 1.5, x.shape) * size
    if np.iscomplexobj(x):
        moves = moves * np.exp(1j * rng.uniform(0, 2 * np.pi, x.shape))
    return moves


def _bisected(probe: Probe, moves: np.ndarray, mask: np.ndarray) -> tuple[int, ...]:
    """An element that disagrees, among those that `mask` leaves."""
    candidates = np.flatnonzero(mask)
    while len(candidates) > 1:
        half = candidates[: len(candidates) // 2]
        only = np.zeros(mask.size)
        only[half] = 1
        if probe.agrees(moves * only.reshape(mask.shape)):
            candidates = candidates[len(candidates) // 2 :]
        else:
            candidates = half
    return tuple(map(int, np.unravel_index(candidates[0], mask.shape)))


class Probe:
    """The sum of `g * f(x)`, and what a rule says of its slope: `cotangent`."""

    def __init__(
        self,
        f: Function,
        x: np.ndarray,
        gs: list,
        cotangent: np.ndarray,
        precision: Precision = DOUBLE,
    ) -> None:
        self._f, self.x, self._gs, self._cotangent = f, x, gs, cotangent
        self._precision = precision
        self._gap = max(1e-3, 5 * precision.near)  # between slopes, in proportion, at a kink
        self._here = self._sum(x)

    def _sum(self, x: np.ndarray) -> float:
        parts = zip(self._gs, self._f(x), strict=True)
        return float(sum(np.sum(np.conj(g) * y).real for g, y in parts if g is not None))

    def kinks(self, sizes: np.ndarray) -> list[Disagreement]:
        """The kinks of a function that goes element by element.

        Not among them are those at which the rule is neither of both slopes nor lies between.
        """
        (g,), (here,), said = self._gs, self._f(self.x), self._cotangent
        apart = np.ones(self.x.shape, bool)
        for step in self._precision.sides:
            h = step * sizes
            right, left = (g * (self._f(self.x + s)[0] - here) / s for s in (h, -h))
            apart &= np.abs(right - left) > self._gap * np.maximum(np.abs(left), np.abs(right))
        low, high = np.minimum(left, right), np.maximum(left, right)
        margin = self._gap * np.maximum(np.abs(low), np.abs(high))
        apart &= (low - margin <= said) & (said <= high + margin)
        places = [tuple(map(int, index)) for index in np.argwhere(apart)]
        return [Disagreement(i, self.x[i], said[i], (left[i], right[i]), True) for i in places]

    def agrees(self, moves: np.ndarray) -> bool:
        """Whether the rule is right along `moves`."""
        said = float(np.sum(np.conj(self._cotangent) * moves).real)
        size = float(np.sqrt(np.sum(np.abs(self._cotangent * moves) ** 2)))
        steps, near, eps, _ = self._precision
        for step in steps:
            ahead, behind = (self._sum(self.x + h * moves) for h in (step, -step))
            slope = (ahead - behind) / (2 * step)
            noise = 8 * eps * max(abs(ahead), abs(behind)) / step
            if abs(slope - said) <= near * max(abs(said), abs(slope), size) + noise:
                return True
        return False

    def examined(self, index: tuple[int, ...], size: float) -> Disagreement | None:
        """What is wrong at one element; nothing, if it was all the rest together."""
        complex_parts = (1.0, 1j) if np.iscomplexobj(self.x) else (1.0,)
        for unit in complex_parts:
            moves = np.zeros_like(self.x)
            moves[index] = unit
            if self.agrees(moves * size):
                continue
            said = float((np.conj(self._cotangent[index]) * unit).real)
            left, right = self._sides(moves, size, self._precision.sides[1])
            low, high = min(left, right), max(left, right)
            margin = self._gap * max(abs(low), abs(high), 1e-300)
            kink = self._is_kink(moves, size) and low - margin <= said <= high + margin
            return Disagreement(index, self.x[index], said, (left, right), kink)
        return None

    def _sides(self, moves: np.ndarray, size: float, step: float) -> tuple[float, float]:
        h = step * size
        right = (self._sum(self.x + h * moves) - self._here) / h
        left = (self._here - self._sum(self.x - h * moves)) / h
        return left, right

    def _is_kink(self, moves: np.ndarray, size: float) -> bool:
        """Whether the slopes to both sides stay apart, however near one looks."""
        wide, close = (self._sides(moves, size, step) for step in self._precision.sides)
        apart = abs(close[1] - close[0])
        steepest = max(map(abs, close))
        return apart > self._gap * steepest and apart > 0.3 * abs(wide[1] - wide[0])
