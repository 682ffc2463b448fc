"""Which values a rule reads. A tape keeps these values and frees the others."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Rule = Callable[..., Any]

UNREAD, SHAPE, ARRAY = range(3)  # how much of a value a rule reads
# Whether a watched tensor leads to an input. `ALIGNED` is connected and not broadcast.
UNCONNECTED, CONNECTED, ALIGNED = range(3)


def identity_rule(g: Any, _y: Any, *_inputs: Any) -> Any:
    """Returns `g`: the rule of an input with an identity Jacobian."""
    return g


class Spec(NamedTuple):
    """The shape and dtype of an array that the tape freed, or that does not exist yet."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def _array(self) -> Spec:
        """The spec itself, so that the saved values of a call are all unwrapped in the same way."""
        return self

    @property
    def _spec(self) -> Spec:
        """Itself, as a tensor has a spec."""
        return self

    @classmethod
    def of(cls, value: Any) -> Spec:
        """Returns the spec of a tensor or an array."""
        spec = getattr(value, "_spec", value)
        return cls(spec.shape, spec.dtype)


class Outputs(tuple):
    """The outputs of a call with several outputs, for a rule that reads them."""

    __slots__ = ()

    @property
    def _array(self) -> tuple:
        """The arrays, so that the saved values of a call are all unwrapped in the same way."""
        return tuple([y._array for y in self])


class _Nothing:
    """A placeholder for a value that no rule reads."""

    _array = None


NOTHING = _Nothing()


def values_read(rule: Rule, num_inputs: int, skip: int) -> list[int]:
    """Returns how much of y and of each input `rule` reads, from the names of its parameters.

    A rule that wraps another rule has an attribute `reads` instead.
    """
    if rule is identity_rule:
        return [UNREAD] * (1 + num_inputs)
    if hasattr(rule, "reads"):
        return rule.reads
    code = rule.__code__
    names = list(code.co_varnames[skip : code.co_argcount])
    if code.co_flags & 0x04:  # the rule ends in *inputs
        star = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
        names += [star] * (1 + num_inputs - len(names))
    if len(names) != 1 + num_inputs:
        raise TypeError(
            f"The rule at {code.co_filename}:{code.co_firstlineno} takes {names} after its "
            f"cotangent. Expected y and {num_inputs} inputs."
        )
    return [_read_of(name) for name in names]


def _read_of(name: str) -> int:
    # y has the shape and dtype of g, so `_y` reads nothing.
    if not name.startswith("_"):
        return ARRAY
    return UNREAD if name == "_y" else SHAPE
