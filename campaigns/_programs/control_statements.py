"""Generates statements with control flow, gradients, functions and variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from campaigns._programs.math_statements import SMOOTH
from campaigns._programs.statement_kinds import is_float, is_int, is_wide, weight

if TYPE_CHECKING:
    from campaigns._programs.generator import Writer


# Control flow and conversions to Python


@weight(2)
def _branch(w: Writer, name: str) -> str | None:
    x = w.pick(is_float)
    if x is None:
        return None
    y = w.pick(lambda v: v.dtype == x.dtype and v.shape == x.shape)
    test = f"tf.reduce_sum({x.name}) > 0.1"
    one, other = w.rng.sample(SMOOTH, 2)
    if w.chance(0.4):
        pair = f"lambda: {one.format(x.name)}, lambda: {other.format(y.name)}"
        return f"{name} = tf.cond({test}, {pair})"
    return (
        f"if {test}:\n    {name} = {one.format(x.name)}\nelse:\n    {name} = {other.format(y.name)}"
    )


@weight(1)
def _python_number(w: Writer, name: str) -> str | None:
    x = w.pick(is_wide)
    if x is None:
        return None
    forms = [
        f"{name} = {x.name} * float(int(tf.reduce_sum(tf.abs({x.name}))) % 3)",
        f"{name} = {x.name} * round(float(tf.reduce_mean(tf.tanh({x.name}))), 1)",
        f"{name} = tf.identity({x.name})\n"
        f"for _ in range(int(tf.size({x.name})) % 4):\n"
        f"    {name} = tf.sin({name})",
        f"{name} = {x.name} + len({x.name})" if x.rank else f"{name} = {x.name}",
        f"{name} = {x.name} * (1.0 + {x.name}.shape.rank)",
    ]
    return w.rng.choice(forms)


@weight(2)
def _loop(w: Writer, name: str) -> str | None:
    x = w.pick(is_float)
    if x is None:
        return None
    y = w.pick(lambda v: v.dtype == x.dtype)
    iterations = w.rng.choice([1, 2, 3, 12])
    one = w.rng.choice(SMOOTH)
    step = one.format(f"0.5 * {name} + {y.name}" if y.shape == () else f"0.5 * {name}")
    if w.chance(0.5):
        return f"{name} = tf.identity({x.name})\nfor _ in range({iterations}):\n    {name} = {step}"
    start = f"(tf.constant(0), {x.name})"
    body = one.format("0.5 * a")
    test = f"lambda i, a: i < {iterations}"
    return f"_, {name} = tf.while_loop({test}, lambda i, a: (i + 1, {body}), {start})"


@weight(2)
def _map_fn(w: Writer, name: str) -> str | None:
    x = w.pick(lambda v: is_float(v) and v.rank and 0 < v.shape[0] < 50)
    if x is None:
        return None
    one = w.rng.choice(SMOOTH).format("a")
    y = w.pick(lambda v: v.dtype == x.dtype and v.shape == x.shape[1:])
    with_y = f" * {y.name}" if y is not None else ""
    forms = [
        f"tf.map_fn(lambda a: {one}{with_y}, {x.name})",
        f"tf.scan(lambda s, a: 0.5 * s + {one}, {x.name})",
        f"tf.vectorized_map(lambda a: {one}{with_y}, {x.name})",
        f"tf.stack([{one}{with_y} for a in tf.unstack({x.name})])",
        f"tf.foldl(lambda s, a: 0.5 * s + {one}, {x.name})",
    ]
    return f"{name} = {w.rng.choice(forms)}"


# Inner gradients, custom gradients, inner functions


@weight(1)
def _custom_gradient(w: Writer, name: str) -> str | None:
    x = w.pick(is_float)
    if x is None:
        return None
    custom = w.new_name("custom")
    w.define(
        f"@tf.custom_gradient\n"
        f"def {custom}(x):\n"
        f"    def grad(dy):\n"
        f"        return dy * tf.cos(x) * 1.5\n"
        f"    return tf.sin(x), grad"
    )
    # TensorFlow's eager gradient would read the current value of a variable.
    return f"{name} = {custom}(tf.identity({x.name}))"


@weight(1)
def _recompute_grad(w: Writer, name: str) -> str | None:
    x = w.pick(is_wide)
    one = w.rng.choice(SMOOTH).format("a")
    return x and f"{name} = tf.recompute_grad(lambda a: {one} * a)(tf.identity({x.name}))"


@weight(2)
def _inner_gradient(w: Writer, name: str) -> str | None:
    x = w.pick(is_wide)
    if x is None:
        return None
    one = w.rng.choice(SMOOTH).format(x.name)
    return (
        f"with tf.GradientTape() as inside:\n"
        f"    inside.watch({x.name})\n"
        f"    b = {one} * tf.sin({x.name})\n"
        f"{name} = inside.gradient(b, {x.name})"
    )


@weight(1)
def _inner_function(w: Writer, name: str) -> str | None:
    x = w.pick(is_float)
    if x is None:
        return None
    inner = w.new_name("inner")
    one, other = (form.format("x") for form in w.rng.sample(SMOOTH, 2))
    w.define(f"@function\ndef {inner}(x):\n    return {one}, {{'b': {other}}}")
    return f"first, second = {inner}({x.name})\n{name} = first + second['b']"


# Variables


@weight(3)
def _assignment(w: Writer, name: str) -> str | None:
    if not w.variables:
        return None
    v = w.rng.choice(w.variables)
    method = w.rng.choice(["assign", "assign_add", "assign_sub"])
    x = w.pick(lambda x: x.dtype == v.dtype and x.shape == v.shape)
    value = f"{v.name} + 1" if is_int(v) else f"0.5 * tf.tanh({x.name})"
    reading = w.rng.choice(
        [f"tf.identity({v.name})", f"{v.name} + {v.name}", f"{v.name}.read_value()"]
    )
    if v.rank and v.shape[0] and w.chance(0.2) and not is_int(v):
        change = f"{v.name}[:1].assign(tf.sin({v.name}[:1]))"
    else:
        change = f"{v.name}.{method}({value})"
    return f"{change}\n{name} = {reading}"


@weight(1)
def _random_numbers(w: Writer, name: str) -> str | None:
    x = w.pick(is_wide)
    if x is None or not w.chance(0.3):
        return None
    shape = list(x.shape)
    call = w.rng.choice(["tf.random.uniform({})", "tf.random.normal({})"]).format(shape)
    return f"{name} = {x.name} * tf.cast({call}, tf.{x.dtype})"


@weight(1)
def _halving_loop(w: Writer, name: str) -> str | None:
    """Generates a loop whose number of iterations depends on a value."""
    x = w.pick(is_float)
    if x is None:
        return None
    largest = f"tf.reduce_max(tf.abs({name}))" if x.size else f"tf.reduce_sum({name})"
    return (
        f"{name} = tf.identity({x.name})\n"
        f"for _ in range(7):\n"
        f"    if {largest} <= 0.9:\n"
        f"        break\n"
        f"    {name} = {name} * 0.5"
    )


@weight(1)
def _switch_case(w: Writer, name: str) -> str | None:
    x = w.pick(is_float)
    if x is None:
        return None
    branches = ", ".join(f"lambda: {form.format(x.name)}" for form in w.rng.sample(SMOOTH, 3))
    branch_index = f"tf.cast(tf.reduce_sum({x.name}), tf.int32) % 3"
    return f"{name} = tf.switch_case({branch_index}, [{branches}])"


@weight(1)
def _array_of_tensors(w: Writer, name: str) -> str | None:
    x = w.pick(lambda v: is_float(v) and v.rank and 0 < v.shape[0] < 6)
    if x is None:
        return None
    return (
        f"parts = tf.TensorArray(tf.{x.dtype}, size={x.shape[0]})\n"
        f"for i in range({x.shape[0]}):\n"
        f"    parts = parts.write(i, tf.sin({x.name}[i]))\n"
        f"{name} = parts.stack()"
    )


@weight(1)
def _python_function(w: Writer, name: str) -> str | None:
    x = w.pick(is_wide)
    if x is None or w.chance(0.5):
        return None
    call = f"tf.numpy_function(lambda a: a * a.dtype.type(0.5), [{x.name}], tf.{x.dtype})"
    if w.chance(0.5):
        call = f"tf.py_function(lambda a: tf.sin(a) * a, [{x.name}], tf.{x.dtype})"
    return f"{name} = tf.ensure_shape({call}, {list(x.shape)})"


@weight(1)
def _numeric_check(w: Writer, name: str) -> str | None:
    """Generates a check that fails for some data. All modes must raise the same error."""
    x = w.pick(is_wide)
    if x is None:
        return None
    limit = w.rng.choice([1.5, 3.0, 50.0])
    check = f"tf.debugging.assert_less({x.name}, tf.constant({limit}, tf.{x.dtype}))"
    return f"{check}\n{name} = tf.sin({x.name})"


@weight(1)
def _paused_tape(w: Writer, name: str) -> str | None:
    """Generates a tape that stops recording temporarily."""
    x = w.pick(is_wide)
    if x is None:
        return None
    one, other = (form.format(x.name) for form in w.rng.sample(SMOOTH, 2))
    return (
        f"with tf.GradientTape(persistent=True) as inside:\n"
        f"    inside.watch({x.name})\n"
        f"    b = {one}\n"
        f"    with inside.stop_recording():\n"
        f"        c = {other}\n"
        f"    b = b * c\n"
        f"{name} = inside.gradient(b, {x.name}) + inside.gradient(b, {x.name}, c)"
    )


@weight(1)
def _updated_rows(w: Writer, name: str) -> str | None:
    v = w.rng.choice(w.variables) if w.variables else None
    if v is None or not v.rank or not v.shape[0] or is_int(v):
        return None
    i = w.rng.randrange(v.shape[0])
    rows = f"tf.tanh({v.name}[:1])"
    changes = [
        f"{v.name}.scatter_nd_add([[{i}]], {rows})",
        f"{v.name}.scatter_nd_update([[{i}]], {rows})",
        f"{v.name}.scatter_sub(tf.IndexedSlices({rows}, tf.constant([{i}])))",
        f"{v.name}[{i}].assign({v.name}[0] * 0.5)",
    ]
    return f"{w.rng.choice(changes)}\n{name} = {v.name} * 1.0"
