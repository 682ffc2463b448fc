"""Running a case: by its kernel, by its rules, by a tape, and by JAX."""

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
    """`f` without NumPy's warnings, as the library runs kernels and rules."""

    @functools.wraps(f)
    def run(*args, **kwargs):
        with np.errstate(all="ignore"):
            return f(*args, **kwargs)

    return run


@quiet
def run(case: Case, inputs: tuple | None = None) -> tuple:
    """The outputs by the kernel on NumPy arrays."""
    inputs = _prepared(case, case.inputs if inputs is None else inputs)
    return as_tuple(case.primitive.kernel(np, *inputs, **case.attrs))


def _prepared(case: Case, inputs: tuple | list) -> tuple | list:
    return [(x + x.mT.conj()) / 2 for x in inputs] if case.hermitian else inputs


def random_like(case: Case, arrays: tuple, seed: int) -> tuple:
    """A random array for each of `arrays`; not ones, which would hide mistakes."""
    rng = np.random.default_rng([seed, zlib.crc32(case.id.encode())])
    return tuple(_random(rng, np.shape(x), np.asarray(x).dtype) for x in arrays)


def _random(rng: np.random.Generator, shape: tuple, dtype: np.dtype) -> np.ndarray:
    x = rng.uniform(0.5, 1.5, shape) * rng.choice([-1, 1], shape)
    if dtype.kind == "c":
        x = x + 1j * rng.uniform(-1, 1, shape)
    return np.asarray(x).astype(dtype)


@dataclasses.dataclass
class Sample:
    """Random directions for one case: `g` for y, `t` and `w` for the inputs with a gradient."""

    g: tuple
    t: tuple
    w: tuple

    @classmethod
    def of(cls, case: Case, inputs: tuple | None = None) -> Sample:
        y = run(case, inputs)
        x = wanted(case, case.inputs if inputs is None else inputs)
        g = random_like(case, y, 1)
        if case.real_cotangents:
            g = tuple(np.real(part).astype(part.dtype) for part in g)
        return cls(g, random_like(case, x, 2), random_like(case, x, 3))


def wanted(case: Case, values: tuple | list) -> list:
    """Those of `values`, one for each input, that belong to inputs with a gradient."""
    return [v for v, w in zip(values, case.wanted, strict=True) if w]


# The rules by themselves


@quiet
def pull(case: Case, g: tuple, y: tuple, inputs: tuple, kept: bool = False) -> list:
    """The cotangents of the inputs that have one, by the rules on raw arrays.

    With `kept`, the rules are given only what a tape would have kept.
    """
    primitive = case.primitive
    plan = primitive.plan(_key(case, y, inputs))
    y, g = (y, g) if primitive.outputs else (y[0], g[0])
    values = [y, *inputs]
    if kept:
        boxed = Outputs(map(Tensor, y)) if primitive.outputs else Tensor(y)
        saved = plan.save((boxed, *map(Tensor, inputs)))
        values = [value._array for value in saved]
    if plan.joint is not None:
        results = wanted(case, plan.joint(case.wanted, g, *values, **case.attrs))
    else:
        results = [rule(g, *values, **case.attrs) for _, rule in plan.rules]
    return [dense(result) for result in results]


def _key(case: Case, y: tuple, inputs: tuple) -> tuple[int, ...]:
    """How the inputs stand: those of elementwise primitives that are not broadcast are aligned."""
    elementwise = case.primitive.partials is not None
    return tuple(
        wanted and (ALIGNED if elementwise and np.shape(x) == np.shape(y[0]) else CONNECTED)
        for wanted, x in zip(case.wanted, inputs, strict=True)
    )


def dense(x: Any) -> Any:
    return indexed_slices.dense(x) if isinstance(x, IndexedSlices) else x


# The rules on a tape


def tensors(arrays: tuple | list) -> list[Tensor]:
    return [Tensor(x) for x in arrays]


def call(case: Case, xs: list[Tensor]) -> tuple:
    return as_tuple(apply(case.primitive, tuple(xs), case.attrs))


def gradients(case: Case, xs: list[Tensor], g: list[Tensor]) -> list:
    """The gradients of the inputs that have one, as tensors."""
    sources = wanted(case, xs)
    with GradientTape() as tape:
        tape.watch(sources)
        y = call(case, xs)
    return [dense(x) for x in tape.gradient(list(y), sources, g)]


def second_gradients(case: Case, xs: list[Tensor], sample: Sample) -> tuple[list, list]:
    """The gradients, made on tensors; and those of their product with w, by g and the inputs."""
    g = tensors(sample.g)
    with GradientTape() as outer:
        outer.watch([g, wanted(case, xs)])
        first = gradients(case, xs, g)
    weights = tensors(sample.w)
    second = outer.gradient(first, [*g, *wanted(case, xs)], weights)
    return first, [dense(x) for x in second]


def tangents(case: Case, xs: list[Tensor], t: list[Tensor | None]) -> tuple:
    """The tangents of the outputs by forward mode; `t` is for the inputs with a gradient."""
    y = apply(case.primitive, tuple(xs), case.attrs)
    rest = iter(t)
    spread = [next(rest) if w else None for w in case.wanted]
    result = push_forward(case.primitive, tuple(xs), case.attrs, y, spread)
    return (None,) * len(as_tuple(y)) if result is None else as_tuple(result)


# JAX


class Oracle(NamedTuple):
    """What JAX makes of the kernel of a case, and of our rules.

    Its own derivatives are there if the case says that they are to be compared.
    """

    y: tuple
    gradients: list
    tangents: tuple
    second: list
    pulled: list


@functools.lru_cache(maxsize=4)
def oracle(case: Case) -> Oracle:
    """All that JAX has to say about a case, compiled in one go.

    JAX's gradient of a real function of z = x + iy is the conjugate of TensorFlow's.
    """

    def everything(inputs, g, t, w):
        xs = wanted(case, inputs)

        def f(*xs):
            rest = iter(xs)
            whole = [next(rest) if w else x for w, x in zip(case.wanted, inputs, strict=True)]
            return as_tuple(case.primitive.kernel(jnp, *_prepared(case, whole), **case.attrs))

        if not xs:
            return Oracle(f(), [], (), [], [])
        if not case.jax_rule:
            y = f(*xs)
            return Oracle(y, [], (), [], pull(case, g, y, inputs))

        def product(g, xs):
            _, pull = jax.vjp(f, *xs)
            gradients = [jnp.conj(x) for x in pull(tuple(map(jnp.conj, g)))]
            pairs = zip(gradients, w, strict=True)
            return sum(jnp.sum(jnp.real(jnp.conj(b) * a)) for a, b in pairs), gradients

        y, dy = jax.jvp(f, tuple(xs), tuple(t))
        (by_g, by_x), gradients = jax.grad(product, argnums=(0, 1), has_aux=True)(g, xs)
        second = [jnp.conj(x) for x in (*by_g, *by_x)]
        return Oracle(y, gradients, dy, second, pull(case, g, y, inputs))

    sample = Sample.of(case)
    arguments = jax.tree.map(jnp.asarray, (case.inputs, sample.g, sample.t, sample.w))
    return jax.tree.map(np.asarray, jax.jit(everything)(*arguments))


def is_inexact(x: Any) -> bool:
    return np.asarray(x).dtype in dtypes.INEXACT
