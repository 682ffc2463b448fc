"""What stands between a source and the target."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from retrograde.core.custom_gradient import CustomName
from retrograde.core.recorders import alone
from retrograde.core.tape import TapeSnapshot
from retrograde.core.tensor import Tensor
from retrograde.derivatives.jacobian import pull
from retrograde.diagnose.missing_gradients import causes
from retrograde.diagnose.missing_gradients.disconnected import Disconnected
from retrograde.diagnose.missing_gradients.findings import Finding
from retrograde.diagnose.missing_gradients.history import Stretch
from retrograde.diagnose.missing_gradients.questions import Obstacle, Source, held_or_followed
from retrograde.diagnose.missing_gradients.source_code import Line
from retrograde.values import dtypes
from retrograde.values.source_location import Place


class Inquiry(Disconnected):
    """A question, and how it is answered."""

    def finding(self, leaf: Any, position: int, count: int) -> Finding:
        """What there is to say about one source."""
        held = held_or_followed(leaf)
        source = Source(leaf, held, self.program, position, count)
        obstacles = self._obstacles(source)
        if not obstacles:
            found = self.history.way(held._id, self.ids)
            way = tuple(str(stretch.call.name) for stretch in found)
            return Finding(source.name, self.target, causes.CONNECTED, _way_in_words(way), way=way)
        first, *others = (
            Finding(source.name, self.target, cause, meaning, cure, Line.of(line), (), certain)
            for cause, meaning, cure, line, certain in obstacles
        )
        return first if not others else _with_further(first, others)

    def _obstacles(self, source: Source) -> list[Obstacle]:
        """What stands between the source and the target, seen from the source."""
        held = source.held
        if held is None:
            return [self._no_tensor(source)]
        if held._spec.dtype not in dtypes.INEXACT:
            return [self._integer(source)]
        if not self.targets:
            return [self._no_tensor_target()]
        way = self.history.way(held._id, self.ids)
        if way is None:
            inexact = any(t._spec.dtype in dtypes.INEXACT for t in self.targets)
            return [self.why_apart(source) if inexact else self._integer_target()]
        return way and (self._on_the_way(source, way) or self._withheld(source, way))

    # What the source or the target is

    def _no_tensor(self, source: Source) -> Obstacle:
        leaf, name = source.leaf, source.name
        if hasattr(leaf, "_keras_history") or type(leaf).__name__ == "KerasTensor":
            return Obstacle(
                causes.SYMBOLIC,
                f"`{name}` is a symbolic Keras tensor: a place in a model, without a value",
                "take a real tensor, watch it and call the model on it in the block: "
                f"`{self.tape_name}.watch(x); y = model(x)`. For the output of a layer, make a "
                "model that returns it too, keras.Model(model.inputs, [layer.output, "
                "model.output]), and take the gradient by what that returns",
                self.program.line,
            )
        if hasattr(leaf, "trainable_variables") or hasattr(leaf, "trainable_weights"):
            return Obstacle(
                causes.MODEL,
                f"`{name}` is a model or layer, not a tensor or variable",
                f"pass its variables: `{name}.trainable_variables`",
                self.program.line,
            )
        return Obstacle(
            causes.NO_TENSOR,
            f"`{name}` is of type {type(leaf).__name__}, and tapes follow tensors and variables",
            f"make it a tensor before the block, `x = tf.constant(...)`, call "
            f"`{self.tape_name}.watch(x)` and use x from then on",
            self.program.line,
        )

    def _integer(self, source: Source) -> Obstacle:
        dtype = source.held.dtype.name
        return Obstacle(
            causes.INTEGER_SOURCE,
            f"`{source.name}` has dtype {dtype}: only floats and complex numbers have gradients",
            "make it a floating-point tensor or variable from the start, as with "
            "`dtype=tf.float32` or `3.0` in place of `3`",
            source.made_at() or self.program.line,
        )

    def _no_tensor_target(self) -> Obstacle:
        return Obstacle(
            causes.NO_TENSOR_TARGET,
            f"`{self.target}` is no tensor: its value has left for Python",
            "keep the target as a tensor, without float(), .numpy() or .item(), and convert it "
            "after the gradient is taken",
            self.target_line(),
        )

    def _integer_target(self) -> Obstacle:
        return Obstacle(
            causes.INTEGER_TARGET,
            f"`{self.target}` has dtype {self.targets[0].dtype.name}, which has no gradient",
            "take the gradient of a floating-point value, before it is made into integers",
            self.target_line(),
        )

    # Obstacles on the way

    def _on_the_way(self, source: Source, way: list[Stretch]) -> list[Obstacle]:
        found = []
        since = self.history.followed_since(source.held._id)
        if way[0].call is not None and way[0].is_open and way[0].end < since:
            found.append(self._not_watched(source, way[0].call.place))
        for stretch in way:
            if stretch.call is not None and not stretch.is_open:
                cause = causes.of_dead_end(stretch.call, stretch.position)
                found.append(Obstacle(*cause, stretch.call.place or self.target_line()))
            elif stretch.exit is not None:
                if stretch.exit.how == "bool" and found and found[-1].cause == causes.NO_SLOPE:
                    found.pop()  # the comparison of an `if`: its decision is what matters
                place = stretch.exit.place
                cause = causes.of_exit(stretch.exit, "" if place is None else place.marked)
                found.append(Obstacle(*cause, place, stretch.exit.variable is not None))
        if way[0].exit is not None and way[0].exit.when < since:
            found.append(self._not_watched(source, None))
        return found

    def _not_watched(self, source: Source, place: Place | None) -> Obstacle:
        held, name, tape = source.held, source.name, self.tape_name
        watched = self.history.notes.watched.get(held._id)
        used_at = place or self.first_use(source) or self.target_line()
        if watched is not None:
            return Obstacle(
                causes.WATCHED_LATE,
                f"`{name}` was used before it was watched, and a tape follows what comes after",
                f"call `{tape}.watch({name})` before the first line that uses `{name}`",
                watched.place,
            )
        if not isinstance(held, Tensor):
            return self._variable_not_watched(source, used_at)
        if source.rebound is not None:
            return self.rebound(source)
        if self.is_from_another_thread(held._id):
            return self.other_thread(f"`{name}`", held._id, used_at)
        return Obstacle(
            causes.NOT_WATCHED,
            f"`{name}` is a plain tensor, and nobody watched it: by itself a tape follows only "
            "trainable variables",
            f"call `{tape}.watch({name})` at the start of the block, or make it a tf.Variable",
            used_at,
        )

    def _variable_not_watched(self, source: Source, used_at: Any) -> Obstacle:
        name, tape = source.name, self.tape_name
        if not source.held._trainable:
            return Obstacle(
                causes.NOT_TRAINABLE,
                f"`{name}` is a variable with trainable=False, which tapes do not watch by "
                "themselves",
                f"make it with trainable=True, or call `{tape}.watch({name})` at the start of the "
                "block",
                source.made_at() or used_at,
            )
        opened = self.program.last_binding(tape)
        return Obstacle(
            causes.VARIABLES_NOT_WATCHED,
            f"the tape was made with watch_accessed_variables=False, and nobody watched `{name}`",
            f"call `{tape}.watch({name})` at the start of the block, or leave "
            "watch_accessed_variables=False out",
            used_at if opened is None else opened.line,
        )

    def _withheld(self, source: Source, way: list[Stretch]) -> list[Obstacle]:
        """Where a way is open, and yet a rule gave `None`: those of users may."""
        held = source.held
        if self.tape._entries is not None and any(_is_custom(s) for s in way):
            self._try(held)
            again = self._on_the_way(source, self.history.way(held._id, self.ids))
            if again:
                return again
        missing = self.history.notes.missing
        if missing is None or held not in alive(missing.sources):
            return []
        if not all(t in alive(missing.targets) for t in self.targets):
            return []
        names = ", ".join(dict.fromkeys(f"`{s.call.name}`" for s in way))
        return [
            Obstacle(
                causes.NO_GRADIENT,
                f"one of the calls on the way passes no gradient to what it was given: {names}",
                "use another operation there, or give it a gradient with tf.custom_gradient",
                self.target_line(),
                False,
            )
        ]

    def _try(self, held: Any) -> None:
        """Walks back once, so that users' rules show for which inputs they have no gradient."""
        tape = self.tape
        inexact = [t for t in self.targets if t._spec.dtype in dtypes.INEXACT]
        seeds = [np.ones(t._spec.shape, t._spec.dtype) for t in inexact]
        with alone():
            pull(TapeSnapshot(list(tape._entries), tape._roots, False), inexact, seeds, [held])


def alive(references: tuple) -> list:
    return ById(reference() for reference in references)


class ById(list):
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
    return dataclasses.replace(first, further=tuple(others))
