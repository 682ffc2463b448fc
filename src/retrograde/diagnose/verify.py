"""`tape.verify()`: compares the gradient of every recorded call with finite differences."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from retrograde.core import indexed_slices
from retrograde.core.namespaces import namespace_of
from retrograde.core.recorders import isolate, thread
from retrograde.core.rules import identity_rule
from retrograde.core.tensor import Tensor
from retrograde.diagnose.calls import RecordedCall, Values, calls_between, values_of
from retrograde.diagnose.finite_differences import (
    DOUBLE,
    SINGLE,
    GradientCheck,
    Mismatch,
    Precision,
    mismatches,
)
from retrograde.diagnose.rendering import Report, format_number, source_line
from retrograde.ops import random_state
from retrograde.values import dtypes, nest
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.source_location import SourceLocation


def verify(tape: Any, target: Any, sources: Any = None, samples: int = 20) -> Verification:
    """Compares the gradient of every call between `sources` and `target` with finite differences.

    Each call is checked separately, in float64, at its recorded inputs. The report names the first
    call with a wrong gradient: its line, the element, the gradient and the finite difference. At
    non-differentiable points, such as `relu` at 0, any gradient between the left and the right
    difference is accepted. The main use is to check custom gradients. A function with a
    `custom_gradient` is called again for this. `samples` is the maximum number of elements of an
    input that are checked individually if the gradient and the differences differ.

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
    locations = tape._locations or {}
    checked, skipped, nondifferentiable = 0, [], []
    with isolate(), np.errstate(all="ignore"):
        for call in calls:
            trial = _trial(call, values)
            location = locations.get(call.outputs[0])
            if trial is None:
                skipped.append(call.name)
                continue
            checked += 1
            for position, mismatch in _mismatches(trial, samples):
                if not mismatch.nondifferentiable:
                    return Verification(
                        checked,
                        tuple(nondifferentiable),
                        tuple(skipped),
                        call.name,
                        location,
                        position,
                        mismatch.index,
                        mismatch.value,
                        mismatch.gradient,
                        mismatch.differences,
                    )
                nondifferentiable.append(call.name)
    return Verification(checked, tuple(nondifferentiable), tuple(skipped))


@dataclass(frozen=True)
class Verification(Report):
    """The result of `tape.verify()`. It is true if no gradient is wrong.

    Attributes:
        checked: The number of calls that were checked.
        nondifferentiable: The names of calls at non-differentiable points, once for each point.
        skipped: The names of calls whose inputs the tape did not save.
        primitive: The name of the call with the wrong gradient; `None` if there is none.
        location: The source location of that call, if known.
        input: The position of the input.
        index: The index of the element of the input.
        value: The value of that element.
        gradient: The gradient for a random upstream gradient.
        differences: The left and right finite difference.
    """

    checked: int = 0
    nondifferentiable: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    primitive: str | None = None
    location: SourceLocation | None = None
    input: int = 0
    index: tuple[int, ...] = ()
    value: Any = None
    gradient: Any = None
    differences: tuple[float, float] | None = field(default=None)

    def __bool__(self) -> bool:
        return self.primitive is None

    def _lines(self) -> list[tuple[str, str]]:
        if self:
            calls = _count(self.checked, "call")
            lines = [("head", f"The gradients of {calls} agree with finite differences.")]
        else:
            lines = [("head", f"The gradient of {self.primitive} is wrong.")]
            lines += [] if self.location is None else source_line(self.location)
            at = f"element [{', '.join(map(str, self.index))}] of " if self.index else ""
            left, right = self.differences
            lines += [
                (
                    "fact",
                    f"At {at}input {self.input}, with value {format_number(self.value)}, for a "
                    "random upstream gradient:",
                ),
                ("element", f"gradient           {format_number(self.gradient)}"),
                ("element", f"finite difference  {format_number((left + right) / 2)}"),
                (
                    "fact",
                    f"The gradients of {_count(self.checked - 1, 'earlier call')} are correct.",
                ),
            ]
        if self.nondifferentiable:
            names = ", ".join(sorted(set(self.nondifferentiable)))
            points = _count(len(self.nondifferentiable), "non-differentiable point")
            lines.append(("fact", f"{points}, where any subgradient is accepted: {names}."))
        if self.skipped:
            names = ", ".join(sorted(set(self.skipped)))
            lines.append(
                (
                    "why",
                    f"Not checked, because the tape did not save their inputs: {names}. A tape "
                    "with lines=True saves all inputs.",
                )
            )
        return lines


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


class Trial(NamedTuple):
    """A call that can be run again.

    `run(arrays)` returns its outputs, and `pull(gs)` the cotangents of its inputs, by position.
    """

    inputs: list
    run: Callable[[list], list]
    pull: Callable[[list], dict[int, Any]]
    precision: Precision


def _mismatches(trial: Trial, samples: int) -> Iterator[tuple[int, Mismatch]]:
    rng = np.random.default_rng(1)
    outputs = trial.run(trial.inputs)
    gs = [_cotangent(y, rng) for y in outputs]
    for position, cotangent in trial.pull(gs).items():
        x = trial.inputs[position]
        if x.dtype not in dtypes.INEXACT or not x.size:
            continue
        if not all(np.isfinite(y).all() for y in (x, cotangent, *outputs) if y is not None):
            continue  # finite differences would be non-finite, too

        def f(moved: np.ndarray, position: int = position) -> list:
            moved = moved.astype(trial.inputs[position].dtype)
            return trial.run([*trial.inputs[:position], moved, *trial.inputs[position + 1 :]])

        gradient = np.zeros(x.shape) if cotangent is None else np.asarray(cotangent)
        check = GradientCheck(f, x, gs, gradient, trial.precision)
        same_shape = len(outputs) == 1 and x.shape == outputs[0].shape
        elementwise = same_shape and _is_elementwise(f, x, outputs[0], rng)
        for mismatch in mismatches(check, samples, elementwise):
            yield position, mismatch


def _is_elementwise(f: Callable, x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> bool:
    """Returns whether each element of the output depends only on the same element of the input."""
    moved = rng.random(x.shape) < 0.5
    for part in (moved, ~moved):
        (z,) = f(np.where(part, x * 1.01, x))
        if not np.array_equal(z[~part], y[~part]):
            return False
    return True


def _cotangent(y: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
    """Returns a random cotangent; `None` for an integer output."""
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
        if (
            call.name == "cholesky"
        ):  # it reads one triangle; its gradient has both, as in TensorFlow
            arrays = [(x + np.conj(np.swapaxes(x, -1, -2))) / 2 for x in arrays]
        y = thread.recorders.quietly(
            call.primitive.kernel, namespace_of(arrays), *arrays, **call.attrs
        )
        return [*map(np.asarray, y)] if call.primitive.outputs else [np.asarray(y)]

    if any(y.dtype in dtypes.INEXACT and y.dtype.name not in _DOUBLES for y in run(inputs)):
        return None

    def pull(gs: list) -> dict[int, Any]:
        return _pull_back(call, inputs, run(inputs), gs)

    return Trial(inputs, run, pull, DOUBLE)


_DOUBLES = ("float64", "complex128")


def _inputs(call: RecordedCall, values: Values) -> list:
    """Returns the inputs of a call; random values for inputs that no gradient reads."""
    rng = np.random.default_rng(2)
    arrays = []
    for key in call.inputs:
        x = values.get(key, call)
        if x is None and key in call.specs and call.specs[key].dtype in dtypes.INEXACT:
            spec = call.specs[key]
            x = rng.uniform(0.5, 1.5, spec.shape).astype(spec.dtype)
        arrays.append(x)
    return arrays


def _double(x: Any) -> Any:
    """Converts `x` to double precision; leaves integers unchanged."""
    if x is None:
        return None
    x = np.asarray(x)
    if x.dtype not in dtypes.INEXACT:
        return x
    return x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)


def _pull_back(call: RecordedCall, inputs: list, outputs: list, gs: list) -> dict[int, Any]:
    """Returns the cotangents of the inputs of a primitive, by position."""
    plan = call.entry[0]
    run = thread.recorders.quietly
    is_tuple = call.primitive.outputs
    y = tuple(outputs) if is_tuple else outputs[0]
    dense = tuple(
        np.zeros(y.shape, y.dtype) if g is None else g for g, y in zip(gs, outputs, strict=True)
    )
    g = dense if is_tuple else dense[0]
    if plan.joint is not None:
        gradients = run(plan.joint, plan.connected, g, y, *inputs, **call.attrs)
        pulled = {i: x for i, x in enumerate(gradients) if plan.connected[i] and x is not None}
    else:
        pulled = {
            i: g if rule is identity_rule else run(rule, g, y, *inputs, **call.attrs)
            for i, rule in plan.rules
        }
    return {i: indexed_slices.as_dense(x) for i, x in pulled.items()}


# Trials of custom_gradient


def _trial_of_custom(call: RecordedCall) -> Trial | None:
    """Returns the user's function, in double precision if it supports that."""
    function = getattr(call.entry[0].joint, "of", None)
    if function is None:
        return None
    for convert, precision in ((_double, DOUBLE), (np.asarray, SINGLE)):
        custom = _CustomCall(*function, convert)
        try:
            outputs = custom.run(custom.inputs)
            pulled = custom.pull([np.zeros(y.shape, y.dtype) for y in outputs])
        except Exception:
            continue
        dtypes = {np.asarray(x).dtype for x in (*outputs, *pulled.values()) if x is not None}
        if precision is SINGLE or all(d.name in _DOUBLES or d.kind in "biu" for d in dtypes):
            return Trial(custom.inputs, custom.run, custom.pull, precision)
    return None


class _CustomCall:
    """Calls a function with a custom gradient again, with other inputs."""

    def __init__(
        self, f: Callable, args: tuple, kwargs: dict, variables: list, convert: Callable
    ) -> None:
        leaves, self._pack = nest.flatten_with_pack(list(args))
        self._f, self._kwargs, self._leaves, self._variables = f, kwargs, leaves, variables
        self._random_state = random_state.state()
        self._tensor_positions = [
            i for i, leaf in enumerate(leaves) if tensor_or_variable(leaf) is not None
        ]
        tensors = [tensor_or_variable(leaves[i]) for i in self._tensor_positions] + variables
        self._positions = self._tensor_positions + list(
            range(len(leaves), len(leaves) + len(variables))
        )
        arrays = [np.zeros(())] * (len(leaves) + len(variables))
        for position, x in zip(self._positions, tensors, strict=True):
            arrays[position] = convert(x._array)
        self.inputs = arrays

    def _call(self, arrays: list) -> tuple[list, Callable]:
        leaves = list(self._leaves)
        for i in self._tensor_positions:
            leaves[i] = Tensor(arrays[i])
        result, grad_fn = self._f(*self._pack(leaves), **self._kwargs)
        return [
            Tensor(np.asarray(tensor_or_variable(y)._array)) for y in nest.flatten(result)
        ], grad_fn

    def run(self, arrays: list) -> list:
        """Returns the outputs for other inputs."""
        with self._variable_values(arrays):
            return [np.asarray(y._array) for y in self._call(arrays)[0]]

    def pull(self, gs: list) -> dict[int, Any]:
        """Returns the cotangents that the user's gradient function computes."""
        with self._variable_values(self.inputs):
            outputs, grad_fn = self._call(self.inputs)
            zeros = [np.zeros(y._spec.shape, y._spec.dtype) for y in outputs]
            upstream = [Tensor(z if g is None else g) for g, z in zip(gs, zeros, strict=True)]
            if self._variables:
                gradients, of_variables = grad_fn(*upstream, variables=self._variables)
                gradients = nest.flatten(gradients) + list(of_variables)
            else:
                gradients = nest.flatten(grad_fn(*upstream))
        return {i: _array(gradients[i]) for i in self._positions}

    @contextlib.contextmanager
    def _variable_values(self, arrays: list) -> Iterator[None]:
        """Temporarily sets the variables that the function reads."""
        before = [v._current() for v in self._variables]
        values = arrays[len(self._leaves) :]
        try:
            for v, array in zip(self._variables, values, strict=True):
                v._hold(Tensor(array, v._id))
            with random_state.replaying(self._random_state):
                yield
        finally:
            for v, tensor in zip(self._variables, before, strict=True):
                v._hold(tensor)


def _array(g: Any) -> Any:
    if g is None:
        return None
    tensor = tensor_or_variable(indexed_slices.as_dense(g))
    return np.asarray(g if tensor is None else tensor._array)
