"""Tracer: records one call of a function as steps over numbered values."""

from __future__ import annotations

import copy
import itertools
import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.backward import backward_pass
from retrograde.core.batching import Batched
from retrograde.core.custom_gradient import CustomCall
from retrograde.core.lazy import Materializer, alias, make_lazy
from retrograde.core.program import Call, CustomGradient, Guard, ReadVariable, Write
from retrograde.core.recorders import Recorder, isolate, thread
from retrograde.core.rules import Spec
from retrograde.core.tensor import Tensor, next_id
from retrograde.core.variable_cell import commit, writing
from retrograde.ops import random_state
from retrograde.ops.host_callbacks import NUMPY_CALL, HostCallback, wrap_result
from retrograde.values import dtypes
from retrograde.values.source_location import (
    LIBRARIES,
    SourceLocation,
    caller_location,
    first_output,
    locals_of,
)


class Origin(NamedTuple):
    """The source location of a call in the user's program.

    If the call is part of the gradient of another call, `of` is the number of the first output of
    the other call, and `location` is its location.
    """

    location: SourceLocation | None
    of: int | None = None


def to_variable(needed: tuple[bool, ...], g: Any) -> list:  # noqa: ARG001
    """Computes the gradient of a variable that is read after an assignment."""
    return [g]


class CallbackLog:
    """The results of the host callbacks of one call, in order.

    If a guard fails, the next trace gets the same results, so that no side effect happens twice.
    Random numbers are drawn from the same state.
    """

    __slots__ = ("_before", "_place", "_results", "_state", "announces", "is_undecided")

    def __init__(self, announces: bool = False) -> None:
        # Whether other replicas have to be told which program runs, see `collectives.announce`
        self.announces = announces
        self.is_undecided = False  # whether they have to be told again after the call
        self._results: list[tuple[str, Any, Exception | None]] = []
        self._place = 0  # of the next result
        self._state: Any = None
        self._before: dict[int, tuple[Any, Tensor]] = {}

    def assign_early(self, variable: Any, value: Tensor) -> None:
        """Assigns the new value of `variable` early, because a host callback may read it."""
        old_tensor = variable._current()
        self._before.setdefault(variable._id, (variable, old_tensor))
        variable._hold(old_tensor._replaced_by(value, variable._id))

    def undo(self) -> None:
        """Restores the variables that `assign_early` assigned."""
        restore(self._before)
        self._before = {}

    def rewind(self) -> None:
        """Starts again with the first result."""
        self._place = 0
        self.undo()
        if self._state is not None:
            random_state.restore(self._state)

    def result_of(self, host: HostCallback, arrays: list) -> Any:
        """Returns the logged result of `host`, or calls it if there is none yet."""
        if host.draws:
            if self._state is None:
                self._state = random_state.state()
            return host.f(*arrays)
        if self._place < len(self._results) and self._results[self._place][0] != host.name:
            del self._results[self._place :]
        if self._place == len(self._results):
            self._results.append((host.name, *_call(host, arrays)))
        _, result, error = self._results[self._place]
        self._place += 1
        if error is not None:
            raise error
        return result


def restore(old_tensors: dict[int, tuple[Any, Tensor]]) -> None:
    """Restores the old tensors of variables, all at once."""
    variables, tensors = zip(*old_tensors.values(), strict=True) if old_tensors else ((), ())
    commit(variables, tensors)


def _call(host: HostCallback, arrays: list) -> tuple[Any, Exception | None]:
    with isolate():
        try:
            return host.f(*arrays), None
        except Exception as error:
            return None, error


# These conversions to Python need no guard. Either a step is recorded, or the value has no effect.
_WITHOUT_GUARD = frozenset(
    {"assign", "assign_add", "assign_sub", "scatter", "Variable", "print", NUMPY_CALL}
)


class Tracer(Recorder):
    """Records all steps of one call, and numbers the values.

    The inputs have the first numbers. A value is identified by the id of its tensor. All values of
    a variable have the id of the variable, so they are identified by the tensor itself.
    """

    records_functions = True

    def __init__(
        self, inputs: list[Tensor], log: CallbackLog, variables: Sequence[Any] = ()
    ) -> None:
        self.start = next_id()  # tensors with smaller ids existed before
        self.inputs = inputs
        self.count = len(inputs)
        self.steps: list[Any] = []
        self.origins: dict[int, Origin] = {}  # of calls, by their first outputs
        self.specs: list[Spec] = []
        self.constants: dict[int, Tensor] = {}
        self.variables: list[Any] = list(variables)  # first those that are arguments
        self.variable_argument_count = len(variables)
        self.first_values: list[int] = [-1] * len(variables)  # of each variable, if it was read
        self.host_results: dict[int, Tensor] = {}
        self.before: dict[int, tuple[Any, Tensor]] = {}  # old tensors of written variables
        self.created: list[weakref.ref] = []
        self._tensors: list[weakref.ref] = [weakref.ref(x) for x in inputs]  # and outputs of steps
        self.log = log
        self.read_tensors: dict[int, Tensor] = {}  # that variables held when they were read
        self._numbers: dict[int, int] = {}  # by the ids of tensors
        self._versions: dict[
            int, dict[int, int]
        ] = {}  # maps a variable to numbers by `id` of tensors
        self._alive: list[Tensor] = []  # the tensors in `_versions`
        self._assigned: dict[int, Any] = {}  # assigned to variables and not read yet
        self._places: dict[int, int] = {v._id: i for i, v in enumerate(variables)}
        self._arrays: dict[int, tuple[Any, int]] = {}
        self._changing: list[bool] = []  # whether a value may differ in another call
        self._guarded: set[tuple[int, bool]] = set()
        self._draws: dict[Any, Tensor] = {}
        self._inputs = {id(x._spec) for x in inputs}
        self.replica_rounds: Any = None  # a `ReplicaRounds`, if replicas run in the call
        self.rules: dict[tuple, Any] = {}  # traced gradient functions, by outputs
        self.argument_names: Callable[[], list[str]] = lambda: [
            f"args_{i}" for i in range(self.count)
        ]
        self.begin(inputs)

    def begin(self, inputs: list[Tensor]) -> int:
        """Numbers `inputs` and returns the first number."""
        first = len(self.specs)
        for x in inputs:
            self._numbers[x._id] = self._new(x._spec, changing=True)
        return first

    @property
    def arguments(self) -> list[int]:
        """The numbers of the arguments: the inputs, then the variables that are read."""
        return [*range(self.count), *[n for n in self.first_values if n >= 0]]

    def branched(self) -> Tracer:
        """Returns a copy of this tracer that continues separately."""
        branch = copy.copy(self)
        branch.steps, branch.constants, branch.origins = [], {}, dict(self.origins)
        branch._tensors = []
        branch.rules = dict(self.rules)  # branches may use the same numbers
        branch.specs, branch._changing = list(self.specs), list(self._changing)
        branch._numbers, branch._arrays = dict(self._numbers), dict(self._arrays)
        branch._versions = {key: dict(numbers) for key, numbers in self._versions.items()}
        branch._alive = list(self._alive)
        branch._guarded, branch._assigned = set(self._guarded), dict(self._assigned)
        return branch

    def continued(self, tensors: dict[int, Tensor]) -> Tracer:
        """Returns a tracer that continues the numbering, with only `tensors` as its values."""
        derived = self.branched()
        derived._numbers = {x._id: n for n, x in self.constants.items()}
        derived._versions, derived._arrays, derived._guarded = {}, {}, set()
        derived._assigned = {}
        derived.constants = dict(self.constants)
        derived.variables, derived.first_values, derived._places = [], [], {}
        derived.identify(tensors)
        return derived

    def identify(self, tensors: dict[int, Tensor]) -> None:
        """Identifies `tensors` with the values of their numbers."""
        self._numbers.update((x._id, n) for n, x in tensors.items())
        self._inputs = self._inputs | {id(x._spec) for x in tensors.values()}

    def source_tensors(self) -> dict[int, Tensor]:
        """Returns the tensors from which all other values were computed, by number."""
        inputs = dict(enumerate(self.inputs))
        return inputs | self.constants | self.host_results | self.read_tensors

    def first_tensors(self) -> dict[int, Tensor]:
        """Returns the tensors that variables held when they were first read, by place."""
        return {p: self.read_tensors[n] for p, n in enumerate(self.first_values) if n >= 0}

    def exposes_arguments(self) -> bool:
        """Returns whether a host callback may access a variable among the arguments."""
        return bool(self.variable_argument_count) and may_read_variables(self.steps)

    def close(self) -> None:
        """Ends tracing, and frees all tensors except constants."""
        self.inputs = self.inputs[:0]
        names = self.argument_names()  # the function that returns them holds the arguments
        self.argument_names = lambda: names
        if not self.exposes_arguments():
            self.variables[: self.variable_argument_count] = [None] * self.variable_argument_count
        if self.created:
            self.variables = []
        self.host_results, self.read_tensors, self.before = {}, {}, {}
        self._draws, self._arrays, self._assigned = {}, {}, {}
        if not any([type(e) is CustomGradient and e.rule is not to_variable for e in self.steps]):
            self._numbers, self._versions, self._alive = {}, {}, []
            for reference in self._tensors:
                tensor = reference()
                if tensor is not None:
                    make_lazy(tensor, OutOfScope(*Spec.of(tensor)))
        self._tensors = []

    # Values

    def _new(self, array: Any, changing: bool) -> int:
        self.specs.append(Spec(array.shape, array.dtype))
        self._changing.append(changing)
        return len(self.specs) - 1

    def number(self, x: Tensor) -> int:
        """Returns the number of the value of `x`, which is a constant if it is new."""
        versions = self._versions.get(x._id)
        known_number = self._numbers.get(x._id) if versions is None else versions.get(id(x))
        if known_number is not None:
            return known_number
        array_entry = self._arrays.get(id(x._spec))
        if array_entry is not None and array_entry[0]() is x._spec:
            number = array_entry[1]
        else:
            number = self._new(x._spec, changing=False)
            self.constants[number] = x if versions is None else alias(x)
        if versions is None:
            self._numbers[x._id] = number
        else:
            self._add_version(x, number)
        return number

    def _add_version(self, x: Tensor, number: int) -> None:
        """Gives a number to a tensor of a variable."""
        self._versions[x._id][id(x)] = number
        self._alive.append(x)

    def changes(self, x: Tensor) -> bool:
        """Returns whether the value of `x` may differ in another call."""
        return type(x._spec) is Batched or self._changing[self.number(x)]

    def name_of(self, x: Tensor) -> str | None:
        """Returns the name of `x` in printed text, or `None` if it is the same in all calls."""
        versions = self._versions.get(x._id)
        number = self._numbers.get(x._id) if versions is None else versions.get(id(x))
        if number is None or not self._changing[number]:
            return None
        if number < self.count:
            return f"{self.argument_names()[number]}:0"
        outputs = [step for step in self.steps if type(step) is Call]
        calls = [call for call in outputs if call.outputs and call.outputs[0] <= number]
        if not calls or number not in calls[-1].outputs:
            return f"value_{number}:0"  # a variable, or the result of a custom gradient
        name, index = calls[-1].primitive.name, calls[-1].outputs.index(number)
        earlier_calls = sum(call.primitive.name == name for call in calls) - 1
        return f"{name}_{earlier_calls}:{index}" if earlier_calls else f"{name}:{index}"

    def _add_output(self, y: Tensor, changing: bool) -> int:
        array = y._spec
        number = self._numbers[y._id] = len(self.specs)
        self.specs.append(Spec(array.shape, array.dtype))  # inlined `_new`
        self._changing.append(changing)
        self._tensors.append(weakref.ref(y))
        # All occurrences of `np.True_` are one object.
        if id(array) not in self._inputs and type(array) is not np.bool_:
            is_array = type(array) is np.ndarray  # scalars have no weak references
            self._arrays[id(array)] = weakref.ref(array) if is_array else lambda: array, number
        return number

    # Events

    def record(self, primitive: Any, inputs: tuple, attrs: dict, y: Any) -> None:
        """Records a call."""
        numbers = tuple(map(self.number, inputs))
        changing = any(map(self._changing.__getitem__, numbers))
        outputs = y if type(y) is tuple else (y,)
        output_numbers = tuple(map(self._add_output, outputs, itertools.repeat(changing)))
        self.steps.append(Call(primitive, numbers, attrs, output_numbers))
        self.origins[output_numbers[0]] = self._origin(sys._getframe(1))

    def _origin(self, frame: FrameType | None) -> Origin:
        """Returns the origin of the call that `frame` makes.

        Tracing does this for every call, so the loop over the frames calls nothing.
        """
        location, passes, searches = None, [], True
        while frame is not None and location is None:
            code = frame.f_code
            library = LIBRARIES[code.co_filename]
            if not library:
                location = SourceLocation(code, frame.f_lasti)
            elif library is not True and library.code is code:
                searches, location = False, library.location(frame)
            elif searches and code is backward_pass.__code__:
                passes.append(frame)
            frame = frame.f_back
        for backward in passes:
            plan, out = locals_of(backward, "plan", "out")
            forward_output = self._numbers.get(first_output(out))
            forward_origin = None if forward_output is None else self.origins.get(forward_output)
            if forward_origin is not None and forward_origin.location is not None:
                return Origin(forward_origin.location._replace(rule=plan.name), forward_output)
        return Origin(location)

    def record_custom_gradient(
        self, call: CustomCall, inputs: tuple, leaves: list, outputs: list
    ) -> None:
        """Records a `custom_gradient`, whose `outputs` have the values of `leaves`."""
        values = tuple([self.number(x) for x in leaves])
        numbers = tuple([self.number(x) for x in inputs])
        output_numbers = tuple(
            [self._add_output(y, self._changing[n]) for y, n in zip(outputs, values, strict=True)]
        )
        self.steps.append(CustomGradient(call.name, call.rule, numbers + values, output_numbers))

    def record_host(self, host: HostCallback, inputs: tuple, result: Any = None) -> Any:
        """Records a host callback. Calls it unless its result is given."""
        numbers = tuple([self.number(x) for x in inputs])
        arrays = [x._array for x in inputs]
        if result is not None:
            pass
        elif host.pure:
            with isolate():
                result = host.f(*arrays)
        else:
            result = self.log.result_of(host, arrays)
        if host.draws:
            # `recompute_grad` draws from the same state again. It is the same in every replay.
            key = result.tobytes()
            if key in self._draws:
                return self._draws[key]
        y = wrap_result(host, result)
        if host.draws:
            self._draws[key] = y
        changing = not host.pure or any([self._changing[n] for n in numbers])
        outputs = y if type(y) is tuple else (y,)
        output_numbers = tuple([self._add_output(x, changing) for x in outputs])
        self.host_results.update(zip(output_numbers, outputs, strict=True))
        self.steps.append(Call(host, numbers, {}, output_numbers))
        return y

    def read(self, variable: Any) -> Any:
        """Records the first read of a variable, and each read after host code has changed it.

        Returns the tensor of the variable.
        """
        tensor = variable._tensor
        if tensor is None:
            tensor = variable._current()
        versions = self._versions.get(variable._id)
        if versions is None:
            self._versions[variable._id] = {}
            self.first_values[self._place(variable)] = self._new_version(tensor)
        elif id(tensor) not in versions:
            self.steps.append(ReadVariable(self._place(variable), (self._new_version(tensor),)))
        elif self._assigned.pop(variable._id, None) is tensor:
            self._read_again(variable, self._place(variable), tensor)
        return tensor

    def _new_version(self, tensor: Tensor) -> int:
        """Numbers the tensor of a variable that is read."""
        number = self._new(tensor._spec, changing=True)
        self.read_tensors[number] = tensor
        self._add_version(tensor, number)
        return number

    def _read_again(self, variable: Any, place: int, tensor: Tensor) -> None:
        """Records that a value read after an assignment depends on `variable` only.

        Eager code does the same. Therefore a variable that is first assigned and then read is an
        argument of the trace, too.
        """
        if self.first_values[place] < 0:
            old_tensor = self.before[variable._id][1]
            assigned_number = self._versions[variable._id].get(id(old_tensor))
            self.first_values[place] = self._new_version(old_tensor)
            if assigned_number is not None:  # it was assigned before it was read
                self._add_version(old_tensor, assigned_number)
        value = self.number(tensor)
        output_number = self._new(tensor._spec, self._changing[value])
        self._add_version(tensor, output_number)
        first = self.first_values[place]
        self.steps.append(CustomGradient("assign", to_variable, (first, value), (output_number,)))

    def _place(self, variable: Any) -> int:
        place = self._places.setdefault(variable._id, len(self.variables))
        if place == len(self.variables):
            self.variables.append(variable)
            self.first_values.append(-1)
        return place

    def create(self, variable: Any) -> None:
        """Records that a variable was created."""
        self.created.append(weakref.ref(variable))

    def undo(self) -> None:
        """Restores the values that variables had before the call."""
        restore(self.before)

    def assign(self, variable: Any, tensor: Tensor, value: Tensor) -> None:
        """Replaces the tensor of `variable` by `tensor`, which has the value of `value`."""
        self._write(variable, variable._current(), tensor, value)

    def _write(self, variable: Any, old_tensor: Tensor, tensor: Tensor, value: Tensor) -> None:
        """Replaces the tensor `old_tensor` of `variable` by `tensor`."""
        self.before.setdefault(variable._id, (variable, old_tensor))
        variable._hold(tensor)
        self._versions.setdefault(variable._id, {})
        number = self.number(value)
        self._add_version(tensor, number)
        if tensor._spec.dtype in dtypes.INEXACT:
            self._assigned[variable._id] = tensor
        self.steps.append(Write(self._place(variable), (number,)))

    def add_writes(self, writes: dict[int, int]) -> None:
        """Records the last values of variables, by place."""
        self.steps += [Write(place, (number,)) for place, number in writes.items()]

    def update(self, variable: Any, primitive: Any, operand: Tensor) -> None:
        """Assigns `primitive(variable, operand)` to `variable`."""
        with isolate(self) if len(thread.recorders) > 1 else nullcontext(), writing:
            old_tensor = self.read(variable)
            value = apply(primitive, (old_tensor, operand))
            self._write(variable, old_tensor, old_tensor._replaced_by(value, variable._id), value)

    def escape(self, tensor: Any, how: str) -> None:
        """Records a guard for a value that Python uses."""
        if how in _WITHOUT_GUARD or type(tensor._spec) is Batched:  # which raises an error
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
        self.steps.append(Guard((number,), truth, key, how, caller_location()))


_OUT_OF_SCOPE = (
    "This tensor is out of scope: it was created inside a tf.function that did not return it. "
    "Later calls do not compute it again. Return it from the function to use it outside."
)


class OutOfScope(Materializer):
    """The origin of a tensor that a traced function created and did not return.

    Replays compute new values, which the tensor would not show.
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.shape = shape
        self.dtype = dtype

    def materialize(self, tensor: Tensor) -> Any:  # noqa: ARG002
        """Raises a `TypeError`."""
        raise TypeError(_OUT_OF_SCOPE)

    def numpy(self, tensor: Tensor) -> Any:  # noqa: ARG002
        """Raises an `AttributeError`, because TensorFlow's symbolic tensors have no `numpy`."""
        raise AttributeError(_OUT_OF_SCOPE)

    def text(self, tensor: Tensor) -> str:  # noqa: ARG002
        """Returns a text without a value."""
        return "<tf.Tensor: out of scope, created inside a tf.function>"


def may_read_variables(steps: Iterable[Any]) -> bool:
    """Returns whether a step is a host callback that may read variables and have side effects.

    Drawing random numbers does not count.
    """
    calls = [step.primitive for step in steps if type(step) is Call]
    return any([type(p) is HostCallback and not (p.pure or p.draws) for p in calls])


def key_of(array: Any, truth: bool = False) -> Any:
    """Returns the key that a guard compares: `bool(array)` if `truth`, else all values."""
    if truth:
        return bool(array)
    array = np.asarray(array)
    return tuple(array.ravel().tolist()) if array.dtype.kind == "O" else array.tobytes()
