"""Tape methods for derivatives other than gradients."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from retrograde.core import indexed_slices
from retrograde.core.indexed_slices import IndexedSlices
from retrograde.core.tape import GradientTape
from retrograde.core.tape_arguments import (
    UnconnectedGradients,
    as_unconnected_gradients,
    flatten_arguments,
    output_gradients_per_target,
    seed,
    wrap_gradient,
)
from retrograde.core.tensor import Tensor
from retrograde.derivatives import jacobian as jacobians
from retrograde.derivatives import taylor
from retrograde.derivatives.jacobian import MEMORY_LIMIT
from retrograde.derivatives.per_example import gradients_by_row, norms
from retrograde.values import dtypes
from retrograde.values.arguments import expect, shown
from retrograde.values.conversion import source_of


def jacobian(
    self: GradientTape,
    target: Any,
    sources: Any,
    unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    parallel_iterations: int | None = None,
    experimental_use_pfor: bool = True,
    *,
    memory_limit: int = MEMORY_LIMIT,
) -> Any:
    """Computes the derivative of each element of `target` with respect to each of `sources`.

    The result for a source has the axes of the target followed by the axes of the source. It is
    computed in a single backward pass, or in several to stay within `memory_limit` bytes. Forward
    mode is used if there are far fewer sources than targets. `IndexedSlices` are treated as dense
    tensors. `experimental_use_pfor=False` computes row by row and requires a persistent tape.
    `parallel_iterations` is accepted and ignored.

    >>> x = tf.Variable([1.0, 2.0])
    >>> with tf.GradientTape() as tape:
    ...     y = x * x
    >>> tape.jacobian(y, x).numpy()
    array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    unconnected = as_unconnected_gradients(unconnected_gradients)
    slices = target if isinstance(target, IndexedSlices) else None
    target = _single(target if slices is None else slices.values, "jacobian", "target")
    flat_sources, pack = flatten_arguments(sources, "source")
    row_by_row = not experimental_use_pfor
    recorded = self._snapshot(sys._getframe(1), "jacobian", row_by_row)
    if target._spec.dtype not in dtypes.INEXACT:
        results = [None] * len(flat_sources)
    elif row_by_row and target._spec.size:
        results = jacobians.jacobian_by_loop(recorded, target, flat_sources)
    else:
        results = jacobians.jacobian(
            recorded, target, flat_sources, memory_limit, _unwatched_tape()
        )
    missing = [x for g, x in zip(results, flat_sources, strict=True) if g is None]
    if missing:
        unconnected = self._miss([target], missing, unconnected)
    shape = target._spec.shape
    results = [
        wrap_gradient(g, x, unconnected, shape) for g, x in zip(results, flat_sources, strict=True)
    ]
    if slices is not None:
        results = [g if g is None else indexed_slices.scatter_rows(g, slices) for g in results]
    return pack(results)


def batch_jacobian(
    self: GradientTape,
    target: Any,
    source: Any,
    unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    parallel_iterations: int | None = None,
    experimental_use_pfor: bool = True,
    *,
    memory_limit: int = MEMORY_LIMIT,
) -> Tensor:
    """Computes the Jacobian of each row of `target` with respect to the same row of `source`.

    Each row of the target must depend only on the same row of the source. A target that does not
    depend on the source gives zeros. The other arguments are the same as in `jacobian`.

    >>> x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * x
    >>> tape.batch_jacobian(y, x).numpy()[1]
    array([[6., 0.],
           [0., 8.]], dtype=float32)
    """
    as_unconnected_gradients(unconnected_gradients)
    target = _single(target, "batch_jacobian", "target")
    source = _single(source, "batch_jacobian", "source")
    shapes = target._spec.shape, source._spec.shape
    for role, shape in zip(("target", "source"), shapes, strict=True):
        if len(shape) < 2:
            raise ValueError(
                f"batch_jacobian: {role} must have rank at least 2 (the first axis is the batch "
                f"axis). Received: shape {shape}."
            )
    if shapes[0][0] != shapes[1][0]:
        raise ValueError(
            f"Need first dimension of target shape ({shapes[0]}) and source shape "
            f"({shapes[1]}) to match."
        )
    row_by_row = not experimental_use_pfor
    recorded = self._snapshot(sys._getframe(1), "batch_jacobian", row_by_row)
    result = None
    if target._spec.dtype in dtypes.INEXACT:
        limit = 1 if row_by_row else memory_limit
        result = jacobians.batch_jacobian(recorded, target, source, limit, _unwatched_tape())
    zero = UnconnectedGradients.ZERO
    return wrap_gradient(result, source, zero, shapes[0], shapes[1][1:])


def hessian(
    self: GradientTape, target: Any, sources: Any, *, memory_limit: int = MEMORY_LIMIT
) -> Any:
    """Computes the second derivatives of `target`, which must have one element.

    The result for a single source has the axes of the source twice. For a structure of sources, it
    is a structure of structures, with one entry for each pair. Unconnected sources give zeros.

    >>> x = tf.Variable([1.0, 2.0])
    >>> with tf.GradientTape() as tape:
    ...     y = x[0] ** 2 * x[1] ** 3
    >>> tape.hessian(y, x).numpy()
    array([[16., 24.],
           [24., 12.]], dtype=float32)
    """
    target = _scalar(_single(target, "hessian", "target"), "hessian")
    flat_sources, pack = flatten_arguments(sources, "source")
    tape = _continued(self, sys._getframe(1))
    rows = []
    for x, g in zip(
        flat_sources, jacobians.recorded_gradients(tape, target, flat_sources), strict=True
    ):
        if g is None:
            shape = x._spec.shape
            row = [wrap_gradient(None, y, UnconnectedGradients.ZERO, shape) for y in flat_sources]
        else:
            row = tape.jacobian(
                g, flat_sources, UnconnectedGradients.ZERO, memory_limit=memory_limit
            )
        rows.append(pack(row))
    return pack(rows)


def hvp(self: GradientTape, target: Any, sources: Any, vectors: Any) -> Any:
    """Computes the Hessian-vector product of `target` with `vectors`, one for each of `sources`.

    It takes about as long as two gradients, regardless of the size of the Hessian.

    >>> x = tf.Variable([1.0, 2.0])
    >>> with tf.GradientTape() as tape:
    ...     y = x[0] ** 2 * x[1] ** 3
    >>> tape.hvp(y, x, tf.constant([1.0, 0.0])).numpy()
    array([16., 24.], dtype=float32)
    """
    target = _scalar(_single(target, "hvp", "target"), "hvp")
    flat_sources, pack = flatten_arguments(sources, "source")
    weights = output_gradients_per_target(vectors, sources, len(flat_sources))
    tape = _continued(self, sys._getframe(1))
    first = jacobians.recorded_gradients(tape, target, flat_sources)
    pairs = [(g, w) for g, w in zip(first, weights, strict=True) if g is not None]
    products = tape.gradient(
        [g for g, _ in pairs], flat_sources, [w for _, w in pairs], UnconnectedGradients.ZERO
    )
    return pack(products)


def jvp(
    self: GradientTape,
    target: Any,
    sources: Any,
    tangents: Any,
    unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
) -> Any:
    """Computes the Jacobian-vector product of `target` for the given `tangents` of `sources`.

    It uses the recorded tape. The result has the structure of `target`.

    >>> x = tf.Variable([1.0, 2.0])
    >>> with tf.GradientTape() as tape:
    ...     y = x * x
    >>> tape.jvp(y, x, tf.constant([1.0, 10.0])).numpy()
    array([ 2., 40.], dtype=float32)
    """
    unconnected = as_unconnected_gradients(unconnected_gradients)
    targets, pack = flatten_arguments(target, "target")
    flat_sources, _ = flatten_arguments(sources, "source")
    weights = output_gradients_per_target(tangents, sources, len(flat_sources))
    recorded = self._snapshot(sys._getframe(1), "jvp")
    differentiable = [y for y in targets if y._spec.dtype in dtypes.INEXACT]
    zeros = [Tensor(np.zeros(y._spec.shape, y._spec.dtype)) for y in differentiable]
    with _unwatched_tape() as tape:
        tape.watch(zeros)
        pulled = jacobians.pull_back(
            recorded._replace(on_tensors=True), differentiable, zeros, flat_sources
        )
    pairs = [(g, seed(x, w, True)) for g, x, w in zip(pulled, flat_sources, weights, strict=True)]
    pairs = [(g, w) for g, w in pairs if g is not None]
    pushed = iter(tape.gradient([g for g, _ in pairs], zeros, [w for _, w in pairs]))
    target_tangents = [next(pushed) if y._spec.dtype in dtypes.INEXACT else None for y in targets]
    return pack(
        [wrap_gradient(t, y, unconnected) for t, y in zip(target_tangents, targets, strict=True)]
    )


def laplacian(
    self: GradientTape, target: Any, source: Any, *, memory_limit: int = MEMORY_LIMIT
) -> Tensor:
    """Computes the sum of the unmixed second derivatives of `target` with respect to `source`.

    For a batch of points, `source` has shape `[n, d]` and `target` has shape `[n]` or `[n, 1]`. The
    result has one value for each point, which must not depend on other points.

    >>> x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = tf.reduce_sum(x**3, axis=1)
    >>> tape.laplacian(y, x).numpy()
    array([18., 42.], dtype=float32)
    """
    target = _single(target, "laplacian", "target")
    source = _single(source, "laplacian", "source")
    shape, of_source = target._spec.shape, source._spec.shape
    if shape and not (shape[0] == target._spec.size and of_source[:1] == shape[:1]):
        raise ValueError(
            f"laplacian: expected one value for each row of the source, of shape {of_source}. "
            f"Received: a target of shape {shape}."
        )
    tape = _continued(self, sys._getframe(1))
    result = jacobians.laplacian(tape, target, source, memory_limit)
    return wrap_gradient(result, target, UnconnectedGradients.ZERO)


def derivatives(self: GradientTape, target: Any, orders: Mapping[str, Any]) -> dict[str, Tensor]:
    """Computes partial derivatives of any order, as differential equations need them.

    Each name in `orders` has one letter for each differentiation. Its value is the tensor to
    differentiate with respect to, or a tuple with one tensor for each letter. An element of the
    target must depend only on the same element of these tensors. Unconnected tensors give zeros.

    >>> t, x = tf.constant([[1.0], [2.0]]), tf.constant([[3.0], [5.0]])
    >>> with tf.GradientTape() as tape:
    ...     tape.watch([t, x])
    ...     u = t**2 * x**3
    >>> d = tape.derivatives(u, {"t": t, "xx": x, "tx": (t, x)})
    >>> {name: tf.squeeze(value).numpy().tolist() for name, value in d.items()}
    {'t': [54.0, 500.0], 'xx': [18.0, 120.0], 'tx': [54.0, 300.0]}
    """
    target = _single(target, "derivatives", "target")
    expect(orders, Mapping, "derivatives", "a dict of orders")
    paths = [_path(name, where) for name, where in orders.items()]
    tape = _continued(self, sys._getframe(1))
    partials = taylor.partials(tape, target, paths, _unwatched_tape)
    zero = UnconnectedGradients.ZERO
    pairs = zip(orders, partials, paths, strict=True)
    return {name: wrap_gradient(d, path[-1], zero) for name, d, path in pairs}


def per_example_gradient(self, target: Any, sources: Any, weights: Any, mode: bool | str) -> Any:
    """Computes per-example gradients, or with `mode` "norm" their norms."""
    target = _single(target, "gradient", "target")
    flat_sources, pack = flatten_arguments(sources, "source")
    shape = target._spec.shape
    if not shape or target._spec.size != shape[0] or target._spec.dtype not in dtypes.INEXACT:
        raise ValueError(
            "gradient: with `per_example`, the target must have one loss for each example. "
            f"Received: shape {shape}, dtype {target.dtype.name}."
        )
    if weights is not None or mode not in (True, "norm"):
        raise ValueError(
            "gradient: `per_example` must be True or 'norm', without `output_gradients`. "
            f"Received: {shown(mode)} and {shown(weights)}."
        )
    recorded = self._snapshot(sys._getframe(2), "gradient")
    gradients = gradients_by_row(recorded, target, flat_sources, MEMORY_LIMIT)
    if mode == "norm":
        return wrap_gradient(norms(gradients), target, UnconnectedGradients.ZERO)
    zero = UnconnectedGradients.ZERO
    return pack(
        [wrap_gradient(g, x, zero, shape[:1]) for g, x in zip(gradients, flat_sources, strict=True)]
    )


def _unwatched_tape() -> GradientTape:
    """Returns a tape that watches no variables automatically."""
    return GradientTape(watch_accessed_variables=False)


def _single(value: Any, method_name: str, role: str) -> Any:
    """Returns `value` as a single tensor or variable."""
    source = source_of(value)
    if source is None:
        raise TypeError(
            f"{method_name}() expects a single tensor or variable as the {role}. Received: "
            f"{shown(value)} of type {type(value).__name__!r}."
        )
    return source


def _scalar(target: Any, method_name: str) -> Any:
    """Returns `target` if it has one element."""
    if target._spec.size != 1:
        raise ValueError(
            f"{method_name}: the target must have one element. Received: shape "
            f"{target._spec.shape}. Use tf.reduce_sum first, or the jacobian of a gradient."
        )
    return target


def _path(name: str, where: Any) -> tuple:
    """Returns the tensors to differentiate with respect to for a name like "xx"."""
    sources = where if isinstance(where, (list, tuple)) else (where,) * len(name)
    if not name or len(sources) != len(name):
        raise ValueError(
            f"derivatives: {name!r} has {len(name)} letters. Received: {len(sources)} tensors. "
            "Expected one tensor for each letter, or a single one for all."
        )
    return tuple(_single(x, "derivatives", "source") for x in sources)


def _continued(self: GradientTape, frame: Any) -> GradientTape:
    """Returns a persistent tape that starts with the entries of this one."""
    self._check_not_used()
    lines = self._locations is not None
    tape = GradientTape(persistent=True, watch_accessed_variables=False, lines=lines)
    tape._connected, tape._roots = dict(self._connected), set(self._roots)
    entries = self._entries.copy() if self._persistent else self._use_up(frame)
    tape._entries = entries if self._ledger is None else list(entries)  # without the limit
    return tape
