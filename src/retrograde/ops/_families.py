"""What primitives of one kind have in common: broadcasting, conjugates, axes, batch rules."""

from __future__ import annotations

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.core.rules import ARRAY, SHAPE, UNREAD, identity_rule, values_read
from retrograde.fusion import blocks
from retrograde.fusion.lazy_calls import may_wait
from retrograde.fusion.output_arguments import COSTLY, on_many
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
    complain=None,
    writes=None,
):
    """A primitive that works element by element and broadcasts its inputs against each other.

    `partials`, one for each input, are `lambda g, y, *inputs: g * dy/dx`, or `None` where no
    gradient flows. They never meet a broadcast, which is undone here; an underscored parameter
    is nothing at all. They are written as for real numbers: if the primitive is `holomorphic`, the
    conjugates of TensorFlow's convention are put in here. `costly` work on large arrays is done
    block by block, that of the partials too unless a `cheap_rule` is made of a few calls. `writes`
    says that the kernel can write into an array, as ufuncs can.
    """
    num_inputs = len(partials)
    rules = tuple(_rule(p, num_inputs, holomorphic, costly and not cheap_rule) for p in partials)

    def batch(batched, *xs, **attrs):
        return primitive(*aligned(batched, xs), **attrs)

    primitive = Primitive(
        name,
        kernel,
        vjps=tuple(_summed(rule, i, num_inputs) for i, rule in enumerate(rules)),
        partials=rules,
        batch=batch,
        accepts=accepts,
        linear=linear,
        complain=complain,
    )
    primitive.writes = writes
    if costly:
        COSTLY.add(primitive)
    primitive.on_many = on_many(primitive)
    if writes or isinstance(primitive.on_numpy, np.ufunc):
        may_wait(primitive)
    return primitive


def _rule(partial, num_inputs, holomorphic, costly):
    """The partial, with conjugates and blocks as the family needs them."""
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
        if type(g) is np.ndarray and g.size >= blocks.LARGE:
            return blocks.run_in_blocks(conjugated, (g, *values), attrs)
        return conjugated(g, *values, **attrs)

    # The usual cases, with nothing to pack and unpack.

    def conjugated_function(g, y, x):
        if g.dtype.kind == "c":
            return conj(partial(conj(g), y, x))
        return partial(g, y, x)

    def blocked_function(g, y, x):
        if type(g) is np.ndarray and g.size >= blocks.LARGE:
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


def _summed(rule, position, num_inputs):
    """The rule for one input, its result summed to the shape that the input had."""
    if rule is None or num_inputs == 1:
        return rule

    def summed(g, *values, **attrs):
        shape = values[1 + position].shape
        result = g if rule is identity_rule else rule(g, *values, **attrs)
        return result if result.shape == shape else sum_to(result, shape=tuple(shape))

    summed.reads = [UNREAD] * (1 + num_inputs) if rule is identity_rule else list(rule.reads)
    summed.reads[1 + position] = max(SHAPE, summed.reads[1 + position])
    return summed


def aligned(batched, xs):
    """`xs`, of which some have a batch axis, so that their axes broadcast against each other."""
    ndim = max(x.ndim - b for x, b in zip(xs, batched, strict=True))
    return [align(x, ndim) if b else x for x, b in zip(xs, batched, strict=True)]


conjugate = elementwise(
    "conjugate", "conjugate", lambda g, _y, _x: conj(g), holomorphic=False, linear=True
)


def conj(x):
    """The complex conjugate; of real numbers, they themselves."""
    return conjugate(x) if x.dtype.kind == "c" else x


def reduction(name, kernel, rule, *, accepts=dtypes.NUMERIC, linear=False):
    """A primitive `(x, *, axis, keepdims)` that reduces a tuple of axes.

    `rule` is a vjp rule as for any primitive; `spread` brings g to the shape of x.
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


def kept(g, x, axis, keepdims):
    """`g`, the cotangent of a reduction of `x`, with the reduced axes put back as ones."""
    if keepdims:
        return g
    return reshape(g, shape=tuple(1 if i in axis else n for i, n in enumerate(x.shape)))


def spread(g, x, axis, keepdims):
    """`g`, the cotangent of a reduction of `x`, repeated over the axes that were reduced."""
    if len(axis) == x.ndim:  # one number, for all of x
        return broadcast_to(g, shape=tuple(x.shape))
    return broadcast_to(kept(g, x, axis, keepdims), shape=tuple(x.shape))
