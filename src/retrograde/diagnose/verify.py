"""`tape.verify()`: the rule of every recorded call, on the values it saw, against differences."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from retrograde.core import indexed_slices
from retrograde.core.namespaces import namespace_of
from retrograde.core.recorders import alone, thread
from retrograde.core.rules import passed_on
from retrograde.core.tensor import Tensor
from retrograde.diagnose.calls import RecordedCall, Values, calls_between, values_of
from retrograde.diagnose.finite_differences import (
    DOUBLE,
    SINGLE,
    Disagreement,
    Precision,
    Probe,
    disagreements,
)
from retrograde.diagnose.rendering import Told, number, the_line
from retrograde.ops import random_state
from retrograde.values import dtypes, nest
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.source_location import Place


def verify(tape: Any, target: Any, sources: Any = None, samples: int = 20) -> Verification:
    """Checks the rule of every call between `sources` and `target` against finite differences.

    Each is checked for itself, at the values that it really saw, in float64. The answer names the
    first call whose rule is wrong: its line, the element, what the rule said and what the slope is.
    Kinks, where the slopes to both sides differ and the rule is one of them, are counted and are no
    mistakes. Above all it is for the gradients that you write yourself; those of a
    `custom_gradient` are computed anew, with the function itself. `samples` is how many elements of
    an input are looked into one by one if its rule and the differences disagree.

    >>> @tf.custom_gradient
    ... def cube(x):
    ...     return x**3, lambda g: g * 2.0 * x**2
    >>> x = tf.Variable([1.0, 2.0])
    >>> with tf.GradientTape() as tape:
    ...     y = tf.reduce_sum(cube(x))
    >>> report = tape.verify(y, x)
    >>> bool(report), report.primitive, report.index
    (False, 'cube', (0,))
    """
    calls, targets = calls_between(tape, "verify", target, sources)
    values = values_of(tape, calls, targets)
    places = tape._places or {}
    checked, skipped, kinks = 0, [], []
    with alone(), np.errstate(all="ignore"):
        for call in calls:
            trial = _trial(call, values)
            place = places.get(call.outputs[0])
            if trial is None:
                skipped.append(call.name)
                continue
            checked += 1
            for position, found in _mistakes(trial, samples):
                if found.kink:
                    kinks.append(call.name)
                    continue
                return _wrong(call, place, position, found, checked, kinks, skipped)
    return Verification(checked=checked, kinks=tuple(kinks), skipped=tuple(skipped))


@dataclass(frozen=True)
class Verification(Told):
    """What `tape.verify()` found. It is true if no rule is wrong.

    `checked` calls were looked at; `skipped` are the names of those whose inputs the tape let go,
    `kinks` those of calls at a kink. If a rule is wrong, `primitive` and `place` say whose;
    `input` and `index`, which element of which input, and `value` what is there; `rule` is what the
    rule said, and `slopes` are the differences to the left and to the right.
    """

    checked: int = 0
    kinks: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    primitive: str | None = None
    place: Place | None = None
    input: int = 0
    index: tuple[int, ...] = ()
    value: Any = None
    rule: Any = None
    slopes: tuple[float, float] | None = field(default=None)

    def __bool__(self) -> bool:
        return self.primitive is None

    def _lines(self) -> list[tuple[str, str]]:
        if self:
            lines = [("head", f"The rules of {self.checked} calls agree with finite differences.")]
        else:
            lines = [("head", f"The rule of {self.primitive} is wrong.")]
            lines += [] if self.place is None else the_line(self.place)
            at = f"element [{', '.join(map(str, self.index))}] of " if self.index else ""
            left, right = self.slopes
            slope = number((left + right) / 2)
            lines += [
                (
                    "fact",
                    f"At {at}input {self.input}, which is {number(self.value)} there, for a "
                    "random cotangent:",
                ),
                ("element", f"the rule says  {number(self.rule)}"),
                ("element", f"the slope is   {slope}"),
            ]
            lines.append(("fact", f"{self.checked - 1} calls before it are right."))
        if self.kinks:
            names = ", ".join(sorted(set(self.kinks)))
            lines.append(("fact", f"{len(self.kinks)} kinks, at which any slope will do: {names}."))
        if self.skipped:
            names = ", ".join(sorted(set(self.skipped)))
            lines.append(
                (
                    "why",
                    f"{len(self.skipped)} calls were not checked, since their inputs are not "
                    f"known: {names}. A tape with lines=True keeps them.",
                )
            )
        return lines


def _wrong(
    call: RecordedCall,
    place: Place | None,
    position: int,
    found: Disagreement,
    checked: int,
    kinks: list[str],
    skipped: list[str],
) -> Verification:
    return Verification(
        checked,
        tuple(kinks),
        tuple(skipped),
        call.name,
        place,
        position,
        found.index,
        found.value,
        found.rule,
        found.slopes,
    )


class Trial(NamedTuple):
    """A call that can be run again: `run(arrays)` gives its outputs.

    `pull(gs)` gives a cotangent for each input that has a rule, by its position.
    """

    inputs: list
    run: Callable[[list], list]
    pull: Callable[[list], dict[int, Any]]
    precision: Precision


def _mistakes(trial: Trial, samples: int) -> Iterator[tuple[int, Disagreement]]:
    rng = np.random.default_rng(1)
    outputs = trial.run(trial.inputs)
    gs = [_cotangent(y, rng) for y in outputs]
    for position, cotangent in trial.pull(gs).items():
        x = trial.inputs[position]
        if x.dtype not in dtypes.INEXACT or not x.size:
            continue
        if not all(np.isfinite(y).all() for y in (x, cotangent, *outputs) if y is not None):
            continue  # nothing to compare with

        def f(moved: np.ndarray, position: int = position) -> list:
            moved = moved.astype(trial.inputs[position].dtype)
            return trial.run([*trial.inputs[:position], moved, *trial.inputs[position + 1 :]])

        slope = np.zeros(x.shape) if cotangent is None else np.asarray(cotangent)
        probe = Probe(f, x, gs, slope, trial.precision)
        alike = len(outputs) == 1 and x.shape == outputs[0].shape
        elementwise = alike and _is_elementwise(f, x, outputs[0], rng)
        for found in disagreements(probe, samples, elementwise):
            yield position, found


def _is_elementwise(f: Callable, x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> bool:
    """Whether each element of the result depends on the same element of the input alone."""
    moved = rng.random(x.shape) < 0.5
    for part in (moved, ~moved):
        (z,) = f(np.where(part, x * 1.01, x))
        if not np.array_equal(z[~part], y[~part]):
            return False
    return True


def _cotangent(y: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
    """A random cotangent; none for an output that has no slope."""
    if y.dtype not in dtypes.INEXACT:
        return None
    g = rng.uniform(0.5, 1.5, y.shape) * np.where(rng.random(y.shape) < 0.5, -1.0, 1.0)
    if np.iscomplexobj(y):
        g = g * np.exp(1j * rng.uniform(0, 2 * np.pi, y.shape))
    return g.astype(y.dtype)


# Trials of primitives


def _trial(call: RecordedCall, values: Values) -> Trial | None:
    if call.entry[0].user_code:
        return _trial_of_custom(call)
    inputs = [_double(x) for x in _inputs(call, values)]
    if call.primitive is None or any(x is None for x in inputs):
        return None

    def run(arrays: list) -> list:
        if call.name == "cholesky":  # reads one triangle; its rule counts both, as TensorFlow's
            arrays = [(x + np.conj(np.swapaxes(x, -1, -2))) / 2 for x in arrays]
        y = thread.recorders.quietly(
            call.primitive.kernel, namespace_of(arrays), *arrays, **call.attrs
        )
        return [*map(np.asarray, y)] if call.primitive.outputs else [np.asarray(y)]

    if any(y.dtype in dtypes.INEXACT and y.dtype.name not in _DOUBLES for y in run(inputs)):
        return None

    def pull(gs: list) -> dict[int, Any]:
        return _pulled(call, inputs, run(inputs), gs)

    return Trial(inputs, run, pull, DOUBLE)


_DOUBLES = ("float64", "complex128")


def _inputs(call: RecordedCall, values: Values) -> list:
    """The inputs of a call; where the tape let one go that no rule reads, another of its shape."""
    rng = np.random.default_rng(2)
    found = []
    for key in call.inputs:
        x = values.of(key, call)
        if x is None and key in call.specs and call.specs[key].dtype in dtypes.INEXACT:
            spec = call.specs[key]
            x = rng.uniform(0.5, 1.5, spec.shape).astype(spec.dtype)
        found.append(x)
    return found


def _double(x: Any) -> Any:
    """`x` in double precision; integers and the like as they are."""
    if x is None:
        return None
    x = np.asarray(x)
    if x.dtype not in dtypes.INEXACT:
        return x
    return x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)


def _pulled(call: RecordedCall, inputs: list, outputs: list, gs: list) -> dict[int, Any]:
    """What the rules of a primitive make of `gs`, by the position of the input."""
    plan = call.entry[0]
    run = thread.recorders.quietly
    several = call.primitive.outputs
    y = tuple(outputs) if several else outputs[0]
    whole = tuple(
        np.zeros(y.shape, y.dtype) if g is None else g for g, y in zip(gs, outputs, strict=True)
    )
    g = whole if several else whole[0]
    if plan.joint is not None:
        found = run(plan.joint, plan.connected, g, y, *inputs, **call.attrs)
        pulled = {i: x for i, x in enumerate(found) if plan.connected[i] and x is not None}
    else:
        pulled = {
            i: g if rule is passed_on else run(rule, g, y, *inputs, **call.attrs)
            for i, rule in plan.rules
        }
    return {i: indexed_slices.whole(x) for i, x in pulled.items()}


# Trials of custom_gradient


def _trial_of_custom(call: RecordedCall) -> Trial | None:
    """The user's function, in double precision if it can be had, else as it was called."""
    made = getattr(call.entry[0].joint, "of", None)
    if made is None:
        return None
    for convert, precision in ((_double, DOUBLE), (np.asarray, SINGLE)):
        again = _Again(*made, convert)
        try:
            outputs = again.run(again.inputs)
            pulled = again.pull([np.zeros(y.shape, y.dtype) for y in outputs])
        except Exception:
            continue
        kinds = {np.asarray(x).dtype for x in (*outputs, *pulled.values()) if x is not None}
        if precision is SINGLE or all(k.name in _DOUBLES or k.kind in "biu" for k in kinds):
            return Trial(again.inputs, again.run, again.pull, precision)
    return None


class _Again:
    """A function with a gradient of its own, run again with other inputs."""

    def __init__(
        self, f: Callable, args: tuple, kwargs: dict, variables: list, convert: Callable
    ) -> None:
        leaves, self._pack = nest.flatten_with_pack(list(args))
        self._f, self._kwargs, self._leaves, self._variables = f, kwargs, leaves, variables
        self._draws = random_state.state()
        self._held = [i for i, leaf in enumerate(leaves) if tensor_or_variable(leaf) is not None]
        given = [tensor_or_variable(leaves[i]) for i in self._held] + variables
        self._places = self._held + list(range(len(leaves), len(leaves) + len(variables)))
        arrays = [np.zeros(())] * (len(leaves) + len(variables))
        for place, x in zip(self._places, given, strict=True):
            arrays[place] = convert(x._array)
        self.inputs = arrays

    def _call(self, arrays: list) -> tuple[list, Callable]:
        leaves = list(self._leaves)
        for i in self._held:
            leaves[i] = Tensor(arrays[i])
        result, grad_fn = self._f(*self._pack(leaves), **self._kwargs)
        return [
            Tensor(np.asarray(tensor_or_variable(y)._array)) for y in nest.flatten(result)
        ], grad_fn

    def run(self, arrays: list) -> list:
        """The results for other inputs."""
        with self._holding(arrays):
            return [np.asarray(y._array) for y in self._call(arrays)[0]]

    def pull(self, gs: list) -> dict[int, Any]:
        """What the user's gradient function makes of `gs`."""
        with self._holding(self.inputs):
            outputs, grad_fn = self._call(self.inputs)
            zeros = [np.zeros(y._spec.shape, y._spec.dtype) for y in outputs]
            upstream = [Tensor(z if g is None else g) for g, z in zip(gs, zeros, strict=True)]
            if self._variables:
                found, of_variables = grad_fn(*upstream, variables=self._variables)
                found = nest.flatten(found) + list(of_variables)
            else:
                found = nest.flatten(grad_fn(*upstream))
        return {i: _array(found[i]) for i in self._places}

    @contextlib.contextmanager
    def _holding(self, arrays: list) -> Iterator[None]:
        """A block in which the variables that the function reads have other values."""
        before = [v._current() for v in self._variables]
        values = arrays[len(self._leaves) :]
        try:
            for v, array in zip(self._variables, values, strict=True):
                v._hold(Tensor(array, v._id))
            with random_state.replaying(self._draws):
                yield
        finally:
            for v, tensor in zip(self._variables, before, strict=True):
                v._hold(tensor)


def _array(g: Any) -> Any:
    if g is None:
        return None
    held = tensor_or_variable(indexed_slices.whole(g))
    return np.asarray(g if held is None else held._array)
