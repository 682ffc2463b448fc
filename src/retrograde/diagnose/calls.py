"""The entries of a tape as the calls of a program, and the values that they read and made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from retrograde.core.program import depending_on, needed
from retrograde.core.recorders import thread
from retrograde.core.rules import Outputs, Spec
from retrograde.core.tape_arguments import flat
from retrograde.core.tensor import Tensor
from retrograde.derivatives.checkpointing import is_freed
from retrograde.diagnose.backward_steps import outputs_of
from retrograde.diagnose.tape_notes import LastGradient
from retrograde.values.source_location import Place


class RecordedCall(NamedTuple):
    """A call on a tape, as a step of a program whose values have the ids of tensors.

    `primitive` is `None` for a `custom_gradient`. `saved` are the tensors that the tape kept, by
    id; `specs` are the shapes and dtypes of inputs whose values it freed. `entry` is the entry of
    the tape, if there is one. `place` is the place of a call inside a function.
    """

    number: int
    name: str
    primitive: Any
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attrs: dict
    saved: dict[int, Tensor]
    specs: dict[int, Spec]
    entry: tuple | None = None
    place: Place | None = None

    has_side_effects = False


def calls_of(entries: list[tuple]) -> list[RecordedCall]:
    """Returns the entries of a tape as calls."""
    return [_call(number, entry) for number, entry in enumerate(entries)]


def _call(number: int, entry: tuple) -> RecordedCall:
    plan, ids, out, saved, attrs = entry
    primitive = plan.primitive
    specs = dict(out) if type(out) is tuple else {}
    kept = {}
    for value, key in zip(saved, (None, *ids), strict=False):
        for part in value if type(value) is Outputs else (value,):
            if is_freed(part):
                specs[part._id] = Spec.of(part)
            elif isinstance(part, Tensor):
                kept[part._id] = part
            elif isinstance(part, Spec) and key is not None:
                specs[key] = part
    outputs = outputs_of(entry)
    return RecordedCall(number, plan.name, primitive, ids, outputs, attrs, kept, specs, entry)


class Values:
    """The values that went through a tape: those it kept, and those that follow from them.

    `given` are tensors and variables that are known from elsewhere, and `arrays` others by id. What
    cannot be known is `None`.
    """

    def __init__(
        self, calls: list[RecordedCall], given: list, arrays: Mapping[int, Any] | None = None
    ) -> None:
        self._calls = calls
        self.producer = {i: call for call in calls for i in call.outputs}
        self._known: dict[int, Any] = {x._id: x._array for x in given} | dict(arrays or {})
        for call in calls:
            for key, tensor in call.saved.items():
                self._known.setdefault(key, tensor._array)

    def of(self, key: int, call: RecordedCall | None = None) -> Any:
        """The value of an id; as `call` saw it, for variables that were assigned to meanwhile."""
        if call is not None and key in call.saved:
            return call.saved[key]._array
        if key not in self._known:
            self._compute(key)
        return self._known[key]

    def know(self, key: int, array: Any) -> None:
        """Takes over the value of an id that was found out elsewhere."""
        self._known[key] = array

    def inputs(self, call: RecordedCall) -> list:
        """The inputs of a call."""
        return [self.of(i, call) for i in call.inputs]

    def outputs(self, call: RecordedCall) -> list:
        """The outputs of a call."""
        return [self.of(i, call) for i in call.outputs]

    def _compute(self, key: int) -> None:
        """Runs the calls again that lead to `key`."""
        for call in needed(self._calls, {key}, self._known):
            if call.primitive is None:
                self._know_results(call)
            else:
                self._known.update(zip(call.outputs, self._run(call), strict=True))
        self._known.setdefault(key, None)

    def _know_results(self, call: RecordedCall) -> None:
        """Finds the results of a call that is not of a primitive: it may be of a function."""
        self._known.update(dict.fromkeys(call.outputs))
        inside = inside_of(call)
        if inside is not None:
            values = values_inside(inside)
            found = [values.of(n) for n in inside.program.results]
            self._known.update(zip(call.outputs, found, strict=True))

    def _run(self, call: RecordedCall) -> list:
        inputs = [self.of(i, call) for i in call.inputs]
        if any(x is None for x in inputs):
            return [None] * len(call.outputs)
        y = thread.recorders.quietly(call.primitive.run, inputs, call.attrs)
        return list(y) if call.primitive.outputs else [y]


def inside_of(call: RecordedCall, cotangents: tuple = ()) -> Any | None:
    """What happened inside of a call of a function, as far as that was recorded; else `None`."""
    if call.entry is None:
        return None
    maker = getattr(call.entry[0].joint, "__self__", None)
    return maker.inside(**call.attrs, cotangents=cotangents) if hasattr(maker, "inside") else None


def values_inside(inside: Any) -> Values:
    """The values that went through a function."""
    calls = []
    for number, (primitive, inputs, attrs, outputs) in enumerate(inside.program.steps):
        origin = inside.origins.get(outputs[0])
        named = (number, primitive.name, primitive)
        calls.append(
            RecordedCall(*named, inputs, outputs, attrs, {}, {}, None, origin and origin.place)
        )
    return Values(calls, [], inside.program.constants)


# What a tape still has to be asked about


def entries_of(tape: Any, what: str) -> list[tuple]:
    """What a tape recorded, also if it gave its gradients since; else an error."""
    if tape._entries is not None:
        return list(tape._entries)
    if tape._last_gradient is not None and tape._last_gradient.nonfinite is None:
        return tape._last_gradient.entries
    where = ":".join(map(str, tape._used_at))
    raise RuntimeError(
        f"{what}: this tape let go of what it recorded in the walk back at {where}.\n"
        "To be able to ask, make the tape with persistent=True or lines=True, or ask before "
        "gradient()."
    )


def values_of(tape: Any, calls: list[RecordedCall], targets: list) -> Values:
    """What is known of the values that went through the calls of a tape."""
    asked: LastGradient | None = tape._last_gradient
    if asked is None:
        read = [v._current() for v in tape._variables.values()]
        return Values(calls, [*targets, *read])
    return Values(calls, [*asked.targets, *asked.read, *targets])


def calls_between(
    tape: Any, what: str, target: Any, sources: Any
) -> tuple[list[RecordedCall], list]:
    """The calls on the way from `sources`, or all that is watched, to `target`; and the targets."""
    calls = calls_of(entries_of(tape, what))
    targets, _ = flat(target, "target")
    wanted = tape._roots if sources is None else {x._id for x in flat(sources, "source")[0]}
    depending = depending_on(calls, wanted)
    leading = needed(calls, [x._id for x in targets])
    return [call for call in leading if not depending.isdisjoint(call.inputs)], targets
