"""Generates statements: elementwise operations, reductions, shapes, products."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from campaigns._programs.statement_kinds import (
    is_complex,
    is_float,
    is_int,
    is_number,
    is_wide,
    weight,
)

if TYPE_CHECKING:
    from campaigns._programs.generator import Value, Writer


def _with_rank(min_rank: int, max_rank: int = 5, test: Callable = is_float) -> Callable:
    return lambda v: min_rank <= v.rank <= max_rank and test(v)


def _another(w: Writer, x: Value) -> str:
    """Returns an expression with the dtype of `x`, possibly with another shape."""
    y = w.pick(lambda v: v.dtype == x.dtype)
    if w.chance(0.15) and is_float(x):
        return w.literal()
    if w.chance(0.15) and y.dtype != "bool":
        other = w.pick(lambda v: not (is_complex(v) and not is_complex(x)))
        return f"tf.cast({other.name}, tf.{x.dtype})" if other else y.name
    return y.name


def _axis(w: Writer, x: Value) -> int:
    return w.rng.randrange(-x.rank, x.rank)


# Elementwise

UNARY = (
    "tf.sin({})",
    "tf.cos({})",
    "tf.tanh({})",
    "tf.exp(-tf.abs({}))",
    "tf.exp(tf.tanh({}))",
    "tf.sigmoid({})",
    "tf.nn.softplus({})",
    "tf.square({})",
    "tf.sqrt(tf.square({}) + 0.5)",
    "tf.math.log(tf.abs({}) + 0.5)",
    "tf.abs({})",
    "-{}",
    "tf.math.reciprocal(tf.square({}) + 1.0)",
    "1.0 / (2.0 + tf.square({}))",
    "tf.math.rsqrt(1.0 + tf.square({}))",
    "tf.nn.relu({})",
    "tf.nn.relu6({})",
    "tf.nn.elu({})",
    "tf.nn.gelu({})",
    "tf.nn.leaky_relu({})",
    "tf.nn.selu({})",
    "tf.nn.silu({})",
    "tf.nn.softsign({})",
    "tf.math.atan({})",
    "tf.math.asinh({})",
    "tf.math.erf({})",
    "tf.math.log1p(tf.square({}))",
    "tf.math.expm1(tf.tanh({}))",
    "tf.math.log_sigmoid({})",
    "tf.sign({})",
    "tf.floor({})",
    "tf.math.ceil({})",
    "tf.identity({})",
    "tf.stop_gradient({})",
    "{} ** 2",
    "{} ** 3.0",
    "tf.clip_by_value({}, -1.0, 0.8)",
    "tf.ones_like({})",
    "tf.zeros_like({})",
    "tf.math.sinh(tf.tanh({}))",
    "tf.math.cosh(tf.tanh({}))",
    "tf.math.asin(0.9 * tf.tanh({}))",
    "tf.math.atanh(0.9 * tf.tanh({}))",
    "tf.math.acosh(1.5 + tf.square({}))",
    "tf.math.lgamma(1.5 + tf.square({}))",
    "tf.math.digamma(1.5 + tf.square({}))",
)

SMOOTH = UNARY[:10]

_WIDE_ONLY = ("lgamma", "digamma")


@weight(8)
def _unary(w: Writer, name: str) -> str | None:
    x = w.pick(is_float)
    form = w.rng.choice(UNARY)
    if x is None or (any(f in form for f in _WIDE_ONLY) and not is_wide(x)):
        return None
    return f"{name} = {form.format(x.name)}"


@weight(3)
def _chain(w: Writer, name: str) -> str | None:
    """Generates several elementwise calls in one line, enough to be fused."""
    x = w.pick(is_float)
    if x is None:
        return None
    text = x.name
    for _ in range(w.rng.randint(2, 4)):
        text = w.rng.choice(SMOOTH).format(text)
        if w.chance(0.6):
            text = f"({text} {w.rng.choice('+-*')} {_another(w, x)})"
        if w.chance(0.2):
            text = f"({text} * {text})" if len(text) < 60 else text
    return f"{name} = {text}"


_BINARY = (
    "{} + {}",
    "{} - {}",
    "{} * {}",
    "{} * {}",
    "{} / (1.5 + tf.square({}))",
    "tf.maximum({}, {})",
    "tf.minimum({}, {})",
    "tf.math.squared_difference({}, {})",
    "tf.math.atan2({}, 3.0 + {})",
    "(tf.abs({}) + 0.5) ** tf.tanh({})",
    "tf.math.divide_no_nan({}, {} + 3.0)",
    "tf.math.xlogy({}, 3.0 + {})",
    "tf.math.floormod({}, 3.0 + tf.abs({}))",
    "tf.hypot({}, 1.0 + {})",
)


@weight(7)
def _binary(w: Writer, name: str) -> str | None:
    x = w.pick(is_float)
    if x is None:
        return None
    form = w.rng.choice(_BINARY)
    if "hypot" in form:
        form = "tf.sqrt(tf.square({}) + tf.square(1.0 + {}) + 0.1)"
    return f"{name} = {form.format(x.name, _another(w, x))}"


@weight(1)
def _scale(w: Writer, name: str) -> str | None:
    """Generates an operation with a Python number on either side."""
    x = w.pick(is_float)
    if x is None:
        return None
    form = w.rng.choice(["{1} * {0}", "{0} + {1}", "{1} - {0}", "{0} / {1}"])
    return f"{name} = {form.format(x.name, w.literal())}"


@weight(1)
def _numpy_constant(w: Writer, name: str) -> str | None:
    x = w.pick(lambda v: is_wide(v) and v.size < 100)
    if x is None:
        return None
    c = w.new_name("n")
    w.define(f"{c} = {w.random_tensor_expression(x.shape, x.dtype)}.numpy()")
    return f"{name} = {x.name} {w.rng.choice('+*-')} {c}"


@weight(2)
def _cast(w: Writer, name: str) -> str | None:
    x = w.pick(lambda v: not is_complex(v))
    if x is None:
        return None
    wide = ["float32", "float64", "float64", "int32", "int64", "bool", "complex64", "complex128"]
    dtype = w.rng.choice([*wide, "float16", "bfloat16", w.dtype, w.dtype, w.dtype])
    if dtype == x.dtype:
        return None  # TensorFlow returns the variable itself
    return f"{name} = tf.cast({x.name}, tf.{dtype})"


@weight(2)
def _integers(w: Writer, name: str) -> str | None:
    x = w.pick(is_int)
    if x is None:
        return None
    forms = ["{} + {}", "{} - {}", "{} * {}", "{} // (tf.abs({}) + 1)", "{} % (tf.abs({}) + 2)"]
    forms += ["tf.maximum({}, {})", "tf.bitwise.bitwise_xor({}, {})", "tf.abs({}) - {}"]
    y = w.pick(lambda v: v.dtype == x.dtype)
    other = y.name if w.chance(0.7) else str(w.rng.randint(-3, 3))
    return f"{name} = {w.rng.choice(forms).format(x.name, other)}"


@weight(2)
def _comparison(w: Writer, name: str) -> str | None:
    x = w.pick(lambda v: is_number(v) and not is_complex(v))
    if x is None:
        return None
    other = _another(w, x)
    return f"{name} = {x.name} {w.rng.choice(['<', '<=', '>', '>='])} {other}"


@weight(1)
def _logical(w: Writer, name: str) -> str | None:
    x = w.pick(lambda v: v.dtype == "bool")
    if x is None:
        return None
    y = w.pick(lambda v: v.dtype == "bool")
    forms = ["tf.logical_and({}, {})", "{} | {}", "tf.math.logical_xor({}, {})", "~({} & {})"]
    return f"{name} = {w.rng.choice(forms).format(x.name, y.name)}"


@weight(3)
def _where(w: Writer, name: str) -> str | None:
    x = w.pick(is_number)
    if x is None:
        return None
    condition = w.pick(lambda v: v.dtype == "bool")
    if condition is not None and w.chance(0.5):
        return f"{name} = tf.where({condition.name}, {x.name}, {_another(w, x)})"
    if is_complex(x):
        return None
    return f"{name} = tf.where({x.name} > 0, {x.name}, {_another(w, x)})"


@weight(1)
def _complex(w: Writer, name: str) -> str | None:
    z = w.pick(is_complex)
    if z is None or w.chance(0.4):
        x = w.pick(is_wide)
        if x is None:
            return None
        y = w.pick(lambda v: v.dtype == x.dtype)
        return f"{name} = tf.complex({x.name}, {y.name})"
    forms = ["tf.math.real({})", "tf.math.imag({})", "tf.math.conj({})", "tf.abs({} + 5.0)"]
    forms += ["{} * {}", "tf.exp({} * 0.2)", "{} + {}", "tf.reduce_sum({})", "tf.square({})"]
    forms += ["{} / ({} * 0.1 + 5.0)", "tf.sin({} * 0.3)", "tf.math.angle({} + 6.0)"]
    other = w.pick(lambda v: v.dtype == z.dtype)
    return f"{name} = {w.rng.choice(forms).format(z.name, other.name)}"


# Reductions

_REDUCTIONS = (
    "sum",
    "mean",
    "max",
    "min",
    "logsumexp",
    "variance",
    "euclidean_norm",
    "std",
    "prod",
)


@weight(5)
def _reduction(w: Writer, name: str) -> str | None:
    x = w.pick(is_float)
    if x is None:
        return None
    reduction = w.rng.choice(_REDUCTIONS)
    home = "tf.math" if reduction in ("variance", "euclidean_norm", "std") else "tf"
    axis, keepdims = "", ", keepdims=True" if w.chance(0.3) else ""
    if x.rank and w.chance(0.6):
        axis = f", axis={_axis(w, x)}"
    elif x.rank > 1 and w.chance(0.3):
        axis = f", axis={sorted(w.rng.sample(range(x.rank), 2))}"
    shift = " + 0.1" if reduction in ("euclidean_norm", "std") else ""
    return f"{name} = {home}.reduce_{reduction}({x.name}{shift}{axis}{keepdims})"


@weight(1)
def _integer_reduction(w: Writer, name: str) -> str | None:
    if w.chance(0.4):
        x = w.pick(_with_rank(1))
        function = w.rng.choice(["argmax", "argmin", "argsort"])
        return x and f"{name} = tf.{function}({x.name}, axis={_axis(w, x)})"
    x = w.pick(lambda v: v.dtype == "bool" or is_int(v))
    if x is None:
        return None
    names = ["reduce_any", "reduce_all"] if x.dtype == "bool" else ["reduce_sum", "reduce_max"]
    axis = f", axis={_axis(w, x)}" if x.rank and w.chance(0.6) else ""
    return f"{name} = tf.{w.rng.choice(names)}({x.name}{axis})"


@weight(2)
def _along_an_axis(w: Writer, name: str) -> str | None:
    x = w.pick(_with_rank(1))
    if x is None:
        return None
    forms = [
        "tf.cumsum({}, axis={axis})",
        "tf.cumsum({}, axis={axis}, exclusive=True, reverse=True)",
        "tf.math.cumprod(0.8 * tf.tanh({}), axis={axis})",
        "tf.nn.softmax({}, axis={axis})",
        "tf.nn.log_softmax({}, axis={axis})",
        "tf.math.l2_normalize({} + 0.3, axis={axis})",
        "tf.sort({}, axis={axis})",
        "tf.nn.top_k({}, k=1).values",
        "tf.norm({} + 0.2, axis={axis})",
        "tf.nn.softmax({}) * tf.nn.log_softmax({})",
        "tf.math.cumulative_logsumexp({}, axis={axis})",
    ]
    return f"{name} = {w.rng.choice(forms).format(x.name, x.name, axis=_axis(w, x))}"


@weight(1)
def _norm(w: Writer, name: str) -> str | None:
    x = w.pick(lambda v: is_wide(v) and v.rank >= 2 and 0 not in v.shape)
    if x is None:
        return None
    return (
        f"mean, variance = tf.nn.moments({x.name}, axes=[-1], keepdims=True)\n"
        f"{name} = tf.nn.batch_normalization({x.name}, mean, variance, 0.5, 1.5, 0.1)"
    )


@weight(1)
def _loss(w: Writer, name: str) -> str | None:
    x = w.pick(lambda v: is_wide(v) and v.rank >= 1 and 0 not in v.shape)
    if x is None:
        return None
    if w.chance(0.5):
        labels = f"tf.zeros({list(x.shape[:-1])}, tf.int32)"
        call = "tf.nn.sparse_softmax_cross_entropy_with_logits"
        return f"{name} = {call}(labels={labels}, logits={x.name})"
    call = "tf.nn.sigmoid_cross_entropy_with_logits"
    return f"{name} = {call}(labels=tf.nn.sigmoid({x.name}), logits={x.name})"


# Shapes and views


@weight(4)
def _slice(w: Writer, name: str) -> str | None:
    x = w.pick(_with_rank(1, test=bool))
    if x is None:
        return None
    forms = [
        "{}[1:]",
        "{}[:-1]",
        "{}[::-1]",
        "{}[..., 0]",
        "{}[::2]",
        "{}[None]",
        "{}[0]",
        "{}[-1]",
    ]
    forms += ["{}[..., None]", "{}[:, 0]", "{}[1:, ::-1]", "{}[..., 1:]", "{}[tf.constant(0)]"]
    return f"{name} = {w.rng.choice(forms).format(x.name)}"


@weight(4)
def _reshape(w: Writer, name: str) -> str | None:
    x = w.pick()
    if x.size == 0 and w.chance(0.5):
        return None
    forms = ["tf.reshape({}, [-1])", "tf.transpose({})", "tf.expand_dims({}, 0)", "tf.squeeze({})"]
    forms += [f"tf.reshape({{}}, {list(reversed(x.shape))})", "tf.expand_dims({}, -1)"]
    forms += [f"tf.broadcast_to({{}}, {[2, *x.shape]})", "tf.transpose({}, conjugate=True)"]
    if x.rank:
        axis = w.rng.randrange(x.rank)
        tiles = [2 if i == axis else 1 for i in range(x.rank)]
        order = w.rng.sample(range(x.rank), x.rank)
        forms += [f"tf.transpose({{}}, {order})", f"tf.reverse({{}}, [{axis}])"]
        forms += [f"tf.tile({{}}, {tiles})", f"tf.roll({{}}, 1, axis={axis})"]
        forms += [f"tf.repeat({{}}, 2, axis={axis})"]
        pads = [[i % 2, 1] for i in range(x.rank)]
        forms += [f"tf.pad({{}}, {pads})"] if x.dtype != "bool" else []
        forms += [f"tf.pad({{}}, {pads}, mode='SYMMETRIC')"] if is_float(x) else []
    return f"{name} = {w.rng.choice(forms).format(x.name)}"


@weight(3)
def _concatenate(w: Writer, name: str) -> str | None:
    x = w.pick(_with_rank(0, test=is_number))
    if x is None:
        return None
    y = w.pick(lambda v: v.dtype == x.dtype and v.shape == x.shape)
    if x.rank and w.chance(0.5):
        return f"{name} = tf.concat([{x.name}, {y.name}, {x.name}], axis={_axis(w, x)})"
    return f"{name} = tf.stack([{x.name}, {y.name}], axis={w.rng.choice([0, -1])})"


@weight(2)
def _split(w: Writer, name: str) -> str | None:
    x = w.pick(lambda v: is_float(v) and v.rank and 2 <= v.shape[0] <= 6)
    if x is None:
        return None
    n = x.shape[0]
    if w.chance(0.4):
        parts = f"first, *others = tf.unstack({x.name})"
        return f"{parts}\n{name} = first - 0.5 * tf.add_n(others)"
    if w.chance(0.5):
        return f"first, second = tf.split({x.name}, [1, {n - 1}])\n{name} = second * first"
    return f"first, *others = tf.split({x.name}, {n})\n{name} = tf.tanh(first) + others[-1]"


@weight(3)
def _gather(w: Writer, name: str) -> str | None:
    x = w.pick(lambda v: is_float(v) and v.rank and v.shape[0] > 0)
    if x is None:
        return None
    n = x.shape[0]
    indices = [w.rng.randrange(n) for _ in range(w.rng.choice([1, 2, 3, 5]))]
    i = w.pick(is_int)
    if i is not None and w.chance(0.4):
        return f"{name} = tf.gather({x.name}, {i.name} % {n})"
    forms = [f"tf.gather({{}}, {indices})", f"tf.gather_nd({{}}, {[[i] for i in indices]})"]
    forms += [f"tf.gather({{}}, {indices[0]})", f"tf.nn.embedding_lookup({{}}, {indices})"]
    last = x.shape[-1]
    if last:
        forms += [f"tf.gather({{}}, {[i % last for i in indices]}, axis=-1)"]
    forms += ["tf.boolean_mask({}, tf.reduce_sum(tf.reshape({}, [tf.shape({})[0], -1]), 1) > 0.1)"]
    return f"{name} = {w.rng.choice(forms).format(x.name, x.name, x.name)}"


@weight(2)
def _scatter(w: Writer, name: str) -> str | None:
    x = w.pick(lambda v: is_float(v) and v.rank and v.shape[0] > 0)
    if x is None:
        return None
    n = x.shape[0]
    indices = w.rng.sample(range(n), min(n, w.rng.choice([1, 2])))
    pairs = [[i] for i in indices]
    updates = f"tf.sin({x.name}[:{len(indices)}])"
    forms = [
        f"tf.tensor_scatter_nd_update({x.name}, {pairs}, {updates})",
        f"tf.tensor_scatter_nd_add({x.name}, {pairs}, {updates})",
        f"tf.scatter_nd({pairs}, {updates}, {list(x.shape)})",
        f"tf.math.unsorted_segment_sum({x.name}, {[i % 2 for i in range(n)]}, 3)",
        f"tf.math.segment_mean({x.name}, {sorted(i % 2 for i in range(n))})",
    ]
    return f"{name} = {w.rng.choice(forms)}" if n < 50 else None


@weight(1)
def _create(w: Writer, name: str) -> str | None:
    x = w.pick()
    forms = [
        f"tf.ones({list(x.shape)}, tf.{w.dtype})",
        f"tf.fill({list(x.shape)}, tf.constant(0.7, tf.{w.dtype}))",
        "tf.range(3)",
        f"tf.shape({x.name})",
        f"tf.size({x.name})",
        f"tf.one_hot([0, 2], 3, dtype=tf.{w.dtype})",
        f"tf.eye(2, dtype=tf.{w.dtype})",
        f"tf.linspace(tf.constant(0.0, tf.{w.dtype}), 1.0, 4)",
    ]
    return f"{name} = {w.rng.choice(forms)}"


# Products


@weight(3)
def _product(w: Writer, name: str) -> str | None:
    x = w.pick(lambda v: v.rank >= 1 and (is_float(v) or is_complex(v)) and v.size < 2000)
    if x is None:
        return None
    y = w.pick(lambda v: v.dtype == x.dtype and v.rank >= 1)
    if x.rank >= 2 and w.chance(0.7):
        others = [v for v in w.values if v.dtype == x.dtype and v.rank == x.rank]
        y = w.rng.choice(others)
        forms = ["tf.matmul({}, {}, transpose_b=True)", "tf.matmul({}, {}, transpose_a=True)"]
        forms += ["{} @ tf.transpose({})", "tf.einsum('...ij,...kj->...ik', {}, {})"]
        forms += ["tf.einsum('...ij,...ij->...j', {}, {})", "{} @ {}"]
        return f"{name} = 0.5 * {w.rng.choice(forms).format(x.name, y.name)}"
    forms = ["tf.tensordot({}, {}, axes=0)", "tf.tensordot({}, {}, 1)", "tf.linalg.matvec({}, {})"]
    forms += ["tf.einsum('i,i->', {}, {})", "tf.einsum('i,j->ji', {}, {})", "tf.linalg.diag({})"]
    return f"{name} = {w.rng.choice(forms).format(x.name, y.name)}"


@weight(1)
def _convolution(w: Writer, name: str) -> str | None:
    x = w.pick(lambda v: is_wide(v) and 12 <= v.size <= 600)
    if x is None:
        return None
    filters = w.new_name("w")
    if w.chance(0.5):
        w.define(f"{filters} = {w.random_tensor_expression((2, 1, 2), x.dtype)}")
        series = f"tf.reshape({x.name}, [1, -1, 1])"
        padding = w.rng.choice(["SAME", "VALID"])
        return f"{name} = tf.nn.conv1d({series}, {filters}, 1, '{padding}')"
    w.define(f"{filters} = {w.random_tensor_expression((2, 2, 1, 2), x.dtype)}")
    image = f"tf.reshape(tf.reshape({x.name}, [-1])[:12], [1, 3, 4, 1])"
    stride = w.rng.choice([1, 2])
    pools = ["tf.nn.max_pool2d({}, 2, 1, 'SAME')", "tf.nn.avg_pool2d({}, 2, 1, 'VALID')", "{}"]
    call = f"tf.nn.conv2d({image}, {filters}, {stride}, 'SAME')"
    return f"{name} = {w.rng.choice(pools).format(call)}"


@weight(1)
def _linear_algebra(w: Writer, name: str) -> str | None:
    x = w.pick(lambda v: is_wide(v) and v.rank >= 2 and 0 < v.size < 200)
    if x is None:
        return None
    forms = [
        "tf.linalg.matrix_transpose({})",
        "tf.linalg.band_part({}, 1, 0)",
        "tf.linalg.trace({})",
        "tf.linalg.diag_part({})",
        "tf.linalg.inv(tf.matmul({x}, {x}, transpose_b=True) + 3.0 * {eye})",
        "tf.linalg.cholesky(tf.matmul({x}, {x}, transpose_b=True) + 3.0 * {eye})",
        "tf.linalg.solve(tf.matmul({x}, {x}, transpose_b=True) + 3.0 * {eye}, {x})",
    ]
    eye = f"tf.eye({x.shape[-2]}, dtype=tf.{x.dtype})"
    return f"{name} = {w.rng.choice(forms).format(x.name, x=x.name, eye=eye)}"
