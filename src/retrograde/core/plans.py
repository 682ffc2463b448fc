"""Plans: which values a tape saves for a call, and how the backward pass runs its rules.

Both happen for every call, so they are generated as straight-line code, once for each
combination of values that the rules read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from retrograde.core.rules import (
    ARRAY,
    NOTHING,
    SHAPE,
    UNREAD,
    Rule,
    Spec,
    identity_rule,
    values_read,
)
from retrograde.core.tensor import Tensor
from retrograde.values.source import SourceWriter, literal, numbered

ON_ARRAYS, ON_TENSORS = range(2)  # whether a backward pass runs rules on arrays or on tensors


@dataclass(slots=True, eq=False)
class Plan:
    """A tape's plan for calls of a primitive with one combination of connected inputs.

    `save((y, *inputs))` returns the values that the rules read. `rules` pairs the position of each
    connected input with its rule, or `joint` is one rule for all inputs that are `connected`.
    `user_code` says that users wrote the rule, as in `custom_gradient`, so it runs on tensors.
    `name` is the name of the call, and `primitive` is `None` for a custom gradient. With
    `takes_none`, the joint rule accepts `None` as the cotangent of an unused output. Other rules
    get zeros.

    `pull[ON_ARRAYS](cotangents, needed, g, ids, saved, attrs)` runs the rules of the inputs in
    `needed` on raw arrays and adds the results to `cotangents`; `pull[ON_TENSORS]` runs them on
    tensors. `passes_rows` says that y is its one input, so that IndexedSlices pass unchanged.
    """

    save: Callable[[tuple], tuple]
    rules: tuple[tuple[int, Rule], ...]
    joint: Rule | None = None
    connected: tuple[bool, ...] = ()
    user_code: bool = False
    name: str = ""
    primitive: Any = None
    pull: tuple[Callable, ...] | None = None
    passes_rows: bool = False
    takes_none: bool = False

    def __post_init__(self) -> None:
        if self.pull is None:
            pull: Callable = _pull_user_code if self.user_code else _pull_joint
            one = partial(pull, self.joint, self.connected)
            self.pull = (one, one if self.user_code else partial(one, on_tensors=True))


def plan_for(
    rules: tuple, joint: Rule | None, connected: tuple[bool, ...], primitive: Any = None
) -> Plan | None:
    """Returns the plan for a call with these inputs connected; `None` if no gradient flows."""
    name = "" if primitive is None else primitive.name
    if joint is not None:
        reads = tuple(values_read(joint, len(connected), skip=2))
        return Plan(saver(reads), (), joint, connected, False, name, primitive)
    pairs = zip(rules, connected, strict=True)
    selected = tuple(
        (i, rule) for i, (rule, is_connected) in enumerate(pairs) if is_connected and rule
    )
    if not selected:
        return None
    each = [values_read(rule, len(connected), skip=1) for _, rule in selected]
    reads = tuple([max(column) for column in zip(*each, strict=True)])
    flow = tuple([(i, rule is identity_rule) for i, rule in selected])
    pull = [_write_pull(reads, flow, raw)(*[rule for _, rule in selected]) for raw in (True, False)]
    passes_rows = rules == (identity_rule,)
    return Plan(saver(reads), selected, None, (), False, name, primitive, tuple(pull), passes_rows)


def _pull_joint(
    rule: Rule,
    connected: tuple[bool, ...],
    cotangents: Any,
    needed: set[int] | None,
    g: Any,
    ids: tuple,
    saved: tuple,
    attrs: dict,
    on_tensors: bool = False,
) -> None:
    """Runs one rule for all inputs of a call."""
    values = saved if on_tensors else [x._array for x in saved]
    results = rule(_mark_needed(connected, ids, needed), g, *values, **attrs)
    for i, result in zip(ids, results, strict=True):
        cotangents.add(i, result)


def _pull_user_code(
    rule: Rule,
    connected: tuple[bool, ...],
    cotangents: Any,
    needed: set[int] | None,
    g: Any,
    ids: tuple,
    saved: tuple,
    attrs: dict,
) -> None:
    """Runs a rule that users wrote, on tensors."""
    if not cotangents.on_tensors:
        g = tuple([x if x is None else Tensor(x) for x in g]) if type(g) is tuple else Tensor(g)
    results = rule(_mark_needed(connected, ids, needed), g, *saved, **attrs)
    cotangents.deposit_results(ids, results)


def _mark_needed(
    connected: tuple[bool, ...], ids: tuple, needed: set[int] | None
) -> tuple[bool, ...]:
    """Returns for each input of a call whether its cotangent is needed."""
    if needed is None:
        return connected
    return tuple([c and i in needed for c, i in zip(connected, ids, strict=True)])


_SAVED = {
    UNREAD: "nothing",
    SHAPE: "make(Spec, ({0}._spec.shape, {0}._spec.dtype))",
    ARRAY: "{0}",
}
_ARRAY_OF = {SHAPE: "{0} = {0} if type({0}) is Spec else {0}._array", ARRAY: "{0} = {0}._array"}


def _values(count: int) -> list[str]:
    return ["y", *[numbered("x", i) for i in range(count - 1)]]


@cache
def saver(reads: tuple[int, ...]) -> Callable[[tuple], tuple]:
    """Returns a function of `(y, *inputs)` that selects the values that are read."""
    names = _values(len(reads))
    saved = [_SAVED[read].format(name) for name, read in zip(names, reads, strict=True)]
    writer = SourceWriter(nothing=NOTHING, make=tuple.__new__, Spec=Spec)
    writer.write("def save(values):")
    writer.write(f"{', '.join(names)}, = values", f"return {', '.join(saved)},", depth=1)
    return writer.define("save", "plan")


def save_nothing(_: tuple) -> tuple:
    """Returns no values, for rules that hold what they read."""
    return ()


@cache
def _write_pull(
    reads: tuple[int, ...], flow: tuple[tuple[int, bool], ...], raw: bool
) -> Callable[..., Callable]:
    """Returns a function from rules to `Plan.pull`. `flow` marks the rules that return g itself."""
    names = _values(len(reads))
    passed = list(names)
    rules = [numbered("rule", n) for n in range(len(flow))]
    writer = SourceWriter(Spec=Spec)
    writer.write(f"def make({', '.join(rules)}):")
    writer.write("def pull(cotangents, needed, g, ids, saved, attrs):", depth=1)
    writer.write(f"{', '.join(names)}, = saved", depth=2)
    if raw:
        pairs = list(zip(names, reads, strict=True))
        writer.write(*[_ARRAY_OF[r].format(n) for n, r in pairs if r != UNREAD], depth=2)
        passed = ["None" if read == UNREAD else name for name, read in pairs]
    for rule, (position, passes) in zip(rules, flow, strict=True):
        call = f"{rule}(g, {', '.join(passed)}"
        result = "g" if passes else f"{call}, **attrs) if attrs else {call})"
        writer.write(f"key = ids[{literal(position)}]", depth=2)
        writer.write("if needed is None or key in needed:", depth=2)
        writer.write(f"result = {result}", "if key in cotangents:", depth=3)
        writer.write("cotangents.add(key, result)", depth=4)
        writer.write("else:", depth=3)
        writer.write("cotangents[key] = result", depth=4)
    writer.write("return pull", depth=1)
    return writer.define("make", "plan")
