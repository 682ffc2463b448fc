"""Compilation by XLA: a program under one `jax.jit`."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograde.core import namespaces
from retrograde.core.program import Call, Guard, Program, ReadVariable, Write
from retrograde.core.tensor import Tensor
from retrograde.devices.device_tensors import device_array
from retrograde.devices.meshes import blocking, runs_one_at_a_time
from retrograde.devices.placement import current_device_scope, gather
from retrograde.ops import collectives
from retrograde.ops._callbacks import call_on_host
from retrograde.ops.host_callbacks import HostCallback
from retrograde.program.compilation_cache import enable_compilation_cache
from retrograde.program.donation import Donation
from retrograde.program.interpreter import Divergence
from retrograde.program.loop_rerolling import reroll
from retrograde.program.tracing import CallbackLog, key_of
from retrograde.program.xla_loops import Values, compute
from retrograde.values.optional_jax import required_jax
from retrograde.values.thresholds import MAX_INLINED_BYTES


def can_compile(program: Program) -> str | None:
    """Returns the name of the call that prevents compilation, if there is one."""
    on_host = set(range(len(program.specs)))
    group = collectives.current_group()
    spans_workers = group.size > 1 and has_collectives(program)
    for entry in program.steps:
        if spans_workers and type(entry) is Guard:
            return "a branch on a value, in a function with collectives"
        if type(entry) is Write:
            return "Python code that may read a variable"
        if type(entry) is not Call:
            continue
        if type(entry.primitive) is not HostCallback:
            if not entry.primitive.pure and group.size > 1 and not _is_even(entry, program, group):
                return entry.primitive.name
            on_host.difference_update(entry.outputs)
        elif not on_host.issuperset(entry.inputs):
            numeric = all(program.specs[n].dtype.kind != "O" for n in entry.outputs)
            if spans_workers or not (entry.primitive.pure and numeric):
                return entry.primitive.name
            on_host.difference_update(entry.outputs)
    return None


def has_collectives(program: Program) -> bool:
    """Returns whether a program exchanges values with other processes."""
    return any([isinstance(call.primitive, collectives.Collective) for call in program.calls])


def _is_even(call: Call, program: Program, group: Any) -> bool:
    """Returns whether a collective has the same shapes in all replicas, as XLA requires."""
    if group.mesh is None:
        return False
    axis = call.attrs.get("axis")
    if axis is None:
        return True
    sizes = sorted(program.specs[n].shape[axis] for n in (*call.inputs, *call.outputs))
    return sizes[1] == group.size * sizes[0]


class CompiledProgram:
    """A program compiled by XLA.

    Host callbacks that do not depend on computed values, such as draws of random numbers, run
    before the compiled program and become its arguments. `first_values` are the numbers of the
    values of variables before the call, by place. If they are given, the buffers of variables
    that get new values are donated, unless a guard could still fail.
    """

    def __init__(
        self, program: Program, variables: list[Any], first_values: dict[int, int] | None
    ) -> None:
        self._jax = required_jax()
        enable_compilation_cache(self._jax)
        self._program = program
        self._specs = program.specs
        self._variables = variables
        self._before: list[Any] = []  # steps that run in Python before the compiled program
        self._calls: list[Call] = []
        self._guards: list[tuple[int, Guard]] = []
        self._computed: set[int] = set()
        self._partition()
        available = {*program.arguments, *(n for _, s in self._before for n in s.outputs)}
        large = [
            n
            for n, x in program.constants.items()
            if x.nbytes > MAX_INLINED_BYTES and not _is_identity(x)
        ]
        needed = {n for call in self._calls for n in call.inputs}
        self._inside = {
            n: x for n, x in program.constants.items() if n in needed and n not in large
        }
        read_arguments = [n for n in sorted(available) if n in needed]
        self.donated: list[int] = []  # places of variables, those first whose values it reads
        self.donated_inputs: dict[int, int] = {}  # their first values, by place
        one_at_a_time = runs_one_at_a_time()
        if first_values is not None and not self._guards and not one_at_a_time:
            self._donate({p: n for p, n in first_values.items() if n in read_arguments})
        self.parameters = [n for n in read_arguments if n not in self.donated_inputs.values()]
        self._large = [n for n in large if n in needed]
        outputs = [*[program.writes[place] for place in self.donated], *program.results]
        outputs += [*program.writes.values(), *(n for _, g in self._guards for n in g.inputs)]
        self.outputs = list(dict.fromkeys(n for n in outputs if n in self._computed))
        self.large = tuple([self._put(program.constants[n]) for n in self._large])
        used_numbers = {n for call in self._calls for n in (*call.inputs, *call.outputs)}
        self.is_wide = any(_is_wide(self._specs[n].dtype) for n in used_numbers)
        undonated_count = len(self.parameters) + len(self._large)
        donated = range(undonated_count, undonated_count + len(self.donated_inputs))
        self._layouts = {  # of the new values of variables
            program.writes[place]: variable.layout
            for place, variable in enumerate(variables)
            if place in program.writes and getattr(variable, "layout", None) is not None
        }
        self._jit = self._jax.jit(
            self._function(),
            donate_argnums=tuple(donated),
            compiler_options=self._options(),
        )
        self.jitted = blocking(self._jit) if one_at_a_time else self._jit
        self._is_compiled = bool(self._layouts)  # without layouts, compiled before a donation

    def _donate(self, first_values: dict[int, int]) -> None:
        """Finds the variables that get new values, and those whose buffers are reused for them.

        A value that is also a result, or that Python code reads, keeps its buffer.
        """
        program = self._program
        kept_numbers = {*program.results, *program.writes.values()}
        for _, entry in self._before:
            kept_numbers.update(entry.inputs)
        places = {y: place for place, y in program.writes.items() if y in self._computed}
        if len(places) < len(program.writes):  # all writes are committed at once, or none is
            return
        for y, place in places.items():
            n = first_values.get(place)
            if n is not None and n not in kept_numbers and self._specs[n] == self._specs[y]:
                self.donated_inputs[place] = n
        # JAX matches donated buffers to outputs in this order.
        self.donated = sorted(places.values(), key=lambda place: place not in self.donated_inputs)

    @property
    def shares_donated_values(self) -> bool:
        """Whether the new value of a donated variable is also a result or another write."""
        other_outputs = [
            y for place, y in self._program.writes.items() if place not in self.donated
        ]
        other_outputs += self._program.results
        return any(self._program.writes[place] in other_outputs for place in self.donated)

    @property
    def computes_all_results(self) -> bool:
        """Whether a call only runs the compiled program, which returns all results."""
        result_numbers = {*self._program.results, *self._program.writes.values()}
        return not (self._before or self._guards) and result_numbers <= set(self.outputs) != set()

    def _partition(self) -> None:
        """Separates the steps that run in Python first from those that are compiled."""
        place = 0
        for entry in self._program.steps:
            is_first = self._computed.isdisjoint(entry.inputs)
            if type(entry) is Guard:
                (self._before if is_first else self._guards).append((place, entry))
                place += 1
            elif is_first and _runs_in_python(entry):
                self._before.append((-1, entry))
            else:
                self._calls.append(entry)
                self._computed.update(entry.outputs)

    def _options(self) -> dict[str, Any]:
        """Returns the compiler options, without those that this version of XLA does not have."""
        if self._is_small():  # waking threads takes longer than the computation
            return _supported(_NO_THREADS, _NO_FUSED_LAYERS)
        return _supported(_NO_FUSED_LAYERS) if self._convolves() else {}

    def _convolves(self) -> bool:
        """Returns whether there is a convolution. Fused ones take up to three times as long."""
        names = {getattr(getattr(call, "primitive", None), "name", "") for call in self._calls}
        return not names.isdisjoint(_CONVOLUTIONS)

    def _is_small(self) -> bool:
        """Returns whether no call is larger than a product of 64 x 64, which one thread runs."""
        for call in self._calls:
            numbers = (*call.inputs, *call.outputs)
            *_, largest = sizes = sorted(math.prod(self._specs[n].shape) for n in numbers)
            if largest > 1 << 16 or math.prod(sizes[-3:]) > 1 << 36:
                return False
        return True

    def _put(self, array: Any) -> Any:
        with self.precision(_is_wide(array.dtype)):
            return self._jax.numpy.asarray(array)

    def precision(self, is_wide: bool = True) -> Any:
        """Enables 64-bit types. It costs time, so it is done only if there are any."""
        return self._jax.enable_x64(True) if is_wide else contextlib.nullcontext()

    def _function(self) -> Callable:
        """Returns the function to compile."""
        return self._compute

    def _compute(self, *arrays: Any) -> list:
        """Runs the calls on JAX arrays, for `jax.jit` to trace."""
        inside = [(n, self._constant(x)) for n, x in self._inside.items() if x.dtype.kind != "O"]
        values = Values(self._jax.numpy, inside)
        values.put(self._arguments, arrays)
        entries = reroll(self._calls, self._specs, set(self.outputs))
        compute(self._jax, entries, values, self._call_back)
        return [self._with_layout(n, values[n]) for n in self.outputs]

    def _with_layout(self, number: int, x: Any) -> Any:
        layout = self._layouts.get(number)
        return x if layout is None else self._jax.lax.with_sharding_constraint(x, layout)

    def _constant(self, x: np.ndarray) -> Any:
        jnp = self._jax.numpy
        return jnp.eye(len(x), dtype=x.dtype) if _is_identity(x) else jnp.asarray(x)

    @property
    def _arguments(self) -> list[int]:
        return [*self.parameters, *self._large, *self.donated_inputs.values()]

    def _lowered(self) -> Any:
        shaped = [self._shaped(n) for n in self._arguments]
        with self.precision(self.is_wide):
            return self._jit.lower(*shaped)

    def _shaped(self, number: int) -> Any:
        return self._jax.ShapeDtypeStruct(*self._specs[number])

    def _call_back(self, call: Call, arrays: list) -> Any:
        """Calls a pure host callback from the compiled program."""
        host, specs = call.primitive, [self._specs[n] for n in call.outputs]

        def run(*arguments: Any) -> list:
            y = host.f(*arguments)
            pairs = zip(y if host.outputs else (y,), specs, strict=True)
            return [_with_shape(np.asarray(part), spec) for part, spec in pairs]

        y = call_on_host(run, specs, arrays)
        return y if host.outputs else y[0]

    def run(self, tensors: Sequence[Any], log: Any, donation: Donation | None) -> Any:
        """Returns the values of the results and the writes, or the guard that failed.

        Donated values are neither in `tensors` nor among the writes.
        """
        values = self._known_values(tensors, log)
        if type(values) is Divergence:
            return values
        if self.outputs:
            arrays = (*[values[n] for n in self.parameters], *self.large)
            if namespaces.foreign:
                arrays = tuple(gather(arrays))
            values.update(zip(self.outputs, self._made(arrays, donation), strict=True))
        for place, guard in self._guards:
            key = key_of(np.asarray(values[guard.inputs[0]]), guard.truth)
            if key != guard.key:
                return Divergence(place, key)
        return self._outcome(values)

    def _known_values(self, tensors: Sequence[Any], log: Any) -> Any:
        """Returns the values before the compiled program runs, or the guard that failed."""
        pairs = zip(self._program.arguments, tensors, strict=False)
        values = {n: self._argument(x) for n, x in pairs if x is not None}
        for place, entry in self._before:
            divergence = self._run_before(place, entry, values, log)
            if divergence is not None:
                return divergence
        return values

    def _argument(self, tensor: Tensor) -> Any:
        return device_array(tensor)

    def _outcome(self, values: dict[int, Any]) -> tuple:
        """Returns the results, and the new values of variables that are not donated."""
        writes = [n for place, n in self._program.writes.items() if place not in self.donated]
        return tuple([self._value(n, values) for n in ns] for ns in (self._program.results, writes))

    def compile(self) -> None:
        """Compiles the program before its first call."""
        if not self._is_compiled:
            self._lowered().compile()
            self._is_compiled = True

    def _made(self, arrays: tuple, donation: Donation | None) -> list:
        if donation is not None:
            self.compile()  # takes long, and other threads wait while a donation runs
        with self.precision(self.is_wide), current_device_scope():
            return self.jitted(*arrays) if donation is None else donation.run(self.jitted, arrays)

    def _run_before(
        self, place: int, entry: Any, values: dict, log: CallbackLog
    ) -> Divergence | None:
        if type(entry) is ReadVariable:
            values[entry.outputs[0]] = device_array(self._variables[entry.variable]._current())
            return None
        if type(entry) is Guard:
            key = key_of(np.asarray(self._value(entry.inputs[0], values)), entry.truth)
            return Divergence(place, key) if key != entry.key else None
        host = entry.primitive
        arrays = [np.asarray(self._value(n, values)) for n in entry.inputs]
        y = host.f(*arrays) if host.pure else log.result_of(host, arrays)
        values.update(zip(entry.outputs, y if host.outputs else (y,), strict=True))
        return None

    def _value(self, number: int, values: dict) -> Any:
        return values[number] if number in values else self._program.constants[number]

    def exported(self, fixed: dict[int, Any]) -> Any:
        """Returns a `jax.export.Exported` of the arguments that are not `fixed`."""
        if self._before or self._guards:
            raise ValueError(
                "Cannot export a function that calls Python code or branches on values."
            )
        free_arguments = [n for n in self._program.arguments if n not in fixed]

        def program(*arrays: Any) -> list:
            values = fixed | dict(zip(free_arguments, arrays, strict=True))
            parameters = [values[n] for n in self.parameters]
            outputs = dict(zip(self.outputs, self._compute(*parameters, *self.large), strict=True))
            return [
                outputs[n] if n in outputs else self._value(n, values)
                for n in self._program.results
            ]

        from jax import export

        shaped = [self._jax.ShapeDtypeStruct(*self._specs[n]) for n in free_arguments]
        with self.precision(self.is_wide):
            return export.export(self._jax.jit(program))(*shaped)

    def text(self, stage: str = "hlo") -> str:
        """Returns the program as "stablehlo", "hlo" or "optimized_hlo" text."""
        lowered = self._lowered()
        if stage == "optimized_hlo":
            return lowered.compile().as_text()
        return lowered.as_text("stablehlo" if stage == "stablehlo" else "hlo")


_NO_THREADS = ("xla_cpu_multi_thread_eigen", False)
_NO_FUSED_LAYERS = ("xla_cpu_experimental_ynn_fusion_type", "")
_CONVOLUTIONS = frozenset(("convolve", "convolve_transposed", "convolve_filter"))


@functools.cache
def _supported(*options: tuple[str, Any]) -> dict[str, Any]:
    """Returns these compiler options, or none if XLA does not support one of them."""
    jax = required_jax()
    try:
        jax.jit(lambda: 0, compiler_options=dict(options)).lower().compile()
    except jax.errors.JaxRuntimeError:
        return {}
    return dict(options)


def _runs_in_python(step: Any) -> bool:
    return type(step) is ReadVariable or type(step.primitive) is HostCallback


def _with_shape(array: np.ndarray, spec: Any) -> np.ndarray:
    """Returns `array`, or if its shape is wrong, a value for which a guard fails."""
    return array if array.shape == spec.shape else np.full(spec.shape, -1).astype(spec.dtype)


def _is_identity(x: np.ndarray) -> bool:
    """Returns whether `x` is an identity matrix, which programs create instead of reading it."""
    if x.ndim != 2 or x.shape[0] != x.shape[1] or x.dtype.kind not in "fc":
        return False
    return np.count_nonzero(x) == len(x) and bool((np.diagonal(x) == 1).all())


def _is_wide(dtype: np.dtype) -> bool:
    return (dtype.kind in "iuf" and dtype.itemsize == 8) or dtype.itemsize == 16
