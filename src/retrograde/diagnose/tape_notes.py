"""Notes of a tape, in addition to recorded calls: events that end the path of a gradient.

These events are rare compared with recorded calls. Their number is limited: a tape keeps the newest
notes. They hold no arrays. The functions at the end are methods of tapes, which `_api/hooks.py`
registers.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections import deque
from typing import Any, NamedTuple

from retrograde.core.backward import Cotangents, NonFinite, is_finite
from retrograde.core.hooks import hook
from retrograde.core.recorders import next_id
from retrograde.core.tape_arguments import UnconnectedGradients
from retrograde.core.tensor import Tensor
from retrograde.values.source_location import SourceLocation, caller_location

LIMIT = 1 << 15

_INTO_VARIABLES = frozenset({"assign", "assign_add", "assign_sub", "scatter"})

now = next_id  # ids serve as time: tensors with smaller ids were created earlier


class Unrecorded(NamedTuple):
    """A call that a tape observed but did not record.

    Either none of its inputs depends on a watched tensor, or no gradient flows through it.
    """

    name: str
    ids: tuple[int, ...]
    outputs: tuple[int, ...]
    location: SourceLocation | None


class Escape(NamedTuple):
    """A value that was converted to Python or NumPy, or assigned to a variable."""

    tensor: int
    how: str
    when: int
    location: SourceLocation | None
    variable: int | None = None


class Moment(NamedTuple):
    """The time and location of an event."""

    when: int
    location: SourceLocation | None


class Pause(NamedTuple):
    """An interval in which a tape did not record, or whose recording was discarded."""

    why: str
    start: int
    end: int
    location: SourceLocation | None


class Missing(NamedTuple):
    """The targets and sources of a gradient that was `None`, by weak references."""

    targets: tuple
    sources: tuple


class LastGradient(NamedTuple):
    """The last gradient that a tape computed, with the entries that it kept.

    `read` are the values that the watched variables had. If a cotangent was non-finite,
    `nonfinite` describes it, and `entries` are the entry that produced it and those before.
    """

    entries: list[tuple]
    targets: list
    weights: list
    sources: list
    read: list[Tensor]
    nonfinite: NonFinite | None = None


class Notes:
    """The notes of one tape."""

    __slots__ = ("created", "escapes", "missing", "pauses", "unrecorded", "watched")

    def __init__(self) -> None:
        self.unrecorded: deque[Unrecorded] = deque(maxlen=LIMIT)
        self.escapes: deque[Escape] = deque(maxlen=LIMIT)
        self.pauses: deque[Pause] = deque(maxlen=LIMIT)
        self.watched: dict[int, Moment] = {}  # by the id of the watched tensor or variable
        self.created: dict[int, Moment] = {}  # variables created in the block, by id
        self.missing: Missing | None = None

    def watch(self, key: int, when: int, location: SourceLocation | None) -> None:
        """Notes that `key` is watched since `when`."""
        self.watched[key] = Moment(when, location)

    def pause(self, why: str, start: int, location: SourceLocation | None = None) -> None:
        """Notes that a pause has ended."""
        self.pauses.append(Pause(why, start, now(), location))


class _LastTape(threading.local):
    """The tape of this thread that returned `None` last, by a weak reference."""

    tape: Any = None


last_without_gradient = _LastTape()


# Methods of tapes


def _note(tape: Any) -> Notes:
    """Returns the notes of a tape."""
    if tape._notes is None:
        tape._notes = Notes()
    return tape._notes


def _skip(tape: Any, primitive: Any, ids: tuple, y: Any, blocks_gradient: bool = False) -> None:
    """Notes a call that is not recorded, with its location if no gradient flows through it."""
    location = caller_location() if blocks_gradient or tape._locations is not None else None
    outputs = tuple([t._id for t in y]) if type(y) is tuple else (y._id,)
    notes = tape._notes or _note(tape)
    notes.unrecorded.append(Unrecorded(primitive.name, ids, outputs, location))


def escape(tape: Any, tensor: Any, how: str) -> None:
    """Notes where the value of `tensor` was converted to Python or NumPy."""
    if how not in _INTO_VARIABLES:  # `store` notes these, with the variable
        _note(tape).escapes.append(Escape(tensor._id, how, now(), caller_location()))


def store(tape: Any, variable: Any, tensor: Any) -> None:
    """Notes where the value of `tensor` was assigned to `variable`."""
    _note(tape).escapes.append(Escape(tensor._id, "assign", now(), caller_location(), variable._id))


def create(tape: Any, variable: Any) -> None:
    """Notes where `variable` was created."""
    _note(tape).created[variable._id] = Moment(now(), caller_location())


def _keep(tape: Any, entries: list[tuple], targets: list, weights: list, sources: list) -> None:
    """Keeps the entries after the backward pass."""
    read = [v._current() for v in tape._variables.values()]
    tape._last_gradient = LastGradient(list(entries), targets, weights, sources, read)


def _keep_nonfinite(
    tape: Any, cotangents: Cotangents, targets: list, weights: list, sources: list
) -> None:
    """Keeps the remaining entries if a gradient is non-finite."""
    if not all(is_finite(cotangents.get(x._id)) for x in sources):
        event = cotangents.nonfinite
        _keep(tape, [*event.before, event.entry], targets, weights, sources)
        tape._last_gradient = tape._last_gradient._replace(nonfinite=event)


def _miss(
    tape: Any, targets: list, missing: list, unconnected: UnconnectedGradients
) -> UnconnectedGradients:
    """Notes that `missing` have no gradient, and warns or raises as `on_none` says.

    Returns how `gradient()` represents them.
    """
    if tape._on_none == "zeros":
        unconnected = UnconnectedGradients.ZERO
    references = (tuple(map(weakref.ref, tensors)) for tensors in (targets, missing))
    _note(tape).missing = Missing(*references)
    if unconnected is UnconnectedGradients.NONE:
        last_without_gradient.tape = weakref.ref(tape)
        if tape._on_none is not None:
            hook("report_none")(tape, targets, missing, sys._getframe(1))
    return unconnected
