"""A question to a tape: about which targets and sources, and what the program calls them."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from retrograde.core.tensor import Tensor
from retrograde.diagnose.missing_gradients.history import History
from retrograde.diagnose.missing_gradients.source_code import Line, Program
from retrograde.values.composites import CompositeTensor
from retrograde.values.conversion import source_of
from retrograde.values.source_location import Place


class Obstacle(NamedTuple):
    """What keeps a gradient from a source: see `Finding` for what its parts mean."""

    cause: str
    meaning: str
    cure: str
    line: Place | Line | None
    certain: bool = True


class Source:
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


class Question:
    """One question to one tape, about some targets."""

    def __init__(self, tape: Any, targets: list, program: Program) -> None:
        self.tape = tape
        self.program = program
        self.history = History(tape)
        self.targets = [held for held in map(held_or_followed, targets) if held is not None]
        self.ids = [target._id for target in self.targets]
        names = program.names_of(targets[0]) if len(targets) == 1 else []
        self.target = names[0] if names else "target"
        self.tape_name = (program.names_of(tape) or ["tape"])[0]

    def is_gradient(self, name: str) -> bool:
        """Whether `name` stands for what a tape was asked for."""
        binding = self.program.last_binding(name)
        return binding is not None and binding.takes_gradient

    def target_line(self) -> Any:
        """Where the target was computed: by the tape's own lines, else by the program's text."""
        for target in self.ids:
            call = self.history.origins.get(target)
            if call is not None and call.place is not None:
                return call.place
        binding = self.program.last_binding(self.target)
        return self.program.line if binding is None else binding.line

    def first_use(self, source: Source) -> Line | None:
        """The first line of the block that uses the source, by the program's text."""
        for name in source.names:
            line = self.program.first_use(name, self.tape_name)
            if line is not None:
                return line
        return None


def held_or_followed(leaf: Any) -> Any:
    """The tensor or variable that `leaf` is or stands for."""
    held = source_of(leaf)
    if held is None and isinstance(leaf, CompositeTensor) and leaf._takes_gradients:
        return leaf._followed
    return held


def advice_for(leaf: Any) -> str:
    """Returns advice for users who passed a part of a model, as the end of a message."""
    if hasattr(leaf, "_keras_history"):
        return (
            " It is symbolic, a place in a model without a value: watch a real tensor, call the "
            "model on it, and take the gradient by that tensor, or by what the model returns."
        )
    if hasattr(leaf, "trainable_variables"):
        return " Pass its variables, as its attribute `trainable_variables` has them."
    return ""
