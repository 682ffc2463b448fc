"""`tape.autopsy()`: which call made the first value that is not finite, and what cures it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from retrograde.diagnose.calls import RecordedCall, entries_of
from retrograde.diagnose.nonfinite import fixes
from retrograde.diagnose.nonfinite.likely_line import likely_line
from retrograde.diagnose.nonfinite.search import (
    BACKWARDS,
    FORWARDS,
    GIVEN,
    UNHEARD,
    Birth,
    Search,
    Step,
    first_nan,
)
from retrograde.diagnose.rendering import Told, line_of, number, path_from_here, shown, the_line
from retrograde.diagnose.tape_notes import LastGradient
from retrograde.values.source_location import Place

_FEW = 3  # elements that are shown
_WAY = 8  # steps of the way that are shown: the first and the last of them

_NO_LINES = "To see the line, make the tape with tf.GradientTape(lines=True)."


def autopsy(tape: Any) -> Autopsy:
    """The first call, forwards or backwards, that made NaN or infinity out of finite values.

    It looks at what the last `gradient()` of this tape was asked for: at the targets, and if these
    are finite, at the gradients. The answer prints as text and, in notebooks, as HTML; its
    attributes say the same. Lines are known to tapes made with `lines=True` or inside
    `tf.debugging.record_lines()`.

    A tape frees its entries in the backward pass, up to the call that produces the first NaN or
    Inf. If the loss is not finite, it frees none.

    >>> x = tf.Variable([4.0, 0.0])
    >>> with tf.GradientTape() as tape:
    ...     y = tf.sqrt(x)
    >>> tape.gradient(y, x).numpy()
    array([0.25,  inf], dtype=float32)
    >>> report = tape.autopsy()
    >>> report.primitive, report.direction, report.elements[0].index
    ('sqrt', 'backwards', (1,))
    """
    if tape._last_gradient is None and tape._entries is None and tape._monitored:
        return _nothing_heard(tape)
    asked = tape._last_gradient or _question(tape)
    with np.errstate(all="ignore"):
        birth = Search(asked).run()
        found = report(birth, tape._places or {}, tape._variables)
    if not found or found.place or found.note:
        return found
    likely = _likely_line(tape, found)
    return replace(found, likely=likely, note="" if likely else _NO_LINES)


def _likely_line(tape: Any, found: Autopsy) -> str:
    """The line that the program seems to have made the call in, in words."""
    if tape._used_at is None or found.primitive is None:
        return ""
    likely = likely_line(*tape._used_at, found.primitive)
    return (
        f"most likely {path_from_here(tape._used_at[0])}:{likely[0]}: {likely[1]}" if likely else ""
    )


def _nothing_heard(tape: Any) -> Autopsy:
    where = ":".join(map(str, tape._used_at))
    return Autopsy(
        what=f"No gradient was spoilt in the walk back at {where}, as far as NumPy can tell",
        note="What XLA or SciPy's special functions compute raises no alarm: if you see nan all "
        "the same, make the tape with lines=True, which keeps everything, and ask again.",
    )


def _question(tape: Any) -> LastGradient:
    """What to look at on a tape that was not asked yet: all that it recorded."""
    return LastGradient(entries_of(tape, "autopsy"), [], [], [], [])


@dataclass(frozen=True)
class Element:
    """One element that is not finite: its index, its value, and what it was made of.

    `inputs` are the elements of the inputs, `y` that of the result and `g` that of the cotangent,
    where these go element by element; `None` otherwise.
    """

    index: tuple[int, ...]
    value: Any
    inputs: tuple | None = None
    y: Any = None
    g: Any = None


@dataclass(frozen=True)
class Autopsy(Told):
    """What `tape.autopsy()` found. It is true if it found something.

    `direction` is "forwards", "backwards", or "given" for a value that came in from outside;
    "unheard" if it was there when the walk back first heard of it, and its maker is gone.
    `primitive` and `place` say which call it was, `likely` in words if the tape kept no places and
    only one line of its block may have made it; `elements` are the first of `count` elements that
    are not finite; `kind`, `why` and `cure` say what happened and what to do; `way` are the steps
    from there to the target or source.
    """

    direction: str | None = None
    primitive: str | None = None
    place: Place | None = None
    likely: str = ""
    what: str = ""
    shape: tuple[int, ...] = ()
    dtype: str = ""
    count: int = 0
    elements: tuple[Element, ...] = ()
    kind: str | None = None
    why: str = ""
    cure: str = ""
    turn: str = ""
    way: tuple[str, ...] = ()
    note: str = ""

    def __bool__(self) -> bool:
        return self.direction is not None

    def _lines(self) -> list[tuple[str, str]]:
        """The text: pairs of the role of a line and its words."""
        if not self:
            head = self.what or "All values and gradients that this tape knows of are finite"
            return [("head", f"{head}."), *([("why", self.note)] if self.note else [])]
        lines = [("head", f"{self.what}.")]
        if self.place is not None:
            lines += the_line(self.place)
        if self.likely:
            lines.append(("line", self.likely))
        if self.note:
            lines.append(("why", self.note))
        size = int(np.prod(self.shape, dtype=int))
        if size > 1:
            lines.append(("fact", f"{self.count} of {size} elements are not finite:"))
        for element in self.elements:
            lines.append(("element", _written(self, element)))
        if self.count > len(self.elements):
            lines.append(("element", "..."))
        lines.append(("why", f"Why: {self.why}"))
        if self.turn:
            lines.append(("why", f"Then: {self.turn}"))
        lines.append(("cure", f"Cure: {self.cure}"))
        if self.way:
            lines.append(("fact", "The way from there:"))
            lines += [("step", step) for step in self.way]
        return lines


def _written(found: Autopsy, element: Element) -> str:
    index = f"[{', '.join(map(str, element.index))}] " if element.index else ""
    value = number(element.value)
    if element.inputs is None:
        return f"{index}{value}"
    inputs = ", ".join("?" if x is None else number(x) for x in element.inputs)
    call = f"{found.primitive}({inputs})"
    if found.direction == BACKWARDS:
        g = "" if element.g is None else f", with the cotangent {number(element.g)}"
        return f"{index}slope of {call}{g}: {value}"
    return f"{index}{call} = {value}"


def report(birth: Birth | None, places: Mapping, variables: Mapping) -> Autopsy:
    """What to say of a birth."""
    if birth is None:
        return Autopsy()
    step, call = birth.step, birth.step.call
    array = np.asarray(step.array)
    elements = tuple(_elements(birth))
    kind = _kind(birth, elements, variables)
    nan = first_nan(birth)
    return Autopsy(
        direction=step.direction,
        primitive=None if call is None else call.name,
        place=_place(_first_reader(birth) if call is None else call, places),
        what=_what(birth, array, variables),
        shape=array.shape,
        dtype=array.dtype.name,
        count=int(np.count_nonzero(~np.isfinite(array))),
        elements=elements,
        kind=kind.name,
        why=kind.why,
        cure=kind.cure,
        turn=_turn(nan, places),
        note="" if birth.function is None else inside_note(_place(birth.function, places)),
        way=tuple(_shortened(_steps(birth, places) + _end(birth, variables))),
    )


def inside_note(place: Place | None) -> str:
    """Says that it happened inside of a function, which was called at `place`."""
    at = "" if place is None else f", called at {line_of(place)}"
    return f"It is inside of a tf.function{at}."


def _what(birth: Birth, array: np.ndarray, variables: Mapping) -> str:
    what = "nan" if np.isnan(array).any() else "an infinity"
    step = birth.step
    if step.direction == GIVEN:
        return f"{_holder(step.key, variables)} held {what} before the tape saw it"
    if step.direction == UNHEARD:
        return f"On the way back there was {what} when the walk came to {step.call.name}"
    name = step.call.name
    if name.startswith("guarded_"):  # which only rules call: here, those of a loaded function
        return f"On the way back, a rule made {what} out of finite values"
    if step.direction == FORWARDS and any(x is None for x in birth.inputs):
        return f"On the way forwards, {name} gave {what}"
    if step.direction == FORWARDS:
        return f"On the way forwards, {name} made {what} out of finite values"
    return f"On the way back, the rule of {name} made {what} out of finite values"


def _holder(key: int | None, variables: Mapping) -> str:
    if key is None:
        return "The `output_gradients`"
    if key in variables:
        return f"The variable {variables[key].name!r}"
    return "An input"


def _first_reader(birth: Birth) -> RecordedCall | None:
    return birth.way[0].call if birth.way else None


def _place(call: RecordedCall | None, places: Mapping) -> Place | None:
    return None if call is None else call.place or places.get(call.outputs[0])


def _elements(birth: Birth) -> list[Element]:
    step = birth.step
    array = np.asarray(step.array)
    indices = np.argwhere(~np.isfinite(array))[:_FEW]
    return [_element(birth, array, tuple(map(int, index))) for index in indices]


def _element(birth: Birth, array: np.ndarray, index: tuple[int, ...]) -> Element:
    value = array[index]
    call = birth.step.call
    shape = np.shape(birth.y if birth.g is None else birth.g)
    elementwise = call is not None and call.primitive is not None and call.primitive.partials
    if birth.step.direction in (GIVEN, UNHEARD) or not elementwise or array.shape != shape:
        return Element(index, value)
    *inputs, y, g = [
        None if x is None else np.broadcast_to(x, shape)[index]
        for x in (*birth.inputs, birth.y, birth.g)
    ]
    return Element(index, value, tuple(inputs), y, g)


def _kind(birth: Birth, elements: tuple[Element, ...], variables: Mapping) -> fixes.Kind:
    step = birth.step
    if step.direction == GIVEN:
        if step.key is None:
            return fixes.WEIGHTS
        return fixes.VARIABLE if step.key in variables else fixes.INPUT
    if step.direction == UNHEARD:
        return fixes.UNHEARD
    first, name = elements[0], step.call.name
    if step.call.primitive is None and step.direction == FORWARDS:
        return fixes.OWN_FUNCTION
    if step.call.primitive is None:
        aligned = birth.g is not None and birth.g.shape == step.array.shape
        return fixes.own_rule(first.value, birth.g[first.index] if aligned else None)
    if step.direction == FORWARDS:
        return fixes.kind_forwards(name, birth.inputs, first.inputs, first.value)
    element = None if first.inputs is None else (first.y, *first.inputs)
    return fixes.kind_backwards(name, element, first.value, birth.sums)


def _turn(nan: Step | None, places: Mapping) -> str:
    """Where an infinity became NaN."""
    if nan is None:
        return ""
    name = nan.call.name
    words = fixes.TURNS.get(name)
    if nan.direction == BACKWARDS:
        words, name = None, f"the rule of {name}"
    place = _place(nan.call, places)
    at = "" if place is None else f" at {shown(place)}"
    return f"{name}{at} made nan out of it{': ' + words if words else ''}."


def _steps(birth: Birth, places: Mapping) -> list[str]:
    words: list[str] = []
    for step in birth.way:
        place = _place(step.call, places)
        name = step.call.name if step.direction == FORWARDS else f"rule of {step.call.name}"
        at = "" if place is None else f"  {shown(place)}: {place.marked}"
        if place is None or place.rule is None:
            words.append(f"{name}{at}")
        elif f"rule of {place.rule}{at}" not in words[-1:]:  # it may consist of several calls
            words.append(f"rule of {place.rule}{at}")
    return words


def _end(birth: Birth, variables: Mapping) -> list[str]:
    """Where the way ends: at the target, or at a source."""
    last = [birth.step, *birth.way][-1]
    if last.call is None:
        return []
    if last.direction == FORWARDS:
        return ["the target"]
    key = last.call.inputs[last.position]
    if key in variables:
        return [f"the gradient of {variables[key].name!r}"]
    return ["the gradient of a source"]


def _shortened(words: list[str]) -> list[str]:
    if len(words) <= _WAY:
        return words
    half = _WAY // 2
    return [*words[:half], f"... {len(words) - 2 * half} more ...", *words[-half:]]
