"""What a tape writes down inside its `with` block, and hands over for a walk back."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

from retrograde.core.apply import Primitive
from retrograde.core.hooks import hook
from retrograde.core.plans import save_all
from retrograde.core.recorders import clock, thread
from retrograde.core.rules import ALIGNED, CONNECTED, UNCONNECTED, Outputs, Spec
from retrograde.core.source_location import LinedEntries, Place, switch
from retrograde.core.tape_arguments import Asked, flat, spent_message, warn_of_dtype
from retrograde.core.tape_diagnostics import Testifying, on_none_from
from retrograde.core.tape_notes import Moment, Notes, Pause, place_above
from retrograde.core.tensor import Tensor
from retrograde.values import dtypes

_ONLY = (CONNECTED,)
_plan_of = operator.itemgetter(0)
_name_of = operator.attrgetter("name")


class Recorded(NamedTuple):
    """What a tape wrote down. With `boxed`, someone else listens, and walks are made of tensors."""

    entries: list[tuple]
    roots: set[int]
    boxed: bool


class TapeRecording(Testifying):
    """A recorder that keeps, of each call that leads to what is watched, what its rules read."""

    __slots__ = (
        "__weakref__",
        "_asked",
        "_began",
        "_connected",
        "_ended",
        "_entries",
        "_ledger",
        "_listened",
        "_memory_limit",
        "_names",
        "_notes",
        "_on_none",
        "_persistent",
        "_places",
        "_recording",
        "_roots",
        "_saves_all",
        "_spent_at",
        "_variables",
        "_watch_accessed_variables",
    )

    def __init__(
        self,
        persistent: bool = False,
        watch_accessed_variables: bool = True,
        *,
        on_none: str | None = None,
        lines: bool | None = None,
        memory_limit: int | str | None = None,
    ) -> None:
        self._persistent = persistent
        self._watch_accessed_variables = watch_accessed_variables
        self._recording = False
        self._on_none = on_none and on_none_from(on_none)
        # The place of each call, by the id of its output; `None` if lines are not kept.
        self._places: dict[int, Place] | None = None
        # What a tape with a limit of memory holds and lets go.
        self._ledger: Any = None
        self._memory_limit: int | None = None
        self._saves_all = False
        if memory_limit is not None:
            if lines:
                raise ValueError("GradientTape: `lines` keep all values: no `memory_limit` then.")
            self._memory_limit = hook("bytes_from")(memory_limit)
            self._saves_all = True
        elif switch.on if lines is None else lines:
            self._places = {}
            self._saves_all = True
        self._clear()

    def _clear(self) -> None:
        self._variables: dict[int, Any] = {}
        if self._places is not None:
            self._places = {}
            self._entries: list[tuple] | None = LinedEntries(self._places)
        elif self._memory_limit is not None:
            self._entries = hook("limited_entries")(self._memory_limit, self._variables)
            self._ledger = self._entries.ledger
        else:
            self._entries = []
        # Ids of all tensors that a root leads to, each with those that it was made of.
        self._connected: dict[int, tuple[int, ...] | None] = {}
        self._roots: set[int] = set()  # ids of what is watched
        self._spent_at: tuple[str, int] | None = None
        self._asked: Asked | None = None
        self._listened = False  # whether the walk back was to tell of gradients that it spoils
        self._notes: Notes | None = None
        self._began = 0  # when the block began, by the ids of tensors

    def __enter__(self) -> Self:
        if self._recording:
            raise ValueError(
                "Tape is still recording. This can happen if you try to re-enter an "
                "already-active tape."
            )
        if self._entries is None:
            self._clear()
        thread.recorders.append(self)
        self._recording = True
        if not self._began:
            self._began = next(clock)
        else:
            self._note().pauses.append(Pause("between", self._ended, next(clock), None))
        return self

    def __exit__(self, *_: Any) -> None:
        self._stop()

    def _stop(self) -> None:
        self._recording = False
        self._ended = next(clock)
        recorders = thread.recorders
        if self in recorders:  # not if gradient() took it off, or runs in another thread
            recorders.remove(self)

    def watch(self, tensor: Any) -> None:
        """Follows `tensor`, a Tensor or Variable or a structure of them, from here on.

        >>> x = tf.constant(3.0)
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x**3
        >>> tape.gradient(y, x).numpy()
        np.float32(27.0)
        """
        watched, moment = self._note().watched, Moment(next(clock), place_above(1))
        for x in flat(tensor, "watch")[0]:
            if x.dtype.numpy_dtype not in dtypes.INEXACT:
                warn_of_dtype("tensor", x.dtype)
                continue
            if x._id not in self._connected:
                self._connected[x._id] = None
                watched[x._id] = moment
            self._roots.add(x._id)
            if not isinstance(x, Tensor):
                self._variables[x._id] = x

    def watched_variables(self) -> tuple:
        """The variables that are watched, in the order in which they came to be."""
        return tuple(self._variables.values())

    @contextlib.contextmanager
    def stop_recording(self) -> Iterator[None]:
        """A block that this tape does not record; other tapes do.

        >>> x = tf.Variable(3.0)
        >>> with tf.GradientTape() as tape:
        ...     with tape.stop_recording():
        ...         y = x * x
        >>> print(tape.gradient(y, x))
        None
        """
        recorders = thread.recorders
        if not self._recording or self not in recorders:
            kind = ValueError if self._began and self._entries is not None else RuntimeError
            raise kind("Tape is not recording in this thread: there is nothing to stop.")
        position = recorders.index(self)
        del recorders[position]
        self._recording = False
        start, place = next(clock), place_above(2)
        try:
            yield
        finally:
            recorders.insert(position, self)
            self._recording = True
            self._note().pauses.append(Pause("stop_recording", start, next(clock), place))

    def reset(self) -> None:
        """Forgets all that was recorded and watched, and goes on recording."""
        if not self._recording:
            raise ValueError("Tape is not recording: reset() belongs inside its `with` block.")
        forgotten = Pause("reset", self._began, next(clock), place_above(1))
        self._clear()
        self._began = next(clock)
        self._note().pauses.append(forgotten)

    # Recording

    @property
    def defers(self) -> bool:
        """Whether what it hears of may be computed later: not if it keeps all values, to look."""
        return not self._saves_all

    def read(self, variable: Any) -> None:
        """Watches a trainable variable that is read while the tape runs."""
        key = variable._id
        if key in self._connected or not (self._watch_accessed_variables and variable._trainable):
            return
        tensor = variable._tensor
        if tensor is None:  # another thread writes into it
            tensor = variable._current()
        if tensor._array.dtype in dtypes.INEXACT:
            self._connected[key] = None
            self._roots.add(key)
            self._variables[key] = variable

    def record(self, primitive: Primitive, inputs: tuple, attrs: dict, y: Any) -> None:
        """Writes down a call if one of its inputs is connected to what is watched."""
        connected = self._connected
        if len(inputs) == 2:
            x1, x2 = inputs
            ids = id1, id2 = (x1._id, x2._id)
            state1, state2 = id1 in connected, id2 in connected
            if not (state1 or state2):
                return self._pass_by(primitive, ids, y)
            if primitive.partials is not None:
                shape = y._spec.shape
                if state1 and x1._spec.shape == shape:
                    state1 = ALIGNED
                if state2 and x2._spec.shape == shape:
                    state2 = ALIGNED
            key = (state1, state2)
            values = (y, x1, x2)
        elif len(inputs) == 1:
            (x,) = inputs
            ids = (x._id,)
            if x._id not in connected:
                return self._pass_by(primitive, ids, y)
            key = _ONLY
            values = (y, x)
        else:
            ids, key = _ids_and_states(primitive, inputs, y, connected)
            if not any(key):
                return self._pass_by(primitive, ids, y)
            values = (y, *inputs)
        try:
            plan = primitive.plans[key]
        except KeyError:
            plan = primitive.plan(key)
        entries = self._entries
        if plan is False or entries is None:  # spent by another thread
            return self._pass_by(primitive, ids, y, place_above(1))
        if type(y) is tuple:
            values = (Outputs(y), *inputs)
            out = _outputs(y)
            inexact = _inexact(out)
            if not inexact:
                return self._pass_by(primitive, ids, y, place_above(1))
            connected.update(dict.fromkeys(inexact, ids))
        else:
            out = y._id
            connected[out] = ids
        save = plan.save
        saved = save_all(plan, values) if self._saves_all else save(values)
        entries.append((plan, ids, out, saved, attrs))

    # What was recorded, for a walk

    def _check_not_spent(self) -> None:
        if self._entries is None:
            raise RuntimeError(spent_message(*self._spent_at))

    def _is_heard(self) -> bool:
        """Whether someone listens to what a walk over this tape does."""
        return bool(thread.recorders) and (self._persistent or thread.recorders != [self])

    def _hand_over(self, frame: Any, what: str, row_by_row: bool = False) -> Recorded:
        """What was recorded, for one more walk or several; the tape's last unless persistent."""
        self._check_not_spent()
        if row_by_row and not self._persistent:
            raise RuntimeError(
                f"GradientTape must be created with persistent=True to compute the {what} with "
                "eager execution enabled and with experimental_use_pfor set to False."
            )
        heard = self._is_heard()
        entries = self._entries.copy() if self._persistent else self._spend(frame)
        return Recorded(entries, self._roots, heard)

    def _spend(self, frame: Any) -> list[tuple]:
        """Ends the life of the tape, remembers where, and hands over what it recorded."""
        if self._recording:
            self._stop()
        entries, self._entries = self._entries, None
        # For those who ask after the walk. The plans themselves may hold arrays.
        self._names = [*map(_name_of, map(_plan_of, entries))]
        self._spent_at = (frame.f_code.co_filename, frame.f_lineno)
        return entries


# Apart from `record`, in which a comprehension would make all names slower to read.


def _ids_and_states(primitive: Primitive, inputs: tuple, y: Any, connected: Any) -> tuple:
    """The ids of more than two inputs, and how each stands to the tape, as in the key of a plan."""
    ids = tuple([x._id for x in inputs])
    shape = None if primitive.partials is None else y._spec.shape
    states = [
        UNCONNECTED
        if x._id not in connected
        else ALIGNED
        if shape is not None and x._spec.shape == shape
        else CONNECTED
        for x in inputs
    ]
    return ids, tuple(states)


def _outputs(y: tuple) -> tuple:
    return tuple([(t._id, Spec.of(t)) for t in y])


def _inexact(out: tuple) -> list[int]:
    return [i for i, spec in out if spec.dtype in dtypes.INEXACT]
