"""Runs a case with its kernel, its rules, a tape, and JAX."""

from __future__ import annotations

import dataclasses
import functools
import zlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from retrograde.core import indexed_slices
from retrograde.core.apply import apply
from retrograde.core.indexed_slices import IndexedSlices
from retrograde.core.rules import ALIGNED, CONNECTED, Outputs
from retrograde.core.tape import GradientTape
from retrograde.core.tensor import Tensor
from retrograde.derivatives.forward_mode import push_forward
from retrograde.values import dtypes
from tests.ops.cases import Case


def as_tuple(y: Any) -> tuple:
    return tuple(y) if isinstance(y, tuple | list) else (y,)


def quiet(f):
    """Disables NumPy's warnings in `f`, as the library does for kernels and rules."""

    @functools.wraps(f)
    def run(*args, **kwargs):
        with np.errstate(all="ignore"):
            return f(*args, **kwargs)

    return run


@quiet
def run(case: Case, inputs: tuple | None = None) -> tuple:
    """Returns the outputs of the kernel on NumPy arrays."""
    inputs = _symmetrize(case, case.inputs if inputs is None else inputs)
    return as_tuple(case.primitive.kernel(np, *inputs, **case.attrs))


def _symmetrize(case: Case, inputs: tuple | list) -> tuple | list:
    return [(x + x.mT.conj()) / 2 for x in inputs] if case.hermitian else inputs


def random_like(case: Case, arrays: tuple, seed: int) -> tuple:
    """Returns a random array like each of `arrays`. Ones would hide mistakes."""
    rng = np.random.default_rng([seed, zlib.crc32(case.id.encode())])
    return tuple(_random(rng, np.shape(x), np.asarray(x).dtype) for x in arrays)


def _random(rng: np.random.Generator, shape: tuple, dtype: np.dtype) -> np.ndarray:
    x = rng.uniform(0.5, 1.5, shape) * rng.choice([-1, 1], shape)
    if dtype.kind == "c":
        x = x + 1j * rng.uniform(-1, 1, shape)
    return np.asarray(x).astype(dtype)


@dataclasses.dataclass
class Sample:
    """Random cotangents `g` of y, and random `t` and `w` like the differentiable inputs."""

    g: tuple
    t: tuple
    w: tuple

    @classmethod
    def of(cls, case: Case, inputs: tuple | None = None) -> Sample:
        y = run(case, inputs)
        x = differentiable(case, case.inputs if inputs is None else inputs)
        g = random_like(case, y, 1)
        if case.real_cotangents:
            g = tuple(np.real(part).astype(part.dtype) for part in g)
        return cls(g, random_like(case, x, 2), random_like(case, x, 3))


def differentiable(case: Case, values: tuple | list) -> list:
    """Selects the elements of `values`, one per input, that belong to differentiable inputs."""
    return [v for v, d in zip(values, case.differentiable, strict=True) if d]


# Rules on arrays


@quiet
def pull_back(case: Case, g: tuple, y: tuple, inputs: tuple, saved_only: bool = False) -> list:
    """Returns the cotangents of the differentiable inputs, with the rules on raw arrays.

    With `saved_only`, the rules receive only the values that a tape would save.
    """
    primitive = case.primitive
    plan = primitive.plan(_key(case, y, inputs))
    y, g = (y, g) if primitive.outputs else (y[0], g[0])
    values = [y, *inputs]
    if saved_only:
        boxed = Outputs(map(Tensor, y)) if primitive.outputs else Tensor(y)
        saved = plan.save((boxed, *map(Tensor, inputs)))
        values = [value._array for value in saved]
    if plan.joint is not None:
        results = differentiable(case, plan.joint(case.differentiable, g, *values, **case.attrs))
    else:
        results = [rule(g, *values, **case.attrs) for _, rule in plan.rules]
    return [dense(result) for result in results]


def _key(case: Case, y: tuple, inputs: tuple) -> tuple[int, ...]:
    """Returns the plan key: elementwise inputs that are not broadcast are aligned."""
    elementwise = case.primitive.partials is not None
    return tuple(
        d and (ALIGNED if elementwise and np.shape(x) == np.shape(y[0]) else CONNECTED)
        for d, x in zip(case.differentiable, inputs, strict=True)
    )


def dense(x: Any) -> Any:
    return indexed_slices.dense(x) if isinstance(x, IndexedSlices) else x


# Rules on a tape


def tensors(arrays: tuple | list) -> list[Tensor]:
    return [Tensor(x) for x in arrays]


def call(case: Case, xs: list[Tensor]) -> tuple:
    return as_tuple(apply(case.primitive, tuple(xs), case.attrs))


def gradients(case: Case, xs: list[Tensor], g: list[Tensor]) -> list:
    """Returns the gradients of the differentiable inputs as tensors."""
    sources = differentiable(case, xs)
    with GradientTape() as tape:
        tape.watch(sources)
        y = call(case, xs)
    return [dense(x) for x in tape.gradient(list(y), sources, g)]


def second_gradients(case: Case, xs: list[Tensor], sample: Sample) -> tuple[list, list]:
    """Returns the gradients, and the gradients of their product with w w.r.t. g and the inputs."""
    g = tensors(sample.g)
    with GradientTape() as outer:
        outer.watch([g, differentiable(case, xs)])
        first = gradients(case, xs, g)
    weights = tensors(sample.w)
    second = outer.gradient(first, [*g, *differentiable(case, xs)], weights)
    return first, [dense(x) for x in second]


def tangents(case: Case, xs: list[Tensor], t: list[Tensor | None]) -> tuple:
    """Returns the tangents of the outputs; `t` are tangents of the differentiable inputs."""
    y = apply(case.primitive, tuple(xs), case.attrs)
    remaining = iter(t)
    per_input = [next(remaining) if d else None for d in case.differentiable]
    result = push_forward(case.primitive, tuple(xs), case.attrs, y, per_input)
    return (None,) * len(as_tuple(y)) if result is None else as_tuple(result)


# JAX


class Oracle(NamedTuple):
    """The results of JAX for the kernel of a case, and for our rules.

    JAX's own derivatives are included if the case has `jax_rule`.
    """

    y: tuple
    gradients: list
    tangents: tuple
    second: list
    pulled: list


@functools.lru_cache(maxsize=4)
def oracle(case: Case) -> Oracle:
    """Computes all results of JAX for a case in one compiled function.

    JAX's gradient of a real function of z = x + iy is the conjugate of TensorFlow's.
    """

    def compute_all(inputs, g, t, w):
        xs = differentiable(case, inputs)

        def f(*xs):
            remaining = iter(xs)
            pairs = zip(case.differentiable, inputs, strict=True)
            all_inputs = [next(remaining) if d else x for d, x in pairs]
            return as_tuple(
                case.primitive.kernel(jnp, *_symmetrize(case, all_inputs), **case.attrs)
            )

        if not xs:
            return Oracle(f(), [], (), [], [])
        if not case.jax_rule:
            y = f(*xs)
            return Oracle(y, [], (), [], pull_back(case, g, y, inputs))

        def product(g, xs):
            _, pull = jax.vjp(f, *xs)
            gradients = [jnp.conj(x) for x in pull(tuple(map(jnp.conj, g)))]
            pairs = zip(gradients, w, strict=True)
            return sum(jnp.sum(jnp.real(jnp.conj(b) * a)) for a, b in pairs), gradients

        y, dy = jax.jvp(f, tuple(xs), tuple(t))
        (by_g, by_x), gradients = jax.grad(product, argnums=(0, 1), has_aux=True)(g, xs)
        second = [jnp.conj(x) for x in (*by_g, *by_x)]
        return Oracle(y, gradients, dy, second, pull_back(case, g, y, inputs))

    sample = Sample.of(case)
    arguments = jax.tree.map(jnp.asarray, (case.inputs, sample.g, sample.t, sample.w))
    return jax.tree.map(np.asarray, jax.jit(compute_all)(*arguments))


def is_inexact(x: Any) -> bool:
    return np.asarray(x).dtype in dtypes.INEXACT
