"""Generates the part of a program that calls its function, repeatedly and under tapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from campaigns._programs.generator import Value, Writer

_ZERO = "unconnected_gradients=tf.UnconnectedGradients.ZERO"


def write_calls(w: Writer) -> None:
    """Generates the function, sometimes a training step that calls it, and calls to both."""
    rng = w.rng
    decorated = not w.chance(0.15)
    _write_function(w, decorated)
    callee = "f"
    if not decorated or w.chance(0.3):
        _write_step(w)
        callee = "step"
    part = rng.choice(_PARTS) if callee == "f" else _plain
    for _ in range(1 if w.small or part is _jacobian else 2):
        _between_calls(w)
        part(w, callee, w.arguments)
    for _ in range(rng.choice([0, 0, 1, 2])):
        _between_calls(w)
        _plain(w, callee, w.arguments)
        if callee == "f" and w.chance(0.3):
            _chain_calls(w)
    if w.chance(0.25) and not (w.small and w.chance(0.5)):
        _plain(w, callee, _resize_arguments(w))
        _plain(w, callee, w.arguments)
    for v in w.variables:
        w.setup.append(f"keep('{v.name}', {v.name})")


def _chain_calls(w: Writer) -> None:
    """Passes a result of one call to the next, and keeps both."""
    first = w.arguments[0]
    fits = f"y.shape == {first.shape} and y.dtype == tf.{first.dtype}"
    w.setup.append(
        f"results = tf.nest.flatten(f({_names(w)}))\n"
        f"{first.name} = ([y for y in results if {fits}] + [{first.name}])[0]\n"
        f"keep('y', f({_names(w)}))\n"
        f"keep('y', results)"
    )


def _write_function(w: Writer, decorated: bool) -> None:
    names = ", ".join(x.name for x in w.arguments)
    lines = [f"def f({names}):"]
    for statement in w.body:
        lines += [f"    {line}" for line in statement.split("\n")]
    lines.append(f"    return {_structure(w)}")
    if decorated:
        lines.insert(0, "@function")
    w.setup.append("\n".join(lines))


def _structure(w: Writer) -> str:
    """Returns the structure that the function returns."""
    assigned = [v.name for v in w.values if v.name.startswith("a")]
    if not assigned:
        return f"tf.identity({w.arguments[0].name})"
    chosen = w.rng.sample(assigned, min(len(assigned), w.rng.choice([1, 2, 3])))
    if assigned[-1] not in chosen:
        chosen.append(assigned[-1])
    if len(chosen) == 1:
        return w.rng.choice(["{}", "[{}]", "{{'a': {}}}"]).format(chosen[0])
    if w.chance(0.3):
        return f"{{'first': {chosen[0]}, 'rest': ({', '.join(chosen[1:])},)}}"
    return ", ".join(chosen)


def _sources(w: Writer) -> str:
    floats = [v.name for v in (*w.arguments, *w.variables) if _is_inexact(v)]
    return f"[{', '.join(floats)}]"


def _is_inexact(v: Value) -> bool:
    return v.dtype.startswith(("float", "bfloat", "complex"))


def _watched_names(w: Writer) -> str:
    floats = [v.name for v in w.arguments if _is_inexact(v)]
    return f"[{', '.join(floats)}]"


def _names(w: Writer) -> str:
    return ", ".join(x.name for x in w.arguments)


def _write_step(w: Writer) -> None:
    """Generates a function with a tape and an update of the variables."""
    persistent = w.chance(0.3)
    zero = w.chance(0.5)
    lines = [
        "@function",
        f"def step({_names(w)}):",
        f"    with tf.GradientTape({'persistent=True' if persistent else ''}) as tape:",
        f"        tape.watch({_watched_names(w)})",
        f"        y = f({_names(w)})",
        "        loss = total(y)",
        f"    g = tape.gradient(loss, {_sources(w)}{', ' + _ZERO if zero else ''})",
    ]
    if persistent:
        lines.append(f"    g += tape.gradient(loss * loss, {_sources(w)})")
    floats = [v for v in w.variables if _is_inexact(v)]
    if zero and floats and w.chance(0.8):
        first = len([x for x in w.arguments if _is_inexact(x)])
        for i, v in enumerate(floats):
            lines.append(f"    {v.name}.assign_sub(0.1 * tf.tanh(g[{first + i}]))")
    if w.chance(0.4):
        lines.append("    keep_out = {'loss': loss, 'g': g}")
        lines.append("    return keep_out")
    else:
        lines.append("    return y, loss, g")
    w.setup.append("\n".join(lines))


def _assign(w: Writer, arguments: list[Value]) -> None:
    """Assigns new values to the arguments."""
    for x in arguments:
        w.setup.append(f"{x.name} = {w.random_tensor_expression(x.shape, x.dtype)}")


def _between_calls(w: Writer) -> None:
    if w.variables and w.chance(0.3):
        v = w.rng.choice(w.variables)
        w.setup.append(f"{v.name}.assign({w.random_tensor_expression(v.shape, v.dtype)})")


def _resize_arguments(w: Writer) -> list[Value]:
    """Returns the arguments with another size of the first axis of the largest."""
    shape = max((x.shape for x in w.arguments), key=len)
    if not shape:
        return [x._replace(shape=(2,)) for x in w.arguments]
    n, rank = shape[0], len(shape)

    def resize(x: Value) -> Value:
        if x.rank < rank or x.shape[0] != n:
            return x
        return x._replace(shape=(n + 1, *x.shape[1:]))

    return [resize(x) for x in w.arguments]


def _plain(w: Writer, callee: str, arguments: list[Value]) -> None:
    _assign(w, arguments)
    w.setup.append(f"keep('y', {callee}({_names(w)}))")


def _first_order(w: Writer, callee: str, arguments: list[Value]) -> None:
    _assign(w, arguments)
    first = arguments[0].name
    outside = f" + total(tf.sin({first}))" if _is_inexact(arguments[0]) and w.chance(0.3) else ""
    zero = f", {_ZERO}" if w.chance(0.3) else ""
    w.setup.append(
        f"with tf.GradientTape() as tape:\n"
        f"    tape.watch({_watched_names(w)})\n"
        f"    y = {callee}({_names(w)})\n"
        f"    loss = total(y){outside}\n"
        f"keep('y', y)\n"
        f"keep('gradient', tape.gradient(loss, {_sources(w)}{zero}))"
    )


def _second_order(w: Writer, callee: str, arguments: list[Value]) -> None:
    _assign(w, arguments)
    w.setup.append(
        f"with tf.GradientTape() as outer:\n"
        f"    outer.watch({_watched_names(w)})\n"
        f"    with tf.GradientTape() as inner:\n"
        f"        inner.watch({_watched_names(w)})\n"
        f"        loss = total({callee}({_names(w)}))\n"
        f"    g = inner.gradient(loss, {_sources(w)}, {_ZERO})\n"
        f"    again = total([tf.sin(a) for a in g])\n"
        f"keep('gradient', g)\n"
        f"keep('second gradient', outer.gradient(again, {_sources(w)}))"
    )


def _persistent_tape(w: Writer, callee: str, arguments: list[Value]) -> None:
    _assign(w, arguments)
    w.setup.append(
        f"with tf.GradientTape(persistent=True) as tape:\n"
        f"    tape.watch({_watched_names(w)})\n"
        f"    loss = total({callee}({_names(w)}))\n"
        f"    other = loss * loss\n"
        f"keep('gradient', tape.gradient(loss, {_sources(w)}))\n"
        f"keep('gradient of the square', tape.gradient(other, {_sources(w)}))\n"
        f"del tape"
    )


def _forward(w: Writer, callee: str, arguments: list[Value]) -> None:
    _assign(w, arguments)
    floats = [x for x in arguments if x.dtype.startswith(("float", "bfloat"))]
    tangents = ", ".join(f"tf.cos({x.name})" for x in floats)
    primals = ", ".join(x.name for x in floats)
    w.setup.append(
        f"with tf.autodiff.ForwardAccumulator([{primals}], [{tangents}]) as accumulator:\n"
        f"    y = {callee}({_names(w)})\n"
        f"    loss = total(y)\n"
        f"keep('y', y)\n"
        f"keep('jvp', accumulator.jvp(loss))"
    )


def _weighted_targets(w: Writer, callee: str, arguments: list[Value]) -> None:
    """Generates several targets with upstream gradients, and none for one of them."""
    _assign(w, arguments)
    w.setup.append(
        f"with tf.GradientTape(watch_accessed_variables=False) as tape:\n"
        f"    tape.watch({_watched_names(w)})\n"
        f"    tape.watch([{', '.join(v.name for v in w.variables[:1] if _is_inexact(v))}])\n"
        f"    y = tf.nest.flatten({callee}({_names(w)}))\n"
        f"    y = [a for a in y if a.dtype.is_floating]\n"
        f"    y.append(tf.constant(1.0))\n"
        f"weights = [tf.cos(a) for a in y]\n"
        f"keep('gradient', tape.gradient(y, {_sources(w)}, output_gradients=weights))"
    )


def _inside_and_outside(w: Writer, callee: str, arguments: list[Value]) -> None:
    """Generates a function that differentiates the function, under a tape."""
    if "def outer_step" not in "\n".join(w.setup):
        w.setup.append(
            f"@function\n"
            f"def outer_step({_names(w)}):\n"
            f"    with tf.GradientTape() as tape:\n"
            f"        tape.watch({_watched_names(w)})\n"
            f"        loss = total({callee}({_names(w)}))\n"
            f"    return tape.gradient(loss, {_sources(w)}, {_ZERO})"
        )
    _assign(w, arguments)
    w.setup.append(
        f"with tf.GradientTape() as tape:\n"
        f"    tape.watch({_watched_names(w)})\n"
        f"    g = outer_step({_names(w)})\n"
        f"    again = total([tf.sin(a) for a in g])\n"
        f"keep('gradient', g)\n"
        f"keep('second gradient', tape.gradient(again, {_sources(w)}))"
    )


def _calls_python(w: Writer) -> bool:
    """Returns whether Jacobians raise an error, because Python code has no batch rule."""
    return any("py_function" in lines for lines in w.body)


def _hessian(w: Writer, callee: str, arguments: list[Value]) -> None:
    x = arguments[0]
    if x.size > 8 or not _is_inexact(x) or _calls_python(w):
        return
    _assign(w, arguments)
    w.setup.append(
        f"with tf.GradientTape() as outer:\n"
        f"    outer.watch({x.name})\n"
        f"    with tf.GradientTape() as inner:\n"
        f"        inner.watch({x.name})\n"
        f"        loss = total({callee}({_names(w)}))\n"
        f"    g = inner.gradient(loss, {x.name}, {_ZERO})\n"
        f"keep('hessian', outer.jacobian(g, {x.name}))"
    )


def _jacobian(w: Writer, callee: str, arguments: list[Value]) -> None:
    x = arguments[0]
    if x.size > 12 or _calls_python(w):
        return
    _assign(w, arguments)
    w.setup.append(
        f"with tf.GradientTape() as tape:\n"
        f"    tape.watch({_watched_names(w)})\n"
        f"    y = tf.nest.flatten({callee}({_names(w)}))[-1]\n"
        f"    y = tf.reshape(tf.cast(y, tf.float64), [-1])[:9]\n"
        f"keep('jacobian', tape.jacobian(y, {x.name}))"
    )


_PARTS = (
    _plain,
    _first_order,
    _first_order,
    _second_order,
    _persistent_tape,
    _forward,
    _jacobian,
    _weighted_targets,
    _inside_and_outside,
    _hessian,
)
