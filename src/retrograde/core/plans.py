"""What a tape does with a call: what it keeps, and how it pulls a cotangent back.

Both are done for every call of a program, so they are written out as straight code, once for each
pattern of what is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from retrograde.core.rules import ARRAY, NOTHING, SHAPE, UNREAD, Rule, Spec, passed_on, what_is_read
from retrograde.core.source import define, literal, numbered


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
    SHAPE: "make(Spec, ({0}._form.shape, {0}._form.dtype))",
    ARRAY: "{0}",
}
_UNBOXED = {
    UNREAD: "",
    SHAPE: "    {0} = {0} if type({0}) is Spec else {0}._array\n",
    ARRAY: "    {0} = {0}._array\n",
}


def _values(count: int) -> list[str]:
    return ["y", *[numbered("x", i) for i in range(count - 1)]]


@cache
def saver(reads: tuple[int, ...]) -> Callable[[tuple], tuple]:
    """A function of `(y, *inputs)` that picks what is read."""
    names = _values(len(reads))
    kept = [_KEPT[read].format(name) for name, read in zip(names, reads, strict=True)]
    scope = {"nothing": NOTHING, "make": tuple.__new__, "Spec": Spec}
    source = f"def save(values):\n  {', '.join(names)}, = values\n  return {', '.join(kept)},"
    return define("save", source, scope, "plan")


@cache
def _puller(
    reads: tuple[int, ...], flow: tuple[tuple[int, bool], ...], raw: bool
) -> Callable[..., Callable]:
    """A function of rules that makes `Plan.pull` of them; `flow` says which pass g on."""
    names = _values(len(reads))
    lines = [f"    {', '.join(names)}, = saved\n"]
    passed = list(names)
    if raw:
        lines += [_UNBOXED[read].format(name) for name, read in zip(names, reads, strict=True)]
        passed = ["None" if read == UNREAD else n for n, read in zip(names, reads, strict=True)]
    for n, (position, passes) in enumerate(flow):
        call = f"{numbered('rule', n)}(g, {', '.join(passed)}"
        result = "g" if passes else f"{call}, **attrs) if attrs else {call})"
        lines.append(_STEP.format(position=literal(position), result=result))
    rules = ", ".join([numbered("rule", n) for n in range(len(flow))])
    source = f"def make({rules}):\n  def pull(cotangents, leads, g, ids, saved, attrs):\n"
    return define("make", f"{source}{''.join(lines)}  return pull", {"Spec": Spec}, "plan")


_STEP = """\
    key = ids[{position}]
    if leads is None or key in leads:
      result = {result}
      if key in cotangents:
        cotangents.add(key, result)
      else:
        cotangents[key] = result
"""
