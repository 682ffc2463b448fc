"""`tape.autopsy()`: finds the call that produced the first NaN or Inf, and a fix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from retrograde.diagnose.calls import RecordedCall, entries_of
from retrograde.diagnose.nonfinite import causes
from retrograde.diagnose.nonfinite.likely_line import likely_line
from retrograde.diagnose.nonfinite.search import (
    BACKWARD,
    FORWARD,
    INPUT,
    UNKNOWN,
    NonfiniteOrigin,
    Search,
    Step,
    first_nan,
)
from retrograde.diagnose.rendering import (
    Report,
    format_location,
    format_number,
    format_source_line,
    relative_path,
    source_line,
)
from retrograde.diagnose.tape_notes import LastGradient
from retrograde.values.source_location import SourceLocation

_SHOWN_ELEMENTS = 3
_SHOWN_STEPS = 8  # half of them from the start of the path, half from its end

_NO_LINES = "To see the line, create the tape with tf.GradientTape(lines=True)."


def autopsy(tape: Any) -> Autopsy:
    """Finds the first call, forward or backward, that produced NaN or Inf from finite inputs.

    It checks the targets of the last `gradient()` of this tape, and then the gradients. The report
    prints as text and, in notebooks, as HTML. Source lines are available for tapes that were
    created with `lines=True` or inside `tf.debugging.record_lines()`.

    A tape frees its entries in the backward pass, up to the call that produces the first NaN or
    Inf. If the loss is not finite, it frees none.

    >>> x = tf.Variable([4.0, 0.0])
    >>> with tf.GradientTape() as tape:
    ...     y = tf.sqrt(x)
    >>> tape.gradient(y, x).numpy()
    array([0.25,  inf], dtype=float32)
    >>> report = tape.autopsy()
    >>> report.primitive, report.direction, report.elements[0].index
    ('sqrt', 'backward', (1,))
    """
    if tape._last_gradient is None and tape._entries is None and tape._monitored:
        return _empty_report(tape)
    last_gradient = tape._last_gradient or _without_gradient(tape)
    with np.errstate(all="ignore"):
        origin = Search(last_gradient).run()
        report = build_report(origin, tape._locations or {}, tape._variables)
    if not report or report.location or report.note:
        return report
    likely = _likely_line(tape, report)
    return replace(report, likely_line=likely, note="" if likely else _NO_LINES)


def _likely_line(tape: Any, report: Autopsy) -> str:
    """Returns the line that most likely contains the call."""
    if tape._used_at is None or report.primitive is None:
        return ""
    likely = likely_line(*tape._used_at, report.primitive)
    return (
        f"most likely {relative_path(tape._used_at[0])}:{likely[0]}: {likely[1]}" if likely else ""
    )


def _empty_report(tape: Any) -> Autopsy:
    where = ":".join(map(str, tape._used_at))
    return Autopsy(
        summary=f"NumPy detected no NaN or Inf in the backward pass at {where}",
        note="NumPy does not check computations of XLA and of SciPy's special functions. If a "
        "gradient is NaN anyway, create the tape with lines=True, which keeps all values, and run "
        "it again.",
    )


def _without_gradient(tape: Any) -> LastGradient:
    """Returns all entries of a tape whose `gradient()` was not called."""
    return LastGradient(entries_of(tape, "autopsy"), [], [], [], [])


@dataclass(frozen=True)
class Element:
    """A non-finite element: its index, its value, and the values it was computed from.

    For elementwise operations, `inputs`, `y` and `g` are the corresponding elements of the inputs,
    of the output and of the cotangent. They are `None` for other operations.
    """

    index: tuple[int, ...]
    value: Any
    inputs: tuple | None = None
    y: Any = None
    g: Any = None


@dataclass(frozen=True)
class Autopsy(Report):
    """The result of `tape.autopsy()`. It is true if a NaN or Inf was found.

    Attributes:
        direction: "forward" or "backward", the pass that produced the value. "input" if the value
            came from outside the tape, and "unknown" if the tape has freed its origin.
        primitive: The name of the operation that produced the value.
        location: The source location of the call, if known.
        likely_line: The line that most likely contains the call, if `location` is unknown and only
            one line qualifies.
        summary: What happened, in one sentence.
        shape: The shape of the array with the value.
        dtype: The dtype of the array.
        count: The number of non-finite elements.
        elements: The first of these elements.
        cause: A short name of the cause.
        why: An explanation of the cause.
        fix: How to change the program.
        became_nan: Where an Inf became NaN, if it did.
        path: The operations from there to the target or source.
        note: Further information on the location.
    """

    direction: str | None = None
    primitive: str | None = None
    location: SourceLocation | None = None
    likely_line: str = ""
    summary: str = ""
    shape: tuple[int, ...] = ()
    dtype: str = ""
    count: int = 0
    elements: tuple[Element, ...] = ()
    cause: str | None = None
    why: str = ""
    fix: str = ""
    became_nan: str = ""
    path: tuple[str, ...] = ()
    note: str = ""

    def __bool__(self) -> bool:
        return self.direction is not None

    def _lines(self) -> list[tuple[str, str]]:
        if not self:
            head = self.summary or "All available values and gradients of this tape are finite"
            return [("head", f"{head}."), *([("why", self.note)] if self.note else [])]
        lines = [("head", f"{self.summary}.")]
        if self.location is not None:
            lines += source_line(self.location)
        if self.likely_line:
            lines.append(("line", self.likely_line))
        if self.note:
            lines.append(("why", self.note))
        size = int(np.prod(self.shape, dtype=int))
        if size > 1:
            lines.append(("fact", f"{self.count} of {size} elements are non-finite:"))
        for element in self.elements:
            lines.append(("element", _format_element(self, element)))
        if self.count > len(self.elements):
            lines.append(("element", "..."))
        lines.append(("why", f"Why: {self.why}"))
        if self.became_nan:
            lines.append(("why", f"Then: {self.became_nan}"))
        lines.append(("fix", f"Fix: {self.fix}"))
        if self.path:
            lines.append(("fact", "Path from there:"))
            lines += [("step", step) for step in self.path]
        return lines


def _format_element(report: Autopsy, element: Element) -> str:
    index = f"[{', '.join(map(str, element.index))}] " if element.index else ""
    value = format_number(element.value)
    if element.inputs is None:
        return f"{index}{value}"
    inputs = ", ".join("?" if x is None else format_number(x) for x in element.inputs)
    call = f"{report.primitive}({inputs})"
    if report.direction == BACKWARD:
        g = "" if element.g is None else f" for upstream gradient {format_number(element.g)}"
        return f"{index}gradient of {call}{g}: {value}"
    return f"{index}{call} = {value}"


def build_report(origin: NonfiniteOrigin | None, locations: Mapping, variables: Mapping) -> Autopsy:
    """Returns the report for the origin of a NaN or Inf."""
    if origin is None:
        return Autopsy()
    step, call = origin.step, origin.step.call
    array = np.asarray(step.array)
    elements = tuple(_elements(origin))
    cause = _cause(origin, elements, variables)
    nan = first_nan(origin)
    return Autopsy(
        direction=step.direction,
        primitive=None if call is None else call.name,
        location=_location(_first_reader(origin) if call is None else call, locations),
        summary=_summary(origin, array, variables),
        shape=array.shape,
        dtype=array.dtype.name,
        count=int(np.count_nonzero(~np.isfinite(array))),
        elements=elements,
        cause=cause.name,
        why=cause.why,
        fix=cause.fix,
        became_nan=_became_nan(nan, locations),
        note="" if origin.function is None else inside_note(_location(origin.function, locations)),
        path=tuple(_shorten(_steps(origin, locations) + _end(origin, variables))),
    )


def inside_note(location: SourceLocation | None) -> str:
    """Returns a note that the call is inside a `tf.function`, which was called at `location`."""
    at = "" if location is None else f" called at {format_source_line(location)}"
    return f"This is inside a tf.function{at}."


def _summary(origin: NonfiniteOrigin, array: np.ndarray, variables: Mapping) -> str:
    value = "NaN" if np.isnan(array).any() else "Inf"
    step = origin.step
    if step.direction == INPUT:
        return f"{_input_name(step.key, variables)} already contained {value}"
    if step.direction == UNKNOWN:
        return f"In the backward pass, the cotangent of {step.call.name} already contained {value}"
    name = step.call.name
    if name.startswith("guarded_"):  # only rules call these: here, rules of a loaded function
        return f"In the backward pass, a gradient produced {value} from finite inputs"
    if step.direction == FORWARD and any(x is None for x in origin.inputs):
        return f"In the forward pass, {name} returned {value}"
    if step.direction == FORWARD:
        return f"In the forward pass, {name} produced {value} from finite inputs"
    return f"In the backward pass, the gradient of {name} produced {value} from finite inputs"


def _input_name(key: int | None, variables: Mapping) -> str:
    if key is None:
        return "The `output_gradients`"
    if key in variables:
        return f"The variable {variables[key].name!r}"
    return "An input"


def _first_reader(origin: NonfiniteOrigin) -> RecordedCall | None:
    return origin.path[0].call if origin.path else None


def _location(call: RecordedCall | None, locations: Mapping) -> SourceLocation | None:
    return None if call is None else call.location or locations.get(call.outputs[0])


def _elements(origin: NonfiniteOrigin) -> list[Element]:
    array = np.asarray(origin.step.array)
    indices = np.argwhere(~np.isfinite(array))[:_SHOWN_ELEMENTS]
    return [_element(origin, array, tuple(map(int, index))) for index in indices]


def _element(origin: NonfiniteOrigin, array: np.ndarray, index: tuple[int, ...]) -> Element:
    value = array[index]
    call = origin.step.call
    shape = np.shape(origin.y if origin.g is None else origin.g)
    elementwise = call is not None and call.primitive is not None and call.primitive.partials
    if origin.step.direction in (INPUT, UNKNOWN) or not elementwise or array.shape != shape:
        return Element(index, value)
    *inputs, y, g = [
        None if x is None else np.broadcast_to(x, shape)[index]
        for x in (*origin.inputs, origin.y, origin.g)
    ]
    return Element(index, value, tuple(inputs), y, g)


def _cause(
    origin: NonfiniteOrigin, elements: tuple[Element, ...], variables: Mapping
) -> causes.Cause:
    step = origin.step
    if step.direction == INPUT:
        if step.key is None:
            return causes.OUTPUT_GRADIENTS
        return causes.VARIABLE if step.key in variables else causes.INPUT
    if step.direction == UNKNOWN:
        return causes.UNKNOWN
    first, name = elements[0], step.call.name
    if step.call.primitive is None and step.direction == FORWARD:
        return causes.CUSTOM_FUNCTION
    if step.call.primitive is None:
        aligned = origin.g is not None and origin.g.shape == step.array.shape
        return causes.custom_gradient_cause(first.value, origin.g[first.index] if aligned else None)
    if step.direction == FORWARD:
        return causes.forward_cause(name, origin.inputs, first.inputs, first.value)
    element = None if first.inputs is None else (first.y, *first.inputs)
    return causes.backward_cause(name, element, first.value, origin.sums)


def _became_nan(nan: Step | None, locations: Mapping) -> str:
    """Returns where an Inf became NaN."""
    if nan is None:
        return ""
    name = nan.call.name
    reason = causes.NAN_REASONS.get(name)
    if nan.direction == BACKWARD:
        reason, name = None, f"the gradient of {name}"
    location = _location(nan.call, locations)
    at = "" if location is None else f" at {format_location(location)}"
    return f"{name}{at} turned it into NaN{': ' + reason if reason else ''}."


def _steps(origin: NonfiniteOrigin, locations: Mapping) -> list[str]:
    steps: list[str] = []
    for step in origin.path:
        location = _location(step.call, locations)
        name = step.call.name if step.direction == FORWARD else f"gradient of {step.call.name}"
        at = "" if location is None else f"  {format_location(location)}: {location.expression}"
        if location is None or location.rule is None:
            steps.append(f"{name}{at}")
        elif (
            f"gradient of {location.rule}{at}" not in steps[-1:]
        ):  # it may consist of several calls
            steps.append(f"gradient of {location.rule}{at}")
    return steps


def _end(origin: NonfiniteOrigin, variables: Mapping) -> list[str]:
    """Returns the end of the path: the target or a source."""
    last = [origin.step, *origin.path][-1]
    if last.call is None:
        return []
    if last.direction == FORWARD:
        return ["the target"]
    key = last.call.inputs[last.position]
    if key in variables:
        return [f"the gradient with respect to {variables[key].name!r}"]
    return ["the gradient with respect to a source"]


def _shorten(steps: list[str]) -> list[str]:
    if len(steps) <= _SHOWN_STEPS:
        return steps
    half = _SHOWN_STEPS // 2
    return [*steps[:half], f"... {len(steps) - 2 * half} more ...", *steps[-half:]]
