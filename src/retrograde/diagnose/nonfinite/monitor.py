"""The monitor of `debugging.nonfinite`, which reports NaN and Inf as they are produced."""

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
from retrograde.diagnose.backward_steps import is_finite, step_by_step, to_numpy
from retrograde.diagnose.calls import RecordedCall, Values, calls_of
from retrograde.diagnose.nonfinite.autopsy import Autopsy, build_report, inside_note
from retrograde.diagnose.nonfinite.search import BACKWARD, FORWARD, INPUT, NonfiniteOrigin, Step
from retrograde.values import dtypes, source_location
from retrograde.values.errors import invalid

MODES = ("raise", "warn", "explain")

# Primitives that only move values, which were checked before. (TensorFlow has such a list too.)
PASS_THROUGH = frozenset(
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

_MAX_REMEMBERED = 10_000  # non-finite tensors that are not reported again


class Monitor(Recorder):
    """Checks the outputs of every call and every step of backward passes.

    It is the outermost recorder, except for a `function` that is being traced, so it is notified
    first. While it is active, functions are replayed call by call.
    """

    __slots__ = ("_in_backward_pass", "_mode", "_nonfinite", "_reported", "_variables")

    def __init__(self, mode: str) -> None:
        self._mode = mode
        self._nonfinite: OrderedDict[int, None] = OrderedDict()
        self._reported: set = set()
        self._variables: weakref.WeakValueDictionary = weakref.WeakValueDictionary()
        self._in_backward_pass = False

    # The forward pass

    def record(self, primitive: Any, inputs: tuple, attrs: dict, y: Any) -> None:
        """Reports the call if an output is non-finite."""
        if self._in_backward_pass or primitive.name in PASS_THROUGH:
            return
        outputs = y if isinstance(y, tuple) else (y,)
        for index, output in enumerate(outputs):
            if output._spec.dtype in dtypes.INEXACT and not is_finite(output):
                self._report_forward(primitive, inputs, attrs, outputs, index)
                return

    def read(self, variable: Any) -> None:
        """Remembers the variable, for its name."""
        self._variables[variable._id] = variable

    def _report_forward(
        self, primitive: Any, inputs: tuple, attrs: dict, outputs: tuple, index: int
    ) -> None:
        nonfinite = [x for x in inputs if not is_finite(x)]
        known = any(x._id in self._nonfinite for x in nonfinite)
        self._remember(outputs)
        if known and self._mode != "raise":
            return
        ids = tuple([x._id for x in inputs])
        registered = PRIMITIVES.get(primitive.name)
        out = outputs[index]._id
        call = RecordedCall(0, primitive.name, registered, ids, (out,), attrs, {}, {})
        step = Step(FORWARD, to_numpy(outputs[index]), call)
        if nonfinite and self._reported:
            return  # a reported value has spread through gradients and assignments
        if nonfinite:
            self._remember(tuple(nonfinite))
            first = Step(INPUT, to_numpy(nonfinite[0]), key=nonfinite[0]._id)
            origin = NonfiniteOrigin(first, path=[step])
        else:
            origin = NonfiniteOrigin(step, [to_numpy(x) for x in inputs], step.array)
        location = source_location.location_of(sys._getframe(1))
        if not nonfinite and location is not None and location.rule is not None:
            origin = _origin_in_rule(step.array, location) or origin
        head = (
            f"Detected Infinity or NaN in output {index} of eagerly-executing op "
            f'"{primitive.name}" (# of outputs: {len(outputs)})'
        )
        self._report(origin, {} if location is None else {out: location}, head)

    def _remember(self, tensors: tuple[Tensor, ...]) -> None:
        for x in tensors:
            self._nonfinite[x._id] = None
        while len(self._nonfinite) > _MAX_REMEMBERED:
            self._nonfinite.popitem(last=False)

    # The backward pass

    def backward_pass(
        self, entries: list[tuple], cotangents: Cotangents, source_ids: set[int], needed: set | None
    ) -> None:
        """Runs a backward pass and checks each step."""
        locations = getattr(entries, "locations", {})
        for g in cotangents.values():
            if not is_finite(g):
                head = "Detected Infinity or NaN in output_gradients"
                self._report(NonfiniteOrigin(Step(INPUT, to_numpy(g))), {}, head)
        before, self._in_backward_pass = self._in_backward_pass, True
        check_step = functools.partial(self._check_step, locations)
        try:
            step_by_step(entries, cotangents, source_ids, needed, check_step)
        finally:
            self._in_backward_pass = before

    def _check_step(self, locations: dict, entry: tuple, gs: tuple, cotangents: Cotangents) -> None:
        if not all(map(is_finite, gs)):
            return
        for position, key in enumerate(entry[1]):
            if not is_finite(cotangents.get(key)):
                self._report_backward(locations, entry, gs, to_numpy(cotangents[key]), position)
                return

    def _report_backward(
        self, locations: dict, entry: tuple, gs: tuple, array: np.ndarray, position: int
    ) -> None:
        calls = calls_of([entry])
        (call,) = calls
        values = Values(calls, [])
        inputs, outputs = values.inputs(call), values.outputs(call)
        if not all(map(is_finite, inputs + outputs)):
            return  # these were reported when they were computed
        y, g = (parts[0] if len(parts) == 1 else None for parts in (outputs, gs))
        origin = NonfiniteOrigin(Step(BACKWARD, array, call, position), inputs, y, to_numpy(g))
        head = f'Detected Infinity or NaN in the gradient of eagerly-executing op "{call.name}"'
        self._report(origin, locations, head)

    # Reports

    def _report(self, origin: NonfiniteOrigin, locations: dict, head: str) -> None:
        # The path from the origin is not known yet.
        report = build_report(origin, locations, self._variables)
        report = replace(report, path=(), note=report.note or _note())
        if self._mode == "raise":
            raise invalid(f"{head}\n{report}")
        key = (report.direction, report.primitive, report.location)
        if key in self._reported:
            return
        self._reported.add(key)
        if self._mode == "explain":
            print(report)
        else:
            _warn(report)


def _replay_frame() -> FrameType | None:
    """Returns the frame that replays a function, if there is one."""
    frame = sys._getframe(1)
    while frame is not None and source_location.interpreter_of(frame) is None:
        frame = frame.f_back
    return frame


def _note() -> str:
    """Returns a note on where a function was called, if one is being replayed."""
    frame = _replay_frame()
    return "" if frame is None else inside_note(source_location.location_of(frame.f_back))


def _origin_in_rule(
    array: np.ndarray, location: source_location.SourceLocation
) -> NonfiniteOrigin | None:
    """Returns the origin if a gradient inside a replayed function produced the value."""
    frame = _replay_frame()
    derived = source_location.interpreter_of(frame).derived(frame)
    if derived is None:
        return None
    primitive, inputs, outputs = derived
    ids = (tuple([x._id for x in tensors]) for tensors in (inputs, outputs))
    call = RecordedCall(0, primitive.name, primitive, *ids, {}, {}, {}, None, location)
    y = to_numpy(outputs[0]) if len(outputs) == 1 else None
    return NonfiniteOrigin(Step(BACKWARD, array, call), [to_numpy(x) for x in inputs], y)


def _warn(report: Autopsy) -> None:
    if report.location is None:
        warnings.warn(str(report), RuntimeWarning, stacklevel=2)
    else:
        location = report.location
        warnings.warn_explicit(str(report), RuntimeWarning, location.filename, location.line)


def active_monitor() -> Monitor | None:
    """Returns the monitor of this thread, if there is one."""
    return next((r for r in thread.recorders if isinstance(r, Monitor)), None)


def set_monitor(new: Monitor | None) -> None:
    """Replaces the monitor of this thread; `None` removes it."""
    recorders = thread.recorders
    old = active_monitor()
    if old is not None:
        recorders.remove(old)
    recorders.backward_pass = None
    if new is not None:
        recorders.insert(0 if recorders.tracer is None else 1, new)
        recorders.backward_pass = new.backward_pass
