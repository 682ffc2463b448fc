"""GradientTape: a recorder that computes gradients of what it recorded."""

from __future__ import annotations

import contextlib
import operator
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from retrograde.core import namespaces
from retrograde.core.apply import Primitive
from retrograde.core.backward import Cotangents, backward_pass, depending_on
from retrograde.core.hooks import TAPE_METHODS, LazyMethod, hook
from retrograde.core.lazy import waiting
from retrograde.core.recorders import Recorder, clock, thread
from retrograde.core.rules import ALIGNED, CONNECTED, UNCONNECTED, Outputs, Spec
from retrograde.core.tape_arguments import (
    UnconnectedGradients,
    already_used_message,
    as_unconnected_gradients,
    flatten_arguments,
    output_gradients_per_target,
    seed,
    warn_non_float,
    wrap_gradient,
)
from retrograde.core.tensor import Tensor
from retrograde.values import dtypes
from retrograde.values.source_location import caller_location

if TYPE_CHECKING:
    from retrograde._api.declarations import TapeMethods as _TapeBase
else:
    _TapeBase = Recorder

_ONLY = (CONNECTED,)
_plan_of = operator.itemgetter(0)
_name_of = operator.attrgetter("name")


class TapeSnapshot(NamedTuple):
    """The recording of a tape. `on_tensors` says that its rules run on tensors."""

    entries: list[tuple]
    roots: set[int]
    on_tensors: bool


class GradientTape(_TapeBase):
    """Records operations inside a `with` block, for differentiation afterwards.

    Trainable variables are watched when they are read, unless `watch_accessed_variables` is false.
    Other tensors must be watched explicitly. A tape can compute gradients once and frees its memory
    as it does so; a `persistent` tape can be used repeatedly.

    `on_none` says what happens if a gradient is `None`: "explain" warns and gives the reason,
    "raise" raises an error with the reason, and "zeros" returns zeros.

    With `lines`, the tape records the source line of each call and keeps all inputs and outputs,
    also after the backward pass, for diagnostics such as `autopsy()`. Inside
    `tf.debugging.record_lines()` this is the default.

    With a `memory_limit`, in bytes or as "2GB", the tape holds no more than that in addition to the
    values of variables. It frees the values that are cheapest to rematerialize, and computes them
    again in the backward pass. Gradients are bit-for-bit identical. `memory()` reports the cost. A
    limit that cannot be met raises a `ResourceExhaustedError`.

    >>> x = tf.Variable(3.0)
    >>> with tf.GradientTape() as tape:
    ...     y = x * x
    >>> tape.gradient(y, x).numpy()
    np.float32(6.0)
    """

    __slots__ = (
        "__weakref__",
        "_began",
        "_connected",
        "_ended",
        "_entries",
        "_extras",
        "_last_gradient",
        "_monitored",
        "_names",
        "_notes",
        "_persistent",
        "_recording",
        "_roots",
        "_used_at",
        "_variables",
        "_watch_accessed_variables",
    )

    defers = True
    _records_lines = False  # the default of `lines`
    # A tape with options becomes an instance of a subclass, which has these in `_extras`. See
    # `diagnose/tape_options.py`.
    _locations: Any = None
    _ledger: Any = None
    _on_none: Any = None

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
        if on_none or lines or memory_limit is not None or (lines is None and self._records_lines):
            hook("set_options")(self, on_none, lines, memory_limit)
        self._clear()

    def _clear(self) -> None:
        self._variables: dict[int, Any] = {}
        # Each call is a tuple of its plan, the ids of its inputs and outputs, the values that its
        # rules read, and its attributes. `None` after the tape was used.
        self._entries: Any = []
        # Ids of all tensors that depend on a root, each with the ids that it was computed from.
        self._connected: dict[int, tuple[int, ...] | None] = {}
        self._roots: set[int] = set()  # ids of the watched tensors and variables
        self._used_at: Any = None  # a file and a line
        self._began = 0  # the time at which the block began: see `recorders.clock`
        # For diagnostics: events other than recorded calls, and the last call of `gradient`.
        self._notes: Any = None
        self._last_gradient: Any = None
        self._monitored = False

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
            self._note().pause("between", self._ended)
        return self

    def __exit__(self, *_: Any) -> None:
        self._recording = False
        self._ended = next(clock)
        recorders = thread.recorders
        if self in recorders:  # not if gradient() removed it, or in another thread
            recorders.remove(self)

    def watch(self, tensor: Any) -> None:
        """Starts watching `tensor`, a tensor, a variable or a structure of them.

        >>> x = tf.constant(3.0)
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x**3
        >>> tape.gradient(y, x).numpy()
        np.float32(27.0)
        """
        notes, now, location = self._note(), next(clock), caller_location()
        for x in flatten_arguments(tensor, "watch")[0]:
            if x.dtype.numpy_dtype not in dtypes.INEXACT:
                warn_non_float("tensor", x.dtype)
                continue
            if x._id not in self._connected:
                self._connected[x._id] = None
                notes.watch(x._id, now, location)
            self._roots.add(x._id)
            if not isinstance(x, Tensor):
                self._variables[x._id] = x

    def watched_variables(self) -> tuple:
        """Returns the watched variables, in the order in which they were created."""
        return tuple(sorted(self._variables.values(), key=lambda variable: variable._id))

    @contextlib.contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Stops recording on this tape in a `with` block. Other tapes continue to record.

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
            raise kind("Tape is not recording in this thread, so stop_recording() has no effect.")
        position = recorders.index(self)
        del recorders[position]
        self._recording = False
        start, location = next(clock), caller_location()
        try:
            yield
        finally:
            recorders.insert(position, self)
            self._recording = True
            self._note().pause("stop_recording", start, location)

    def reset(self) -> None:
        """Clears the recording and the watched tensors, and continues to record."""
        if not self._recording:
            raise ValueError("Tape is not recording. Call reset() inside its `with` block.")
        began = self._began
        self._clear()
        self._note().pause("reset", began, caller_location())
        self._began = next(clock)

    # Recording

    def read(self, variable: Any) -> None:
        """Watches a trainable variable that is read while the tape records."""
        key = variable._id
        if key in self._connected or not (self._watch_accessed_variables and variable._trainable):
            return
        tensor = variable._tensor
        if tensor is None:  # another thread is writing it
            tensor = variable._current()
        if tensor._spec.dtype in dtypes.INEXACT:
            self._connected[key] = None
            self._roots.add(key)
            self._variables[key] = variable

    def record(self, primitive: Primitive, inputs: tuple, attrs: dict, y: Any) -> None:
        """Records a call if one of its inputs depends on a watched tensor."""
        ids: tuple
        key: tuple
        values: tuple
        state1: int
        state2: int
        connected = self._connected
        if len(inputs) == 2:
            x1, x2 = inputs
            ids = id1, id2 = (x1._id, x2._id)
            state1, state2 = id1 in connected, id2 in connected
            if not (state1 or state2):
                return self._skip(primitive, ids, y)
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
                return self._skip(primitive, ids, y)
            key = _ONLY
            values = (y, x)
        else:
            ids, key = _ids_and_states(primitive, inputs, y, connected)
            if not any(key):
                return self._skip(primitive, ids, y)
            values = (y, *inputs)
        try:
            plan = primitive.plans[key]
        except KeyError:
            plan = primitive.plan(key)
        entries = self._entries
        if plan is False or entries is None:  # used by another thread
            return self._skip(primitive, ids, y, blocks_gradient=True)
        if type(y) is tuple:
            values = (Outputs(y), *inputs)
            out = _outputs(y)
            inexact = _inexact(out)
            if not inexact:
                return self._skip(primitive, ids, y, blocks_gradient=True)
            connected.update(dict.fromkeys(inexact, ids))
        else:
            out = y._id
            connected[out] = ids
        save = plan.save
        entries.append((plan, ids, out, save(values), attrs))

    # Differentiating

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        *,
        per_example: bool | str = False,
    ) -> Any:
        """Computes the gradient of the sum of `target` with respect to each of `sources`.

        `target` and `sources` may be structures; the result has the structure of `sources`.
        `output_gradients` are upstream gradients for the targets. The gradient is `None`, or zeros
        with `unconnected_gradients="zero"`, if no differentiable path connects a source to a
        target.

        With `per_example=True`, `target` has a loss for each example of a batch, and each result
        has per-example gradients along its first axis. With `per_example="norm"` it returns the
        norm of each example's gradient over all sources.

        >>> x, y = tf.Variable(2.0), tf.Variable(5.0)
        >>> with tf.GradientTape() as tape:
        ...     z = x * x * y
        >>> [g.numpy() for g in tape.gradient(z, [x, y])]
        [np.float32(20.0), np.float32(4.0)]
        """
        if per_example:
            by_row = hook("per_example_gradient")
            return by_row(self, target, sources, output_gradients, per_example)
        if self._entries is None:
            self._check_not_used()
        unconnected = as_unconnected_gradients(unconnected_gradients)
        targets, _ = flatten_arguments(target, "target")
        held, pack = flatten_arguments(sources, "source")
        weights = output_gradients_per_target(output_gradients, target, len(targets))
        recorders, lists = thread.recorders, (targets, weights, held)
        if waiting and output_gradients is None:  # the targets may be evaluated lazily
            found = hook("fused_gradient")(self, targets, held, sys._getframe(1))
            if found is not None:
                return pack(found)
        cotangents = Cotangents(self._runs_on_tensors(recorders))
        finite = cotangents.seed(targets, weights)
        entries = self._entries.copy() if self._persistent else self._use_up(sys._getframe(1))
        self._monitor(cotangents, entries, lists, finite)
        wanted = set()
        for x in held:
            wanted.add(x._id)
        needed = None if self._roots <= wanted else depending_on(wanted, entries)
        (recorders.backward_pass or backward_pass)(entries, cotangents, wanted, needed)
        if cotangents.nonfinite is not None:
            self._keep_nonfinite(cotangents, *lists)
        results, complete = [], True
        for x in held:
            g = cotangents.get(x._id)
            if g is None:
                complete = False
            results.append(g if g is None else wrap_gradient(g))
        if not complete:
            results = self._filled(cotangents, lists, unconnected)
        return pack(results)

    def _monitor(self, cotangents: Cotangents, entries: list, lists: tuple, finite: bool) -> None:
        """Keeps what `autopsy` needs to find the call that produced the first NaN or Inf.

        `lists` are the targets, their weights and the sources.
        """
        if finite and not self._persistent:
            cotangents.monitored = self._monitored = True
        else:
            self._keep(entries, *lists)

    def _filled(self, cotangents: Cotangents, lists: tuple, unconnected: Any) -> list:
        """Returns the results if some sources have no gradient."""
        targets, weights, sources = lists
        for x, weight in zip(targets, weights, strict=True):
            # No gradient flows from an integer target, but it may be a source itself.
            if x._spec.dtype not in dtypes.INEXACT and x._spec.dtype.kind != "O":
                cotangents.deposit(x._id, seed(x, weight, cotangents.on_tensors))
        missing = [x for x in sources if cotangents.get(x._id) is None]
        if missing:
            unconnected = self._miss(targets, missing, unconnected)
        return [wrap_gradient(cotangents.get(x._id), x, unconnected) for x in sources]

    # Use of the recording

    def _check_not_used(self) -> None:
        if self._entries is None:
            raise RuntimeError(already_used_message(*self._used_at))

    def _runs_on_tensors(self, recorders: list) -> bool:
        """Returns whether a recorder observes a backward pass, or it runs on a device."""
        if recorders and (self._persistent or recorders != [self]):
            return True
        return namespaces.foreign and hook("current_device")() is not None

    def _snapshot(self, frame: Any, what: str, row_by_row: bool = False) -> TapeSnapshot:
        """Returns the recording. Unless the tape is persistent, this can be done once."""
        self._check_not_used()
        if row_by_row and not self._persistent:
            raise RuntimeError(
                f"GradientTape must be created with persistent=True to compute the {what} with "
                "eager execution enabled and with experimental_use_pfor set to False."
            )
        on_tensors = self._runs_on_tensors(thread.recorders)
        entries = self._entries.copy() if self._persistent else self._use_up(frame)
        return TapeSnapshot(entries, self._roots, on_tensors)

    def _use_up(self, frame: Any) -> list[tuple]:
        """Removes the entries from the tape and returns them. Stores the location of the caller."""
        if self._recording:
            self.__exit__()
        entries, self._entries = self._entries, None
        # For diagnostics. The plans themselves may hold arrays.
        self._names = [*map(_name_of, map(_plan_of, entries))]
        self._used_at = (frame.f_code.co_filename, frame.f_lineno)
        return entries


# Outside `record`, because a comprehension there would make its local variables slower.


def _ids_and_states(primitive: Primitive, inputs: tuple, y: Any, connected: Any) -> tuple:
    """Returns the ids of more than two inputs, and their states, which are the key of a plan."""
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


for _name, _module in TAPE_METHODS.items():
    setattr(GradientTape, _name, LazyMethod(GradientTape, _name, _module))
