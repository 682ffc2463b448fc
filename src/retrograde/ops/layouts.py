"""Layouts of values over the devices of a mesh, in programs that XLA compiles."""

from __future__ import annotations

import numpy as np

from retrograde.core.apply import Primitive


def _with_layout_kernel(xp, x, *, sharding):
    if xp is np or sharding is None:
        return x
    from jax import lax

    return lax.with_sharding_constraint(x, sharding)


# `sharding` is a `jax.sharding.Sharding` or `None`. Only programs that XLA compiles obey it.
with_layout = Primitive(
    "with_layout",
    _with_layout_kernel,
    vjps=(lambda g, _y, _x, *, sharding: with_layout(g, sharding=sharding),),
    batch=lambda _, x, **_attrs: x,
    linear=True,
)
