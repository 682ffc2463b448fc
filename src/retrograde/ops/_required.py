"""Registers the primitives that `core` uses."""

from retrograde.core import required
from retrograde.ops import arithmetic, casting, indexing, shaping

required.add = arithmetic.add
required.broadcast_to = shaping.broadcast_to
required.cast_discrete = casting.cast_discrete
required.concat = shaping.concat
required.identity = casting.identity
required.scatter_add = indexing.scatter_add
required.subtract = arithmetic.subtract
required.sum_to = shaping.sum_to
required.zeros_like = casting.zeros_like
