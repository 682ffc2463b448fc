"""A query: a tape, its targets and sources, and the names that the program has for them."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from retrograde.core.tensor import Tensor
from retrograde.diagnose.missing_gradients.history import History
from retrograde.diagnose.missing_gradients.source_code import Line, Program
from retrograde.values.composites import CompositeTensor
from retrograde.values.conversion import source_of
from retrograde.values.source_location import SourceLocation


class Obstacle(NamedTuple):
    """An obstacle that keeps the gradient from a source. `Finding` has the same fields."""

    cause: str
    message: str
    fix: str
    line: SourceLocation | Line | None
    certain: bool = True


class Source:
    """A source: the object that the user passed, its tensor or variable, and its names."""

    def __init__(self, leaf: Any, tensor: Any, program: Program, position: int, count: int) -> None:
        self.leaf, self.tensor = leaf, tensor
        self.names = program.names_of(leaf)
        self._program = program
        own_name = getattr(leaf, "path", None) or getattr(tensor, "_name", None)
        if self.names:
            self.name = self.names[0]
        elif isinstance(own_name, str) and own_name != "Variable":
            self.name = own_name
        else:
            self.name = f"sources[{position}]" if count > 1 else "source"

    @property
    def owner_names(self) -> set[str]:
        """The names of the lists, objects and models that contain the source, and its own."""
        first_names = {re.match(r"\w+", name)[0] for name in self.names}
        return first_names | set(self._program.owners_of(self.leaf, self.tensor))

    def definition_line(self) -> Line | None:
        """Returns the line that bound the name of the source."""
        bindings = [self._program.last_binding(name) for name in self.names]
        return next((binding.line for binding in bindings if binding is not None), None)

    @property
    def rebinding(self) -> Any:
        """The statement that rebound the name from a variable to a tensor, if there is one."""
        if not isinstance(self.tensor, Tensor):
            return None
        for name in self.names:
            bindings = self._program.bindings_of(name)
            created = [b for b in bindings if b.creates_variable]
            others = [b for b in bindings if not b.creates_variable]
            later = [b for b in others if created and b.line > created[0].line]
            if later:
                return later[-1]
        return None


class Query:
    """One call to `explain`: a tape and its targets."""

    def __init__(self, tape: Any, targets: list, program: Program) -> None:
        self.tape = tape
        self.program = program
        self.history = History(tape)
        self.targets = [x for x in map(watched_tensor, targets) if x is not None]
        self.ids = [target._id for target in self.targets]
        names = program.names_of(targets[0]) if len(targets) == 1 else []
        self.target = names[0] if names else "target"
        self.tape_name = (program.names_of(tape) or ["tape"])[0]

    def is_gradient(self, name: str) -> bool:
        """Returns whether the value of `name` was computed by a tape, such as by `gradient`."""
        binding = self.program.last_binding(name)
        return binding is not None and binding.takes_gradient

    def target_line(self) -> Any:
        """Returns where the target was computed: from the tape if known, else from the source."""
        for target in self.ids:
            call = self.history.origins.get(target)
            if call is not None and call.location is not None:
                return call.location
        binding = self.program.last_binding(self.target)
        return self.program.line if binding is None else binding.line

    def first_use(self, source: Source) -> Line | None:
        """Returns the first line of the block that uses the source, found in the source code."""
        for name in source.names:
            line = self.program.first_use(name, self.tape_name)
            if line is not None:
                return line
        return None


def watched_tensor(leaf: Any) -> Any:
    """Returns the tensor or variable that the tape watches for `leaf`, or `None`."""
    tensor = source_of(leaf)
    if tensor is None and isinstance(leaf, CompositeTensor) and leaf._takes_gradients:
        return leaf._followed
    return tensor


def advice_for(leaf: Any) -> str:
    """Returns advice for users who passed a part of a model, as the end of a message."""
    if hasattr(leaf, "_keras_history"):
        return (
            " It is a symbolic Keras tensor, which has no value: watch a concrete tensor, call the "
            "model on it, and differentiate with respect to that tensor or to an output of the "
            "model."
        )
    if hasattr(leaf, "trainable_variables"):
        return " Pass its variables: the attribute `trainable_variables`."
    return ""
