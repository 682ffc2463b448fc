"""`debugging.nonfinite`: values that are not finite, told of as they are made."""

from __future__ import annotations

import functools
import sys
import warnings
import weakref
from collections import OrderedDict
from dataclasses import replace
from types import FrameType
from typing import Any

import numpy as np

from retrograde.core.apply import PRIMITIVES
from retrograde.core.backward import Cotangents
from retrograde.core.recorders import Recorder, thread
from retrograde.core.tensor import Tensor
from retrograde.diagnose.backward_steps import is_finite, raw, step_by_step
from retrograde.diagnose.calls import RecordedCall, Values, calls_of
from retrograde.diagnose.nonfinite.autopsy import Autopsy, inside_note, report
from retrograde.diagnose.nonfinite.search import BACKWARDS, FORWARDS, GIVEN, Birth, Step
from retrograde.values import dtypes, source_location
from retrograde.values.errors import invalid

MODES = ("raise", "warn", "explain")

# Those that hand values on: they need not be looked at twice. (TensorFlow has such a list too.)
HANDING_ON = frozenset(
    (
        "broadcast_to",
        "concat",
        "identity",
        "maximum",
        "minimum",
        "put_slice",
        "reshape",
        "reverse",
        "split",
        "stop_gradient",
        "take_slice",
        "transpose",
        "unstack",
    )
)

_REMEMBERED = 10_000  # values that are known to be spoilt, and not told of again


class Watcher(Recorder):
    """Looks at the outputs of every call, and at every step of walks back.

    It stands outermost, so it is told first: only a `function` that is being recorded may stand
    before it. While someone listens, functions are replayed call by call.
    """

    __slots__ = ("_mode", "_spoilt", "_told", "_variables", "_walking")

    def __init__(self, mode: str) -> None:
        self._mode = mode
        self._spoilt: OrderedDict[int, None] = OrderedDict()
        self._told: set = set()
        self._variables: weakref.WeakValueDictionary = weakref.WeakValueDictionary()
        self._walking = False

    # Forwards

    def record(self, primitive: Any, inputs: tuple, attrs: dict, y: Any) -> None:
        """Tells of the call if it made something that is not finite."""
        if self._walking or primitive.name in HANDING_ON:
            return
        outputs = y if isinstance(y, tuple) else (y,)
        for place, output in enumerate(outputs):
            if output._spec.dtype in dtypes.INEXACT and not is_finite(output):
                self._found(primitive, inputs, attrs, outputs, place)
                return

    def read(self, variable: Any) -> None:
        """Takes note of the variable, for its name."""
        self._variables[variable._id] = variable

    def _found(
        self, primitive: Any, inputs: tuple, attrs: dict, outputs: tuple, place: int
    ) -> None:
        spoilt = [x for x in inputs if not is_finite(x)]
        known = any(x._id in self._spoilt for x in spoilt)
        self._remember(outputs)
        if known and self._mode != "raise":
            return
        ids = tuple([x._id for x in inputs])
        known_as = PRIMITIVES.get(primitive.name)
        out = outputs[place]._id
        call = RecordedCall(0, primitive.name, known_as, ids, (out,), attrs, {}, {})
        step = Step(FORWARDS, raw(outputs[place]), call)
        if spoilt and self._told:
            return  # what was told of has spread, by gradients and assignments
        if spoilt:
            self._remember(tuple(spoilt))
            given = Step(GIVEN, raw(spoilt[0]), key=spoilt[0]._id)
            birth = Birth(given, way=[step])
        else:
            birth = Birth(step, [raw(x) for x in inputs], step.array)
        at = source_location.place_of(sys._getframe(1))
        if not spoilt and at is not None and at.rule is not None:
            birth = _of_a_rule(step.array, at) or birth
        head = (
            f"Detected Infinity or NaN in output {place} of eagerly-executing op "
            f'"{primitive.name}" (# of outputs: {len(outputs)})'
        )
        self._tell(birth, {} if at is None else {out: at}, head)

    def _remember(self, tensors: tuple[Tensor, ...]) -> None:
        for x in tensors:
            self._spoilt[x._id] = None
        while len(self._spoilt) > _REMEMBERED:
            self._spoilt.popitem(last=False)

    # Backwards

    def backward_pass(
        self, entries: list[tuple], cotangents: Cotangents, wanted: set[int], needed: set | None
    ) -> None:
        """Runs a backward pass and checks each step."""
        places = getattr(entries, "places", {})
        for g in cotangents.values():
            if not is_finite(g):
                head = "Detected Infinity or NaN in output_gradients"
                self._tell(Birth(Step(GIVEN, raw(g))), {}, head)
        before, self._walking = self._walking, True
        try:
            step_by_step(entries, cotangents, wanted, needed, functools.partial(self._look, places))
        finally:
            self._walking = before

    def _look(self, places: dict, entry: tuple, gs: tuple, cotangents: Cotangents) -> None:
        if not all(map(is_finite, gs)):
            return
        for position, key in enumerate(entry[1]):
            if not is_finite(cotangents.get(key)):
                self._found_backwards(places, entry, gs, raw(cotangents[key]), position)
                return

    def _found_backwards(
        self, places: dict, entry: tuple, gs: tuple, array: np.ndarray, position: int
    ) -> None:
        calls = calls_of([entry])
        (call,) = calls
        values = Values(calls, [])
        inputs, outputs = values.inputs(call), values.outputs(call)
        if not all(map(is_finite, inputs + outputs)):
            return  # it came with these, and was told of when they were made
        y, g = (parts[0] if len(parts) == 1 else None for parts in (outputs, gs))
        birth = Birth(Step(BACKWARDS, array, call, position), inputs, y, raw(g))
        head = f'Detected Infinity or NaN in the gradient of eagerly-executing op "{call.name}"'
        self._tell(birth, places, head)

    # Telling

    def _tell(self, birth: Birth, places: dict, head: str) -> None:
        # The way from there is yet to come.
        found = report(birth, places, self._variables)
        found = replace(found, way=(), note=found.note or _note())
        if self._mode == "raise":
            raise invalid(f"{head}\n{found}")
        key = (found.direction, found.primitive, found.place)
        if key in self._told:
            return
        self._told.add(key)
        if self._mode == "explain":
            print(found)
        else:
            _warn(found)


def _being_played() -> FrameType | None:
    """The frame that does again what a function did, if one does."""
    frame = sys._getframe(1)
    while frame is not None and source_location.interpreter_of(frame) is None:
        frame = frame.f_back
    return frame


def _note() -> str:
    """What to add if a function is being replayed: where it was called."""
    frame = _being_played()
    return "" if frame is None else inside_note(source_location.place_of(frame.f_back))


def _of_a_rule(array: np.ndarray, place: source_location.Place) -> Birth | None:
    """What was born in the rule of a call inside of a function that is being replayed."""
    frame = _being_played()
    derived = source_location.interpreter_of(frame).derived(frame)
    if derived is None:
        return None
    primitive, inputs, outputs = derived
    ids = (tuple([x._id for x in tensors]) for tensors in (inputs, outputs))
    call = RecordedCall(0, primitive.name, primitive, *ids, {}, {}, {}, None, place)
    y = raw(outputs[0]) if len(outputs) == 1 else None
    return Birth(Step(BACKWARDS, array, call), [raw(x) for x in inputs], y)


def _warn(found: Autopsy) -> None:
    if found.place is None:
        warnings.warn(str(found), RuntimeWarning, stacklevel=2)
    else:
        place = found.place
        warnings.warn_explicit(str(found), RuntimeWarning, place.filename, place.line)


def watcher() -> Watcher | None:
    """The one that watches this thread now."""
    return next((r for r in thread.recorders if isinstance(r, Watcher)), None)


def watch(new: Watcher | None) -> None:
    """Makes `new` the one that watches this thread, or nobody."""
    recorders = thread.recorders
    old = watcher()
    if old is not None:
        recorders.remove(old)
    recorders.backward_pass = None
    if new is not None:
        recorders.insert(0 if recorders.recording is None else 1, new)
        recorders.backward_pass = new.backward_pass
