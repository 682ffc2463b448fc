"""What a rule reads, and so what a tape keeps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Rule = Callable[..., Any]

UNREAD, SHAPE, ARRAY = range(3)  # how much of a value a rule reads
UNCONNECTED, CONNECTED, ALIGNED = range(3)  # how an input stands: aligned if it is not broadcast


def passed_on(g: Any, _y: Any, *_inputs: Any) -> Any:
    """The rule of an input that y follows one to one."""
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
        """Itself, so that what a tape saved can be unwrapped in one sweep."""
        return self

    @property
    def _spec(self) -> Spec:
        """Itself, as a tensor has a spec."""
        return self

    @classmethod
    def of(cls, value: Any) -> Spec:
        """The Spec of a Tensor or of an array."""
        spec = getattr(value, "_spec", value)
        return cls(spec.shape, spec.dtype)


class Outputs(tuple):
    """The outputs of one call that has several, for a rule that reads them."""

    __slots__ = ()

    @property
    def _array(self) -> tuple:
        """Their arrays, so that what a tape saved can be unwrapped in one sweep."""
        return tuple([y._array for y in self])


class _Nothing:
    """Stands in place of a value of which a rule reads nothing, not even the shape."""

    _array = None


NOTHING = _Nothing()


def what_is_read(rule: Rule, num_inputs: int, skip: int) -> list[int]:
    """How much of y and of each input `rule` reads: by the names of its parameters.

    A rule that wraps another says so itself, in an attribute `reads`.
    """
    if rule is passed_on:
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
    """Of y nothing is left to read but the array: its shape and dtype are those of g."""
    if not name.startswith("_"):
        return ARRAY
    return UNREAD if name == "_y" else SHAPE
