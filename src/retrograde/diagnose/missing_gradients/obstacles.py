"""Finds the obstacles between a source and the target."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from retrograde.core.custom_gradient import CustomName
from retrograde.core.recorders import isolate
from retrograde.core.tape import TapeSnapshot
from retrograde.core.tensor import Tensor
from retrograde.derivatives.jacobian import pull_back
from retrograde.diagnose.missing_gradients import causes
from retrograde.diagnose.missing_gradients.disconnected import DisconnectedQuery
from retrograde.diagnose.missing_gradients.findings import Finding
from retrograde.diagnose.missing_gradients.history import Edge
from retrograde.diagnose.missing_gradients.query import Obstacle, Source, watched_tensor
from retrograde.diagnose.missing_gradients.source_code import Line
from retrograde.values import dtypes
from retrograde.values.source_location import SourceLocation


class ExplainQuery(DisconnectedQuery):
    """A query that returns a finding for each source."""

    def finding(self, leaf: Any, position: int, count: int) -> Finding:
        """Returns the finding for one source."""
        tensor = watched_tensor(leaf)
        source = Source(leaf, tensor, self.program, position, count)
        obstacles = self._obstacles(source)
        if not obstacles:
            edges = self.history.path(tensor._id, self.ids)
            path = tuple(str(edge.call.name) for edge in edges)
            message = _format_path(path)
            return Finding(source.name, self.target, causes.CONNECTED, message, path=path)
        first, *others = (
            Finding(
                source.name, self.target, cause, message, fix, Line.from_location(line), (), certain
            )
            for cause, message, fix, line, certain in obstacles
        )
        return dataclasses.replace(first, additional=tuple(others)) if others else first

    def _obstacles(self, source: Source) -> list[Obstacle]:
        """Returns the obstacles between the source and the target, from the source on."""
        tensor = source.tensor
        if tensor is None:
            return [self._check_source_is_tensor(source)]
        if tensor._spec.dtype not in dtypes.INEXACT:
            return [self._check_source_dtype(source)]
        if not self.targets:
            return [self._check_target_is_tensor()]
        path = self.history.path(tensor._id, self.ids)
        if path is None:
            inexact = any(t._spec.dtype in dtypes.INEXACT for t in self.targets)
            return [self.find_obstacle(source) if inexact else self._check_target_dtype()]
        return path and (
            self._explain_path(path, source) or self._explain_none_returned(path, source)
        )

    # The source and the target

    def _check_source_is_tensor(self, source: Source) -> Obstacle:
        leaf, name = source.leaf, source.name
        if hasattr(leaf, "_keras_history") or type(leaf).__name__ == "KerasTensor":
            return Obstacle(
                causes.SYMBOLIC,
                f"`{name}` is a symbolic Keras tensor, which has no value",
                "watch a concrete tensor and call the model on it in the block: "
                f"`{self.tape_name}.watch(x); y = model(x)`. For the output of a layer, create a "
                "model that returns it as well, keras.Model(model.inputs, [layer.output, "
                "model.output]), and differentiate with respect to the returned tensor",
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
            causes.NOT_A_TENSOR,
            f"`{name}` is of type {type(leaf).__name__}; tapes watch only tensors and variables",
            f"convert it to a tensor before the block, `x = tf.constant(...)`, call "
            f"`{self.tape_name}.watch(x)` and use x in the block",
            self.program.line,
        )

    def _check_source_dtype(self, source: Source) -> Obstacle:
        dtype = source.tensor.dtype.name
        return Obstacle(
            causes.INTEGER_SOURCE,
            f"`{source.name}` has dtype {dtype}; only floating-point and complex dtypes have "
            "gradients",
            "create it with a floating-point dtype, for example with `dtype=tf.float32` or with "
            "`3.0` instead of `3`",
            source.definition_line() or self.program.line,
        )

    def _check_target_is_tensor(self) -> Obstacle:
        return Obstacle(
            causes.TARGET_NOT_A_TENSOR,
            f"`{self.target}` is not a tensor: its value was converted to Python or NumPy",
            "keep the target as a tensor, without float(), .numpy() or .item(), and convert it "
            "after computing the gradient",
            self.target_line(),
        )

    def _check_target_dtype(self) -> Obstacle:
        return Obstacle(
            causes.INTEGER_TARGET,
            f"`{self.target}` has dtype {self.targets[0].dtype.name}, which has no gradient",
            "differentiate a floating-point value, before it is cast to integers",
            self.target_line(),
        )

    # Obstacles along a path

    def _explain_path(self, path: list[Edge], source: Source) -> list[Obstacle]:
        obstacles = []
        first = path[0]
        since = self.history.watched_since(source.tensor._id)
        if first.call is not None and first.passes_gradient and first.end < since:
            obstacles.append(self._explain_not_watched(source, first.call.location))
        for edge in path:
            if edge.call is not None and not edge.passes_gradient:
                cause = causes.explain_blocking_call(edge.call, edge.position)
                obstacles.append(Obstacle(*cause, edge.call.location or self.target_line()))
            elif edge.escape is not None:
                is_branch = edge.escape.how == "bool"
                if is_branch and obstacles and obstacles[-1].cause == causes.NON_DIFFERENTIABLE:
                    obstacles.pop()  # a comparison in an `if`, where the branch is the cause
                location = edge.escape.location
                cause = causes.explain_escape(
                    edge.escape, "" if location is None else location.expression
                )
                obstacles.append(Obstacle(*cause, location, edge.escape.variable is not None))
        if first.escape is not None and first.escape.when < since:
            obstacles.append(self._explain_not_watched(source, None))
        return obstacles

    def _explain_not_watched(self, source: Source, location: SourceLocation | None) -> Obstacle:
        tensor, name, tape = source.tensor, source.name, self.tape_name
        watched = self.history.notes.watched.get(tensor._id)
        used_at = location or self.first_use(source) or self.target_line()
        if watched is not None:
            return Obstacle(
                causes.WATCHED_LATE,
                f"`{name}` was used before it was watched, and those uses were not recorded",
                f"call `{tape}.watch({name})` before the first line that uses `{name}`",
                watched.location,
            )
        if not isinstance(tensor, Tensor):
            return self._explain_variable_not_watched(source, used_at)
        if source.rebinding is not None:
            return self.explain_rebound_name(source)
        if self.is_from_another_thread(tensor._id):
            return self.explain_other_thread(f"`{name}`", tensor._id, used_at)
        return Obstacle(
            causes.NOT_WATCHED,
            f"`{name}` is a plain tensor that was not watched: tapes watch only trainable "
            "variables automatically",
            f"call `{tape}.watch({name})` at the start of the block, or make it a tf.Variable",
            used_at,
        )

    def _explain_variable_not_watched(self, source: Source, used_at: Any) -> Obstacle:
        name, tape = source.name, self.tape_name
        if not source.tensor._trainable:
            return Obstacle(
                causes.NOT_TRAINABLE,
                f"`{name}` is a variable with trainable=False; tapes do not watch it automatically",
                f"create it with trainable=True, or call `{tape}.watch({name})` at the start of "
                "the block",
                source.definition_line() or used_at,
            )
        opened = self.program.last_binding(tape)
        return Obstacle(
            causes.VARIABLES_NOT_WATCHED,
            f"the tape was created with watch_accessed_variables=False, and `{name}` was not "
            "watched",
            f"call `{tape}.watch({name})` at the start of the block, or remove "
            "watch_accessed_variables=False",
            used_at if opened is None else opened.line,
        )

    def _explain_none_returned(self, path: list[Edge], source: Source) -> list[Obstacle]:
        """Returns the obstacle if a gradient function returned `None`: custom ones may."""
        tensor = source.tensor
        if self.tape._entries is not None and any(_is_custom(edge) for edge in path):
            self._run_backward(tensor)
            obstacles = self._explain_path(self.history.path(tensor._id, self.ids), source)
            if obstacles:
                return obstacles
        missing = self.history.notes.missing
        if missing is None or tensor not in dereference(missing.sources):
            return []
        if not all(t in dereference(missing.targets) for t in self.targets):
            return []
        names = ", ".join(dict.fromkeys(f"`{edge.call.name}`" for edge in path))
        return [
            Obstacle(
                causes.NO_GRADIENT,
                f"one of the calls on the path returned no gradient for its input: {names}",
                "use a different operation, or define a gradient with tf.custom_gradient",
                self.target_line(),
                False,
            )
        ]

    def _run_backward(self, tensor: Any) -> None:
        """Runs a backward pass, so that custom gradients note the inputs without a gradient."""
        tape = self.tape
        inexact = [t for t in self.targets if t._spec.dtype in dtypes.INEXACT]
        seeds = [np.ones(t._spec.shape, t._spec.dtype) for t in inexact]
        with isolate():
            pull_back(
                TapeSnapshot(list(tape._entries), tape._roots, False), inexact, seeds, [tensor]
            )


def dereference(references: tuple) -> list:
    """Returns the objects of weak references, `None` for those that are gone."""
    return IdentityList(reference() for reference in references)


class IdentityList(list):
    """A list that compares its elements by identity: tensors compare by value."""

    def __contains__(self, value: Any) -> bool:
        return any(element is value for element in self)


def _is_custom(edge: Edge) -> bool:
    return edge.call is not None and isinstance(edge.call.name, CustomName)


def _format_path(path: tuple[str, ...]) -> str:
    if not path:
        return "it is the target itself"
    shown = path if len(path) <= 12 else (*path[:5], f"… {len(path) - 10} more …", *path[-5:])
    return f"through {len(path)} call{'s' if len(path) > 1 else ''}: {' → '.join(shown)}"
