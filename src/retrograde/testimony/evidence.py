"""What a tape still has to be asked about."""

from __future__ import annotations

from typing import Any

from retrograde.core.tape_arguments import Asked, flat
from retrograde.testimony.calls import Call, Values, calls_of


def entries_of(tape: Any, what: str) -> list[tuple]:
    """What a tape recorded, also if it gave its gradients since; else an error."""
    if tape._entries is not None:
        return list(tape._entries)
    if tape._asked is not None and tape._asked.spoilt is None:
        return tape._asked.entries
    where = ":".join(map(str, tape._spent_at))
    raise RuntimeError(
        f"{what}: this tape let go of what it recorded in the walk back at {where}.\n"
        "To be able to ask, make the tape with persistent=True or lines=True, or ask before "
        "gradient()."
    )


def values_of(tape: Any, calls: list[Call], targets: list) -> Values:
    """What is known of the values that went through the calls of a tape."""
    asked: Asked | None = tape._asked
    if asked is None:
        read = [v._current() for v in tape._variables.values()]
        return Values(calls, [*targets, *read])
    return Values(calls, [*asked.targets, *asked.read, *targets])


def calls_between(tape: Any, what: str, target: Any, sources: Any) -> tuple[list[Call], list]:
    """The calls on the way from `sources`, or all that is watched, to `target`; and the targets."""
    calls = calls_of(entries_of(tape, what))
    targets, _ = flat(target, "target")
    wanted = tape._roots if sources is None else {x._id for x in flat(sources, "source")[0]}
    ahead = set(wanted)
    for call in calls:
        if not ahead.isdisjoint(call.inputs):
            ahead.update(call.outputs)
    behind = {x._id for x in targets}
    chosen = []
    for call in reversed(calls):
        if not behind.isdisjoint(call.outputs) and not ahead.isdisjoint(call.inputs):
            behind.update(call.inputs)
            chosen.append(call)
    return chosen[::-1], targets
