"""What a tape notes besides its recording: where the way of a gradient ends, and why.

These events are rare next to recorded calls, and the notes are bounded: a tape that runs for long
keeps the newest. None of them holds an array.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import Any, NamedTuple

from retrograde.core.recorders import next_id
from retrograde.core.source_location import Place, place_of

LIMIT = 1 << 15

now = next_id  # the time: tensors with smaller ids were made before, those with larger ones after


class Passed(NamedTuple):
    """A call that a tape saw and did not record.

    Either nothing that is watched led to it, or no gradient flows through it.
    """

    name: str
    ids: tuple[int, ...]
    outputs: tuple[int, ...]
    place: Place | None


class Exit(NamedTuple):
    """A value that left for Python or NumPy, or into a variable."""

    tensor: int
    how: str
    when: int
    place: Place | None
    variable: int | None = None


class Moment(NamedTuple):
    """When and where something happened."""

    when: int
    place: Place | None


class Pause(NamedTuple):
    """A time in which a tape did not listen, or what it heard was forgotten."""

    why: str
    start: int
    end: int
    place: Place | None


class Missing(NamedTuple):
    """The targets and sources of a gradient that was `None`, by weak references."""

    targets: tuple
    sources: tuple


class Notes:
    """The notes of one tape."""

    __slots__ = ("exits", "made", "missing", "passed", "pauses", "watched")

    def __init__(self) -> None:
        self.passed: deque[Passed] = deque(maxlen=LIMIT)
        self.exits: deque[Exit] = deque(maxlen=LIMIT)
        self.pauses: deque[Pause] = deque(maxlen=LIMIT)
        self.watched: dict[int, Moment] = {}  # by the id of what is watched
        self.made: dict[int, Moment] = {}  # variables made in the block, by id
        self.missing: Missing | None = None

    def pass_by(self, name: str, ids: tuple, y: Any, place: Place | None) -> None:
        """Notes a call that is not recorded."""
        outputs = tuple([t._id for t in y]) if type(y) is tuple else (y._id,)
        self.passed.append(Passed(name, ids, outputs, place))


class CustomName(str):
    """The name of a function with a gradient of its own.

    It knows where that function was called; and, after the walk, for which of its inputs the
    gradient was `None`.
    """

    __slots__ = ("place", "withheld")

    def __new__(cls, name: str) -> CustomName:
        self = super().__new__(cls, name)
        self.place = place_above(1)
        self.withheld = ()
        return self


def place_above(levels: int) -> Place | None:
    """The place in the user's program that led to the function `levels` above the caller."""
    return place_of(sys._getframe(levels + 1))
