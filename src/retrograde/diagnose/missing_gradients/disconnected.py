"""Why no way at all leads from a source to the target."""

from __future__ import annotations

import re
import threading
from typing import Any

from retrograde.core.recorders import threads
from retrograde.core.tensor import Tensor
from retrograde.diagnose.missing_gradients import causes
from retrograde.diagnose.missing_gradients.questions import Obstacle, Question, Source

# Lines that make a variable, or a layer and call it at once: not those that call one made before.
_MAKES_VARIABLES = re.compile(r"Variable\(|add_weight\(|\b[A-Z]\w*\(.*\)\(")

_ONLY_ADD = {"identity", "reshape", "broadcast_to", "add", "subtract"}


class Disconnected(Question):
    """A question whose answer may be that the tape never saw the one lead to the other."""

    def why_apart(self, source: Source) -> Obstacle:
        """The most likely reason, the certain ones first."""
        held = source.held
        if isinstance(held, Tensor) and held._id > max(self.ids):
            if source.rebound is not None:
                return self.rebound(source)
            return Obstacle(
                causes.MADE_AFTERWARDS,
                f"`{source.name}` was made after `{self.target}`, so it cannot have entered it",
                "take the gradient by the tensor that was used in the block",
                source.made_at() or self.program.line,
            )
        reasons = (
            self._unheard_target(),
            self._constant_derivative(source),
            self._made_anew(source),
            self._unheard_part(source),
            self._computed_apart(source),
            self._inside_a_function(source),
            self._part_of_another_thread(source),
        )
        for reason in reasons:
            if reason is not None:
                return reason
        return self._independent(source)

    def _unheard_target(self) -> Obstacle | None:
        """Why the tape knows nothing of the target, if so."""
        history = self.history
        for target in self.targets:
            if target._id in history.origins or not isinstance(target, Tensor):
                return None
        return self._unheard(self.ids[0], self.target, self.target_line(), True)

    def _unheard(self, tensor: int, name: str, line: Any, certain: bool) -> Obstacle | None:
        """Why a tensor that was computed was not heard of."""
        history, tape = self.history, self.tape_name
        for pause in history.notes.pauses:
            if pause.start < tensor < pause.end:
                return self._in_pause(pause, name, line, certain)
        if tensor < history.began or not history.began:
            return Obstacle(
                causes.BEFORE_THE_BLOCK,
                f"`{name}` was computed before the block of the tape began",
                f"move this line into the block, `with tf.GradientTape() as {tape}:`",
                line,
                certain,
            )
        if history.ended is not None and tensor > history.ended:
            if self.is_gradient(name):
                return Obstacle(
                    causes.INNER_GRADIENT,
                    f"`{name}` is a gradient that was taken after the block of `{tape}` had ended, "
                    "so that this tape did not see how it was computed",
                    f"take that gradient inside the block of `{tape}`: indent this line",
                    line,
                    certain,
                )
            return Obstacle(
                causes.AFTER_THE_BLOCK,
                f"`{name}` was computed after the block of the tape had ended",
                "move this line into the block: indent it",
                line,
                certain,
            )
        if self.is_from_another_thread(tensor):
            return self.other_thread(f"`{name}`", tensor, line)
        return None

    def _in_pause(self, pause: Any, name: str, line: Any, certain: bool) -> Obstacle:
        tape = self.tape_name
        if pause.why == "stop_recording":
            return Obstacle(
                causes.STOP_RECORDING,
                f"`{name}` was computed under `{tape}.stop_recording()`",
                "move the computation out of that block",
                pause.place or line,
                certain,
            )
        if pause.why == "reset":
            return Obstacle(
                causes.RESET,
                f"`{name}` was computed before `{tape}.reset()`, which forgets all there was",
                "compute it after the reset, or leave the reset out",
                pause.place or line,
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
        """Whether a tensor that appeared in the block may come from a thread of the user's."""
        history = self.history
        in_block = history.began < tensor and (history.ended is None or tensor < history.ended)
        return in_block and tensor not in history.origins and bool(self._other_threads(tensor))

    def _other_threads(self, before: int) -> list[str]:
        """Threads that may have made a tensor: not this one, nor those of datasets or XLA."""
        here = threading.current_thread().name
        alive = {thread.name for thread in threading.enumerate()}
        return [
            name
            for name, began in threads
            if began < before
            and (began > self.history.began or name in alive)
            and name != here
            and not name.startswith(("retrograde", "Dummy-"))  # the latter Python did not start
        ]

    def other_thread(self, name: str, tensor: int, line: Any) -> Obstacle:
        thread = self._other_threads(tensor)[-1]
        return Obstacle(
            causes.ANOTHER_THREAD,
            f"{name} seems to come from another thread ({thread}): a tape hears only the thread "
            "that opened it",
            "compute it in the thread of the tape, or open a tape and take the gradient in that "
            "thread",
            line,
            False,
        )

    def _made_anew(self, source: Source) -> Obstacle | None:
        history, held = self.history, source.held
        if isinstance(held, Tensor) or history.uses_of(held._id):
            return None
        used = history.ancestors(self.ids)
        for key, moment in history.notes.created.items():
            other = history.variables.get(key)
            if key not in used or other is None or key == held._id:
                continue
            alike = other._spec.shape == held._spec.shape and other.dtype is held.dtype
            if alike and _MAKES_VARIABLES.search("" if moment.place is None else moment.place.text):
                return Obstacle(
                    causes.MADE_ANEW,
                    f"the block did not use `{source.name}`, but another variable of the same "
                    "shape, which this line makes anew each time it runs",
                    "make the variable once, outside of the function, and use that one in it",
                    moment.place,
                )
        return None

    def _unheard_part(self, source: Source) -> Obstacle | None:
        """Whether something that the target is made of was computed where the tape did not hear."""
        history, program = self.history, self.program
        parts = [i for i in history.ancestors(self.ids) if i not in history.origins]
        parts = [i for i in sorted(parts) if i not in history.variables and i not in self.ids]
        for part in parts:
            name = program.name_of_id(part)
            binding = None if name is None else program.last_binding(name)
            if any(p.start < part < p.end for p in history.notes.pauses):
                line = None if binding is None else binding.line
                return self._unheard(part, name or "what it is made of", line, name is not None)
            before = binding is not None and part < history.began
            if before and any(program.is_made_from(name, n) for n in source.roots):
                return self._unheard(part, name, binding.line, True)
        return None

    def _inside_a_function(self, source: Source) -> Obstacle | None:
        """Tapes hear of a `tf.function` only what a gradient can flow through."""
        binding = self.program.last_binding(self.target)
        if binding is None or self.history.uses_of(source.held._id):
            return None
        functions = self.program.functions_in(binding)
        if not functions:
            return None
        return Obstacle(
            causes.NO_GRADIENT,
            f"nothing that the tf.function `{functions[0]}` does passes a gradient to "
            f"`{source.name}`",
            "call `tf.config.run_functions_eagerly(True)` first and ask again: then the tape sees "
            "into the function, and names the line",
            binding.line,
            False,
        )

    def _part_of_another_thread(self, source: Source) -> Obstacle | None:
        history = self.history
        if history.uses_of(source.held._id):
            return None
        for part in sorted(history.ancestors(self.ids)):
            if part not in history.variables and self.is_from_another_thread(part):
                name = self.program.name_of_id(part)
                label = f"a part of `{self.target}`" if name is None else f"`{name}`"
                return self.other_thread(label, part, self.target_line())
        return None

    def _computed_apart(self, source: Source) -> Obstacle | None:
        history, held = self.history, source.held
        if held._id not in history.origins:
            return None
        common = history.ancestors([held._id]) & history.ancestors(self.ids)
        if not common:
            return None
        shared = [history.variables[i]._name for i in sorted(common) if i in history.variables]
        named = f" ({', '.join(shared[:3])}{', …' if len(shared) > 3 else ''})" if shared else ""
        return Obstacle(
            causes.COMPUTED_APART,
            f"`{source.name}` and `{self.target}` were computed apart, from the same beginnings"
            f"{named}: `{self.target}` was not computed from `{source.name}`",
            f"compute `{self.target}` from `{source.name}` in the block. With Keras, call one "
            "model that returns both, keras.Model(model.inputs, [layer.output, model.output]); if "
            "the layer is in a nested model, call that one first and the rest on what it returns",
            source.made_at() or self.target_line(),
        )

    def _constant_derivative(self, source: Source) -> Obstacle | None:
        if not self.is_gradient(self.target):
            return None
        return Obstacle(
            causes.LINEAR,
            f"`{self.target}` is a first derivative that does not depend on `{source.name}`: what "
            "was differentiated is linear in it, and its second derivative is zero everywhere",
            "use unconnected_gradients='zero' if a zero is what you want",
            self.target_line(),
        )

    def _independent(self, source: Source) -> Obstacle:
        history, name, target = self.history, source.name, self.target
        uses = history.uses_of(source.held._id)
        if not isinstance(self.targets[0], Tensor):
            meaning = f"`{target}` is a variable, which is not computed from anything"
        elif self.ids[0] not in history.origins:
            meaning = f"`{target}` is a constant, made without `{name}`"
        elif uses:
            names = ", ".join(f"`{n}`" for n in dict.fromkeys(str(call.name) for call in uses))
            meaning = f"`{name}` was used in the block (by {names}), but nothing of it enters "
            meaning += f"`{target}`"
            if {str(call.name) for call in uses} <= _ONLY_ADD:
                meaning += ". What is only added, as a bias is, drops out of derivatives"
        else:
            meaning = f"the block did not use `{name}` at all. What was computed from it before "
            meaning += "the block, and kept in an attribute or a cache, is a constant there"
        return Obstacle(
            causes.INDEPENDENT,
            meaning,
            f"compute `{target}` from `{name}`, every step of the way inside the block. If it is "
            "not meant to depend on it, leave it out, or use unconnected_gradients='zero'",
            self.target_line(),
        )

    def rebound(self, source: Source) -> Obstacle:
        """What to say of a name that was a variable's and now is a tensor's."""
        binding, name = source.rebound, source.name
        return Obstacle(
            causes.REBOUND,
            f"the name `{name}` was that of a variable, and this line bound it to a new tensor, "
            "which nobody watches",
            f"change the variable in place: `{causes.assignment_instead_of(binding)}`",
            binding.line,
        )
