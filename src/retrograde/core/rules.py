"""What a rule reads, and so what a tape keeps."""

from __future__ import annotations

import operator
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
    """The shape and dtype of an array that the tape let go, or of one yet to come."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def _array(self) -> Spec:
        """Itself, so that what a tape saved can be unwrapped in one sweep."""
        return self

    @classmethod
    def of(cls, value: Any) -> Spec:
        """The Spec of a Tensor or of an array."""
        array = getattr(value, "_array", value)
        return cls(array.shape, array.dtype)


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


class Plan(NamedTuple):
    """What a tape does with calls whose inputs are connected to it in one certain way.

    `save((NOTHING, y, *inputs))` picks what the rules read. `rules` pairs the position of an
    input with its rule; or `joint` is one rule for all inputs that are `connected`. `user_code`
    says that the rule is not ours, as in `custom_gradient`, and has to be given Tensors. `name` is
    that of the primitive.
    """

    save: Callable
    rules: tuple[tuple[int, Rule], ...]
    joint: Rule | None = None
    connected: tuple[bool, ...] = ()
    user_code: bool = False
    name: str = ""


def plan_for(rules: tuple, joint: Rule | None, connected: tuple[bool, ...]) -> Plan | None:
    """The plan for a call with these inputs connected; `None` if no gradient flows to them."""
    if joint is not None:
        return Plan(saver(what_is_read(joint, len(connected), skip=2)), (), joint, connected)
    pairs = zip(rules, connected, strict=True)
    chosen = tuple((i, rule) for i, (rule, wanted) in enumerate(pairs) if wanted and rule)
    if not chosen:
        return None
    reads = [what_is_read(rule, len(connected), skip=1) for _, rule in chosen]
    return Plan(saver([max(column) for column in zip(*reads, strict=True)]), chosen)


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


_PICKS = {UNREAD: "v[0]", SHAPE: "spec_of(v[{}]._array)", ARRAY: "v[{}]"}


def saver(reads: list[int]) -> Callable[[tuple], tuple]:
    """A function that picks from `(NOTHING, y, *inputs)` what is read."""
    if SHAPE not in reads:
        return operator.itemgetter(*(i if read else 0 for i, read in enumerate(reads, 1)))
    # Written out, since it is done for every call that a tape writes down.
    parts = [f"{_PICKS[read].format(i)}, " for i, read in enumerate(reads, 1)]
    return eval(f"lambda v: ({''.join(parts)})", {"spec_of": _spec_of})


def save_all(plan: Plan, values: tuple) -> tuple:
    """What `plan.save` picks and all besides, for a tape that is to be asked about it."""
    return plan.save(values) if plan.user_code else values[1:]


_make = tuple.__new__


def _spec_of(array: Any) -> Spec:
    return _make(Spec, (array.shape, array.dtype))
