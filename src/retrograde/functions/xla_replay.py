"""Replay on XLA: the same recording under one `jax.jit`."""

from __future__ import annotations

import contextlib
import functools
import sys
import weakref
from typing import Any, NamedTuple

import numpy as np

from retrograde.core.effects import Host
from retrograde.core.recorders import thread
from retrograde.core.tensor import Tensor, next_id
from retrograde.core.variable import Variable
from retrograde.functions.playing import Divergence
from retrograde.functions.recording import Call, Guard, Log, Reading, Write, key_of
from retrograde.functions.rolling import rolled
from retrograde.functions.simplifying import Plain
from retrograde.functions.xla_loops import Values, compute
from retrograde.ops._callbacks import called_back

_SMALL = 1 << 12  # bytes: constants up to this size become part of the program


class OnDevice(Tensor):
    """A tensor that a compiled program made. NumPy sees it without a copy, once it is looked at."""

    __slots__ = ("_device", "_host")

    def __init__(self, device: Any, tensor_id: int | None = None) -> None:
        self._device = device
        self._host: Any = None
        self._id = tensor_id or next_id()

    @property
    def _array(self) -> Any:
        if self._host is None:
            host = np.asarray(self._device)
            self._host = host if host.ndim else host[()]
        return self._host

    def numpy(self) -> Any:
        """A copy of the values, as of any tensor; by the short way if nobody listens."""
        if thread.recorders:
            return super().numpy()
        array = np.array(self._device)
        return array if array.ndim else array[()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """What any tensor gives, by the short way if nobody listens: JAX's arrays are read-only."""
        if copy or dtype is not None or thread.recorders:
            return super().__array__(dtype, copy)
        return np.asarray(self._device)

    def __reduce__(self) -> tuple:
        return Tensor, (np.array(self._array),)


def required_jax() -> Any:
    """The module `jax`, or an error that says how to get it."""
    try:
        import jax
    except ImportError:
        raise ImportError(
            "function(jit_compile=True) compiles with XLA, for which JAX is needed. Install it "
            "with: pip install 'retrograde[xla]'."
        ) from None
    return jax


def can_compile(plain: Plain) -> str | None:
    """What Python code in a recording keeps it from being compiled as a whole, if any does."""
    on_host = set(range(len(plain.specs)))
    for entry in plain.entries:
        if type(entry) is Write:
            return "Python code that may look at a variable"
        if type(entry) is not Call:
            continue
        if type(entry.primitive) is not Host:
            on_host.difference_update(entry.outputs)
        elif not on_host.issuperset(entry.inputs):
            numeric = all(plain.specs[n].dtype.kind != "O" for n in entry.outputs)
            if not (entry.primitive.pure and numeric):
                return entry.primitive.name
            on_host.difference_update(entry.outputs)
    return None


class Program:
    """A recording compiled by XLA.

    What Python code gives without needing anything that was computed, random numbers above all, is
    made first and handed in. Variables that get new values give their memory away, unless a guard
    could still fail: `given_away` are the arguments that may, and the values that take their place.
    """

    def __init__(self, plain: Plain, variables: list[Any], given_away: dict[int, int]) -> None:
        self._jax = required_jax()
        self._plain = plain
        self._specs = plain.specs
        self._variables = variables
        self._before: list[Any] = []  # entries to be done in Python before the program runs
        self._calls: list[Call] = []
        self._guards: list[tuple[int, Guard]] = []
        self._partition()
        given = set(plain.arguments) | self._made_before
        large = [n for n, x in plain.constants.items() if x.nbytes > _SMALL]
        self._inside = {n: x for n, x in plain.constants.items() if x.nbytes <= _SMALL}
        needed = self._needed_in_program()
        self._large = [n for n in large if n in needed]
        self._given = [n for n in sorted(given) if n in needed]
        pairs = {} if self._guards else self._pairs(given_away)
        self._donated = list(pairs)
        self._plain_arguments = [n for n in self._given if n not in pairs]
        outputs = [*plain.results, *plain.writes.values(), *(g.value for _, g in self._guards)]
        outputs = [*pairs.values(), *outputs]  # as JAX pairs them: by their order
        self.outputs = list(dict.fromkeys(n for n in outputs if n in self._computed))
        self.large = tuple([self._put(plain.constants[n]) for n in self._large])
        used = {n for call in self._calls for n in (*call.inputs, *call.outputs)}
        self.is_wide = any(_is_wide(self._specs[n].dtype) for n in used)
        self.jitted = self._jax.jit(self._compute, donate_argnums=(1,) if pairs else ())

    def _pairs(self, given_away: dict[int, int]) -> dict[int, int]:
        """The arguments whose memory is given away, each to another value of the program.

        Those that are handed on as they are keep theirs.
        """
        kept = {*self._plain.results, *self._plain.writes.values()}
        pairs: dict[int, int] = {}
        for n in self._given:
            y = given_away.get(n)
            if n not in kept and y in self._computed and y not in pairs.values():
                pairs[n] = y
        return pairs

    @property
    def parameters(self) -> tuple[list[int], list[int]]:
        """The values that are handed in, and those that are given away."""
        return self._plain_arguments, self._donated

    @property
    def makes_all(self) -> bool:
        """Whether all results come out of the program, and nothing is done but run it."""
        wanted = {*self._plain.results, *self._plain.writes.values()}
        return not (self._before or self._guards) and wanted <= set(self.outputs) != set()

    def _partition(self) -> None:
        """Parts what Python does before the program runs from the program itself."""
        computed: set[int] = set()
        made_before: set[int] = set()
        place = 0
        for entry in self._plain.entries:
            if type(entry) is Guard:
                if entry.value in computed:
                    self._guards.append((place, entry))
                else:
                    self._before.append((place, entry))
                place += 1
            elif type(entry) is Reading:
                self._before.append((-1, entry))
                made_before.add(entry.value)
            elif type(entry.primitive) is Host and computed.isdisjoint(entry.inputs):
                self._before.append((-1, entry))
                made_before.update(entry.outputs)
            else:
                self._calls.append(entry)
                computed.update(entry.outputs)
        self._computed = computed
        self._made_before = made_before

    def _needed_in_program(self) -> set[int]:
        return {n for call in self._calls for n in call.inputs}

    def _put(self, array: Any) -> Any:
        with self.precision(_is_wide(array.dtype)):
            return self._jax.numpy.asarray(array)

    def precision(self, wide: bool = True) -> Any:
        """Where 64 bits are 64 bits. It costs, so it is done only if there are any."""
        return self._jax.enable_x64(True) if wide else contextlib.nullcontext()

    def _compute(self, plain: tuple, donated: tuple, large: tuple) -> list:
        """What is traced: the calls, on JAX's arrays."""
        jnp = self._jax.numpy
        inside = [(n, jnp.asarray(x)) for n, x in self._inside.items() if x.dtype.kind != "O"]
        values = Values(jnp, inside)
        values.put(self._plain_arguments, plain)
        values.put(self._donated, donated)
        values.put(self._large, large)
        entries = rolled(self._calls, self._specs, set(self.outputs))
        compute(self._jax, entries, values, self._called_back)
        return [values[n] for n in self.outputs]

    def _called_back(self, call: Call, arrays: list) -> Any:
        """A pure Python function in the middle of a program."""
        host, specs = call.primitive, [self._specs[n] for n in call.outputs]

        def run(*given: Any) -> list:
            y = host.f(*given)
            pairs = zip(y if host.outputs else (y,), specs, strict=True)
            return [_fitted(np.asarray(part), spec) for part, spec in pairs]

        y = called_back(run, specs, arrays)
        return y if host.outputs else y[0]

    def run(self, tensors: list[Tensor], log: Log) -> Any:
        """The values of the results and of the writes, or where the call went another way."""
        values: dict[int, Any] = dict(
            zip(self._plain.arguments, map(device_array, tensors), strict=True)
        )
        for place, entry in self._before:
            divergence = self._do_before(place, entry, values, log)
            if divergence is not None:
                return divergence
        plain = tuple([values[n] for n in self._plain_arguments])
        donated = tuple([values[n] for n in self._donated])
        if self.outputs:
            with self.precision(self.is_wide):
                made = self.jitted(plain, donated, self.large)
            values.update(zip(self.outputs, made, strict=True))
        for place, guard in self._guards:
            array = np.asarray(values[guard.value])
            key = bool(array) if guard.truth else key_of(array)
            if key != guard.key:
                return Divergence(place, key)
        constants = self._plain.constants
        results = [values[n] if n in values else constants[n] for n in self._plain.results]
        writes = [values[n] if n in values else constants[n] for n in self._plain.writes.values()]
        return results, writes

    def _do_before(self, place: int, entry: Any, values: dict, log: Log) -> Divergence | None:
        if type(entry) is Reading:
            values[entry.value] = device_array(self._variables[entry.variable]._current())
            return None
        if type(entry) is Guard:
            array = np.asarray(self._value(entry.value, values))
            key = bool(array) if entry.truth else key_of(array)
            return Divergence(place, key) if key != entry.key else None
        host = entry.primitive
        arrays = [np.asarray(self._value(n, values)) for n in entry.inputs]
        y = host.f(*arrays) if host.pure else log.ask(host, arrays)
        values.update(zip(entry.outputs, y if host.outputs else (y,), strict=True))
        return None

    def _value(self, number: int, values: dict) -> Any:
        return values[number] if number in values else self._plain.constants[number]

    def exported(self, fixed: dict[int, Any]) -> Any:
        """The program for `jax.export`: a function of the arguments that are not `fixed`."""
        if self._before or self._guards:
            raise ValueError(
                "A function that runs Python code or branches on values has no export."
            )
        open_arguments = [n for n in self._plain.arguments if n not in fixed]

        def program(*arrays: Any) -> list:
            values = fixed | dict(zip(open_arguments, arrays, strict=True))
            kept, given = ([values[n] for n in numbers] for numbers in self.parameters)
            made = dict(zip(self.outputs, self._compute(kept, given, self.large), strict=True))
            return [made[n] if n in made else self._value(n, values) for n in self._plain.results]

        from jax import export

        shaped = [self._jax.ShapeDtypeStruct(*self._specs[n]) for n in open_arguments]
        with self.precision(self.is_wide):
            return export.export(self._jax.jit(program))(*shaped)

    def text(self, stage: str = "hlo") -> str:
        """The program in XLA's words: as "stablehlo", as "hlo", or "optimized_hlo"."""

        def shaped(numbers: list[int]) -> tuple:
            return tuple([self._jax.ShapeDtypeStruct(*self._specs[n]) for n in numbers])

        with self.precision(self.is_wide):
            lowered = self.jitted.lower(
                shaped(self._plain_arguments), shaped(self._donated), self.large
            )
        if stage == "optimized_hlo":
            return lowered.compile().as_text()
        return lowered.as_text("stablehlo" if stage == "stablehlo" else "hlo")


def _fitted(array: np.ndarray, spec: Any) -> np.ndarray:
    """`array`; or, if it has another shape, something that a guard is about to refuse."""
    return array if array.shape == spec.shape else np.full(spec.shape, -1).astype(spec.dtype)


def _is_wide(dtype: np.dtype) -> bool:
    return (dtype.kind in "iuf" and dtype.itemsize == 8) or dtype.itemsize == 16


class _Kept(NamedTuple):
    """The array of a tensor, and the same on JAX's device."""

    tensor: weakref.ref
    array: Any  # held, so that no variable writes into it
    device: Any


_kept: dict[int, _Kept] = {}  # by the id of the Python object


def device_array(tensor: Tensor) -> Any:
    """What a program gets for `tensor`.

    One of NumPy's that is used a second time stays on the device from then on, for as long as the
    tensor lives: copying it there takes longer than a small program.
    """
    if type(tensor) is OnDevice:
        return tensor._device
    key, array = id(tensor), tensor._array
    known = _kept.get(key)
    if known is None or known.tensor() is not tensor:
        _kept[key] = _Kept(weakref.ref(tensor, lambda _: _kept.pop(key, None)), None, None)
        return array
    if known.array is not array:
        jax = required_jax()
        with jax.enable_x64(True):
            known = _kept[key] = _Kept(known.tensor, array, jax.device_put(array))
    return known.device


def on_device(value: Any, tensor_id: int | None = None) -> Tensor:
    """A tensor around what a program gave: an array of JAX's, or one that Python had made."""
    if isinstance(value, (np.ndarray, np.generic)):
        return Tensor(value, tensor_id)
    return OnDevice(value, tensor_id)


def to_give_away(variable: Any) -> Any:
    """The array of a variable, for a program to write over; a copy if somebody else holds it.

    Where NumPy holds or looks at it, JAX sees to that by itself.
    """
    if type(variable._current()) is not OnDevice:
        return variable._array
    device, *counts = _references(variable)
    return device if counts == _references_if_alone() else required_jax().numpy.copy(device)


def _references(variable: Any) -> tuple[Any, int, int]:
    """The array of a variable, and how many hold its tensor or the array."""
    tensor = variable._current()
    device = tensor._device
    return device, sys.getrefcount(tensor), sys.getrefcount(device)


@functools.cache
def _references_if_alone() -> list[int]:
    """What is counted if nobody but the variable has them."""
    return list(_references(held_alone())[1:]) if counts_are_true() else []


def counts_are_true() -> bool:
    """Whether references are counted at once; without the global lock they are not."""
    return getattr(sys, "_is_gil_enabled", lambda: True)()


def held_alone() -> Variable:
    """A variable on the device that nobody else knows."""
    variable = Variable(0.0)
    variable._put(OnDevice(np.zeros(2)))
    return variable
