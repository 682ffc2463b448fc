"""Compares gradients with finite differences, and finds non-differentiable points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Precision(NamedTuple):
    """The steps and tolerances for comparing gradients with finite differences in a dtype.

    `steps` are relative to the size of each element. Small steps suffer from rounding, large steps
    from curvature and from the boundaries of domains. It is enough if one step agrees, because a
    wrong gradient agrees with none. `rtol` is the relative tolerance. `one_sided_steps` are a large
    and a small step for one-sided differences, which detect non-differentiable points.
    """

    steps: tuple[float, ...]
    rtol: float
    eps: float
    one_sided_steps: tuple[float, float]


DOUBLE = Precision(
    (1e-4, 1e-5, 1e-3, 1e-6, 1e-7), 1e-5, float(np.finfo(np.float64).eps), (1e-4, 1e-6)
)
SINGLE = Precision((1e-2, 3e-2, 3e-3), 2e-2, float(np.finfo(np.float32).eps), (3e-2, 3e-3))

Function = Callable[[np.ndarray], list[np.ndarray]]


class Mismatch(NamedTuple):
    """An element of an input where the gradient and the finite differences differ.

    At a `nondifferentiable` point, the left and right differences differ, and the gradient is in
    the interval between them.
    """

    index: tuple[int, ...]
    value: Any
    gradient: Any
    differences: tuple[float, float]
    nondifferentiable: bool


def mismatches(check: GradientCheck, samples: int, elementwise: bool) -> list[Mismatch]:
    """Returns elements of an input at which the gradient is wrong or not unique.

    It compares the derivatives along a random direction in all elements. If they differ, it finds
    one such element by bisection and excludes it, at most `samples` times. Non-differentiable
    points of elementwise functions are excluded from the start.
    """
    direction = _direction(check.x, np.random.default_rng(0))
    result: list[Mismatch] = []
    mask = np.ones(check.x.shape)
    if elementwise and not np.iscomplexobj(check.x):
        points = check.nondifferentiable_points(np.abs(direction))
        result += points[:samples]
        for point in points:
            mask[point.index] = 0
        samples += len(result)
    while len(result) < samples and not check.agrees(direction * mask):
        index = _bisect(check, direction, mask)
        mismatch = check.check_element(index, abs(direction[index]))
        if mismatch is not None:
            result.append(mismatch)
            if not mismatch.nondifferentiable:
                break
        mask[index] = 0
    return result


def _direction(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Returns a random direction with components of the size of the elements of `x`."""
    size = np.abs(x)
    typical = np.sqrt(np.mean(np.square(size))) if x.size and size.any() else 1.0
    size = np.where(size == 0, typical, size)
    signs = np.where(rng.random(x.shape) < 0.5, -1.0, 1.0)
    direction = signs * rng.uniform(0.5, 1.5, x.shape) * size
    if np.iscomplexobj(x):
        direction = direction * np.exp(1j * rng.uniform(0, 2 * np.pi, x.shape))
    return direction


def _bisect(check: GradientCheck, direction: np.ndarray, mask: np.ndarray) -> tuple[int, ...]:
    """Returns an element whose derivative is wrong, among those that `mask` selects."""
    candidates = np.flatnonzero(mask)
    while len(candidates) > 1:
        half = candidates[: len(candidates) // 2]
        half_mask = np.zeros(mask.size)
        half_mask[half] = 1
        if check.agrees(direction * half_mask.reshape(mask.shape)):
            candidates = candidates[len(candidates) // 2 :]
        else:
            candidates = half
    return tuple(map(int, np.unravel_index(candidates[0], mask.shape)))


class GradientCheck:
    """Compares the gradient of `sum(g * f(x))`, which is `cotangent`, with finite differences."""

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
        # The relative gap between the left and right difference at a non-differentiable point.
        self._gap = max(1e-3, 5 * precision.rtol)
        self._sum_at_x = self._sum(x)

    def _sum(self, x: np.ndarray) -> float:
        pairs = zip(self._gs, self._f(x), strict=True)
        return float(sum(np.sum(np.conj(g) * y).real for g, y in pairs if g is not None))

    def nondifferentiable_points(self, sizes: np.ndarray) -> list[Mismatch]:
        """Returns the non-differentiable points of an elementwise function.

        It omits points at which the gradient is outside the interval of the one-sided differences.
        """
        (g,), (y,), gradient = self._gs, self._f(self.x), self._cotangent
        mask = np.ones(self.x.shape, bool)
        for step in self._precision.one_sided_steps:
            h = step * sizes
            right, left = (g * (self._f(self.x + s)[0] - y) / s for s in (h, -h))
            mask &= np.abs(right - left) > self._gap * np.maximum(np.abs(left), np.abs(right))
        low, high = np.minimum(left, right), np.maximum(left, right)
        margin = self._gap * np.maximum(np.abs(low), np.abs(high))
        mask &= (low - margin <= gradient) & (gradient <= high + margin)
        indices = [tuple(map(int, index)) for index in np.argwhere(mask)]
        return [Mismatch(i, self.x[i], gradient[i], (left[i], right[i]), True) for i in indices]

    def agrees(self, direction: np.ndarray) -> bool:
        """Returns whether the derivative along `direction` agrees with finite differences."""
        expected = float(np.sum(np.conj(self._cotangent) * direction).real)
        size = float(np.sqrt(np.sum(np.abs(self._cotangent * direction) ** 2)))
        steps, rtol, eps, _ = self._precision
        for step in steps:
            plus, minus = (self._sum(self.x + h * direction) for h in (step, -step))
            difference = (plus - minus) / (2 * step)
            rounding = 8 * eps * max(abs(plus), abs(minus)) / step
            scale = max(abs(expected), abs(difference), size)
            if abs(difference - expected) <= rtol * scale + rounding:
                return True
        return False

    def check_element(self, index: tuple[int, ...], size: float) -> Mismatch | None:
        """Returns the mismatch at one element; `None` if this element alone agrees."""
        units = (1.0, 1j) if np.iscomplexobj(self.x) else (1.0,)
        for unit in units:
            direction = np.zeros_like(self.x)
            direction[index] = unit
            if self.agrees(direction * size):
                continue
            gradient = float((np.conj(self._cotangent[index]) * unit).real)
            step = self._precision.one_sided_steps[1]
            left, right = self._one_sided_differences(direction, size, step)
            low, high = min(left, right), max(left, right)
            margin = self._gap * max(abs(low), abs(high), 1e-300)
            within = low - margin <= gradient <= high + margin
            nondifferentiable = within and self._is_nondifferentiable(direction, size)
            return Mismatch(index, self.x[index], gradient, (left, right), nondifferentiable)
        return None

    def _one_sided_differences(
        self, direction: np.ndarray, size: float, step: float
    ) -> tuple[float, float]:
        h = step * size
        right = (self._sum(self.x + h * direction) - self._sum_at_x) / h
        left = (self._sum_at_x - self._sum(self.x - h * direction)) / h
        return left, right

    def _is_nondifferentiable(self, direction: np.ndarray, size: float) -> bool:
        """Returns whether the one-sided differences remain different for a smaller step."""
        steps = self._precision.one_sided_steps
        large, small = (self._one_sided_differences(direction, size, step) for step in steps)
        gap = abs(small[1] - small[0])
        return gap > self._gap * max(map(abs, small)) and gap > 0.3 * abs(large[1] - large[0])
