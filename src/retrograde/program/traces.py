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
        found = [returned] if self._is_leaf else nest.leaves(returned, expand_composites=True)
        leaves = list(map(_tensor, found))
        self._places = [isinstance(x, Tensor) for x in leaves]
        self.tensors = list(itertools.compress(leaves, self._places))
        self.numbers = list(map(tracer.number, self.tensors))
        self._leaves = [None if isinstance(x, Tensor) else x for x in leaves]

    def rebuild(self, tensors: Sequence[Any]) -> Any:
        """Returns the structure with these tensors."""
        if self._is_leaf:
            return tensors[0] if self._places[0] else self._leaves[0]
        given = iter(tensors)
        pairs = zip(self._places, self._leaves, strict=True)
        leaves = iter([next(given) if place else leaf for place, leaf in pairs])
        return nest.pack(self._structure, leaves, expand_composites=True)

    def expression(self) -> str:
        """Returns Python source for the structure with the tensors `y0`, `y1` and so on."""
        names = [f"y{i}" for i in range(len(self.numbers))]
        if self._is_leaf and names:
            return names[0]
        pairs = zip(self._places, self._leaves, strict=True)
        if any(not place and leaf is not None for place, leaf in pairs):
            return f"rebuild([{', '.join(names)}])"
        given = iter(names)
        leaves = iter([next(given) if place else "None" for place in self._places])
        return _literal(self._structure, leaves) or f"rebuild([{', '.join(names)}])"

    @classmethod
    def of(cls, template: Any, numbers: list[int]) -> ResultStructure:
        """Returns the structure that `template()` described, with values of these numbers."""
        results = cls.__new__(cls)
        results._structure = template
        leaves = list(nest.leaves(template))
        results._places = [isinstance(x, TensorSpec) for x in leaves]
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
    """Returns Python source for nested lists, tuples and dicts; `None` for other structures."""
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
    inner = "".join(f"{part}, " for part in parts)
    return f"[{inner}]" if type(structure) is list else f"({inner})"


def _tensor(leaf: Any) -> Any:
    held = tensor_or_variable(leaf)
    if held is not None:
        return leaf if type(leaf) is Tensor else held._read()
    if leaf is None or isinstance(leaf, CompositeTensor):
        return leaf
    try:
        return Tensor(as_array(leaf))
    except (TypeError, ValueError):
        return leaf


class Trace:
    """One trace, ready to run."""

    is_settled = True  # whether all further calls run the present executable

    def __init__(
        self, tracer: Tracer, results: ResultStructure, compiles: bool, fold: bool = True
    ) -> None:
        self.results = results
        self.guards = [e for e in tracer.steps if type(e) is Guard]
        self.keys = tuple([guard.key for guard in self.guards])
        self.replays = 0
        self._tracer = tracer
        self._arguments = tracer.arguments
        program = simplify(tracer, results.numbers, fold)
        self._read = [place for place, number in enumerate(tracer.first_values) if number >= 0]
        self.executable = self._new_executable(program, compiles)
        variables = tracer.variables
        self._unknown = [(p, variables[p]._spec.shape) for p in self._read if variables[p]._shape]
        self._captured = [
            (n, x)
            for n, x in tracer.constants.items()
            if x._id < tracer.start and x._spec.dtype in dtypes.INEXACT
        ]
        self._differentiable: Any = None  # a `DifferentiableProgram`, for recorders
        self.lock = fork_safe_lock()  # held during calls that update variables
        self._donation: Donation | None = None
        self.has_fast_call = False
        self._compiles = compiles
        # Python code in a call may wait for another thread, so such a call does not hold the lock.
        self._is_serialized = bool(compiles or program.writes) and not self.has_effects()

    @property
    def times(self) -> tuple[float, float] | None:
        """The seconds of a replayed and of a compiled call, if both were measured."""
        return None

    def _new_executable(self, program: Program, compiles: bool) -> Executable:
        tracer = self._tracer
        first = {place: tracer.first_values[place] for place in self._read}
        replicas = merge_replicas(tracer, self.results.numbers) if compiles else None
        return Executable(program, tracer.variables, compiles, first, replicas, True)

    def variables(self, arguments: list[Any]) -> list[Any]:
        """Returns the variables of a call: those among its arguments, then the captured ones."""
        return [*arguments, *self._tracer.variables[len(arguments) :]]

    def exported(self) -> Any:
        """Returns the program as a `jax.export.Exported`, with the present values of variables."""
        program = CompiledProgram(self.executable.program, self._tracer.variables, None)
        first, variables = self._tracer.first_values, self._tracer.variables
        return program.exported({first[p]: np.asarray(variables[p]) for p in self._read})

    def captured_variables(self) -> list[Any]:
        """Returns the variables that are not arguments."""
        return self._tracer.variables[self._tracer.variable_argument_count :]

    def has_effects(self) -> bool:
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
        variables = self.variables(arguments) if self._unknown else ()
        return all(variables[place]._spec.shape == shape for place, shape in self._unknown)

    def run(self, inputs: list[Tensor], arguments: list[Any], log: CallbackLog) -> Any:
        """Runs the program on `inputs`. Variables change only after everything has succeeded."""
        variables = self.variables(arguments)
        return self._committed(lambda: self._run(inputs, variables, log), variables, log)

    def _committed(
        self, compute: Callable[[], Any], variables: list[Any], log: CallbackLog
    ) -> Any | Divergence:
        """Returns the results of `compute`, after committing the new values of variables.

        If another thread changes a variable between its read and its write, everything is computed
        again. If host callbacks may write variables as well, the last write counts.
        """
        with self.lock if self._is_serialized else nullcontext():
            while True:
                outcome = compute()
                if type(outcome) is Divergence:
                    return outcome
                results, writes, read = outcome
                written = [variables[p] for p in writes]
                places = [p for p in writes if p in read] if self._is_serialized else []
                updated, expected = [variables[p] for p in places], [read[p] for p in places]
                if commit(written, list(writes.values()), updated, expected):
                    self.replays += 1
                    return results
                log.rewind()

    def _run(self, inputs: list[Tensor], variables: list[Any], log: CallbackLog) -> Any:
        """Returns the results, and the new and the old tensors of variables by place."""
        if compiles_all() and not self.executable.compiles:
            if self.executable.has_collectives:
                announce(log)
            return self._interpreted(inputs, variables, log)
        donation: Any = self._donate(variables)
        donated_inputs = self.executable.donated_inputs
        read = {p: None if p in donated_inputs else variables[p]._current() for p in self._read}
        outcome = self.executable.run([*inputs, *read.values()], log, donation)
        if type(outcome) is Divergence:
            return outcome
        values, writes = outcome
        if donation is not self._donation:
            donation.end_all()
        pairs = zip(self._undonated_writes(), writes, strict=True)
        new = {place: on_device(array, variables[place]._id) for place, array in pairs}
        return self.results.rebuild([on_device(value) for value in values]), new, read

    def _interpreted(self, inputs: list[Tensor], variables: list[Any], log: CallbackLog) -> Any:
        """Does the same as `_run` for a program that XLA cannot compile, on an accelerator."""
        read = {p: variables[p]._current() for p in self._read}
        interpreted = self._interpret([*inputs, *read.values()], log)
        if type(interpreted) is Divergence:
            return interpreted
        results = [alias(interpreted.values[n]) for n in self.results.numbers]
        new = {p: self._written(x, variables[p]) for p, x in interpreted.writes.items()}
        return self.results.rebuild(results), new, read

    def inline(self, inputs: list[Tensor], arguments: list[Any], log: CallbackLog) -> Any:
        """Runs the steps in another function that is being traced, which records them."""
        variables = self.variables(arguments)
        read = [variables[place]._read() for place in self._read]
        given = dict(zip(self._arguments, [*inputs, *read], strict=True))
        tracer = self._tracer
        interpreted: Any = interpret(tracer, tracer.steps, tracer.constants | given, log)
        for place, x in interpreted.writes.items():
            variables[place].assign(x)
        return self.results.rebuild([interpreted.values[n] for n in self.results.numbers])

    def _written(self, x: Tensor, variable: Any) -> Tensor:
        """Returns the new tensor of a variable, on the device of the old one."""
        return variable._current()._replaced_by(x, variable._id)

    def verify(self, inputs: list[Tensor], arguments: list[Any], log: CallbackLog) -> None:
        """Raises a `ValueError` if a value has another shape or dtype than its spec."""
        variables, specs = self.variables(arguments), self._tracer.specs
        read = [variables[place]._current() for place in self._read]
        interpreted = self._interpret([*inputs, *read], log)
        if type(interpreted) is Divergence:
            return  # another trace is the right one
        for n, tensor in interpreted.values.items():
            if Spec.of(tensor) != specs[n]:
                raise ValueError(f"value {n} is not {specs[n]} but {Spec.of(tensor)}")

    def _interpret(self, tensors: list[Tensor], log: CallbackLog) -> Any:
        tracer = self._tracer
        given = dict(zip(self._arguments, tensors, strict=True))
        return interpret(tracer, tracer.steps, tracer.constants | given, log)

    def _donate(self, variables: list[Any]) -> Donation | None:
        """Returns the donation for a call. It lasts if other calls use the same variables.

        It ends with the call if a result shares a value with a variable: a donation checks for
        other holders only when it begins.
        """
        donated = self.executable.donated
        if self._donation is not None or not donated:
            return self._donation
        donation = Donation(
            [variables[place] for place in donated], len(self.executable.donated_inputs)
        )
        if (
            min(donated) >= self._tracer.variable_argument_count
            and not self.executable.compiled().shares
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
        if self.guards or self._unknown or self.executable.calls_python:
            return None
        if self._compiles and self.executable.has_collectives:
            return None
        if self.executable.compiles and not self.executable.compiled().makes_all:
            return None
        if compiles_all() and not self.executable.compiles:
            return None
        variables = self._tracer.variables
        read, written = (
            {p: variables[p] for p in ps} for ps in (self._read, self._undonated_writes())
        )
        donation = self._donate(variables)
        return make_fast_call(self, read, written, donation, donation is self._donation)

    def call(
        self,
        inputs: list[Tensor],
        arguments: list[Any],
        log: CallbackLog,
        traced: dict[int, Tensor] | None = None,
    ) -> Any:
        """Runs the program while recorders are active.

        After tracing, the variables have been written already. Then `traced` has their old tensors
        by place.
        """
        variables = self.variables(arguments)
        if self._differentiable is None:
            numbers = [*self._arguments, *[n for n, _ in self._captured]]
            self._differentiable = DifferentiableProgram(
                self._tracer, numbers, self.results.numbers, self._compiles
            )
        return self._committed(lambda: self._called(inputs, variables, log, traced), variables, log)

    def _called(
        self,
        inputs: list[Tensor],
        variables: list[Any],
        log: CallbackLog,
        traced: dict[int, Tensor] | None,
    ) -> Any:
        """Does the same as `_run`, while recorders are active."""
        if self.executable.has_collectives:
            announce(log)
        # Variables of strategies combine the values of replicas in their own `_read`.
        read = {place: Variable._read(variables[place]) for place in self._read} | (traced or {})
        tensors = [*inputs, *read.values(), *[x for _, x in self._captured]]
        outcome = self._differentiable(tensors, log)
        if type(outcome) is Divergence and traced is not None:
            # XLA rounds differently from the traced call, and guards compare all bits.
            log.rewind()
            outcome = self._differentiable.interpreted(tensors, log)
        if type(outcome) is Divergence:
            return outcome
        results, writes = outcome
        if traced is not None:
            writes = {}
            log.undo()  # variables hold their final values
        new = {place: self._written(x, variables[place]) for place, x in writes.items()}
        return self.results.rebuild(results), new, read


class SignatureTraces:
    """The traces of one signature: a tree that branches at guards."""

    def __init__(self) -> None:
        self.all: list[Trace] = []
        self.latest: Trace | None = None
        self.eager = False
        self.arguments: tuple[tuple, dict] = ((), {})  # of the first call, with specs of tensors
        self._branches: dict[tuple, Trace] = {}
        self._replays = 0

    def was_used(self, newest: SignatureTraces) -> bool:
        """Returns whether it ran since the last query, or is the `newest` one."""
        before, self._replays = self._replays, sum(trace.replays for trace in self.all)
        return self is newest or self._replays > before

    def add(self, trace: Trace) -> None:
        """Adds a trace."""
        self.all.append(trace)
        self.latest = trace
        for i in range(len(trace.keys)):
            self._branches[trace.keys[: i + 1]] = trace

    def first(self, variables: list[Any]) -> Trace | None:
        """Returns the trace to try first: the last one that matched."""
        latest = self.latest
        if latest is None or latest.fits(variables):
            return latest
        return next((trace for trace in reversed(self.all) if trace.fits(variables)), None)

    def other(self, trace: Trace, divergence: Divergence, variables: list[Any]) -> Trace | None:
        """Returns the trace with the same guards as `trace`, up to the one that failed."""
        found = self._branches.get((*trace.keys[: divergence.place], divergence.key))
        return found if found is not None and found.fits(variables) else None
