"""The primitives that `core` itself applies. `ops` defines them and registers them here."""

from __future__ import annotations

from retrograde.core.apply import Primitive

add: Primitive
broadcast_to: Primitive
cast_discrete: Primitive
concat: Primitive
identity: Primitive
scatter_add: Primitive
subtract: Primitive
sum_to: Primitive
zeros_like: Primitive
