"""Elementwise primitives."""

from __future__ import annotations

import itertools
import math

import numpy as np
import scipy.special

from tests.ops.cases._table import (
    between,
    binary,
    booleans,
    case,
    complexes,
    from_to,
    integers,
    off_zero,
    unary,
)


def _logistic(x):
    return 1 / (1 + np.exp(-x))


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
    # JAX has no gradient of the complex sign; TensorFlow has.
    case("sign", sample, f"{sample.dtype}-{sample.shape}", lambda x: x / abs(x),
         jax_rule=sample.dtype.kind == "f")  # fmt: skip
unary("exp", lambda x: math.e**x, -2, 2)
unary("expm1", lambda x: np.exp(x) - 1, -2, 2)
unary("log", np.log, 0.2, 3)
unary("log1p", lambda x: np.log(1 + x), -0.8, 3)
unary("sqrt", lambda x: x**0.5, 0.2, 3)
unary("rsqrt", lambda x: x**-0.5, 0.2, 3)
unary("exp2", lambda x: 2**x, -2, 2)
unary("log2", lambda x: np.log(x) / np.log(2), 0.2, 3)
unary("log10", lambda x: np.log(x) / np.log(10), 0.2, 3)
unary("cube_root", lambda x: np.sign(x) * abs(x) ** (1 / 3), 0.2, 3)
case("cube_root", off_zero(2, 3), "both_signs", lambda x: np.sign(x) * abs(x) ** (1 / 3))
binary("hypot", lambda a, b: np.sqrt(a * a + b * b), off_zero, off_zero)
unary("sign_bit", lambda x: x < 0, -1, 1)
case("sign_bit", np.array([-0.0, 0.0]), "zeros", lambda x: 1 / x < 0)
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
unary("normal_cdf", scipy.special.ndtr, -2, 2)
unary("sigmoid", lambda x: np.exp(x) / (1 + np.exp(x)), -3, 3)
unary("softplus", _softplus, -3, 3)
unary("silu", lambda x: x * np.exp(x) / (1 + np.exp(x)), -3, 3)
for approximate, reference in {
    False: lambda x, **_: x * scipy.special.ndtr(x),
    True: lambda x, **_: x * _logistic(np.sqrt(8 / np.pi) * (x + 0.044715 * x**3)),
}.items():
    for sample in (off_zero(2, 3), off_zero(), off_zero(0, 2)):
        shape = "x".join(map(str, sample.shape)) or "scalar"
        case("gelu", sample, f"approximate_{approximate}_{shape}", reference,
             attrs={"approximate": approximate})  # fmt: skip
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
        "relu_grad",
        [off_zero(2, 3), off_zero(2, 3)],
        f"up_to_{upper}_slope_{slope}",
        lambda g, s, *, upper, slope: g * np.where((s > 0) & (s < (upper or 9.0)), 1, slope),
        attrs={"upper": upper, "slope": slope},
    )
case("relu6", np.array([-2.5, 0.5, 3.5, 5.5, 6.5, 9.5]), "all_pieces", lambda x: np.clip(x, 0, 6))
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


# Two inputs


def _no_nan(x1, x2):
    return np.divide(x1, x2, out=np.zeros(np.broadcast(x1, x2).shape, x2.dtype), where=x2 != 0)


binary("add", lambda a, b: a - (-b), off_zero, off_zero)
binary("subtract", lambda a, b: a + (-b), off_zero, off_zero)
binary("multiply", lambda a, b: a * b, off_zero, off_zero)
binary("divide", lambda a, b: a * b**-1.0, off_zero, off_zero)
binary("divide_no_nan", _no_nan, off_zero, off_zero)
binary("guarded_multiply", lambda a, b: a * b, off_zero, off_zero)
binary("tanh_grad", lambda g, y: g * (1 - y**2), off_zero, from_to(-0.9, 0.9))
binary("sigmoid_grad", lambda g, y: g * (y - y**2), off_zero, from_to(0.1, 0.9))
binary("guarded_divide", lambda a, b: a / b, off_zero, off_zero)
binary("power", lambda a, b: np.exp(b * np.log(a)), from_to(0.3, 2), from_to(-2, 2))
binary(
    "squared_difference",
    lambda a, b: abs(a - b) ** 2 + 0 * (a - b),
    off_zero,
    off_zero,
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
for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm"):
    case(name, [integers(-9, 9, 2, 1), integers(-9, 9, 3)], "both", getattr(np, name))

for label, shapes in {
    "same": ((2, 3),) * 3,
    "all_different": ((2, 1), (3,), (1, 1)),
    "scalars": ((), (), ()),
    "empty": ((0, 1), (2,), ()),
}.items():
    case("scaled_product", [off_zero(*shape) for shape in shapes], label,
         lambda a, b, c, *, scale: a * b * c * scale, attrs={"scale": -2})  # fmt: skip
case("scaled_product", [complexes(2), complexes(2), complexes(1)], "complex",
     lambda a, b, c, *, scale: a * b * c * scale, attrs={"scale": 3})  # fmt: skip

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

for name, function in (("left_shift", np.left_shift), ("right_shift", np.right_shift)):
    case(name, [integers(-50, 50, 2, 1), integers(0, 9, 3)], "both", function)
    clipped = lambda x, y, function=function: function(x, min(max(y, 0), 63))  # noqa: E731
    case(name, [integers(-50, 50, 3, dtype="int64"), np.int64(70)], "beyond", clipped)
    case(name, [integers(-50, 50, 3, dtype="int64"), np.int64(-1)], "before", clipped)
