"""What a tape does with a call: what it keeps, and how it pulls a cotangent back.

Both are done for every call of a program, so they are written out as straight code, once for each
pattern of what is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from retrograde.core.rules import ARRAY, NOTHING, SHAPE, UNREAD, Rule, Spec, passed_on, what_is_read
from retrograde.core.source import SourceWriter, literal, numbered


@dataclass(slots=True, eq=False)
class Plan:
    """What a tape does with calls whose inputs are connected to it in one certain way.

    `save((y, *inputs))` picks what the rules read. `rules` pairs the position of an input with its
    rule; or `joint` is one rule for all inputs that are `connected`. `user_code` says that the rule
    is not ours, as in `custom_gradient`, and has to be given Tensors. `name` is that of the
    primitive. With `takes_none`, the joint rule accepts `None` as the cotangent of an output that
    was not used; other rules get zeros.

    `pull(cotangents, leads, g, ids, saved, attrs)` runs the rules of the inputs in `leads` on raw
    arrays and adds the results to `cotangents`; `pull_boxed` does so with tensors. `passes_rows`
    says that y is its one input, so that IndexedSlices go on as they are.
    """

    save: Callable[[tuple], tuple]
    rules: tuple[tuple[int, Rule], ...]
    joint: Rule | None = None
    connected: tuple[bool, ...] = ()
    user_code: bool = False
    name: str = ""
    pull: Callable | None = None
    pull_boxed: Callable | None = None
    passes_rows: bool = False
    takes_none: bool = False


def plan_for(
    rules: tuple, joint: Rule | None, connected: tuple[bool, ...], name: str = ""
) -> Plan | None:
    """The plan for a call with these inputs connected; `None` if no gradient flows to them."""
    if joint is not None:
        reads = what_is_read(joint, len(connected), skip=2)
        return Plan(saver(tuple(reads)), (), joint, connected, name=name)
    pairs = zip(rules, connected, strict=True)
    chosen = tuple((i, rule) for i, (rule, wanted) in enumerate(pairs) if wanted and rule)
    if not chosen:
        return None
    each = [what_is_read(rule, len(connected), skip=1) for _, rule in chosen]
    reads = tuple([max(column) for column in zip(*each, strict=True)])
    flow = tuple([(i, rule is passed_on) for i, rule in chosen])
    pulls = [_puller(reads, flow, raw)(*[rule for _, rule in chosen]) for raw in (True, False)]
    passes_rows = rules == (passed_on,)
    return Plan(saver(reads), chosen, None, (), False, name, *pulls, passes_rows)


def save_all(plan: Plan, values: tuple) -> tuple:
    """What `plan.save` picks and all besides, for a tape that is to be asked about it."""
    return plan.save(values) if plan.user_code else values


_KEPT = {
    UNREAD: "nothing",
    SHAPE: "make(Spec, ({0}._spec.shape, {0}._spec.dtype))",
    ARRAY: "{0}",
}
_UNBOXED = {SHAPE: "{0} = {0} if type({0}) is Spec else {0}._array", ARRAY: "{0} = {0}._array"}


def _values(count: int) -> list[str]:
    return ["y", *[numbered("x", i) for i in range(count - 1)]]


@cache
def saver(reads: tuple[int, ...]) -> Callable[[tuple], tuple]:
    """Returns a function of `(y, *inputs)` that picks the values that are read."""
    names = _values(len(reads))
    kept = [_KEPT[read].format(name) for name, read in zip(names, reads, strict=True)]
    writer = SourceWriter(nothing=NOTHING, make=tuple.__new__, Spec=Spec)
    writer.write("def save(values):")
    writer.write(f"{', '.join(names)}, = values", f"return {', '.join(kept)},", depth=1)
    return writer.define("save", "plan")


@cache
def _puller(
    reads: tuple[int, ...], flow: tuple[tuple[int, bool], ...], raw: bool
) -> Callable[..., Callable]:
    """Returns a function from rules to `Plan.pull`; `flow` says which of them pass g on."""
    names = _values(len(reads))
    passed = list(names)
    rules = [numbered("rule", n) for n in range(len(flow))]
    writer = SourceWriter(Spec=Spec)
    writer.write(f"def make({', '.join(rules)}):")
    writer.write("def pull(cotangents, leads, g, ids, saved, attrs):", depth=1)
    writer.write(f"{', '.join(names)}, = saved", depth=2)
    if raw:
        pairs = list(zip(names, reads, strict=True))
        writer.write(*[_UNBOXED[r].format(n) for n, r in pairs if r != UNREAD], depth=2)
        passed = ["None" if read == UNREAD else name for name, read in pairs]
    for rule, (position, passes) in zip(rules, flow, strict=True):
        call = f"{rule}(g, {', '.join(passed)}"
        result = "g" if passes else f"{call}, **attrs) if attrs else {call})"
        writer.write(f"key = ids[{literal(position)}]", depth=2)
        writer.write("if leads is None or key in leads:", depth=2)
        writer.write(f"result = {result}", "if key in cotangents:", depth=3)
        writer.write("cotangents.add(key, result)", depth=4)
        writer.write("else:", depth=3)
        writer.write("cotangents[key] = result", depth=4)
    writer.write("return pull", depth=1)
    return writer.define("make", "plan")
