"""What a tape notes besides its recording, for those who ask afterwards."""

from __future__ import annotations

import sys
import threading
import weakref
from typing import Any

from retrograde.core.backward import Cotangents, is_finite
from retrograde.core.hooks import hook
from retrograde.core.recorders import Recorder
from retrograde.core.source_location import Place
from retrograde.core.tape_arguments import Asked
from retrograde.core.tape_notes import Exit, Missing, Moment, Notes, now, place_above
from retrograde.values.arguments import shown

_INTO_VARIABLES = frozenset({"assign", "assign_add", "assign_sub", "scatter"})


class _LastSilent(threading.local):
    """The tape of this thread that returned `None` last, by a weak reference."""

    tape: Any = None


last_silent = _LastSilent()


def on_none_from(value: Any) -> str:
    if value not in ("explain", "raise", "zeros"):
        raise ValueError(
            f"Unknown value for on_none: {shown(value)}. Expected 'explain', 'raise', 'zeros' or "
            "None."
        )
    return value


class Testifying(Recorder):
    """A recorder that notes where the way of a gradient ends. `retrograde.diagnose` reads it."""

    __slots__ = ()

    def _note(self) -> Notes:
        if self._notes is None:
            self._notes = Notes()
        return self._notes

    def _pass_by(self, primitive: Any, ids: tuple, y: Any, place: Place | None = None) -> None:
        """Notes a call that is not recorded."""
        if place is None and self._places is not None:
            place = place_above(2)
        (self._notes or self._note()).pass_by(primitive.name, ids, y, place)

    def escape(self, tensor: Any, how: str) -> None:
        """Notes where the value of `tensor` left."""
        if how not in _INTO_VARIABLES:  # these are told to `store`, with the variable
            self._note().exits.append(Exit(tensor._id, how, now(), place_above(1)))

    def store(self, variable: Any, tensor: Any) -> None:
        """Notes where the value of `tensor` went into `variable`."""
        place = place_above(1)
        self._note().exits.append(Exit(tensor._id, "assign", now(), place, variable._id))

    def create(self, variable: Any) -> None:
        """Notes where `variable` was made."""
        self._note().made[variable._id] = Moment(now(), place_above(1))

    def _keep(self, entries: list[tuple], targets: list, weights: list, sources: list) -> None:
        """Keeps what was recorded beyond the walk back."""
        read = [v._current() for v in self._variables.values()]
        self._asked = Asked(list(entries), targets, weights, sources, read)

    def _keep_spoilt(
        self, cotangents: Cotangents, targets: list, weights: list, sources: list
    ) -> None:
        """Keeps what is left of the recording if the walk back spoilt a gradient."""
        if not all(is_finite(cotangents.get(x._id)) for x in sources):
            spoilt = cotangents.spoilt
            self._keep([*spoilt.before, spoilt.entry], targets, weights, sources)
            self._asked = self._asked._replace(spoilt=spoilt)

    def _miss(self, targets: list, missing: list, silent: bool) -> None:
        """Notes that there are no gradients for `missing`.

        If they are `silent`, because the user gets `None`, it answers as `on_none` says.
        """
        note = self._note()
        note.missing = Missing(tuple(map(weakref.ref, targets)), tuple(map(weakref.ref, missing)))
        if silent:
            last_silent.tape = weakref.ref(self)
            if self._on_none is not None:
                hook("answer_none")(self, targets, missing, sys._getframe(1))
