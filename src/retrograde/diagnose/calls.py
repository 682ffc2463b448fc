"""The entries of a tape as calls of a program, and the values of their inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from retrograde.core.program import depending_on, needed
from retrograde.core.recorders import thread
from retrograde.core.rules import Outputs, Spec
from retrograde.core.tape_arguments import flatten_arguments
from retrograde.core.tensor import Tensor
from retrograde.derivatives.checkpointing import is_freed
from retrograde.diagnose.backward_steps import outputs_of
from retrograde.diagnose.tape_notes import LastGradient
from retrograde.values.source_location import SourceLocation


class RecordedCall(NamedTuple):
    """A call on a tape, as a step of a program whose values have the ids of tensors.

    `primitive` is `None` for a `custom_gradient`. `saved` are the tensors that the tape saved, by
    id; `specs` are the shapes and dtypes of inputs that it did not save. `entry` is the entry of
    the tape, if there is one. `location` is the source location of a call inside a function.
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
    location: SourceLocation | None = None

    has_side_effects = False


def calls_of(entries: list[tuple]) -> list[RecordedCall]:
    """Returns the entries of a tape as calls."""
    return [_call(number, entry) for number, entry in enumerate(entries)]


def _call(number: int, entry: tuple) -> RecordedCall:
    plan, ids, out, saved, attrs = entry
    primitive = plan.primitive
    specs = dict(out) if type(out) is tuple else {}
    tensors = {}
    for value, key in zip(saved, (None, *ids), strict=False):
        for part in value if type(value) is Outputs else (value,):
            if is_freed(part):
                specs[part._id] = Spec.of(part)
            elif isinstance(part, Tensor):
                tensors[part._id] = part
            elif isinstance(part, Spec) and key is not None:
                specs[key] = part
    outputs = outputs_of(entry)
    return RecordedCall(number, plan.name, primitive, ids, outputs, attrs, tensors, specs, entry)


class Values:
    """The values of a tape: those it saved, and those that can be recomputed from them.

    `tensors` are known tensors and variables, and `arrays` are known arrays by id. Unknown values
    are `None`.
    """

    def __init__(
        self, calls: list[RecordedCall], tensors: list, arrays: Mapping[int, Any] | None = None
    ) -> None:
        self._calls = calls
        self.producer = {i: call for call in calls for i in call.outputs}
        self._known: dict[int, Any] = {x._id: x._array for x in tensors} | dict(arrays or {})
        for call in calls:
            for key, tensor in call.saved.items():
                self._known.setdefault(key, tensor._array)

    def get(self, key: int, call: RecordedCall | None = None) -> Any:
        """Returns the value of an id; for a variable, the value that `call` read."""
        if call is not None and key in call.saved:
            return call.saved[key]._array
        if key not in self._known:
            self._compute(key)
        return self._known[key]

    def set(self, key: int, array: Any) -> None:
        """Sets the value of an id."""
        self._known[key] = array

    def inputs(self, call: RecordedCall) -> list:
        """Returns the inputs of a call."""
        return [self.get(i, call) for i in call.inputs]

    def outputs(self, call: RecordedCall) -> list:
        """Returns the outputs of a call."""
        return [self.get(i, call) for i in call.outputs]

    def _compute(self, key: int) -> None:
        """Recomputes the value of `key`."""
        for call in needed(self._calls, {key}, self._known):
            if call.primitive is None:
                self._set_outputs(call)
            else:
                self._known.update(zip(call.outputs, self._run(call), strict=True))
        self._known.setdefault(key, None)

    def _set_outputs(self, call: RecordedCall) -> None:
        """Sets the outputs of a call that is not a primitive, if it is a `tf.function`."""
        self._known.update(dict.fromkeys(call.outputs))
        inside = details_of(call)
        if inside is not None:
            values = values_inside(inside)
            outputs = [values.get(n) for n in inside.program.results]
            self._known.update(zip(call.outputs, outputs, strict=True))

    def _run(self, call: RecordedCall) -> list:
        inputs = [self.get(i, call) for i in call.inputs]
        if any(x is None for x in inputs):
            return [None] * len(call.outputs)
        y = thread.recorders.quietly(call.primitive.run, inputs, call.attrs)
        return list(y) if call.primitive.outputs else [y]


def details_of(call: RecordedCall, cotangents: tuple = ()) -> Any | None:
    """Returns the `CallDetails` of a call to a `tf.function`; `None` for other calls."""
    if call.entry is None:
        return None
    rules = getattr(call.entry[0].joint, "__self__", None)
    return rules.inside(**call.attrs, cotangents=cotangents) if hasattr(rules, "inside") else None


def values_inside(inside: Any) -> Values:
    """Returns the values inside a call to a function."""
    calls = []
    for number, (primitive, inputs, attrs, outputs) in enumerate(inside.program.steps):
        origin = inside.origins.get(outputs[0])
        head = (number, primitive.name, primitive)
        calls.append(
            RecordedCall(*head, inputs, outputs, attrs, {}, {}, None, origin and origin.location)
        )
    return Values(calls, [], inside.program.constants)


# The contents of a tape


def entries_of(tape: Any, method: str) -> list[tuple]:
    """Returns the entries of a tape; raises `RuntimeError` if the tape has freed them."""
    if tape._entries is not None:
        return list(tape._entries)
    if tape._last_gradient is not None and tape._last_gradient.nonfinite is None:
        return tape._last_gradient.entries
    where = ":".join(map(str, tape._used_at))
    raise RuntimeError(
        f"{method}: this tape freed its recording in the backward pass at {where}.\n"
        f"Create the tape with persistent=True or lines=True, or call {method}() before gradient()."
    )


def values_of(tape: Any, calls: list[RecordedCall], targets: list) -> Values:
    """Returns the values of the calls of a tape."""
    last: LastGradient | None = tape._last_gradient
    if last is None:
        read = [v._current() for v in tape._variables.values()]
        return Values(calls, [*targets, *read])
    return Values(calls, [*last.targets, *last.read, *targets])


def calls_between(
    tape: Any, method: str, target: Any, sources: Any
) -> tuple[list[RecordedCall], list]:
    """Returns the calls between `sources` (default: all watched) and `target`, and the targets."""
    calls = calls_of(entries_of(tape, method))
    targets, _ = flatten_arguments(target, "target")
    source_ids = (
        tape._roots if sources is None else {x._id for x in flatten_arguments(sources, "source")[0]}
    )
    depending = depending_on(calls, source_ids)
    leading = needed(calls, [x._id for x in targets])
    return [call for call in leading if not depending.isdisjoint(call.inputs)], targets
