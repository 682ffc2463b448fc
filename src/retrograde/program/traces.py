"""Traces of a function, ready to run: one for each combination of guards of a signature."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from retrograde.core.lazy import alias
from retrograde.core.program import Guard, Program
from retrograde.core.rules import Spec
from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable
from retrograde.core.variable_cell import commit
from retrograde.devices.device_tensors import on_device
from retrograde.devices.scopes import compiles_all
from retrograde.ops.collectives import announce
from retrograde.program.differentiation import DifferentiableProgram
from retrograde.program.donation import Donation
from retrograde.program.executable import Executable
from retrograde.program.fast_path import make_fast_call
from retrograde.program.interpreter import Divergence, interpret
from retrograde.program.replica_merging import merge_replicas
from retrograde.program.simplification import simplify
from retrograde.program.tracing import CallbackLog, Tracer, may_read_variables
from retrograde.program.xla import CompiledProgram
from retrograde.values import dtypes, nest
from retrograde.values.composites import CompositeTensor
from retrograde.values.conversion import as_array, tensor_or_variable
from retrograde.values.locks import fork_safe_lock
from retrograde.values.optional_jax import required_jax
from retrograde.values.source import literal
from retrograde.values.specs import TensorSpec, spec_of


class ResultStructure:
    """The structure that a function returns, and the numbers of the values in it.

    Python numbers and strings become tensors, as in TensorFlow. `None` and other objects stay.
    """

    def __init__(self, returned: Any, tracer: Tracer) -> None:
        self._structure = returned
        self._is_leaf = not (nest.is_nested(returned) or isinstance(returned, CompositeTensor))
        objects = [returned] if self._is_leaf else nest.leaves(returned, expand_composites=True)
        leaves = list(map(_convert_leaf, objects))
        self._are_tensors = [isinstance(x, Tensor) for x in leaves]
        self.tensors = list(itertools.compress(leaves, self._are_tensors))
        self.numbers = list(map(tracer.number, self.tensors))
        self._leaves = [None if isinstance(x, Tensor) else x for x in leaves]

    def rebuild(self, tensors: Sequence[Any]) -> Any:
        """Returns the structure with these tensors."""
        if self._is_leaf:
            return tensors[0] if self._are_tensors[0] else self._leaves[0]
        remaining = iter(tensors)
        pairs = zip(self._are_tensors, self._leaves, strict=True)
        leaves = iter([next(remaining) if is_tensor else leaf for is_tensor, leaf in pairs])
        return nest.pack(self._structure, leaves, expand_composites=True)

    def expression(self) -> str:
        """Returns Python source for the structure with the tensors `y0`, `y1` and so on."""
        names = [f"y{i}" for i in range(len(self.numbers))]
        if self._is_leaf and names:
            return names[0]
        pairs = zip(self._are_tensors, self._leaves, strict=True)
        if any(not is_tensor and leaf is not None for is_tensor, leaf in pairs):
            return f"rebuild([{', '.join(names)}])"
        remaining = iter(names)
        leaves = iter([next(remaining) if is_tensor else "None" for is_tensor in self._are_tensors])
        return _literal(self._structure, leaves) or f"rebuild([{', '.join(names)}])"

    @classmethod
    def of(cls, template: Any, numbers: list[int]) -> ResultStructure:
        """Creates the structure again from the result of `template()`.

        `numbers` are the numbers of its values in another trace.
        """
        results = cls.__new__(cls)
        results._structure = template
        leaves = list(nest.leaves(template))
        results._are_tensors = [isinstance(x, TensorSpec) for x in leaves]
        results._leaves = [None if isinstance(x, TensorSpec) else x for x in leaves]
        results.numbers, results.tensors = numbers, []
        results._is_leaf = not nest.is_nested(template)
        return results

    def has_composites(self) -> bool:
        """Returns whether the results contain composite tensors, such as sparse ones."""
        return any(isinstance(x, CompositeTensor) for x in nest.leaves(self._structure))

    def template(self) -> Any:
        """Returns the structure with a `TensorSpec` in place of each tensor."""
        return self.rebuild([TensorSpec([])] * len(self.numbers))

    def free_traced_tensors(self) -> None:
        """Frees the tensors of the call that was traced."""
        self.tensors = []
        if self._is_leaf:
            self._structure = None
        elif not self.has_composites():
            self._structure = nest.pack(self._structure, itertools.repeat(None))


def _literal(structure: Any, leaves: Iterator[str]) -> str | None:
    """Returns Python source for nested lists, tuples and dicts, or `None` for other structures."""
    if structure is None or isinstance(structure, Tensor):
        return next(leaves)
    if type(structure) is dict and all(type(key) is str for key in structure):
        values = {key: _literal(structure[key], leaves) for key in sorted(structure)}
        if None in values.values():
            return None
        return f"{{{''.join(f'{literal(key)}: {values[key]}, ' for key in structure)}}}"
    if type(structure) not in (list, tuple):
        return None
    parts = [_literal(part, leaves) for part in structure]
    if None in parts:
        return None
    elements = "".join(f"{part}, " for part in parts)
    return f"[{elements}]" if type(structure) is list else f"({elements})"


def _convert_leaf(leaf: Any) -> Any:
    """Converts variables, numbers and strings to tensors. Other objects stay."""
    source = tensor_or_variable(leaf)
    if source is not None:
        return leaf if type(leaf) is Tensor else source._read()
    if leaf is None or isinstance(leaf, CompositeTensor):
        return leaf
    try:
        return Tensor(as_array(leaf))
    except (TypeError, ValueError):
        return leaf


class Trace:
    """One trace, ready to run.

    The place of a variable is its index among `variables`: first those among the arguments of the
    call, then the captured ones.
    """

    is_settled = True  # whether all further calls run the present executable

    def __init__(
        self, tracer: Tracer, results: ResultStructure, compiles: bool, fold: bool = True
    ) -> None:
        self.results = results
        self.guards = [step for step in tracer.steps if type(step) is Guard]
        self.keys = tuple([guard.key for guard in self.guards])
        self.replays = 0
        self._tracer = tracer
        self._arguments = tracer.arguments
        program = simplify(tracer, results.numbers, fold)
        self._read_places = [
            place for place, number in enumerate(tracer.first_values) if number >= 0
        ]
        self.executable = self._new_executable(program, compiles)
        variables = tracer.variables
        # A variable with unknown dimensions has a `_shape`. Its present shape is in `_spec`.
        self._shapes_to_check = [
            (p, variables[p]._spec.shape) for p in self._read_places if variables[p]._shape
        ]
        self._captured_tensors = [
            (n, x)
            for n, x in tracer.constants.items()
            if x._id < tracer.start and x._spec.dtype in dtypes.INEXACT
        ]
        self._differentiable: Any = None  # a `DifferentiableProgram`, for recorders
        self.lock = fork_safe_lock()  # Calls that update variables hold it.
        self._donation: Donation | None = None
        self.has_fast_call = False
        self._compiles = compiles
        # Python code in a call may wait for another thread, so such a call does not hold the lock.
        self._is_serialized = bool(compiles or program.writes) and not self.has_side_effects()

    @property
    def times(self) -> tuple[float, float] | None:
        """The seconds of a replayed and of a compiled call, if both were measured."""
        return None

    def _new_executable(self, program: Program, compiles: bool) -> Executable:
        tracer = self._tracer
        first_values = {place: tracer.first_values[place] for place in self._read_places}
        replicas = merge_replicas(tracer, self.results.numbers) if compiles else None
        return Executable(program, tracer.variables, compiles, first_values, replicas, True)

    def variables(self, arguments: list[Any]) -> list[Any]:
        """Returns the variables of a call: those among its arguments, then the captured ones."""
        return [*arguments, *self._tracer.variables[len(arguments) :]]

    def exported(self) -> Any:
        """Returns the program as a `jax.export.Exported`, with the present values of variables."""
        program = CompiledProgram(self.executable.program, self._tracer.variables, None)
        first_values, variables = self._tracer.first_values, self._tracer.variables
        fixed_values = {first_values[p]: np.asarray(variables[p]) for p in self._read_places}
        return program.exported(fixed_values)

    def captured_variables(self) -> list[Any]:
        """Returns the variables that are not arguments."""
        return self._tracer.variables[self._tracer.variable_argument_count :]

    def has_side_effects(self) -> bool:
        """Returns whether host callbacks have side effects other than drawing random numbers."""
        return may_read_variables(self.executable.program.steps)

    def argument_specs(self) -> list[Spec]:
        """Returns the specs of the tensors among the arguments."""
        return self._tracer.specs[: self._tracer.count]

    def result_specs(self) -> list[Spec]:
        """Returns the specs of the results."""
        return [self._tracer.specs[n] for n in self.results.numbers]

    def described_results(self) -> Any:
        """Returns the structure of the results with specs in place of tensors."""
        specs = [TensorSpec(*spec) for spec in self.result_specs()]
        if not self.results.has_composites():
            return self.results.rebuild(specs)
        zeros = [Tensor(np.zeros(spec.shape, spec.dtype)) for spec in self.result_specs()]
        structure = self.results.rebuild(zeros)
        leaves = [spec_of(leaf) or leaf for leaf in nest.leaves(structure)]
        return nest.pack(structure, iter(leaves))

    def fits(self, arguments: list[Any]) -> bool:
        """Returns whether variables with unknown dimensions have the shapes of the trace."""
        variables = self.variables(arguments) if self._shapes_to_check else ()
        return all(variables[place]._spec.shape == shape for place, shape in self._shapes_to_check)

    def run(self, inputs: list[Tensor], arguments: list[Any], log: CallbackLog) -> Any:
        """Runs the program on `inputs`. Variables change only after everything has succeeded."""
        variables = self.variables(arguments)
        return self._compute_and_commit(lambda: self._run(inputs, variables, log), variables, log)

    def _compute_and_commit(
        self, compute: Callable[[], Any], variables: list[Any], log: CallbackLog
    ) -> Any | Divergence:
        """Returns the results of `compute`, after committing the new values of variables.

        If another thread changes a variable between its read and its write, `compute` runs again.
        This is not possible if there are host callbacks with side effects. Then the last write
        wins.
        """
        with self.lock if self._is_serialized else nullcontext():
            while True:
                outcome = compute()
                if type(outcome) is Divergence:
                    return outcome
                results, new_tensors, old_tensors = outcome
                written = [variables[p] for p in new_tensors]
                places = [p for p in new_tensors if p in old_tensors] if self._is_serialized else []
                updated = [variables[p] for p in places]
                expected = [old_tensors[p] for p in places]
                if commit(written, list(new_tensors.values()), updated, expected):
                    self.replays += 1
                    return results
                log.rewind()

    def _run(self, inputs: list[Tensor], variables: list[Any], log: CallbackLog) -> Any:
        """Returns the results, and the new and the old tensors of variables by place."""
        if compiles_all() and not self.executable.compiles:
            if self.executable.has_collectives:
                announce(log)
            return self._run_interpreted(inputs, variables, log)
        donation: Any = self._donate(variables)
        donated_inputs = self.executable.donated_inputs
        old_tensors = {
            p: None if p in donated_inputs else variables[p]._current() for p in self._read_places
        }
        outcome = self.executable.run([*inputs, *old_tensors.values()], log, donation)
        if type(outcome) is Divergence:
            return outcome
        values, writes = outcome
        if donation is not self._donation:
            donation.end_all()
        pairs = zip(self._undonated_writes(), writes, strict=True)
        new_tensors = {place: on_device(array, variables[place]._id) for place, array in pairs}
        return (
            self.results.rebuild([on_device(value) for value in values]),
            new_tensors,
            old_tensors,
        )

    def _run_interpreted(self, inputs: list[Tensor], variables: list[Any], log: CallbackLog) -> Any:
        """Does the same as `_run` for a program that XLA cannot compile, on an accelerator."""
        old_tensors = {p: variables[p]._current() for p in self._read_places}
        outcome = self._interpret([*inputs, *old_tensors.values()], log)
        if type(outcome) is Divergence:
            return outcome
        results = [alias(outcome.values[n]) for n in self.results.numbers]
        new_tensors = {p: self._new_tensor(x, variables[p]) for p, x in outcome.writes.items()}
        return self.results.rebuild(results), new_tensors, old_tensors

    def inline(self, inputs: list[Tensor], arguments: list[Any], log: CallbackLog) -> Any:
        """Runs the steps in another function that is being traced, which records them."""
        variables = self.variables(arguments)
        read_tensors = [variables[place]._read() for place in self._read_places]
        outcome = self._interpret([*inputs, *read_tensors], log)
        for place, x in outcome.writes.items():
            variables[place].assign(x)
        return self.results.rebuild([outcome.values[n] for n in self.results.numbers])

    def _new_tensor(self, x: Tensor, variable: Any) -> Tensor:
        """Returns the new tensor of a variable, on the device of the old one."""
        return variable._current()._replaced_by(x, variable._id)

    def verify(self, inputs: list[Tensor], arguments: list[Any], log: CallbackLog) -> None:
        """Runs the steps, and raises a `ValueError` if a value does not match its spec."""
        variables, specs = self.variables(arguments), self._tracer.specs
        read_tensors = [variables[place]._current() for place in self._read_places]
        outcome = self._interpret([*inputs, *read_tensors], log)
        if type(outcome) is Divergence:
            return  # The call needs another trace.
        for n, tensor in outcome.values.items():
            if Spec.of(tensor) != specs[n]:
                raise ValueError(f"value {n} is not {specs[n]} but {Spec.of(tensor)}")

    def _interpret(self, tensors: list[Tensor], log: CallbackLog) -> Any:
        tracer = self._tracer
        arguments = dict(zip(self._arguments, tensors, strict=True))
        return interpret(tracer, tracer.steps, tracer.constants | arguments, log)

    def _donate(self, variables: list[Any]) -> Donation | None:
        """Returns the donation for a call. All calls share it if they use the same variables.

        It ends with the call if a result shares its value with a variable, because a donation
        checks for other references only when it begins.
        """
        donated = self.executable.donated
        if self._donation is not None or not donated:
            return self._donation
        donation = Donation(
            [variables[place] for place in donated], len(self.executable.donated_inputs)
        )
        if (
            min(donated) >= self._tracer.variable_argument_count
            and not self.executable.compiled().shares_donated_values
        ):
            self._donation = donation
        return donation

    def _block_until_ready(self, results: Any) -> None:
        """Waits until a compiled call has computed its results and the new values of variables."""
        leaves = nest.leaves(results, expand_composites=True)
        arrays = [x._device for x in leaves if isinstance(x, Tensor)]
        required_jax().block_until_ready(arrays)
        if self._donation is not None:
            self._donation.block_until_ready()

    def _undonated_writes(self) -> list[int]:
        """Returns the places of variables that are written and not donated."""
        donated = self.executable.donated
        return [place for place in self.executable.program.writes if place not in donated]

    def fast_call(self) -> Callable | None:
        """Returns a fast version of `run` for calls with tensors only, if possible."""
        if self.guards or self._shapes_to_check or self.executable.calls_python:
            return None
        if self._compiles and self.executable.has_collectives:
            return None
        if self.executable.compiles and not self.executable.compiled().computes_all_results:
            return None
        if compiles_all() and not self.executable.compiles:
            return None
        variables = self._tracer.variables
        read_variables, written_variables = (
            {p: variables[p] for p in places}
            for places in (self._read_places, self._undonated_writes())
        )
        donation = self._donate(variables)
        is_shared = donation is self._donation
        return make_fast_call(self, read_variables, written_variables, donation, is_shared)

    def call(
        self,
        inputs: list[Tensor],
        arguments: list[Any],
        log: CallbackLog,
        traced_tensors: dict[int, Tensor] | None = None,
    ) -> Any:
        """Runs the program while recorders are active.

        Directly after tracing, the variables already have their new values. Then `traced_tensors`
        has the tensors that they had before, by place.
        """
        variables = self.variables(arguments)
        if self._differentiable is None:
            numbers = [*self._arguments, *[n for n, _ in self._captured_tensors]]
            self._differentiable = DifferentiableProgram(
                self._tracer, numbers, self.results.numbers, self._compiles
            )
        return self._compute_and_commit(
            lambda: self._run_recorded(inputs, variables, log, traced_tensors), variables, log
        )

    def _run_recorded(
        self,
        inputs: list[Tensor],
        variables: list[Any],
        log: CallbackLog,
        traced_tensors: dict[int, Tensor] | None,
    ) -> Any:
        """Does the same as `_run`, while recorders are active."""
        if self.executable.has_collectives:
            announce(log)
        # Variables of strategies override `_read` to combine the values of replicas. The program
        # needs the value of this replica.
        read_tensors = {place: Variable._read(variables[place]) for place in self._read_places}
        read_tensors |= traced_tensors or {}
        tensors = [*inputs, *read_tensors.values(), *[x for _, x in self._captured_tensors]]
        outcome = self._differentiable(tensors, log)
        if type(outcome) is Divergence and traced_tensors is not None:
            # XLA rounds differently from the traced call, and guards compare all bits.
            log.rewind()
            outcome = self._differentiable.run_interpreted(tensors, log)
        if type(outcome) is Divergence:
            return outcome
        results, writes = outcome
        if traced_tensors is not None:
            writes = {}
            log.undo()  # The traced call has already assigned the final values.
        new_tensors = {p: self._new_tensor(x, variables[p]) for p, x in writes.items()}
        return self.results.rebuild(results), new_tensors, read_tensors


class SignatureTraces:
    """The traces of one signature: a tree that branches at guards."""

    def __init__(self) -> None:
        self.all: list[Trace] = []
        self.latest: Trace | None = None
        self.eager = False
        # The arguments of the first call, with specs in place of tensors
        self.arguments: tuple[tuple, dict] = ((), {})
        self._branches: dict[tuple, Trace] = {}  # by the keys of their first guards
        self._replays = 0

    def was_used(self, newest: SignatureTraces) -> bool:
        """Returns whether a trace was replayed since the last query, or if this is `newest`."""
        old_replays, self._replays = self._replays, sum(trace.replays for trace in self.all)
        return self is newest or self._replays > old_replays

    def add(self, trace: Trace) -> None:
        """Adds a trace."""
        self.all.append(trace)
        self.latest = trace
        for i in range(len(trace.keys)):
            self._branches[trace.keys[: i + 1]] = trace

    def first(self, variables: list[Any]) -> Trace | None:
        """Returns the trace to try first, which is the last one that matched."""
        latest = self.latest
        if latest is None or latest.fits(variables):
            return latest
        return next((trace for trace in reversed(self.all) if trace.fits(variables)), None)

    def other(self, trace: Trace, divergence: Divergence, variables: list[Any]) -> Trace | None:
        """Returns the trace for the value at which a guard of `trace` failed, if there is one.

        The guards before that have the same values in both traces.
        """
        branch = self._branches.get((*trace.keys[: divergence.place], divergence.key))
        return branch if branch is not None and branch.fits(variables) else None
