"""What a case is, and how the families write theirs."""

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
    """One sample call.

    `reference` computes the same with plain NumPy. `dtypes` are those in which the call makes
    sense, where the primitive itself accepts all. `real_cotangents` says that the rule is
    TensorFlow's for a complex y that is real in truth. `differences` is false where finite
    differences mean nothing, and `jax_rule` where JAX has another convention or no rule at all.
    `uncompiled` says why XLA cannot compile the kernel, where it cannot. `hermitian` inputs are
    matrices of which the kernel reads one triangle, while the gradient is shared by both.
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
        """The dtypes to try this case in."""
        accepts = self.primitive.accepts
        return [d for d in self.dtypes or ALL_DTYPES if accepts is None or d in accepts]

    @functools.cached_property
    def wanted(self) -> tuple[bool, ...]:
        """Which inputs a gradient flows to."""
        inexact = [x.dtype in dtypes.INEXACT for x in self.inputs]
        if self.primitive.joint is not None:
            return tuple(inexact)
        rules = self.primitive.vjps or (None,) * len(inexact)
        return tuple(i and r is not None for i, r in zip(inexact, rules, strict=True))


CASES: list[Case] = []

_rng = np.random.default_rng(7)


def start_family(name: str) -> None:
    """From here on the random numbers are those of the family `name`."""
    _rng.bit_generator.state = np.random.default_rng(list(name.encode())).bit_generator.state


def case(name: str, inputs: Any, label: str, reference: Callable | None = None, **options: Any):
    """Adds a case; `attrs` among the options are those of the primitive."""
    inputs = tuple(map(np.asarray, inputs if isinstance(inputs, list) else [inputs]))
    attrs = options.pop("attrs", {})
    CASES.append(Case(PRIMITIVES[name], inputs, attrs, reference, f"{name}-{label}", **options))


def between(low: float, high: float, *shape: int) -> np.ndarray:
    """Random numbers from `low` to `high`."""
    return _rng.uniform(low, high, shape)


def off_zero(*shape: int) -> np.ndarray:
    """Random numbers of either sign, none near 0."""
    return between(0.2, 1.5, *shape) * _rng.choice([-1.0, 1.0], shape)


def complexes(*shape: int) -> np.ndarray:
    """Random complex numbers, none near a branch cut of the elementary functions."""
    return between(0.2, 0.8, *shape) + 1j * between(0.2, 0.8, *shape)


def integers(low: int, high: int, *shape: int, dtype: str = "int32") -> np.ndarray:
    """Random integers."""
    return _rng.integers(low, high, shape).astype(dtype)


def booleans(*shape: int) -> np.ndarray:
    """Random truth values."""
    return _rng.random(shape) < 0.5


def unary(name: str, reference: Callable, low: float, high: float, **options: Any) -> None:
    """One input: a matrix, a scalar, nothing, and complex numbers where they are accepted."""
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
    "stretched_to_nothing": ((1, 2), (0, 1)),
}


def binary(name: str, reference: Callable, first: Callable, second: Callable, **options) -> None:
    """Two inputs, broadcast against each other. That is the same for all: only two try each way."""
    few = ("same", "both", "scalars", "empty")
    for label in SHAPES if name in ("subtract", "multiply") else few:
        a, b = SHAPES[label]
        case(name, [first(*a), second(*b)], label, reference, **options)
    accepts = PRIMITIVES[name].accepts
    if accepts is not None and np.dtype(complex) in accepts:
        case(name, [complexes(2, 1), complexes(2)], "complex", reference, **options)


def from_to(low: float, high: float) -> Callable:
    """A sampler of numbers from `low` to `high`."""
    return functools.partial(between, low, high)
