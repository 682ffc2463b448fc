"""Why a gradient is `None`: `tape.explain`, and what `on_none` asks for."""

from __future__ import annotations

import re
import sys
import threading
import warnings
from types import FrameType
from typing import Any

import numpy as np

from retrograde.core import dtypes, nest
from retrograde.core.composites import CompositeTensor
from retrograde.core.conversion import source_of
from retrograde.core.derivatives import Recorded, pull
from retrograde.core.lines import Place, users
from retrograde.core.notes import CustomName
from retrograde.core.recorders import alone, threads
from retrograde.core.tensor import Tensor
from retrograde.core.testifying import last_silent
from retrograde.testimony import causes
from retrograde.testimony.findings import Explanation, Finding
from retrograde.testimony.history import History, Stretch
from retrograde.testimony.source_code import Line, Program


def explain(tape: Any, target: Any, sources: Any) -> Explanation:
    """Why the gradient of `target` by each of `sources` is `None`, or by which way it flows.

    The answer is a sequence with one `Finding` for each source: whether it is connected; if not,
    the cause, the line of your program, and what to write instead. It prints as text, and notebooks
    show it as a table. It may be asked before or after `gradient()`, as long as the tape lives.
    The page "Why is it None" lists all causes.

    >>> x = tf.constant(3.0)
    >>> with tf.GradientTape() as tape:
    ...     y = x * x
    >>> print(tape.gradient(y, x))
    None
    >>> tape.explain(y, x)[0].cause
    'not watched'
    """
    return explanation_for(tape, target, sources, sys._getframe(1))


def explanation_for(tape: Any, target: Any, sources: Any, frame: FrameType | None) -> Explanation:
    """A finding for each of `sources`. `frame` is that of the caller, for the names it uses."""
    inquiry = _Inquiry(tape, nest.flatten(target), Program(users(frame)))
    leaves = nest.flatten(sources)
    return Explanation([inquiry.finding(leaf, i, len(leaves)) for i, leaf in enumerate(leaves)])


class NoGradientError(ValueError):
    """A gradient is `None`, on a tape made with `on_none="raise"`.

    `explanation` holds a finding for each source that has none.
    """

    def __init__(self, explanation: Explanation) -> None:
        super().__init__(f"There is no gradient.\n\n{explanation}")
        self.explanation = explanation


def answer_none(tape: Any, targets: list, missing: list, frame: FrameType | None) -> None:
    """What a tape does that found no gradient for `missing`, and was asked to explain or raise."""
    explanation = explanation_for(tape, targets, missing, frame)
    if tape._on_none == "raise":
        raise NoGradientError(explanation)
    levels, users_own = 2, users(frame)
    while frame is not None and frame is not users_own:
        frame, levels = frame.f_back, levels + 1
    warnings.warn(f"There is no gradient.\n\n{explanation}", stacklevel=levels + 1)


_SHOWN = 3  # findings that a message of Keras carries: a model may have hundreds of variables


def reasons_for(variables: list, frame: FrameType | None) -> str:
    """Why the last gradients taken in this thread were `None` for `variables`, to end a message.

    It is empty if no tape is left that could tell.
    """
    tape = last_silent.tape and last_silent.tape()
    missing = None if tape is None or tape._notes is None else tape._notes.missing
    if missing is None:
        return ""
    targets = [target for target in _alive(missing.targets) if target is not None]
    asked = _alive(missing.sources)
    known = [v for v in variables if _held(v) in asked]
    if not targets or not known:
        return ""
    findings = explanation_for(tape, targets, known[:_SHOWN], frame)
    more = len(known) - len(findings)
    return f"\n\n{findings}" + (f"\n\n… and {more} more." if more else "")


class _Inquiry:
    """One question to one tape, about some targets."""

    def __init__(self, tape: Any, targets: list, program: Program) -> None:
        self._tape = tape
        self._program = program
        self._history = History(tape)
        self._targets = [held for held in map(_held, targets) if held is not None]
        self._ids = [target._id for target in self._targets]
        names = program.names_of(targets[0]) if len(targets) == 1 else []
        self._target = names[0] if names else "target"
        self._tape_name = (program.names_of(tape) or ["tape"])[0]

    def finding(self, leaf: Any, position: int, count: int) -> Finding:
        """What there is to say about one source."""
        held = _held(leaf)
        source = _Source(leaf, held, self._program, position, count)
        obstacles = self._obstacles(source)
        way = ()
        if not obstacles:
            found = self._history.way(held._id, self._ids)
            way = tuple(str(stretch.call.name) for stretch in found)
            return Finding(source.name, self._target, causes.CONNECTED, _way_in_words(way), way=way)
        first, *others = (
            Finding(source.name, self._target, cause, meaning, cure, Line.of(line), (), certain)
            for cause, meaning, cure, line, certain in obstacles
        )
        return first if not others else _with_further(first, others)

    def _obstacles(self, source: _Source) -> list[tuple]:
        """What stands between the source and the target: cause, meaning, cure, line, certain."""
        held = source.held
        if held is None:
            return [self._no_tensor(source)]
        if held._array.dtype not in dtypes.INEXACT:
            return [self._integer(source)]
        if not self._targets:
            return [self._no_tensor_target()]
        way = self._history.way(held._id, self._ids)
        if way is None or not way:
            if all(t._array.dtype not in dtypes.INEXACT for t in self._targets):
                return [self._integer_target()]
            return [] if way is not None else [self._apart(source)]
        return self._on_the_way(source, way) or self._withheld(source, way)

    # What the source or the target is

    def _no_tensor(self, source: _Source) -> tuple:
        leaf, name = source.leaf, source.name
        if hasattr(leaf, "_keras_history") or type(leaf).__name__ == "KerasTensor":
            return (
                causes.SYMBOLIC,
                f"`{name}` is a symbolic Keras tensor: a place in a model, without a value",
                "take a real tensor, watch it and call the model on it in the block: "
                f"`{self._tape_name}.watch(x); y = model(x)`. For the output of a layer, make a "
                "model that returns it too, keras.Model(model.inputs, [layer.output, "
                "model.output]), and derive by what that returns",
                self._program.line,
                True,
            )
        if hasattr(leaf, "trainable_variables") or hasattr(leaf, "trainable_weights"):
            return (
                causes.MODEL,
                f"`{name}` is a model or layer, not a tensor or variable",
                f"pass its variables: `{name}.trainable_variables`",
                self._program.line,
                True,
            )
        return (
            causes.NO_TENSOR,
            f"`{name}` is of type {type(leaf).__name__}, and tapes follow tensors and variables",
            f"make it a tensor before the block, `x = tf.constant(...)`, call "
            f"`{self._tape_name}.watch(x)` and use x from then on",
            self._program.line,
            True,
        )

    def _integer(self, source: _Source) -> tuple:
        dtype = source.held.dtype.name
        return (
            causes.INTEGER_SOURCE,
            f"`{source.name}` has dtype {dtype}: there are no small changes of it to derive by",
            "make it a floating-point tensor or variable from the start, as with "
            "`dtype=tf.float32` or `3.0` in place of `3`",
            source.made_at() or self._program.line,
            True,
        )

    def _no_tensor_target(self) -> tuple:
        return (
            causes.NO_TENSOR_TARGET,
            f"`{self._target}` is no tensor: its value has left for Python",
            "keep the target as a tensor, without float(), .numpy() or .item(), and convert it "
            "after the gradient is taken",
            self._target_line(),
            True,
        )

    def _integer_target(self) -> tuple:
        return (
            causes.INTEGER_TARGET,
            f"`{self._target}` has dtype {self._targets[0].dtype.name}, which has no gradient",
            "derive a floating-point value, before it is made into integers",
            self._target_line(),
            True,
        )

    # Obstacles on the way

    def _on_the_way(self, source: _Source, way: list[Stretch]) -> list[tuple]:
        found = []
        since = self._history.followed_since(source.held._id)
        if way[0].call is not None and way[0].is_open and way[0].end < since:
            found.append(self._not_watched(source, way[0].call.place))
        for stretch in way:
            if stretch.call is not None and not stretch.is_open:
                cause = causes.of_dead_end(stretch.call, stretch.position)
                found.append((*cause, stretch.call.place or self._target_line(), True))
            elif stretch.exit is not None:
                if stretch.exit.how == "bool" and found and found[-1][0] == causes.NO_SLOPE:
                    found.pop()  # the comparison of an `if`: its decision is what matters
                place = stretch.exit.place
                cause = causes.of_exit(stretch.exit, "" if place is None else place.marked)
                found.append((*cause, place, stretch.exit.variable is not None))
        if way[0].exit is not None and way[0].exit.when < since:
            found.append(self._not_watched(source, None))
        return found

    def _not_watched(self, source: _Source, place: Place | None) -> tuple:
        held, name, tape = source.held, source.name, self._tape_name
        watched = self._history.notes.watched.get(held._id)
        used_at = place or self._first_use(source) or self._target_line()
        if watched is not None:
            return (
                causes.WATCHED_LATE,
                f"`{name}` was used before it was watched, and a tape follows what comes after",
                f"call `{tape}.watch({name})` before the first line that uses `{name}`",
                watched.place,
                True,
            )
        if not isinstance(held, Tensor):
            return self._variable_not_watched(source, used_at)
        if source.rebound is not None:
            return self._rebound(source)
        if self._is_from_another_thread(held._id):
            return self._other_thread(name, held._id, used_at)
        return (
            causes.NOT_WATCHED,
            f"`{name}` is a plain tensor, and nobody watched it: by itself a tape follows only "
            "trainable variables",
            f"call `{tape}.watch({name})` at the start of the block, or make it a tf.Variable",
            used_at,
            True,
        )

    def _variable_not_watched(self, source: _Source, used_at: Any) -> tuple:
        name, tape = source.name, self._tape_name
        if not source.held._trainable:
            return (
                causes.NOT_TRAINABLE,
                f"`{name}` is a variable with trainable=False, which tapes do not watch by "
                "themselves",
                f"make it with trainable=True, or call `{tape}.watch({name})` at the start of the "
                "block",
                source.made_at() or used_at,
                True,
            )
        opened = self._program.last_binding(tape)
        return (
            causes.VARIABLES_NOT_WATCHED,
            f"the tape was made with watch_accessed_variables=False, and nobody watched `{name}`",
            f"call `{tape}.watch({name})` at the start of the block, or leave "
            "watch_accessed_variables=False out",
            used_at if opened is None else opened.line,
            True,
        )

    def _rebound(self, source: _Source) -> tuple:
        binding, name = source.rebound, source.name
        return (
            causes.REBOUND,
            f"the name `{name}` was that of a variable, and this line bound it to a new tensor, "
            "which nobody watches",
            f"change the variable in place: `{causes.assignment_instead_of(binding)}`",
            binding.line,
            True,
        )

    def _withheld(self, source: _Source, way: list[Stretch]) -> list[tuple]:
        """Where a way is open, and yet a rule gave `None`: those of users may."""
        held = source.held
        if self._tape._entries is not None and any(_is_custom(s) for s in way):
            self._try(held)
            again = self._on_the_way(source, self._history.way(held._id, self._ids))
            if again:
                return again
        missing = self._history.notes.missing
        if missing is None or held not in _alive(missing.sources):
            return []
        if not all(t in _alive(missing.targets) for t in self._targets):
            return []
        names = ", ".join(dict.fromkeys(f"`{s.call.name}`" for s in way))
        return [
            (
                causes.NO_GRADIENT,
                f"one of the calls on the way passes no gradient to what it was given: {names}",
                "use another operation there, or give it a gradient with tf.custom_gradient",
                self._target_line(),
                False,
            )
        ]

    def _try(self, held: Any) -> None:
        """Walks back once, so that users' rules show for which inputs they have no gradient."""
        tape = self._tape
        inexact = [t for t in self._targets if t._array.dtype in dtypes.INEXACT]
        seeds = [np.ones(t._array.shape, t._array.dtype) for t in inexact]
        with alone():
            pull(Recorded(list(tape._entries), tape._roots, False), inexact, seeds, [held])

    # No way at all

    def _apart(self, source: _Source) -> tuple:
        held = source.held
        if isinstance(held, Tensor) and held._id > max(self._ids):
            if source.rebound is not None:
                return self._rebound(source)
            return (
                causes.MADE_AFTERWARDS,
                f"`{source.name}` was made after `{self._target}`, so it cannot have entered it",
                "derive by the tensor that was used in the block",
                source.made_at() or self._program.line,
                True,
            )
        reasons = (
            self._unheard_target(),
            self._constant_derivative(source),
            self._made_anew(source),
            self._unheard_part(source),
            self._computed_apart(source),
            self._part_of_another_thread(source),
        )
        for reason in reasons:
            if reason is not None:
                return reason
        return self._independent(source)

    def _unheard_target(self) -> tuple | None:
        """Why the tape knows nothing of the target, if so."""
        history = self._history
        for target in self._targets:
            if target._id in history.origins or not isinstance(target, Tensor):
                return None
        return self._unheard(self._ids[0], self._target, self._target_line(), True)

    def _unheard(self, tensor: int, name: str, line: Any, certain: bool) -> tuple | None:
        """Why a tensor that was computed was not heard of."""
        history, tape = self._history, self._tape_name
        for pause in history.notes.pauses:
            if pause.start < tensor < pause.end:
                return self._in_pause(pause, name, line, certain)
        if tensor < history.began or not history.began:
            return (
                causes.BEFORE_THE_BLOCK,
                f"`{name}` was computed before the block of the tape began",
                f"move this line into the block, `with tf.GradientTape() as {tape}:`",
                line,
                certain,
            )
        if history.ended is not None and tensor > history.ended:
            if self._is_gradient(name):
                return (
                    causes.INNER_GRADIENT,
                    f"`{name}` is a gradient that was taken after the block of `{tape}` had ended, "
                    "so that this tape did not see how it was computed",
                    f"take that gradient inside the block of `{tape}`: indent this line",
                    line,
                    certain,
                )
            return (
                causes.AFTER_THE_BLOCK,
                f"`{name}` was computed after the block of the tape had ended",
                "move this line into the block: indent it",
                line,
                certain,
            )
        if self._is_from_another_thread(tensor):
            return self._other_thread(name, tensor, line)
        return None

    def _in_pause(self, pause: Any, name: str, line: Any, certain: bool) -> tuple:
        tape = self._tape_name
        if pause.why == "stop_recording":
            return (
                causes.STOP_RECORDING,
                f"`{name}` was computed under `{tape}.stop_recording()`",
                "move the computation out of that block",
                pause.place or line,
                certain,
            )
        if pause.why == "reset":
            return (
                causes.RESET,
                f"`{name}` was computed before `{tape}.reset()`, which forgets all there was",
                "compute it after the reset, or leave the reset out",
                pause.place or line,
                certain,
            )
        return (
            causes.AFTER_THE_BLOCK,
            f"`{name}` was computed between two blocks of the tape",
            "move this line into one of the blocks",
            line,
            certain,
        )

    def _is_from_another_thread(self, tensor: int) -> bool:
        """Whether a tensor that appeared in the block may come from a thread of the user's."""
        history = self._history
        in_block = history.began < tensor and (history.ended is None or tensor < history.ended)
        return in_block and tensor not in history.origins and bool(self._other_threads(tensor))

    def _other_threads(self, before: int) -> list[str]:
        """Threads that may have made a tensor: not this one, nor those of datasets."""
        here = threading.current_thread().name
        alive = {thread.name for thread in threading.enumerate()}
        return [
            name
            for name, began in threads
            if began < before
            and (began > self._history.began or name in alive)
            and name != here
            and not name.startswith("retrograde")
        ]

    def _other_thread(self, name: str, tensor: int, line: Any) -> tuple:
        thread = self._other_threads(tensor)[-1]
        return (
            causes.ANOTHER_THREAD,
            f"`{name}` seems to come from another thread ({thread}): a tape hears only the thread "
            "that opened it",
            "compute it in the thread of the tape, or open a tape and take the gradient in that "
            "thread",
            line,
            False,
        )

    def _made_anew(self, source: _Source) -> tuple | None:
        history, held = self._history, source.held
        if isinstance(held, Tensor) or history.uses_of(held._id):
            return None
        used = history.ancestors(self._ids)
        for key, moment in history.notes.made.items():
            other = history.variables.get(key)
            if key not in used or other is None or key == held._id:
                continue
            if other._array.shape == held._array.shape and other.dtype is held.dtype:
                return (
                    causes.MADE_ANEW,
                    f"the block did not use `{source.name}`, but another variable of the same "
                    "shape, which this line makes anew each time it runs",
                    "make the variable once, outside of the function, and use that one in it",
                    moment.place,
                    True,
                )
        return None

    def _unheard_part(self, source: _Source) -> tuple | None:
        """Whether something that the target is made of was computed where the tape did not hear."""
        history, program = self._history, self._program
        parts = [i for i in history.ancestors(self._ids) if i not in history.origins]
        parts = [i for i in sorted(parts) if i not in history.variables and i not in self._ids]
        for part in parts:
            name = program.name_of_id(part)
            binding = None if name is None else program.last_binding(name)
            if any(p.start < part < p.end for p in history.notes.pauses):
                line = None if binding is None else binding.line
                return self._unheard(part, name or "a part of it", line, name is not None)
            before = binding is not None and part < history.began
            if before and any(program.is_made_from(name, n) for n in source.roots):
                return self._unheard(part, name, binding.line, True)
        return None

    def _part_of_another_thread(self, source: _Source) -> tuple | None:
        history = self._history
        if history.uses_of(source.held._id):
            return None
        for part in sorted(history.ancestors(self._ids)):
            if part not in history.variables and self._is_from_another_thread(part):
                name = self._program.name_of_id(part) or f"a part of {self._target}"
                return self._other_thread(name, part, self._target_line())
        return None

    def _computed_apart(self, source: _Source) -> tuple | None:
        history, held = self._history, source.held
        if held._id not in history.origins:
            return None
        common = history.ancestors([held._id]) & history.ancestors(self._ids)
        if not common:
            return None
        shared = [history.variables[i]._name for i in sorted(common) if i in history.variables]
        named = f" ({', '.join(shared[:3])}{', …' if len(shared) > 3 else ''})" if shared else ""
        return (
            causes.COMPUTED_APART,
            f"`{source.name}` and `{self._target}` were computed apart, from the same beginnings"
            f"{named}: `{self._target}` was not computed from `{source.name}`",
            f"compute `{self._target}` from `{source.name}` in the block. With Keras, call one "
            "model that returns both, keras.Model(model.inputs, [layer.output, model.output]); if "
            "the layer is in a nested model, call that one first and the rest on what it returns",
            source.made_at() or self._target_line(),
            True,
        )

    def _constant_derivative(self, source: _Source) -> tuple | None:
        if not self._is_gradient(self._target):
            return None
        return (
            causes.LINEAR,
            f"`{self._target}` is a first derivative that does not depend on `{source.name}`: what "
            "was derived is linear in it, and its second derivative is zero everywhere",
            "use unconnected_gradients='zero' if a zero is what you want",
            self._target_line(),
            True,
        )

    def _independent(self, source: _Source) -> tuple:
        history, name, target = self._history, source.name, self._target
        uses = history.uses_of(source.held._id)
        if not isinstance(self._targets[0], Tensor):
            meaning = f"`{target}` is a variable, which is not computed from anything"
        elif self._ids[0] not in history.origins:
            meaning = f"`{target}` is a constant, made without `{name}`"
        elif uses:
            names = ", ".join(f"`{n}`" for n in dict.fromkeys(str(call.name) for call in uses))
            meaning = f"`{name}` was used in the block (by {names}), but nothing of it enters "
            meaning += f"`{target}`"
        else:
            meaning = f"the block did not use `{name}` at all"
        return (
            causes.INDEPENDENT,
            meaning,
            f"compute `{target}` from `{name}`; or use unconnected_gradients='zero' if a zero is "
            "what you want",
            self._target_line(),
            True,
        )

    # The text of the program

    def _is_gradient(self, name: str) -> bool:
        """Whether `name` stands for what a tape was asked for."""
        binding = self._program.last_binding(name)
        return binding is not None and binding.takes_gradient

    def _target_line(self) -> Any:
        """Where the target was computed: by the tape's own lines, else by the program's text."""
        for target in self._ids:
            call = self._history.origins.get(target)
            if call is not None and call.place is not None:
                return call.place
        binding = self._program.last_binding(self._target)
        return self._program.line if binding is None else binding.line

    def _first_use(self, source: _Source) -> Line | None:
        for name in source.names:
            line = self._program.first_use(name, self._tape_name)
            if line is not None:
                return line
        return None


class _Source:
    """A source as the user gave it: by which names, and where they got their value."""

    def __init__(self, leaf: Any, held: Any, program: Program, position: int, count: int) -> None:
        self.leaf, self.held = leaf, held
        self.names = program.names_of(leaf)
        self._program = program
        own = getattr(leaf, "path", None) or getattr(held, "_name", None)
        if self.names:
            self.name = self.names[0]
        elif isinstance(own, str) and own != "Variable":
            self.name = own
        else:
            self.name = f"sources[{position}]" if count > 1 else "source"

    @property
    def roots(self) -> set[str]:
        """The names of all that holds the source: a list, an object, a model."""
        roots = {re.match(r"\w+", name)[0] for name in self.names}
        return roots | set(self._program.holders_of(self.leaf, self.held))

    def made_at(self) -> Line | None:
        """The line that gave the source its name."""
        bindings = [self._program.last_binding(name) for name in self.names]
        return next((binding.line for binding in bindings if binding is not None), None)

    @property
    def rebound(self) -> Any:
        """The statement that bound the name of a variable to a tensor, if there is one."""
        if not isinstance(self.held, Tensor):
            return None
        for name in self.names:
            bindings = self._program.bindings_of(name)
            made = [b for b in bindings if b.makes_variable]
            later = [b for b in bindings if not b.makes_variable and made and b.line > made[0].line]
            if later:
                return later[-1]
        return None


def _held(leaf: Any) -> Any:
    """The tensor or variable that `leaf` is or stands for."""
    held = source_of(leaf)
    if held is None and isinstance(leaf, CompositeTensor) and leaf._takes_gradients:
        return leaf._followed
    return held


def _alive(references: tuple) -> list:
    return _ById(reference() for reference in references)


class _ById(list):
    """Looks for elements by identity: tensors compare by value."""

    def __contains__(self, value: Any) -> bool:
        return any(element is value for element in self)


def _is_custom(stretch: Stretch) -> bool:
    return stretch.call is not None and isinstance(stretch.call.name, CustomName)


def _way_in_words(way: tuple[str, ...]) -> str:
    if not way:
        return "it is the target itself"
    shown = way if len(way) <= 12 else (*way[:5], f"… {len(way) - 10} more …", *way[-5:])
    return f"by {len(way)} call{'s' if len(way) > 1 else ''}: {' → '.join(shown)}"


def _with_further(first: Finding, others: list[Finding]) -> Finding:
    from dataclasses import replace

    return replace(first, further=tuple(others))
