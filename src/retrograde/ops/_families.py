"""Families of primitives that share broadcasting, conjugation, axes and batch rules."""

from __future__ import annotations

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.core.rules import ARRAY, SHAPE, UNREAD, identity_rule, values_read
from retrograde.fusion import blocks
from retrograde.fusion.lazy_calls import allow_lazy
from retrograde.fusion.output_arguments import COSTLY, large_array_kernel
from retrograde.ops.shaping import align, broadcast_to, reshape, sum_to
from retrograde.values import dtypes


def elementwise(
    name,
    kernel,
    *partials,
    accepts=dtypes.NUMERIC,
    holomorphic=True,
    costly=False,
    cheap_rule=False,
    linear=False,
    error_message=None,
    writes=None,
):
    """Creates an elementwise primitive, whose inputs broadcast against each other.

    `partials`, one for each input, are `lambda g, y, *inputs: g * dy/dx`, or `None` if no gradient
    flows. Broadcasting is undone here, so partials need not sum over broadcast axes. An underscored
    parameter is not used. Partials are written as for real numbers: if the primitive is
    `holomorphic`, the conjugates of TensorFlow's convention are added here. `costly` kernels run
    block by block on large arrays. So do their partials, unless `cheap_rule` says that they consist
    of a few calls. `writes` is given if the kernel accepts `out`, as ufuncs do.
    """
    num_inputs = len(partials)
    rules = tuple(
        _make_rule(p, num_inputs, holomorphic, costly and not cheap_rule) for p in partials
    )

    def batch(batched, *xs, **attrs):
        return primitive(*align_batched(batched, xs), **attrs)

    primitive = Primitive(
        name,
        kernel,
        vjps=tuple(_summing_rule(rule, i, num_inputs) for i, rule in enumerate(rules)),
        partials=rules,
        batch=batch,
        accepts=accepts,
        linear=linear,
        error_message=error_message,
    )
    primitive.writes = writes
    if costly:
        COSTLY.add(primitive)
    primitive.on_many = large_array_kernel(primitive)
    if writes or isinstance(primitive.on_numpy, np.ufunc):
        allow_lazy(primitive)
    return primitive


def _make_rule(partial, num_inputs, holomorphic, costly):
    """Returns a rule that conjugates and runs `partial` in blocks as the family requires."""
    if partial is None or partial is identity_rule:
        return partial
    reads = [
        ARRAY if read == ARRAY else UNREAD for read in values_read(partial, num_inputs, skip=1)
    ]

    def conjugated(g, *values, **attrs):
        if g.dtype.kind == "c":
            return conj(partial(conj(g), *values, **attrs))
        return partial(g, *values, **attrs)

    def blocked(g, *values, **attrs):
        if type(g) is np.ndarray and g.size >= blocks.MIN_THREADED_SIZE_IF_COSTLY:
            return blocks.run_in_blocks(conjugated, (g, *values), attrs)
        return conjugated(g, *values, **attrs)

    # The common cases, without the cost of packing arguments.

    def conjugated_function(g, y, x):
        if g.dtype.kind == "c":
            return conj(partial(conj(g), y, x))
        return partial(g, y, x)

    def blocked_function(g, y, x):
        if type(g) is np.ndarray and g.size >= blocks.MIN_THREADED_SIZE_IF_COSTLY:
            return blocks.run_in_blocks(conjugated, (g, y, x), {})
        return conjugated_function(g, y, x)

    def conjugated_operator(g, y, x1, x2):
        if g.dtype.kind == "c":
            return conj(partial(conj(g), y, x1, x2))
        return partial(g, y, x1, x2)

    rule = blocked if costly else conjugated if holomorphic else partial
    if not _has_attrs(partial):
        unpacked = {
            (conjugated, 1): conjugated_function,
            (blocked, 1): blocked_function,
            (conjugated, 2): conjugated_operator,
        }
        rule = unpacked.get((rule, num_inputs), rule)
    rule.reads = reads
    return rule


def _has_attrs(partial):
    code = partial.__code__
    return bool(code.co_kwonlyargcount or code.co_flags & 0x08)


def _summing_rule(rule, position, num_inputs):
    """Returns the rule for one input, with its result summed to the shape of that input."""
    if rule is None or num_inputs == 1:
        return rule

    def summed(g, *values, **attrs):
        shape = values[1 + position].shape
        result = g if rule is identity_rule else rule(g, *values, **attrs)
        return result if result.shape == shape else sum_to(result, shape=tuple(shape))

    summed.reads = [UNREAD] * (1 + num_inputs) if rule is identity_rule else list(rule.reads)
    summed.reads[1 + position] = max(SHAPE, summed.reads[1 + position])
    return summed


def align_batched(batched, xs):
    """Reshapes the batched ones of `xs` so that the axes after the batch axis broadcast."""
    ndim = max(x.ndim - b for x, b in zip(xs, batched, strict=True))
    return [align(x, ndim) if b else x for x, b in zip(xs, batched, strict=True)]


conjugate = elementwise(
    "conjugate", "conjugate", lambda g, _y, _x: conj(g), holomorphic=False, linear=True
)


def conj(x):
    """Returns the complex conjugate; returns real `x` itself."""
    return conjugate(x) if x.dtype.kind == "c" else x


def reduction(name, kernel, rule, *, accepts=dtypes.NUMERIC, linear=False):
    """Creates a primitive `(x, *, axis, keepdims)` that reduces a tuple of axes.

    `rule` is its vjp rule, which can use `broadcast_cotangent`.
    """

    def batch(_, x, *, axis, keepdims):
        return primitive(x, axis=tuple(a + 1 for a in axis), keepdims=keepdims)

    primitive = Primitive(
        name,
        kernel,
        vjps=None if rule is None else (rule,),
        batch=batch,
        accepts=accepts,
        linear=linear,
    )
    return primitive


def restore_reduced_axes(g, x, axis, keepdims):
    """Reshapes `g`, the cotangent of a reduction of `x`, so that reduced axes have size 1."""
    if keepdims:
        return g
    return reshape(g, shape=tuple(1 if i in axis else n for i, n in enumerate(x.shape)))


def broadcast_cotangent(g, x, axis, keepdims):
    """Broadcasts `g`, the cotangent of a reduction of `x`, to the shape of `x`."""
    if len(axis) == x.ndim:  # g is one number
        return broadcast_to(g, shape=tuple(x.shape))
    return broadcast_to(restore_reduced_axes(g, x, axis, keepdims), shape=tuple(x.shape))
