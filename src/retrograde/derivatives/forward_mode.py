"""Forward mode, derived from the rules of reverse mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrograde.core import indexed_slices, required
from retrograde.core.apply import Primitive
from retrograde.core.plans import Plan
from retrograde.core.rules import ALIGNED
from retrograde.core.tape import GradientTape
from retrograde.core.tensor import Tensor
from retrograde.values import dtypes


def push_forward(
    primitive: Primitive, inputs: tuple, attrs: dict, y: Any, tangents: Sequence[Tensor | None]
) -> Any:
    """Returns the tangent of `y`, the result of `primitive`, given the `tangents` of `inputs`.

    A tangent of `None` means zero. The result is a tangent of `y`, a tuple of tangents if `y` is a
    tuple, or `None` if no gradient flows. All computations are primitives on tensors, so recorders
    observe them and they can be differentiated.

    A linear primitive is its own derivative. The Jacobian of an elementwise primitive is diagonal,
    so its partials work in both directions. Other vjp rules, which are linear in their cotangent,
    are transposed by differentiating them.
    """
    connected = tuple([t is not None for t in tangents])
    if not any(connected):
        return None
    if primitive.linear and all(connected):
        return primitive(*tangents, **attrs)
    if primitive.partials is not None and _is_real(y, *inputs):
        return _push_by_partials(
            primitive.plan(tuple([ALIGNED * c for c in connected])), inputs, attrs, y, tangents
        )
    if primitive.linear:
        return primitive(*map(_tangent_or_zeros, tangents, inputs), **attrs)
    return _push_by_transposing(primitive.plan(connected), inputs, attrs, y, tangents)


def _is_real(*tensors: Tensor) -> bool:
    """Returns whether all are real. Partials of complex functions may not be multiplications."""
    return all(x._spec.dtype.kind != "c" for x in tensors)


def _tangent_or_zeros(tangent: Tensor | None, x: Tensor) -> Tensor:
    return _zeros_like(x) if tangent is None else tangent


def _zeros_like(x: Tensor) -> Tensor:
    return required.zeros_like(x)


def _push_by_partials(
    plan: Plan | bool, inputs: tuple, attrs: dict, y: Tensor, tangents: Sequence
) -> Tensor | None:
    if not plan:
        return None
    saved = plan.save((y, *inputs))
    shape = y._spec.shape
    total = None
    for position, rule in plan.rules:
        t = tangents[position]
        if t._spec.shape != shape:
            t = required.broadcast_to(t, shape=shape)
        part = rule(t, *saved, **attrs)
        total = part if total is None else total + part
    return total


def _push_by_transposing(
    plan: Plan | bool, inputs: tuple, attrs: dict, y: Any, tangents: Sequence
) -> Any:
    """Pulls back a cotangent under a tape, then differentiates the result with the tangents.

    Complex numbers need no conjugates: TensorFlow's gradient is the adjoint with respect to the
    real and imaginary parts, and the adjoint of the adjoint is the derivative.
    """
    if not plan:
        return None
    multiple_outputs = isinstance(y, tuple)
    cotangents = [_zeros_like(output) for output in (y if multiple_outputs else (y,))]
    saved = plan.save((y, *inputs))
    with GradientTape(watch_accessed_variables=False) as tape:
        tape.watch([g for g in cotangents if g._spec.dtype in dtypes.INEXACT])
        pulled = _pull_back(
            plan, tuple(cotangents) if multiple_outputs else cotangents[0], saved, attrs
        )
    pairs = [(x, tangents[i]) for i, x in pulled if x is not None and tangents[i] is not None]
    output_tangents = tape.gradient([x for x, _ in pairs], cotangents, [t for _, t in pairs])
    output_tangents = list(map(indexed_slices.as_dense, output_tangents))
    if all(t is None for t in output_tangents):
        return None
    return tuple(output_tangents) if multiple_outputs else output_tangents[0]


def _pull_back(plan: Plan, g: Any, saved: tuple, attrs: dict) -> list[tuple[int, Tensor | None]]:
    """Returns the cotangents of the inputs as tensors, by position."""
    if plan.joint is not None:
        results = list(enumerate(plan.joint(plan.connected, g, *saved, **attrs)))
    else:
        results = [(i, rule(g, *saved, **attrs)) for i, rule in plan.rules]
    return [(i, indexed_slices.as_dense(x)) for i, x in results]
