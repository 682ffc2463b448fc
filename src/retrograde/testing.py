"""Checks derivatives numerically, for authors of custom gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from retrograde.core import indexed_slices
from retrograde.core.indexed_slices import IndexedSlices
from retrograde.core.recorders import Recorder, thread, use_recorders
from retrograde.core.tape import GradientTape
from retrograde.core.tensor import Tensor
from retrograde.derivatives.forward_mode import push_forward
from retrograde.values import dtypes, nest
from retrograde.values.conversion import as_array, tensor_or_variable

__all__ = ["check_gradients"]

_STEP = 1e-5
_MODES = ("reverse", "forward")
_CHECKED = frozenset({np.dtype(np.float64), np.dtype(np.complex128)})


def check_gradients(
    f: Callable,
    args: Sequence,
    order: int = 2,
    modes: Sequence[str] = ("reverse",),
    rtol: float = 1e-6,
    atol: float = 1e-8,
    seed: int = 0,
) -> None:
    """Compares the derivatives of `f` at `args` with finite differences, up to `order`.

    `f` takes tensors and returns a tensor or a structure of tensors. For each argument, the
    derivative along a random direction is compared, for a random weighted sum of the outputs. For
    `order` 2, the gradient of `f` is checked in the same way, as a function of the arguments and of
    the upstream gradients; and so on for higher orders. `modes` contains "reverse", which uses
    `GradientTape`, "forward", which uses the rules of `ForwardAccumulator`, or both.

    Arguments must be `float64` or `complex128`: finite differences are too inaccurate otherwise.
    Python floats become `float64`. Integers and booleans are passed to `f` but not checked. Avoid
    non-differentiable points. Raises `AssertionError` if the derivatives differ.

    >>> from retrograde.testing import check_gradients
    >>> check_gradients(lambda x, y: tf.sin(x) * y, [0.5, [1.0, 2.0]])
    """
    if not modes or any(mode not in _MODES for mode in modes):
        raise ValueError(
            f"check_gradients: modes must be a non-empty subset of {_MODES}. Received: {modes!r}."
        )
    tensors = [_to_checkable_tensor(arg, i) for i, arg in enumerate(args)]
    names = [f"argument {i}" for i in range(len(tensors))]
    rng = np.random.default_rng(seed)
    _check(_with_flat_outputs(f), tensors, names, 1, order, modes, (rtol, atol), rng)


def _to_checkable_tensor(arg: Any, position: int) -> Tensor:
    x = tensor_or_variable(arg)
    array = as_array(arg) if x is None else x._read()._array
    if array.dtype == np.float32 and isinstance(arg, (float, list, tuple)):
        array = as_array(arg, np.dtype(np.float64))
    if array.dtype in dtypes.INEXACT and array.dtype not in _CHECKED:
        raise ValueError(
            f"check_gradients: argument {position} has dtype {dtypes.of(array.dtype).name}. "
            "Expected float64 or complex128: finite differences are too inaccurate otherwise."
        )
    return Tensor(array)


def _with_flat_outputs(f: Callable) -> Callable:
    """Returns `f` with its differentiable outputs as a flat list."""

    def with_flat_outputs(*xs: Tensor) -> list[Tensor]:
        leaves = [tensor_or_variable(y) for y in nest.flatten(f(*xs))]
        return [y._read() for y in leaves if y is not None and y._spec.dtype in dtypes.INEXACT]

    return with_flat_outputs


def _check(
    f: Callable,
    xs: list[Tensor],
    names: list[str],
    depth: int,
    order: int,
    modes: Sequence[str],
    tolerance: tuple[float, float],
    rng: np.random.Generator,
) -> None:
    weights = [_random_like(rng, y) for y in f(*xs)]
    for position in [i for i, x in enumerate(xs) if x._spec.dtype in dtypes.INEXACT]:
        direction = _random_like(rng, xs[position])
        expected = _finite_difference(f, xs, position, direction, weights)
        for mode in modes:
            derivative = _reverse_derivative if mode == "reverse" else _forward_derivative
            actual = derivative(f, xs, position, direction, weights)
            if not np.isclose(actual or 0.0, expected, *tolerance):
                raise AssertionError(_report(mode, depth, names[position], actual, expected))
    if depth < order:
        upstream = [f"upstream gradient {i} of order {depth}" for i in range(len(weights))]
        gradient = _gradient_of(f, len(xs))
        _check(gradient, xs + weights, names + upstream, depth + 1, order, modes, tolerance, rng)


def _random_like(rng: np.random.Generator, x: Tensor) -> Tensor:
    """Returns random numbers of either sign that are not small: zeros could hide errors."""
    shape = x._spec.shape
    values = rng.uniform(0.5, 1.5, shape) * rng.choice([-1.0, 1.0], shape)
    if x._spec.dtype.kind == "c":
        values = values * np.exp(1j * rng.uniform(0, np.pi, shape))
    return Tensor(np.asarray(values).astype(x._spec.dtype))


def _inner_product(xs: Sequence[Tensor], ys: Sequence[Tensor]) -> float:
    """Returns the inner product over real and imaginary parts."""
    pairs = zip(xs, ys, strict=True)
    return float(sum(np.sum(np.real(np.conj(x._array) * y._array)) for x, y in pairs))


def _finite_difference(
    f: Callable, xs: list, position: int, direction: Tensor, weights: list
) -> float:
    """Returns the central difference of the weighted outputs along `direction`."""

    def at(step: float) -> float:
        moved = Tensor(np.asarray(xs[position]._array + step * direction._array))
        return _inner_product(weights, f(*xs[:position], moved, *xs[position + 1 :]))

    return (at(_STEP) - at(-_STEP)) / (2 * _STEP)


def _reverse_derivative(
    f: Callable, xs: list, position: int, direction: Tensor, weights: list
) -> float | None:
    gradient = _gradients(f, xs, [xs[position]], weights)[0]
    return None if gradient is None else _inner_product([gradient], [direction])


def _gradients(f: Callable, xs: Sequence, sources: list, weights: Sequence) -> list:
    with GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(sources)
        ys = f(*xs)
    gradients = tape.gradient(ys, sources, list(weights))
    return [indexed_slices.dense(g) if isinstance(g, IndexedSlices) else g for g in gradients]


def _gradient_of(f: Callable, count: int) -> Callable:
    """Returns the gradients as a function of `count` arguments and the upstream gradients."""

    def gradient(*values: Tensor) -> list[Tensor]:
        xs, weights = values[:count], values[count:]
        sources = [x for x in xs if x._spec.dtype in dtypes.INEXACT]
        return [g for g in _gradients(f, xs, sources, weights) if g is not None]

    return gradient


def _forward_derivative(
    f: Callable, xs: list, position: int, direction: Tensor, weights: list
) -> float | None:
    tangents = _Tangents(xs[position], direction)
    with use_recorders([*thread.recorders, tangents]):
        ys = f(*xs)
    pairs = [(w, tangents.of(y)) for w, y in zip(weights, ys, strict=True)]
    pairs = [(w, t) for w, t in pairs if t is not None]
    return _inner_product(*zip(*pairs, strict=True)) if pairs else None


class _Tangents(Recorder):
    """Propagates a tangent. Only outer recorders observe the calls that this makes."""

    __slots__ = ("_tangents",)

    def __init__(self, x: Tensor, tangent: Tensor) -> None:
        self._tangents = {x._id: tangent}

    def of(self, y: Tensor) -> Tensor | None:
        """Returns the tangent of `y`, or `None`."""
        return self._tangents.get(y._id)

    def record(self, primitive: Any, inputs: tuple, attrs: dict, y: Any) -> None:
        """Computes the tangent of `y` from the tangents of `inputs`."""
        tangents = [self._tangents.get(x._id) for x in inputs]
        if any(t is not None for t in tangents):
            with use_recorders(list(self._outer())):
                pushed = push_forward(primitive, inputs, attrs, y, tangents)
            if pushed is not None:
                pairs = zip(y, pushed, strict=True) if isinstance(y, tuple) else [(y, pushed)]
                self._tangents.update((out._id, t) for out, t in pairs if t is not None)

    def _outer(self) -> Iterator[Recorder]:
        for recorder in thread.recorders:
            if recorder is self:
                return
            yield recorder


def _report(mode: str, depth: int, name: str, actual: float | None, expected: float) -> str:
    return (
        f"check_gradients: the {mode}-mode derivative of order {depth} with respect to {name} is "
        "wrong.\n"
        f"  computed derivative: {actual!r}\n"
        f"  finite difference:   {expected!r}\n"
        "Both are derivatives along a random direction, of a random weighted sum of the outputs."
    )
