"""Explains why no path at all connects a source to the target."""

from __future__ import annotations

import re
import threading
from typing import Any

from retrograde.core.recorders import threads
from retrograde.core.tensor import Tensor
from retrograde.diagnose.missing_gradients import causes
from retrograde.diagnose.missing_gradients.query import Obstacle, Query, Source

# Lines that create a variable, or that create a layer and call it immediately.
_CREATES_VARIABLES = re.compile(r"Variable\(|add_weight\(|\b[A-Z]\w*\(.*\)\(")

_ONLY_ADD = {"identity", "reshape", "broadcast_to", "add", "subtract"}


class DisconnectedQuery(Query):
    """A query about a source that no observed path may connect to the target."""

    def find_obstacle(self, source: Source) -> Obstacle:
        """Returns the most likely obstacle; certain ones come first."""
        tensor = source.tensor
        if isinstance(tensor, Tensor) and tensor._id > max(self.ids):
            if source.rebinding is not None:
                return self.explain_rebound_name(source)
            return Obstacle(
                causes.CREATED_AFTER_TARGET,
                f"`{source.name}` was created after `{self.target}`, so `{self.target}` cannot "
                "depend on it",
                "differentiate with respect to the tensor that was used in the block",
                source.definition_line() or self.program.line,
            )
        obstacles = (
            self._check_target_observed(),
            self._check_constant_derivative(source),
            self._check_variable_recreated(source),
            self._check_ancestors_observed(source),
            self._check_computed_separately(source),
            self._check_inside_function(source),
            self._check_ancestor_threads(source),
        )
        for obstacle in obstacles:
            if obstacle is not None:
                return obstacle
        return self._explain_independent(source)

    def _check_target_observed(self) -> Obstacle | None:
        """Returns why the tape did not observe the computation of the target, or `None`."""
        history = self.history
        for target in self.targets:
            if target._id in history.origins or not isinstance(target, Tensor):
                return None
        return self._check_observed(self.ids[0], self.target, self.target_line(), True)

    def _check_observed(self, tensor: int, name: str, line: Any, certain: bool) -> Obstacle | None:
        """Returns why the tape did not observe the computation of `tensor`, or `None`."""
        history, tape = self.history, self.tape_name
        for pause in history.notes.pauses:
            if pause.start < tensor < pause.end:
                return self._explain_pause(pause, name, line, certain)
        if tensor < history.began or not history.began:
            return Obstacle(
                causes.BEFORE_THE_BLOCK,
                f"`{name}` was computed before the tape's `with` block",
                f"move this line into the block `with tf.GradientTape() as {tape}:`",
                line,
                certain,
            )
        if history.ended is not None and tensor > history.ended:
            if self.is_gradient(name):
                return Obstacle(
                    causes.INNER_GRADIENT,
                    f"`{name}` is a gradient that was computed after the `with` block of `{tape}`, "
                    "so this tape did not record how it was computed",
                    f"compute that gradient inside the block of `{tape}`: indent this line",
                    line,
                    certain,
                )
            return Obstacle(
                causes.AFTER_THE_BLOCK,
                f"`{name}` was computed after the tape's `with` block",
                "move this line into the block: indent it",
                line,
                certain,
            )
        if self.is_from_another_thread(tensor):
            return self.explain_other_thread(f"`{name}`", tensor, line)
        return None

    def _explain_pause(self, pause: Any, name: str, line: Any, certain: bool) -> Obstacle:
        tape = self.tape_name
        if pause.why == "stop_recording":
            return Obstacle(
                causes.STOP_RECORDING,
                f"`{name}` was computed under `{tape}.stop_recording()`",
                "move the computation out of that block",
                pause.location or line,
                certain,
            )
        if pause.why == "reset":
            return Obstacle(
                causes.RESET,
                f"`{name}` was computed before `{tape}.reset()`, which clears the tape",
                "compute it after the reset, or remove the reset",
                pause.location or line,
                certain,
            )
        return Obstacle(
            causes.AFTER_THE_BLOCK,
            f"`{name}` was computed between two blocks of the tape",
            "move this line into one of the blocks",
            line,
            certain,
        )

    def is_from_another_thread(self, tensor: int) -> bool:
        """Returns whether a tensor of the block may have been computed by another user thread."""
        history = self.history
        in_block = history.began < tensor and (history.ended is None or tensor < history.ended)
        return in_block and tensor not in history.origins and bool(self._other_threads(tensor))

    def _other_threads(self, before: int) -> list[str]:
        """Returns the names of user threads that may have computed a tensor, except this one."""
        current = threading.current_thread().name
        alive = {thread.name for thread in threading.enumerate()}
        return [
            name
            for name, began in threads
            if began < before
            and (began > self.history.began or name in alive)
            and name != current
            and not name.startswith(("retrograde", "Dummy-"))  # threads that Python did not start
        ]

    def explain_other_thread(self, name: str, tensor: int, line: Any) -> Obstacle:
        """Returns the obstacle for a tensor that another thread computed."""
        thread = self._other_threads(tensor)[-1]
        return Obstacle(
            causes.ANOTHER_THREAD,
            f"{name} seems to come from another thread ({thread}): a tape records only the thread "
            "that entered it",
            "compute it in the tape's thread, or create a tape and compute the gradient in that "
            "thread",
            line,
            False,
        )

    def _check_variable_recreated(self, source: Source) -> Obstacle | None:
        history, variable = self.history, source.tensor
        if isinstance(variable, Tensor) or history.uses_of(variable._id):
            return None
        used = history.ancestors(self.ids)
        for key, moment in history.notes.created.items():
            other = history.variables.get(key)
            if key not in used or other is None or key == variable._id:
                continue
            same_spec = other._spec.shape == variable._spec.shape and other.dtype is variable.dtype
            code = "" if moment.location is None else moment.location.text
            if same_spec and _CREATES_VARIABLES.search(code):
                return Obstacle(
                    causes.RECREATED,
                    f"the block did not use `{source.name}` but another variable of the same "
                    "shape, which this line creates each time it runs",
                    "create the variable once, outside the function, and reuse it",
                    moment.location,
                )
        return None

    def _check_ancestors_observed(self, source: Source) -> Obstacle | None:
        """Returns why the tape did not observe the computation of an ancestor of the target."""
        history, program = self.history, self.program
        ancestors = [i for i in history.ancestors(self.ids) if i not in history.origins]
        ancestors = [i for i in ancestors if i not in history.variables and i not in self.ids]
        for ancestor in sorted(ancestors):
            name = program.name_of_id(ancestor)
            binding = None if name is None else program.last_binding(name)
            if any(p.start < ancestor < p.end for p in history.notes.pauses):
                line = None if binding is None else binding.line
                label = name or f"an input of {self.target}"
                return self._check_observed(ancestor, label, line, name is not None)
            before = binding is not None and ancestor < history.began
            if before and any(program.is_computed_from(name, n) for n in source.owner_names):
                return self._check_observed(ancestor, name, binding.line, True)
        return None

    def _check_inside_function(self, source: Source) -> Obstacle | None:
        """Returns the obstacle for a target that a `tf.function` computed.

        Tapes observe only those parts of a `tf.function` through which a gradient can flow.
        """
        binding = self.program.last_binding(self.target)
        if binding is None or self.history.uses_of(source.tensor._id):
            return None
        functions = self.program.functions_in(binding)
        if not functions:
            return None
        return Obstacle(
            causes.NO_GRADIENT,
            f"no gradient flows to `{source.name}` through the tf.function `{functions[0]}`",
            "call `tf.config.run_functions_eagerly(True)` and run this again: the tape then "
            "observes the calls inside the function and can name the line",
            binding.line,
            False,
        )

    def _check_ancestor_threads(self, source: Source) -> Obstacle | None:
        history = self.history
        if history.uses_of(source.tensor._id):
            return None
        for ancestor in sorted(history.ancestors(self.ids)):
            if ancestor not in history.variables and self.is_from_another_thread(ancestor):
                name = self.program.name_of_id(ancestor)
                label = f"an input of `{self.target}`" if name is None else f"`{name}`"
                return self.explain_other_thread(label, ancestor, self.target_line())
        return None

    def _check_computed_separately(self, source: Source) -> Obstacle | None:
        history, tensor = self.history, source.tensor
        if tensor._id not in history.origins:
            return None
        common = history.ancestors([tensor._id]) & history.ancestors(self.ids)
        if not common:
            return None
        shared = [history.variables[i]._name for i in sorted(common) if i in history.variables]
        names = f" ({', '.join(shared[:3])}{', …' if len(shared) > 3 else ''})" if shared else ""
        return Obstacle(
            causes.COMPUTED_SEPARATELY,
            f"`{source.name}` and `{self.target}` were computed separately from the same inputs"
            f"{names}: `{self.target}` was not computed from `{source.name}`",
            f"compute `{self.target}` from `{source.name}` in the block. With Keras, call one "
            "model that returns both, keras.Model(model.inputs, [layer.output, model.output]). If "
            "the layer is in a nested model, call the nested model first and the other layers on "
            "its output",
            source.definition_line() or self.target_line(),
        )

    def _check_constant_derivative(self, source: Source) -> Obstacle | None:
        if not self.is_gradient(self.target):
            return None
        return Obstacle(
            causes.CONSTANT_DERIVATIVE,
            f"`{self.target}` is a first derivative that does not depend on `{source.name}`: the "
            "differentiated function is linear, so its second derivative is zero everywhere",
            "use unconnected_gradients='zero' to get a zero",
            self.target_line(),
        )

    def _explain_independent(self, source: Source) -> Obstacle:
        history, name, target = self.history, source.name, self.target
        uses = history.uses_of(source.tensor._id)
        if not isinstance(self.targets[0], Tensor):
            message = f"`{target}` is a variable, which is not computed from anything"
        elif self.ids[0] not in history.origins:
            message = f"`{target}` is a constant that does not depend on `{name}`"
        elif uses:
            names = ", ".join(f"`{n}`" for n in dict.fromkeys(str(call.name) for call in uses))
            message = f"the block used `{name}` (in {names}), but `{target}` does not depend on it"
            if {str(call.name) for call in uses} <= _ONLY_ADD:
                message += ". A term that is only added, such as a bias, drops out of derivatives"
        else:
            message = f"the block did not use `{name}`. Values that were computed from it before "
            message += "the block, such as cached ones, are constants to the tape"
        return Obstacle(
            causes.INDEPENDENT,
            message,
            f"compute `{target}` from `{name}` entirely inside the block. If it should not depend "
            f"on `{name}`, remove `{name}` from the sources, or use unconnected_gradients='zero'",
            self.target_line(),
        )

    def explain_rebound_name(self, source: Source) -> Obstacle:
        """Returns the obstacle for a name that was rebound from a variable to a tensor."""
        binding, name = source.rebinding, source.name
        return Obstacle(
            causes.REBOUND,
            f"`{name}` was a variable, but this line rebinds the name to a new tensor, which the "
            "tape does not watch",
            f"update the variable in place: `{causes.in_place_assignment(binding)}`",
            binding.line,
        )
