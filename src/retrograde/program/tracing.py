"""Tracer: records everything that one call of a function does, as steps over numbered values."""

from __future__ import annotations

import copy
import itertools
import sys
import weakref
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.backward import backward_pass
from retrograde.core.batching import Batched
from retrograde.core.custom_gradient import CustomCall
from retrograde.core.host_callbacks import NUMPY_CALL, Host, wrapped
from retrograde.core.lazy import Materializer, make_lazy
from retrograde.core.program import Call, CustomGradient, Guard, ReadVariable, Write
from retrograde.core.recorders import Recorder, alone
from retrograde.core.rules import Spec
from retrograde.core.tensor import Tensor, next_id
from retrograde.core.variable_cell import commit, writing
from retrograde.ops import random_state
from retrograde.values import dtypes
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.source_location import (
    Place,
    caller_location,
    first_output,
    locals_of,
    place_and_callers,
)


class Origin(NamedTuple):
    """The place of a call in the user's program.

    If the call is part of the gradient of another one, `of` is the number of the first output of
    that one, and `place` is its place.
    """

    place: Place | None
    of: int | None = None


def to_variable(needed: tuple[bool, ...], g: Any) -> list:  # noqa: ARG001
    """Is the gradient of a value that a variable was assigned and that is read again."""
    return [g]


class Log:
    """The results of the host callbacks of one call, in order.

    If a guard fails, the next trace that is tried gets the same results, so that no side effect
    happens twice. Random numbers are drawn from the same state.
    """

    __slots__ = ("_before", "_state", "answers", "place")

    def __init__(self) -> None:
        self.answers: list[tuple[str, Any, Exception | None]] = []
        self.place = 0
        self._state: Any = None
        self._before: dict[int, tuple[Any, Tensor]] = {}

    def show(self, variable: Any, array: Any) -> None:
        """Assigns the new value of `variable` early, because a host callback may read it."""
        self._before.setdefault(variable._id, (variable, variable._current()))
        variable._hold(Tensor(array, variable._id))

    def undo(self) -> None:
        """Restores the variables that `show` assigned."""
        restore(self._before)
        self._before = {}

    def rewind(self) -> None:
        """Starts again with the first result."""
        self.place = 0
        self.undo()
        if self._state is not None:
            random_state.restore(self._state)

    def ask(self, host: Host, arrays: list) -> Any:
        """Returns the logged result of `host`, or calls it if there is none yet."""
        if host.draws:
            if self._state is None:
                self._state = random_state.state()
            return host.f(*arrays)
        if self.place < len(self.answers) and self.answers[self.place][0] != host.name:
            del self.answers[self.place :]
        if self.place == len(self.answers):
            self.answers.append((host.name, *_answer(host, arrays)))
        _, answer, error = self.answers[self.place]
        self.place += 1
        if error is not None:
            raise error
        return answer


def restore(before: dict[int, tuple[Any, Tensor]]) -> None:
    """Restores the old tensors of variables, all at once."""
    variables, tensors = zip(*before.values(), strict=True) if before else ((), ())
    commit(variables, tensors)


def _answer(host: Host, arrays: list) -> tuple[Any, Exception | None]:
    with alone():
        try:
            return host.f(*arrays), None
        except Exception as error:
            return None, error


# Escapes that another method observes, or that do not matter
_FOLLOWED = frozenset(
    {"assign", "assign_add", "assign_sub", "scatter", "Variable", "print", NUMPY_CALL}
)


class Tracer(Recorder):
    """Records everything that happens in one call, and numbers the values.

    The inputs have the first numbers. A value is identified by the id of its tensor. The values of
    a variable all have the id of the variable, so they are identified by the tensor itself.
    """

    records_functions = True

    def __init__(self, inputs: list[Tensor], log: Log, variables: Sequence[Any] = ()) -> None:
        self.start = next_id()  # tensors with smaller ids existed before
        self.inputs = inputs
        self.count = len(inputs)
        self.steps: list[Any] = []
        self.origins: dict[int, Origin] = {}  # of calls, by their first outputs
        self.specs: list[Spec] = []
        self.constants: dict[int, Tensor] = {}
        self.variables: list[Any] = list(variables)  # first those that are arguments
        self.handed_in = len(variables)
        self.first_values: list[int] = [-1] * len(variables)  # of each variable, if it was read
        self.hosted: dict[int, Tensor] = {}  # results of host callbacks
        self.before: dict[int, tuple[Any, Tensor]] = {}  # old tensors of written variables
        self.created: list[weakref.ref] = []
        self.made: list[weakref.ref] = [weakref.ref(x) for x in inputs]  # and results
        self.log = log
        self._numbers: dict[int, int] = {}
        self._versions: dict[int, list[tuple[Tensor, int]]] = {}
        self._given: dict[int, Any] = {}  # assigned to variables and not read yet
        self._places: dict[int, int] = {v._id: i for i, v in enumerate(variables)}
        self._arrays: dict[int, tuple[Any, int]] = {}
        self._changing: list[bool] = []  # whether a value may differ in another call
        self._guarded: set[tuple[int, bool]] = set()
        self._draws: dict[Any, Tensor] = {}
        self._inputs = {id(x._array) for x in inputs}
        self.rules: dict[tuple, Any] = {}  # traced gradient functions, by outputs
        self.begin(inputs)

    def begin(self, inputs: list[Tensor]) -> int:
        """Numbers `inputs` and returns the first number."""
        first = len(self.specs)
        for x in inputs:
            self._numbers[x._id] = self._new(x._array, changing=True)
        return first

    @property
    def arguments(self) -> list[int]:
        """The numbers of the arguments: the inputs, then the variables that are read."""
        return [*range(self.count), *(n for n in self.first_values if n >= 0)]

    def branched(self) -> Tracer:
        """Returns a tracer that knows all tensors of this one and continues separately."""
        branch = copy.copy(self)
        branch.steps, branch.constants, branch.origins = [], {}, dict(self.origins)
        branch.made = []
        branch.rules = dict(self.rules)  # another branch may give the same numbers to its values
        branch.specs, branch._changing = list(self.specs), list(self._changing)
        branch._numbers, branch._arrays = dict(self._numbers), dict(self._arrays)
        branch._versions = {key: list(pairs) for key, pairs in self._versions.items()}
        branch._guarded, branch._given = set(self._guarded), dict(self._given)
        return branch

    def continued(self, tensors: dict[int, Tensor]) -> Tracer:
        """Returns a tracer that continues the numbers, and knows `tensors` by theirs."""
        derived = self.branched()
        derived._numbers = {x._id: n for n, x in self.constants.items()}
        derived._versions, derived._arrays, derived._guarded = {}, {}, set()
        derived._given = {}
        derived.constants = dict(self.constants)
        derived.variables, derived.first_values, derived._places = [], [], {}
        derived.know(tensors)
        return derived

    def know(self, tensors: dict[int, Tensor]) -> None:
        """Identifies `tensors` with the values of their numbers."""
        self._numbers.update((x._id, n) for n, x in tensors.items())
        self._inputs = self._inputs | {id(x._array) for x in tensors.values()}

    def known_tensors(self) -> dict[int, Tensor]:
        """Returns the tensors from which everything so far was computed, by number."""
        versions = [pair for pairs in self._versions.values() for pair in pairs]
        read = {n for n in self.first_values if n >= 0}
        read |= {e.value for e in self.steps if type(e) is ReadVariable}
        found = dict(enumerate(self.inputs)) | self.constants | self.hosted
        return found | {n: x for x, n in versions if n in read}

    def first_tensors(self) -> dict[int, Tensor]:
        """Returns the tensors that variables held when they were first read, by place."""
        found = {}
        for place, first in enumerate(self.first_values):
            if first >= 0:
                versions = self._versions[self.variables[place]._id]
                found[place] = next(tensor for tensor, number in versions if number == first)
        return found

    def shows_arguments(self) -> bool:
        """Whether a host callback may read or write a variable among the arguments."""
        calls = [entry for entry in self.steps if type(entry) is Call]
        return bool(self.handed_in) and any(may_read_variables(call.primitive) for call in calls)

    def close(self) -> None:
        """Ends the trace, and frees all tensors but constants."""
        self.inputs = self.inputs[:0]
        if not self.shows_arguments():
            self.variables[: self.handed_in] = [None] * self.handed_in
        if self.created:
            self.variables = []
        self.hosted, self.before, self._draws, self._arrays = {}, {}, {}, {}
        self._given = {}
        if not any(type(e) is CustomGradient and e.rule is not to_variable for e in self.steps):
            self._numbers, self._versions = {}, {}
            for reference in self.made:
                tensor = reference()
                if tensor is not None:
                    make_lazy(tensor, OutOfScope(*Spec.of(tensor)))
        self.made = []

    # Values

    def _new(self, array: Any, changing: bool) -> int:
        self.specs.append(Spec(array.shape, array.dtype))
        self._changing.append(changing)
        return len(self.specs) - 1

    def number(self, x: Tensor) -> int:
        """Returns the number of the value of `x`, which is a constant if it is new."""
        versions = self._versions.get(x._id)
        if versions is not None:
            for tensor, number in reversed(versions):
                if tensor is x:
                    return number
        else:
            known = self._numbers.get(x._id)
            if known is not None:
                return known
        kept = self._arrays.get(id(x._array))
        if kept is not None and kept[0]() is x._array:
            number = kept[1]
        else:
            number = self._new(x._array, changing=False)
            self.constants[number] = x if versions is None else Tensor(x._array)
        if versions is None:
            self._numbers[x._id] = number
        else:
            versions.append((x, number))
        return number

    def changes(self, x: Tensor) -> bool:
        """Whether the value of `x` may differ in another call."""
        return type(x._array) is Batched or self._changing[self.number(x)]

    def _made(self, y: Tensor, changing: bool) -> int:
        number = self._numbers[y._id] = self._new(y._array, changing)
        self.made.append(weakref.ref(y))
        array = y._array
        # `np.True_` is one object for all.
        if id(array) not in self._inputs and type(array) is not np.bool_:
            self._arrays[id(array)] = (_reference(array), number)
        return number

    # What happens

    def record(self, primitive: Any, inputs: tuple, attrs: dict, y: Any) -> None:
        """Records a call."""
        numbers = tuple(map(self.number, inputs))
        changing = any(map(self._changing.__getitem__, numbers))
        outputs = y if type(y) is tuple else (y,)
        made = tuple(map(self._made, outputs, itertools.repeat(changing)))
        self.steps.append(Call(primitive, numbers, attrs, made))
        self.origins[made[0]] = self._origin(sys._getframe(1))

    def _origin(self, frame: FrameType | None) -> Origin:
        """Returns the origin of the call that `frame` makes."""
        place, passes = place_and_callers(frame, backward_pass.__code__)
        for backward in passes:
            plan, out = locals_of(backward, "plan", "out")
            of = self._numbers.get(first_output(out))
            before = None if of is None else self.origins.get(of)
            if before is not None and before.place is not None:
                return Origin(before.place._replace(rule=plan.name), of)
        return Origin(place)

    def tie(self, call: CustomCall, inputs: tuple, leaves: list, outputs: list) -> None:
        """Records a `custom_gradient`, whose `outputs` are new handles on `leaves`."""
        values = tuple([self.number(x) for x in leaves])
        numbers = tuple([self.number(x) for x in inputs])
        made = tuple(
            [self._made(y, self._changing[n]) for y, n in zip(outputs, values, strict=True)]
        )
        self.steps.append(CustomGradient(call.name, call.rule, numbers, values, made))

    def perform(self, host: Host, inputs: tuple, answer: Any = None) -> Any:
        """Runs a host callback, unless its result is known, and records it."""
        numbers = tuple([self.number(x) for x in inputs])
        arrays = [x._array for x in inputs]
        if answer is not None:
            pass
        elif host.pure:
            with alone():
                answer = host.f(*arrays)
        else:
            answer = self.log.ask(host, arrays)
        if host.draws:
            # A state that was drawn from before, as when `recompute_grad` runs a function again,
            # is the same one in every replay.
            key = answer.tobytes()
            if key in self._draws:
                return self._draws[key]
        y = wrapped(host, answer)
        if host.draws:
            self._draws[key] = y
        changing = not host.pure or any([self._changing[n] for n in numbers])
        outputs = y if type(y) is tuple else (y,)
        made = tuple([self._made(x, changing) for x in outputs])
        self.hosted.update(zip(made, outputs, strict=True))
        self.steps.append(Call(host, numbers, {}, made))
        return y

    def read(self, variable: Any) -> None:
        """Records which variables are read, and whether something else has changed one."""
        place = self._place(variable)
        tensor = variable._current()
        versions = self._versions.get(variable._id)
        if versions is None:
            number = self.first_values[place] = self._new(tensor._array, changing=True)
            self._versions[variable._id] = [(tensor, number)]
        elif not any(known is tensor for known, _ in versions):
            number = self._new(tensor._array, changing=True)
            versions.append((tensor, number))
            self.steps.append(ReadVariable(place, number))
        elif self._given.pop(variable._id, None) is tensor:
            self._read_again(variable, place, tensor)

    def _read_again(self, variable: Any, place: int, tensor: Tensor) -> None:
        """Connects a value that `variable` was assigned to the variable only, as in eager code.

        That is why a variable that is written first and read later is an argument, too.
        """
        if self.first_values[place] < 0:
            before = self.before[variable._id][1]
            first = self.first_values[place] = self._new(before._array, changing=True)
            self._versions[variable._id].insert(0, (before, first))
        value = self.number(tensor)
        made = self._new(tensor._array, self._changing[value])
        self._versions[variable._id].append((tensor, made))
        first = self.first_values[place]
        self.steps.append(CustomGradient("assign", to_variable, (first,), (value,), (made,)))

    def _place(self, variable: Any) -> int:
        place = self._places.setdefault(variable._id, len(self.variables))
        if place == len(self.variables):
            self.variables.append(variable)
            self.first_values.append(-1)
        return place

    def create(self, variable: Any) -> None:
        """Records the creation of a variable."""
        self.created.append(weakref.ref(variable))

    def undo(self) -> None:
        """Restores the values that variables had before the call."""
        restore(self.before)

    def will_write(self, variable: Any, before: Tensor) -> None:
        """Keeps what `variable` holds `before` its first write, so that `undo` restores it."""
        self.before.setdefault(variable._id, (variable, before))

    def write(self, variable: Any, value: Any, before: Tensor) -> None:
        """Records an assignment of `value` to `variable`, which held `before`."""
        held = tensor_or_variable(value)
        source = before if held is variable else None if held is None else held._read()
        tensor = variable._current()
        place = self._place(variable)
        versions = self._versions.setdefault(variable._id, [])
        number = self.number(tensor if source is None else source)
        if source is not None:
            versions.append((tensor, number))
        if tensor._spec.dtype in dtypes.INEXACT:
            self._given[variable._id] = tensor
        self.steps.append(Write(place, number))

    def add_writes(self, writes: dict[int, int]) -> None:
        """Records the last values of variables, by place."""
        self.steps += [Write(place, number) for place, number in writes.items()]

    def update(self, variable: Any, primitive: Any, operand: Any) -> None:
        """Assigns to `variable` what `primitive` computes from its value and `operand`."""
        held = tensor_or_variable(operand)
        operand = Tensor(operand) if held is None else held._read()
        with alone(self), writing:
            before = variable._read()
            value = apply(primitive, (before, operand))
            self.will_write(variable, before)
            variable._hold(Tensor(value._array, variable._id))
            self.write(variable, value, before)

    def escape(self, tensor: Any, how: str) -> None:
        """Records a guard for a value that Python uses."""
        if how in _FOLLOWED or type(tensor._array) is Batched:  # which is about to refuse
            return
        number = self.number(tensor)
        truth = how == "bool"
        if not self._changing[number] or (number, truth) in self._guarded:
            return
        array = tensor._array
        if truth and array.size != 1:
            return  # Python is about to raise an error
        self._guarded.add((number, truth))
        key = key_of(array, truth)
        self.steps.append(Guard(number, truth, key, how, caller_location()))


_OUT_OF_SCOPE = (
    "This tensor is out of scope: it was made inside a tf.function, which did not return it. Later "
    "calls do not compute it anew. Return it from the function to use it outside."
)


class OutOfScope(Materializer):
    """The origin of a tensor that a trace made and did not return.

    Replays compute another value in its place, which it would not show.
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.shape = shape
        self.dtype = dtype

    def materialize(self, tensor: Tensor) -> Any:  # noqa: ARG002
        """Raises a `TypeError`."""
        raise TypeError(_OUT_OF_SCOPE)

    def numpy(self, tensor: Tensor) -> Any:  # noqa: ARG002
        """Raises an `AttributeError`: TensorFlow's symbolic tensors have no such method."""
        raise AttributeError(_OUT_OF_SCOPE)

    def text(self, tensor: Tensor) -> str:  # noqa: ARG002
        """Returns a text without a value."""
        return "<tf.Tensor: out of scope, made inside a tf.function>"


def may_read_variables(host: Any) -> bool:
    """Whether a host callback may read variables. One that only draws random numbers does not."""
    return type(host) is Host and not (host.pure or host.draws)


def key_of(array: Any, truth: bool = False) -> Any:
    """Returns what a guard compares: `bool(array)` if only its truth counts, else all values."""
    if truth:
        return bool(array)
    array = np.asarray(array)
    return tuple(array.ravel().tolist()) if array.dtype.kind == "O" else array.tobytes()


def _reference(array: Any) -> Callable:
    """Returns a weak reference to `array`. NumPy scalars are kept alive."""
    return weakref.ref(array) if type(array) is np.ndarray else lambda: array
