"""The options of a tape: source lines, a memory limit, and the action if a gradient is `None`.

A plain tape has none of this code. A tape that is created with options becomes an instance of a
subclass, which overrides the affected methods.
"""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from types import FrameType
from typing import Any

from retrograde.core.rules import Outputs
from retrograde.core.tape import GradientTape
from retrograde.derivatives.checkpointing import Ledger, LimitedEntries, parse_bytes
from retrograde.values.arguments import shown
from retrograde.values.source_location import SourceLocation, first_output, location_of


@dataclass(slots=True)
class Extras:
    """The additional state of a tape with options."""

    on_none: str | None = None
    locations: dict[int, SourceLocation] | None = None
    memory_limit: int | None = None
    ledger: Ledger | None = None


class _WithOptions:
    """Reads the extras of a tape."""

    __slots__ = ()

    _on_none = property(lambda self: self._extras.on_none)
    _locations = property(lambda self: self._extras.locations)
    _ledger = property(lambda self: self._extras.ledger)


class _SavesAll(_WithOptions):
    """Saves all inputs and outputs of each call."""

    __slots__ = ()

    defers = False  # large arrays are not evaluated lazily: their values are kept

    def record(self, primitive: Any, inputs: tuple, attrs: dict, y: Any) -> None:
        """Records a call as a plain tape does, then completes its entry."""
        entries = self._entries
        before = 0 if entries is None else len(entries)
        super().record(primitive, inputs, attrs, y)
        if entries is not None and len(entries) > before:
            values = (Outputs(y) if type(y) is tuple else y, *inputs)
            self._complete(entries, values, sys._getframe(1))


class _KeepsLines(_SavesAll):
    """A tape that stores the source location and all values of each call, even when used."""

    __slots__ = ()

    def _clear(self) -> None:
        super()._clear()
        self._extras.locations = {}
        self._entries = LocatedEntries(self._extras.locations)

    def _complete(self, entries: LocatedEntries, values: tuple, frame: FrameType) -> None:
        plan, ids, out, _, attrs = entries[-1]
        if not plan.user_code:
            entries[-1] = (plan, ids, out, values, attrs)
        location = location_of(frame)
        if location is not None:
            layer = _layer_of(frame) if "keras" in sys.modules else None
            location = location if layer is None else location._replace(layer=layer)
            entries.locations[first_output(out)] = location

    def _monitor(self, _cotangents: Any, entries: list, lists: tuple, _: bool) -> None:
        self._keep(entries, *lists)


class _LimitsMemory(_SavesAll):
    """A tape that drops values to stay under its limit, and recomputes them."""

    __slots__ = ()

    def _clear(self) -> None:
        super()._clear()
        self._extras.ledger = Ledger(self._extras.memory_limit, self._variables)
        self._entries = LimitedEntries(self._extras.ledger)

    def _complete(self, entries: LimitedEntries, values: tuple, frame: FrameType) -> None:
        entries.limit_last(values, location_of(frame))

    def _monitor(self, *_: Any) -> None:
        pass  # `autopsy` would need values that the limit does not allow


def set_options(tape: GradientTape, on_none: Any, lines: Any, memory_limit: Any) -> None:
    """Changes the class of `tape` to one with these options."""
    mixin: type = _WithOptions
    tape._extras = Extras(on_none and _check_on_none(on_none))
    if memory_limit is not None:
        if lines:
            raise ValueError(
                "GradientTape: `lines=True` keeps all values, so it cannot be combined with "
                "`memory_limit`."
            )
        tape._extras.memory_limit = parse_bytes(memory_limit)
        mixin = _LimitsMemory
    elif GradientTape._records_lines if lines is None else lines:
        mixin = _KeepsLines
    tape.__class__ = _class_of(mixin, type(tape))


@functools.cache
def _class_of(mixin: type, tape_class: type) -> type:
    namespace = {
        "__slots__": (),
        "__module__": tape_class.__module__,
        "__doc__": tape_class.__doc__,
    }
    return type(tape_class.__name__, (mixin, tape_class), namespace)


def _check_on_none(on_none: Any) -> str:
    if on_none not in ("explain", "raise", "zeros"):
        raise ValueError(
            f"Unknown value for on_none: {shown(on_none)}. Expected 'explain', 'raise', 'zeros' or "
            "None."
        )
    return on_none


class LocatedEntries(list):
    """The entries of a tape with `lines=True`, with the `locations` of calls by first output."""

    __slots__ = ("locations",)

    def __init__(self, locations: dict[int, SourceLocation]) -> None:
        super().__init__()
        self.locations = locations

    def copy(self) -> LocatedEntries:
        """Returns the same entries in another list."""
        copied = LocatedEntries(self.locations)
        copied.extend(self)
        return copied


def _layer_of(frame: FrameType | None) -> str | None:
    """Returns the name of the innermost Keras layer that is being called."""
    while frame is not None:
        if frame.f_code.co_qualname == "Layer.__call__":
            return frame.f_locals["self"].name
        frame = frame.f_back
    return None
