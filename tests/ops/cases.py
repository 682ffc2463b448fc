"""The table: at least one sample call for each primitive. No sample lies at a kink or a tie."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import itertools
import math
import pkgutil
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import scipy.special

import retrograde.ops
from retrograde.core import dtypes
from retrograde.core.dispatch import PRIMITIVES, Primitive

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
    differences mean nothing, and `jax_rule` where JAX has another convention.
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


# Elementwise, one input: a matrix, a scalar, nothing, and complex numbers where they are accepted


def unary(name: str, reference: Callable, low: float, high: float, **options: Any) -> None:
    case(name, between(low, high, 2, 3), "matrix", reference, **options)
    case(name, between(low, high), "scalar", reference, **options)
    case(name, between(low, high, 0, 3), "empty", reference, **options)
    accepts = PRIMITIVES[name].accepts
    if accepts is not None and np.dtype(complex) in accepts:
        case(name, complexes(2, 2), "complex", reference, **options)


def _softplus(x):
    return np.log(np.exp(x) + 1)


def _elu(x):
    return np.where(x < 0, np.exp(x) - 1, x)


def _selu(x):
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    return scale * np.where(x < 0, alpha * (np.exp(x) - 1), x)


unary("identity", lambda x: x, -1, 1)
unary("stop_gradient", lambda x: x, -1, 1)
unary("zeros_like", lambda x: 0 * x, -1, 1)
unary("ones_like", lambda x: 0 * x + 1, -1, 1)
unary("negative", lambda x: 0 - x, -1, 1)
unary("conjugate", np.conj, -1, 1)
unary("square", lambda x: x * x, -1, 1)
unary("reciprocal", lambda x: x**-1, 0.5, 2)
for sample in (off_zero(2, 3), off_zero(), off_zero(0, 2), complexes(2, 2)):
    # JAX has no gradient for complex numbers here; TensorFlow has.
    case("sign", sample, f"{sample.dtype}-{sample.shape}", lambda x: x / abs(x),
         jax_rule=sample.dtype.kind == "f")  # fmt: skip
unary("exp", lambda x: math.e**x, -2, 2)
unary("expm1", lambda x: np.exp(x) - 1, -2, 2)
unary("log", np.log, 0.2, 3)
unary("log1p", lambda x: np.log(1 + x), -0.8, 3)
unary("sqrt", lambda x: x**0.5, 0.2, 3)
unary("rsqrt", lambda x: x**-0.5, 0.2, 3)
unary("sin", lambda x: np.imag(np.exp(1j * x)) if x.dtype.kind == "f" else np.sin(x), -3, 3)
unary("cos", lambda x: np.real(np.exp(1j * x)) if x.dtype.kind == "f" else np.cos(x), -3, 3)
unary("tan", lambda x: np.sin(x) / np.cos(x), -1.4, 1.4)
unary("asin", np.arcsin, -0.9, 0.9)
unary("acos", np.arccos, -0.9, 0.9)
unary("atan", np.arctan, -2, 2)
unary("sinh", lambda x: (np.exp(x) - np.exp(-x)) / 2, -2, 2)
unary("cosh", lambda x: (np.exp(x) + np.exp(-x)) / 2, -2, 2)
unary("tanh", lambda x: np.sinh(x) / np.cosh(x), -2, 2)
unary("asinh", np.arcsinh, -2, 2)
unary("acosh", np.arccosh, 1.3, 3)
unary("atanh", np.arctanh, -0.9, 0.9)
unary("erf", scipy.special.erf, -2, 2)
unary("sigmoid", lambda x: np.exp(x) / (1 + np.exp(x)), -3, 3)
unary("softplus", _softplus, -3, 3)
unary("softsign", lambda x: x / (1 + abs(x)), 0.2, 3)
case("softsign", off_zero(3), "both_signs", lambda x: x / (1 + abs(x)))
unary("floor", lambda x: -np.ceil(-x), -1.8, -1.2)
unary("ceil", lambda x: -np.floor(-x), 1.2, 1.8)
unary("rint", np.rint, 1.6, 2.4)
unary("round", np.rint, 1.6, 2.4)
for sample in (off_zero(2, 3), off_zero(), off_zero(0, 2)):
    shape = "x".join(map(str, sample.shape)) or "scalar"
    case("absolute", sample, shape, lambda x: np.sqrt(x * x))
    case("relu", sample, shape, lambda x: x * (x > 0))
    case("elu", sample, shape, _elu)
    case("selu", sample, shape, _selu)
    case(
        "leaky_relu",
        sample,
        shape,
        lambda x, *, alpha: x * np.where(x > 0, 1, alpha),
        attrs={"alpha": 0.3},
    )
for upper, slope in ((None, 0.0), (1.0, 0.0), (None, 0.3)):
    case(
        "gate",
        [off_zero(2, 3), off_zero(2, 3)],
        f"up_to_{upper}_slope_{slope}",
        lambda g, s, *, upper, slope: g * np.where((s > 0) & (s < (upper or 9.0)), 1, slope),
        attrs={"upper": upper, "slope": slope},
    )
case("relu6", np.array([-2.5, 0.5, 3.5, 5.5, 6.5, 9.5]), "corners", lambda x: np.clip(x, 0, 6))
case("relu6", np.array(5.0), "scalar", lambda x: x)
for name in ("real", "imag", "complex_abs"):
    part = {"real": np.real, "imag": np.imag, "complex_abs": np.abs}[name]
    case(name, complexes(2, 3), "matrix", part)
    case(name, complexes(), "scalar", part)
    case(name, complexes(0, 2), "empty", part)

for name, f in {"is_nan": np.isnan, "is_inf": np.isinf, "is_finite": np.isfinite}.items():
    case(name, np.array([0.0, -1.5, np.inf, -np.inf, np.nan]), "values", f)
    case(name, np.array([1j, complex(np.nan, 1), complex(1, np.inf)]), "complex", f)
case("logical_not", booleans(2, 3), "matrix", lambda x: x ^ True)
case("invert", integers(-9, 9, 2, 3), "int32", lambda x: -1 - x)
case("invert", integers(0, 9, 3, dtype="uint8"), "uint8", lambda x: 255 - x)


# Elementwise, two inputs: broadcast either way, both ways, with scalars, with nothing

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
    """The way inputs are broadcast is the same for all: only two primitives try each."""
    few = ("same", "both", "scalars", "empty")
    for label in SHAPES if name in ("subtract", "multiply") else few:
        a, b = SHAPES[label]
        case(name, [first(*a), second(*b)], label, reference, **options)
    accepts = PRIMITIVES[name].accepts
    if accepts is not None and np.dtype(complex) in accepts:
        case(name, [complexes(2, 1), complexes(2)], "complex", reference, **options)


def from_to(low: float, high: float) -> Callable:
    return functools.partial(between, low, high)


def _no_nan(x1, x2):
    return np.divide(x1, x2, out=np.zeros(np.broadcast(x1, x2).shape, x2.dtype), where=x2 != 0)


binary("add", lambda a, b: a - (-b), off_zero, off_zero)
binary("subtract", lambda a, b: a + (-b), off_zero, off_zero)
binary("multiply", lambda a, b: a * b, off_zero, off_zero)
binary("divide", lambda a, b: a * b**-1.0, off_zero, off_zero)
binary("divide_no_nan", _no_nan, off_zero, off_zero)
binary("guarded_multiply", lambda a, b: a * b, off_zero, off_zero)
binary("guarded_divide", lambda a, b: a / b, off_zero, off_zero)
binary("power", lambda a, b: np.exp(b * np.log(a)), from_to(0.3, 2), from_to(-2, 2))
binary(
    "squared_difference",
    lambda a, b: abs(a - b) ** 2 + 0 * (a - b),
    off_zero,
    off_zero,
    real_cotangents=True,
)
binary("floor_divide", lambda a, b: np.floor(a / b), from_to(2.1, 2.9), from_to(0.6, 0.65))
binary("truncate_divide", lambda a, b: np.trunc(a / b), from_to(-2.9, -2.1), from_to(0.6, 0.65))
for name, f in {"mod": np.floor, "truncate_mod": np.trunc}.items():
    divisors = from_to(0.52, 0.64)
    binary(name, lambda a, b, f=f: a - b * f(a / b), from_to(-2.9, -2.6), divisors)
binary("maximum", lambda a, b: np.where(a > b, a, b), off_zero, off_zero)
binary("minimum", lambda a, b: np.where(a < b, a, b), off_zero, off_zero)
binary("atan2", lambda a, b: np.angle(b + 1j * a), off_zero, off_zero)
binary("make_complex", lambda a, b: a + 1j * b, off_zero, off_zero)

case("power", [np.array([-2.0, -0.5]), np.array([2.0, 3.0])], "negative_base", np.power,
     differences=False, jax_rule=False)  # fmt: skip
case("power", [integers(-3, 4, 3), integers(0, 4, 3)], "int32", lambda a, b: a**b)
case("divide_no_nan", [np.array([1.0, 2.0]), np.array([0.0, 4.0])], "zero", _no_nan,
     differences=False, jax_rule=False)  # fmt: skip
for name, f in {"multiply": np.multiply, "divide": np.divide}.items():
    g, d = np.array([0.0, 0.0, 2.0, 0.0]), np.array([np.inf, 0.0, 4.0, np.nan])
    case(f"guarded_{name}", [g, d], "zero", lambda g, d, f=f: np.where(g == 0, 0, f(g, d)),
         differences=False, jax_rule=False)  # fmt: skip

for name, f in {
    "floor_divide": lambda a, b: np.floor(a / b),
    "truncate_divide": lambda a, b: np.trunc(a / b),
    "mod": lambda a, b: a - b * np.floor(a / b),
    "truncate_mod": lambda a, b: a - b * np.trunc(a / b),
}.items():
    pairs = np.array(list(itertools.product((-7, -6, 0, 5), (-3, 2)))).T
    case(name, list(pairs.astype("int32")), "int32", f)
    case(name, [integers(0, 9, 4, dtype="uint8"), integers(1, 4, 4, dtype="uint8")], "uint8", f)

for name, f in {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}.items():
    case(name, [np.array([1.0, 2.0, 3.0]), np.array([[1.0], [2.5]])], "both", f)
    case(name, [np.array([1, 5, -3]), np.array(1)], "int64", f)
for name in ("equal", "not_equal"):
    case(name, [np.array([1j, 2.0]), np.array([1j, 2j])], "complex", getattr(np, name))
for name in ("logical_and", "logical_or", "logical_xor"):
    case(name, [booleans(2, 1), booleans(3)], "both", getattr(np, name))
for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    case(name, [integers(-9, 9, 2, 1), integers(-9, 9, 3)], "both", getattr(np, name))

case("mask", [between(-1, 1, 2, 3), booleans(2, 3)], "same", lambda x, k: x * k)
case("mask", [between(-1, 1, 3), booleans(2, 1)], "both", lambda x, k: x * k)
case("mask", [between(-1, 1), np.array(True)], "scalars", lambda x, k: x * k)
case("mask", [between(-1, 1), booleans(0)], "empty", lambda x, k: x * k)
case("mask", [complexes(2), booleans(2)], "complex", lambda x, k: x * k)
for label, (c, a, b) in {
    "same": ((2, 3), (2, 3), (2, 3)),
    "all_different": ((2, 1), (3,), (1, 1)),
    "scalar_condition": ((), (2,), (2, 1)),
    "scalars": ((), (), ()),
    "empty": ((0, 1), (2,), ()),
}.items():
    case("select", [booleans(*c), between(-1, 1, *a), between(-1, 1, *b)], label, np.where)
case("select", [booleans(3), complexes(3), complexes(1)], "complex", np.where)


# Changing the dtype


def cast(x, *, dtype):
    return x.astype(dtype)


case("cast", between(-1, 1, 2, 3), "float32", cast, attrs={"dtype": np.dtype("float32")},
     differences=False, dtypes=ALL_DTYPES)  # fmt: skip
case("cast", between(-1, 1, 2), "half", cast, attrs={"dtype": BFLOAT16}, differences=False)
case("cast", between(-1, 1, 2), "to_complex", cast, attrs={"dtype": np.dtype("complex128")})
case("cast", complexes(2), "to_real", lambda x, **_: np.real(x), attrs={"dtype": np.dtype("f8")},
     dtypes=COMPLEXES)  # fmt: skip
case("cast", integers(-5, 5, 2), "int_to_float", cast, attrs={"dtype": np.dtype("float64")})
case("cast", booleans(), "bool_to_float", cast, attrs={"dtype": np.dtype("float64")})
case("cast_discrete", between(-5, 5, 2, 3), "truncates", lambda x, **_: np.trunc(x),
     attrs={"dtype": np.dtype("int32")})  # fmt: skip
case("cast_discrete", between(0, 250, 3), "uint8", lambda x, **_: np.trunc(x),
     attrs={"dtype": np.dtype("uint8")})  # fmt: skip
case("cast_discrete", np.array([0.0, 0.5, -1.0]), "bool", lambda x, **_: x != 0,
     attrs={"dtype": np.dtype(bool)})  # fmt: skip
case("cast_discrete", np.array([1 + 2j, 3.0]), "complex", lambda x, **_: x.real,
     attrs={"dtype": np.dtype("int64")})  # fmt: skip
case("cast_discrete", booleans(), "from_bool", cast, attrs={"dtype": np.dtype("int32")})


# Moving elements about

for label, x, shape in [
    ("matrix", between(-1, 1, 2, 3), (3, 2)),
    ("flat", between(-1, 1, 2, 3), (6,)),
    ("to_scalar", between(-1, 1, 1, 1), ()),
    ("scalar", between(-1, 1), (1, 1)),
    ("empty", between(-1, 1, 0, 3), (3, 0, 2)),
    ("complex", complexes(2, 2), (4,)),
]:
    case("reshape", x, label, lambda x, *, shape: np.reshape(x, shape), attrs={"shape": shape})

for label, x, perm in [
    ("matrix", between(-1, 1, 2, 3), (1, 0)),
    ("cycle", between(-1, 1, 2, 3, 4), (2, 0, 1)),
    ("identity", between(-1, 1, 2, 3), (0, 1)),
    ("scalar", between(-1, 1), ()),
    ("empty", between(-1, 1, 2, 0, 1), (2, 0, 1)),
    ("complex", complexes(2, 3), (1, 0)),
]:
    case("transpose", x, label, lambda x, *, perm: np.transpose(x, perm), attrs={"perm": perm})

for label, x, axis in [
    ("one", between(-1, 1, 3), (0,)),
    ("two", between(-1, 1, 2, 3, 2), (0, 2)),
    ("none", between(-1, 1, 2, 3), ()),
    ("empty", between(-1, 1, 0, 3), (0,)),
]:
    case("reverse", x, label, lambda x, *, axis: np.flip(x, axis), attrs={"axis": axis})

for label, small, large in [
    ("added", (3,), (2, 3)),
    ("stretched", (2, 1, 3), (2, 2, 3)),
    ("both", (1, 3), (2, 2, 3)),
    ("scalar", (), (2, 2)),
    ("same", (2, 3), (2, 3)),
    ("to_nothing", (1, 2), (0, 2)),
    ("of_nothing", (0,), (2, 0)),
    ("many", (2,), (2100, 2)),
]:
    case("broadcast_to", between(-1, 1, *small), label,
         lambda x, *, shape: np.broadcast_to(x, shape), attrs={"shape": large})  # fmt: skip
    if label == "many":
        continue
    case("sum_to", between(-1, 1, *large), label,
         lambda x, *, shape: np.einsum(_back(x.ndim, shape), x).reshape(shape),
         attrs={"shape": small}, dtypes=FLOATS + COMPLEXES + INTEGERS)  # fmt: skip
case("broadcast_to", complexes(2, 1), "complex", lambda x, *, shape: x + np.zeros(shape),
     attrs={"shape": (2, 3)})  # fmt: skip


def _back(ndim: int, shape: tuple) -> str:
    """The einsum that sums `ndim` axes to `shape`, but for axes of size 1."""
    letters = "abcdefgh"[:ndim]
    kept = letters[ndim - len(shape) :]
    return f"{letters}->{''.join(a for a, n in zip(kept, shape, strict=True) if n != 1)}"


def _slices(where: tuple) -> tuple:
    return tuple(list(range(*triple)) for triple in where)


def _take(x, *, where):
    return x[np.ix_(*_slices(where))]


def _put(x, *, shape, where):
    y = np.zeros(shape, x.dtype)
    y[np.ix_(*_slices(where))] = x
    return y


for label, shape, where in [
    ("front", (4, 3), ((0, 2, 1), (0, 3, 1))),
    ("strided", (5, 4), ((1, 5, 2), (0, 4, 3))),
    ("backwards", (5,), ((4, -1, -1),)),
    ("backwards_strided", (5, 3), ((4, 0, -2), (2, -1, -2))),
    ("nothing", (3, 2), ((2, 2, 1), (0, 2, 1))),
    ("of_nothing", (0, 2), ((0, 0, 1), (1, 2, 1))),
    ("past_the_end", (3,), ((1, 3, 4),)),
]:
    x = between(-1, 1, *shape)
    case("take_slice", x, label, _take, attrs={"where": where})
    case("put_slice", _take(x, where=where), label, _put, attrs={"shape": shape, "where": where})
case("take_slice", complexes(3), "complex", _take, attrs={"where": ((2, -1, -1),)})

JOINED = [
    ("rows", [(1, 3), (2, 3)], 0),
    ("columns", [(2, 1), (2, 2), (2, 3)], 1),
    ("with_nothing", [(0, 2), (3, 2)], 0),
    ("one", [(2, 2)], 1),
]
for label, shapes, axis in JOINED:
    xs = [between(-1, 1, *shape) for shape in shapes]
    case("concat", xs, label, lambda *xs, axis: np.concatenate(xs, axis), attrs={"axis": axis})
    case("split", np.concatenate(xs, axis), label,
         lambda x, *, sizes, axis: np.split(x, np.cumsum(sizes)[:-1], axis),
         attrs={"sizes": tuple(shape[axis] for shape in shapes), "axis": axis})  # fmt: skip
case("concat", [complexes(2), complexes(1)], "complex",
     lambda *xs, axis: np.concatenate(xs, axis), attrs={"axis": 0})  # fmt: skip
for label, count, shape, axis in [
    ("front", 2, (2, 3), 0),
    ("behind", 3, (2,), 1),
    ("scalars", 3, (), 0),
    ("nothing", 2, (0, 2), 1),
    ("one", 1, (2,), 0),
]:
    xs = [between(-1, 1, *shape) for _ in range(count)]
    case("stack", xs, label, lambda *xs, axis: np.stack(xs, axis), attrs={"axis": axis})
    case("unstack", np.stack(xs, axis), label,
         lambda x, *, axis: [x.take(i, axis) for i in range(x.shape[axis])],
         attrs={"axis": axis})  # fmt: skip


# Picking by index


def _gathered(x, indices, *, axis):
    return np.take(x, indices, axis)


for label, shape, indices, axis in [
    ("rows", (3, 2), [2, 0, 2, 2], 0),
    ("scalar_index", (3, 2), 1, 0),
    ("matrix_of_indices", (4,), [[3, 1], [1, 1]], 0),
    ("columns", (2, 3), [2, 2], 1),
    ("middle", (2, 3, 2), [[1, 0], [2, 2]], 1),
    ("scalar_column", (2, 3), 2, 1),
    ("none", (3, 2), [], 0),
    ("none_of_columns", (3, 2), [], 1),
]:
    indices = np.array(indices, "int32" if axis else "int64")
    case("gather", [between(-1, 1, *shape), indices], label, _gathered, attrs={"axis": axis})
case("gather", [complexes(3), np.array([1, 1])], "complex", _gathered, attrs={"axis": 0})


def _scattered(values, indices, *, shape):
    y = np.zeros(shape, values.dtype)
    for place in np.ndindex(indices.shape):
        y[indices[place]] += values[place]
    return y


for label, indices, rest, size in [
    ("rows", [2, 0, 2], (2,), 4),
    ("scalars", [0, 0, 1], (), 2),
    ("matrix_of_indices", [[1, 2], [1, 0]], (2,), 3),
    ("scalar_index", 1, (2,), 3),
    ("none", [], (2,), 3),
]:
    indices = np.array(indices, "int32")
    values = between(-1, 1, *indices.shape, *rest)
    case("scatter_add", [values, indices], label, _scattered, attrs={"shape": (size, *rest)},
         dtypes=FLOATS + COMPLEXES + INTEGERS)  # fmt: skip

case("offset", integers(0, 4, 3, 2), "rows",
     lambda i, *, size, axis: i + np.array([[0], [4], [8]]) + 0 * size * axis,
     attrs={"size": 4, "axis": 0})  # fmt: skip
case("offset", integers(0, 4, 2, 3, dtype="int64"), "columns",
     lambda i, *, size, axis: i + np.array([0, 5, 10]) + 0 * size * axis,
     attrs={"size": 5, "axis": 1})  # fmt: skip


def _places(indices, batch_dims):
    """Each place in `indices` with the key that it stands for."""
    for place in np.ndindex(indices.shape[:-1]):
        yield place, (*place[:batch_dims], *indices[place])


def _gathered_nd(x, indices, *, batch_dims):
    depth = batch_dims + indices.shape[-1]
    y = np.zeros((*indices.shape[:-1], *x.shape[depth:]), x.dtype)
    for place, key in _places(indices, batch_dims):
        y[place] = x[key]
    return y


def _scattered_nd(values, indices, *, shape, batch_dims):
    y = np.zeros(shape, values.dtype)
    for place, key in _places(indices, batch_dims):
        y[key] += values[place]
    return y


def _written_nd(choose):
    def reference(x, values, indices, *, batch_dims):
        y = x.copy()
        for place, key in _places(indices, batch_dims):
            y[key] = choose(y[key], values[place])
        return y

    return reference


COORDINATES = [
    ("elements", (3, 3), [[0, 1], [2, 0], [1, 1]], 0),
    ("rows", (3, 2), [[2], [0]], 0),
    ("matrix_of_elements", (4,), [[[3], [1]], [[0], [2]]], 0),
    ("whole", (2,), [[]], 0),
    ("batches", (2, 3), [[1], [2]], 1),
    ("rows_in_batches", (2, 3, 2), [[[0], [2]], [[1], [0]]], 1),
    ("two_batch_axes", (2, 1, 3), [[[2]], [[0]]], 2),
    ("none", (3, 2), np.zeros((0, 2)), 0),
]
REPEATED = ("repeated", (3, 3), [[0, 1], [2, 0], [0, 1]], 0)
for label, shape, indices, batch_dims in [*COORDINATES, REPEATED]:
    indices = np.array(indices, "int32" if batch_dims else "int64")
    x = between(-1, 1, *shape)
    attrs = {"batch_dims": batch_dims}
    rows = _gathered_nd(x, indices, **attrs)
    case("gather_nd", [x, indices], label, _gathered_nd, attrs=attrs)
    case("scatter_nd", [rows, indices], label, _scattered_nd, attrs={"shape": shape, **attrs},
         dtypes=FLOATS + COMPLEXES + INTEGERS)  # fmt: skip
    if label != "repeated":
        values = between(-1, 1, *rows.shape)
        case("put_nd", [x, values, indices], label, _written_nd(lambda _, v: v), attrs=attrs)
    if label != "whole":
        values = between(-1, 1, *rows.shape)
        for name, choose in (("max_nd", np.maximum), ("min_nd", np.minimum)):
            case(name, [x, values, indices], label, _written_nd(choose), attrs=attrs,
                 dtypes=FLOATS + INTEGERS, jax_rule=label != "repeated")  # fmt: skip
case("gather_nd", [complexes(3), np.array([[1], [1]])], "complex", _gathered_nd,
     attrs={"batch_dims": 0})  # fmt: skip


def _sorted_places(x, *, axis, descending):
    return np.argsort(-x if descending else x, axis, kind="stable").astype("int32")


for label, x, axis, descending in [
    ("vector", between(-1, 1, 5), 0, False),
    ("columns", between(-1, 1, 3, 2), 0, True),
    ("rows_with_ties", integers(0, 2, 2, 6), 1, False),
    ("descending_with_ties", integers(0, 2, 2, 6), 1, True),
    ("nothing", between(-1, 1, 2, 0), 1, True),
]:
    case("argsort", x, label, _sorted_places, attrs={"axis": axis, "descending": descending})


def _one_hot(indices, *, depth, dtype):
    y = np.zeros((*indices.shape, depth), dtype)
    for place in np.ndindex(indices.shape):
        if 0 <= indices[place] < depth:
            y[(*place, indices[place])] = 1
    return y


for label, indices in {
    "vector": np.array([2, 0, 1, 1]),
    "outside": np.array([[-1, 3], [0, 4]], "int32"),
    "scalar": np.array(2),
    "uint8": np.array([0, 200], "uint8"),
    "empty": np.zeros((0, 2), "int32"),
}.items():
    attrs = {"depth": 3, "dtype": np.dtype("float32")}
    case("one_hot", indices, label, _one_hot, attrs=attrs)


# Matrix products


def _product(a, b, *, transpose_a, transpose_b):
    a = np.swapaxes(a, -1, -2) if transpose_a else a
    b = np.swapaxes(b, -1, -2) if transpose_b else b
    return np.einsum("...ij,...jk->...ik", a, b)


def matmul(a: tuple, b: tuple, label: str, flags: tuple = (False, False), of=off_zero) -> None:
    case("matmul", [of(*a), of(*b)], label, _product,
         attrs={"transpose_a": flags[0], "transpose_b": flags[1]})  # fmt: skip


for flags in itertools.product((False, True), repeat=2):
    name = "".join("t" if flag else "n" for flag in flags)
    a, b = (3, 2) if flags[0] else (2, 3), (4, 3) if flags[1] else (3, 4)
    matmul(a, b, name, flags)
    matmul(a, b, f"{name}_complex", flags, complexes)
    matmul((2, *a), (3, 1, *b), f"{name}_batches", flags)
matmul((2, 2, 3), (3, 2), "shared_right")
matmul((2, 3), (2, 3, 2), "shared_left")
matmul((0, 3), (3, 2), "no_rows")
matmul((2, 0), (0, 3), "nothing_to_sum")
matmul((0, 2, 2), (2, 2), "no_batches")


# Reductions

AXES = [
    ("all", (2, 3), (0, 1), False),
    ("rows", (2, 3), (0,), False),
    ("columns_kept", (2, 3), (1,), True),
    ("outer", (2, 3, 2), (0, 2), False),
    ("all_kept", (2, 2), (0, 1), True),
    ("no_axes", (2, 3), (), False),
    ("scalar", (), (), False),
    ("empty_result", (0, 3), (1,), False),
]


def reductions(name: str, reference: Callable, *shapes: tuple, of: Callable = off_zero) -> None:
    for label, shape, axis, keepdims in [*AXES, *shapes]:
        # The mean and the largest of nothing are not numbers; JAX makes nan of their tangents.
        usual = name in ("sum", "prod") or "of_nothing" not in label
        case(name, of(*shape), label, reference, attrs={"axis": axis, "keepdims": keepdims},
             jax_rule=usual, differences=usual)  # fmt: skip


def _mean(x, *, axis, keepdims):
    if not math.prod(x.shape[a] for a in axis):
        return np.full_like(np.sum(x, axis=axis, keepdims=keepdims), np.nan)
    return np.mean(x, axis=axis, keepdims=keepdims)


def _logsumexp(x, *, axis, keepdims):
    with np.errstate(divide="ignore"):
        return np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))


OF_NOTHING = [("of_nothing", (2, 0), (1,), False), ("of_nothing_kept", (0, 2), (0,), True)]
reductions("sum", np.sum, *OF_NOTHING)
reductions("mean", _mean, *OF_NOTHING)
reductions("prod", np.prod, *OF_NOTHING, ("odd", (2, 5), (1,), False))
reductions("max", lambda x, **kw: np.max(x, **kw, initial=-np.inf), *OF_NOTHING)
reductions("min", lambda x, **kw: np.min(x, **kw, initial=np.inf), *OF_NOTHING)
reductions("logsumexp", _logsumexp, *OF_NOTHING)
reductions("any", np.any, *OF_NOTHING, of=booleans)
reductions("all", np.all, *OF_NOTHING, of=booleans)
for name in ("sum", "mean", "prod"):
    reference = {"sum": np.sum, "mean": np.mean, "prod": np.prod}[name]
    attrs = {"axis": (0,), "keepdims": False}
    case(name, complexes(2, 3), "complex", reference, attrs=attrs)
case("prod", np.array([[2.0, 0.0, 3.0], [0.0, 5.0, 0.0], [1.0, 2.0, 4.0]]), "zeros", np.prod,
     attrs={"axis": (1,), "keepdims": False})  # fmt: skip
for name, f in {"argmax": np.argmax, "argmin": np.argmin}.items():
    for axis, dtype in ((0, "int64"), (1, "int32")):
        case(name, off_zero(2, 3), f"axis{axis}",
             lambda x, *, axis, dtype, f=f: f(x, axis).astype(dtype),
             attrs={"axis": axis, "dtype": np.dtype(dtype)})  # fmt: skip
case("argmax", booleans(4), "bool", lambda x, *, axis, dtype: np.argmax(x, axis).astype(dtype),
     attrs={"axis": 0, "dtype": np.dtype("int64")})  # fmt: skip


# Softmax and cross entropies


def _softmax(x, *, axis):
    return np.exp(x) / np.sum(np.exp(x), axis=axis, keepdims=True)


def _log_softmax(x, *, axis):
    return x - np.log(np.sum(np.exp(x), axis=axis, keepdims=True))


for name, reference in {"softmax": _softmax, "log_softmax": _log_softmax}.items():
    case(name, between(-2, 2, 2, 3), "last", reference, attrs={"axis": 1})
    case(name, between(-2, 2, 3, 2), "first", reference, attrs={"axis": 0})
    case(name, between(-2, 2, 0, 3), "empty", reference, attrs={"axis": 1})
    case(name, between(-2, 2, 2, 0), "no_classes", reference, attrs={"axis": 1})


def _cross_entropy(labels, logits):
    return -np.sum(labels * _log_softmax(logits, axis=-1), axis=-1)


def _sparse_cross_entropy(labels, logits):
    return _cross_entropy(np.eye(logits.shape[-1])[labels], logits)


def _residual(labels, logits):
    return _softmax(logits, axis=-1) - np.eye(logits.shape[-1])[labels]


for label, shape in {"matrix": (2, 3), "vector": (3,), "cube": (2, 2, 3), "empty": (0, 3)}.items():
    logits = between(-2, 2, *shape)
    case("softmax_cross_entropy", [between(0.1, 1, *shape), logits], label, _cross_entropy)
    labels = integers(0, 3, *shape[:-1], dtype="int64" if label == "matrix" else "int32")
    case("sparse_softmax_cross_entropy", [labels, logits], label, _sparse_cross_entropy,
         dtypes=FLOATS)  # fmt: skip
    case("softmax_residual", [labels, logits], label, _residual, dtypes=FLOATS)


# Running along one axis


def _cumsum(x, *, axis, exclusive, reverse):
    x = np.flip(x, axis) if reverse else x
    y = np.add.accumulate(x, axis) - (x if exclusive else 0)
    return np.flip(y, axis) if reverse else y


def _recurrence(factor, x, *, axis, reverse):
    order = range(x.shape[axis])
    y, last = np.zeros_like(x), 0
    for k in reversed(order) if reverse else order:
        at = (slice(None),) * axis + (k,)
        y[at] = last = x[at] + factor[at] * last
    return y


for axis, shape in enumerate([(4, 2), (2, 5), (2, 1, 3)]):
    for exclusive, reverse in itertools.product((False, True), repeat=2):
        attrs = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
        label = f"axis{axis}{'_exclusive' * exclusive}{'_reverse' * reverse}"
        case("cumsum", off_zero(*shape), label, _cumsum, attrs=attrs)
    for reverse in (False, True):
        case("recurrence", [off_zero(*shape), off_zero(*shape)],
             f"axis{axis}{'_reverse' * reverse}", _recurrence,
             attrs={"axis": axis, "reverse": reverse})  # fmt: skip
    case("cumprod", off_zero(*shape), f"axis{axis}", np.multiply.accumulate, attrs={"axis": axis})
    case("cumulative_logsumexp", between(-2, 2, *shape), f"axis{axis}",
         lambda x, *, axis: np.log(np.add.accumulate(np.exp(x), axis)),
         attrs={"axis": axis})  # fmt: skip
case("cumsum", complexes(3), "complex", _cumsum,
     attrs={"axis": 0, "exclusive": False, "reverse": True})  # fmt: skip
case("cumsum", off_zero(2, 0), "empty", _cumsum,
     attrs={"axis": 1, "exclusive": True, "reverse": False})  # fmt: skip
case("recurrence", [complexes(5), complexes(5)], "complex", _recurrence,
     attrs={"axis": 0, "reverse": False})  # fmt: skip
case("cumprod", complexes(5), "complex", np.multiply.accumulate, attrs={"axis": 0})
case("cumprod", np.array([1.5, 0.0, -2.0, 0.0, 3.0]), "zeros", np.multiply.accumulate,
     attrs={"axis": 0}, jax_rule=False)  # fmt: skip
case("cumprod", off_zero(2, 0), "empty", np.multiply.accumulate, attrs={"axis": 1})
