"""The class `Case`, and helpers to write cases."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

import retrograde.ops
from retrograde.core.apply import PRIMITIVES, Primitive
from retrograde.values import dtypes

for _module in pkgutil.iter_modules(retrograde.ops.__path__):
    importlib.import_module(f"retrograde.ops.{_module.name}")

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = tuple(map(np.dtype, ("float16", ml_dtypes.bfloat16, "float32", "float64")))
COMPLEXES = tuple(map(np.dtype, ("complex64", "complex128")))
INTEGERS = tuple(map(np.dtype, ("int32", "int64")))
BOOL = (np.dtype(bool),)
ALL_DTYPES = FLOATS + COMPLEXES + INTEGERS + BOOL


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """One sample call to a primitive.

    `reference` computes the same with plain NumPy. `dtypes` are the dtypes to test, if not all that
    the primitive accepts. `real_cotangents` says that y has a complex dtype but real values.
    `differences` is false if finite differences do not apply, and `jax_rule` is false if JAX has
    another convention or no rule. `uncompiled` says why XLA cannot compile the kernel. `hermitian`
    inputs are matrices; the kernel reads one triangle, and both triangles share the gradient.
    """

    primitive: Primitive
    inputs: tuple
    attrs: dict
    reference: Callable | None
    id: str
    dtypes: tuple | None = None
    real_cotangents: bool = False
    differences: bool = True
    jax_rule: bool = True
    uncompiled: str = ""
    hermitian: bool = False

    def __str__(self) -> str:
        return self.id

    @property
    def accepted(self) -> list[np.dtype]:
        """The dtypes to test this case with."""
        accepts = self.primitive.accepts
        return [d for d in self.dtypes or ALL_DTYPES if accepts is None or d in accepts]

    @functools.cached_property
    def differentiable(self) -> tuple[bool, ...]:
        """Returns whether a gradient flows to each input."""
        inexact = [x.dtype in dtypes.INEXACT for x in self.inputs]
        if self.primitive.joint is not None:
            return tuple(inexact)
        rules = self.primitive.vjps or (None,) * len(inexact)
        return tuple(i and r is not None for i, r in zip(inexact, rules, strict=True))


CASES: list[Case] = []

_rng = np.random.default_rng(7)


def start_family(name: str) -> None:
    """Seeds the random numbers for the family `name`."""
    _rng.bit_generator.state = np.random.default_rng(list(name.encode())).bit_generator.state


def case(name: str, inputs: Any, label: str, reference: Callable | None = None, **options: Any):
    """Adds a case. The option `attrs` has the attributes of the primitive."""
    inputs = tuple(map(np.asarray, inputs if isinstance(inputs, list) else [inputs]))
    attrs = options.pop("attrs", {})
    CASES.append(Case(PRIMITIVES[name], inputs, attrs, reference, f"{name}-{label}", **options))


def between(low: float, high: float, *shape: int) -> np.ndarray:
    """Returns random numbers from `low` to `high`."""
    return _rng.uniform(low, high, shape)


def off_zero(*shape: int) -> np.ndarray:
    """Returns random numbers of both signs, none close to 0."""
    return between(0.2, 1.5, *shape) * _rng.choice([-1.0, 1.0], shape)


def complexes(*shape: int) -> np.ndarray:
    """Returns random complex numbers, none close to a branch cut of elementary functions."""
    return between(0.2, 0.8, *shape) + 1j * between(0.2, 0.8, *shape)


def integers(low: int, high: int, *shape: int, dtype: str = "int32") -> np.ndarray:
    """Returns random integers."""
    return _rng.integers(low, high, shape).astype(dtype)


def booleans(*shape: int) -> np.ndarray:
    """Returns random booleans."""
    return _rng.random(shape) < 0.5


def unary(name: str, reference: Callable, low: float, high: float, **options: Any) -> None:
    """Adds cases with one input: a matrix, a scalar, an empty array, and complex if accepted."""
    case(name, between(low, high, 2, 3), "matrix", reference, **options)
    case(name, between(low, high), "scalar", reference, **options)
    case(name, between(low, high, 0, 3), "empty", reference, **options)
    accepts = PRIMITIVES[name].accepts
    if accepts is not None and np.dtype(complex) in accepts:
        case(name, complexes(2, 2), "complex", reference, **options)


SHAPES = {
    "same": ((2, 3), (2, 3)),
    "left": ((3,), (2, 3)),
    "right": ((2, 3), (2, 1)),
    "both": ((2, 1), (3,)),
    "scalars": ((), ()),
    "scalar_left": ((), (2, 2)),
    "scalar_right": ((2, 2), ()),
    "empty": ((0, 2), (2,)),
    "broadcast_to_empty": ((1, 2), (0, 1)),
}


def binary(name: str, reference: Callable, first: Callable, second: Callable, **options) -> None:
    """Adds cases with two inputs that broadcast. Only two primitives test all broadcasts."""
    few = ("same", "both", "scalars", "empty")
    for label in SHAPES if name in ("subtract", "multiply") else few:
        a, b = SHAPES[label]
        case(name, [first(*a), second(*b)], label, reference, **options)
    accepts = PRIMITIVES[name].accepts
    if accepts is not None and np.dtype(complex) in accepts:
        case(name, [complexes(2, 1), complexes(2)], "complex", reference, **options)


def from_to(low: float, high: float) -> Callable:
    """Returns a sampler of numbers from `low` to `high`."""
    return functools.partial(between, low, high)
