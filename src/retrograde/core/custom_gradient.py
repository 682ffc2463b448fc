"""User-defined gradients: `custom_gradient` and `grad_pass_through`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from retrograde.core import indexed_slices, required
from retrograde.core.apply import tensor_of
from retrograde.core.batching import Batched, Level, examples_of, innermost, reenter
from retrograde.core.indexed_slices import IndexedSlices
from retrograde.core.plans import Plan, save_nothing
from retrograde.core.recorders import Recorder, notify, thread, use_recorders
from retrograde.core.tensor import Tensor, wrap
from retrograde.values import dtypes, nest
from retrograde.values.composites import CompositeTensor
from retrograde.values.conversion import as_array, tensor_or_variable
from retrograde.values.source_location import SourceLocation, caller_location


class CustomName(str):
    """The name of a function with a custom gradient, with details for diagnostics.

    `location` is where the function was called. After the backward pass, `missing` are the
    positions of the inputs for which its gradient was `None`.
    """

    __slots__ = ("location", "missing")

    location: SourceLocation | None
    missing: tuple[int, ...]

    def __new__(cls, name: str) -> CustomName:
        self = super().__new__(cls, name)
        self.location = caller_location()
        self.missing = ()
        return self

    def observe(self, rule: Callable) -> Callable:
        """Returns `rule`, extended to store the positions of missing gradients in `missing`."""

        def observed(needed: tuple[bool, ...], g: Any) -> list:
            gradients = rule(needed, g)
            self.missing = tuple([i for i, x in enumerate(gradients) if x is None])
            return gradients

        result: Any = observed
        result.of = getattr(rule, "of", None)
        return result


class CustomCall:
    """A call with a custom gradient, which tapes record like a call of a primitive."""

    __slots__ = ("name", "rule")
    partials = None
    linear = False
    plans: ClassVar[dict] = {}

    def __init__(self, name: str, rule: Callable) -> None:
        self.name = name
        self.rule = rule

    def plan(self, key: tuple[int, ...]) -> Plan:
        """Returns a plan that runs the user's rule."""
        needed = tuple(map(bool, key))
        return Plan(save_nothing, (), self.rule, needed, user_code=True, name=self.name)


class VariableWatcher(Recorder):
    """Collects the trainable variables that are read."""

    __slots__ = ("variables",)

    def __init__(self) -> None:
        self.variables: dict[int, Any] = {}

    def read(self, variable: Any) -> None:
        """Adds `variable`."""
        if variable.trainable:
            self.variables[variable._id] = variable


def custom_gradient(f: Callable | None = None) -> Callable:
    """Decorates a function that returns its result and the gradient function to use for it.

    `f(*args)` returns `(result, grad_fn)`. `grad_fn` gets one upstream gradient for each tensor in
    `result` and returns one gradient, or `None`, for each of `args`. If `f` reads variables that
    are not among its arguments, `grad_fn` must take them by a keyword `variables` and return a
    pair: the gradients of the arguments, and a list with one gradient for each variable. The
    gradient can be differentiated again.

    >>> @tf.custom_gradient
    ... def log1pexp(x):
    ...     e = tf.exp(x)
    ...     return tf.math.log(1.0 + e), lambda upstream: upstream * (1.0 - 1.0 / (1.0 + e))
    >>> x = tf.constant(100.0)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = log1pexp(x)
    >>> tape.gradient(y, x).numpy()
    np.float32(1.0)
    """
    return custom_gradient if f is None else _Decorated(f)


class _Decorated:
    """A function with a custom gradient, which also works as a method."""

    def __init__(self, f: Callable) -> None:
        self._f = f
        functools.update_wrapper(self, f)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else _Decorated(self._f.__get__(instance, owner))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        watcher = VariableWatcher()
        with use_recorders([*thread.recorders, watcher]):
            result, grad_fn = self._f(*args, **kwargs)
        inputs = nest.flatten(list(args))
        pack_result = None
        if any(isinstance(x, CompositeTensor) for x in (*inputs, *nest.flatten(result))):
            grad_fn = _on_components(grad_fn, result)
            pack_result = functools.partial(nest.pack, result, expand_composites=True)
            inputs = list(nest.leaves(inputs, expand_composites=True))
            result = list(nest.leaves(result, expand_composites=True))
        variables = captured_variables(watcher.variables, inputs)
        if variables and not _accepts_variables(grad_fn):
            raise TypeError(
                "@tf.custom_gradient grad_fn must accept keyword argument 'variables', since "
                f"function uses variables: {variables}"
            )

        def pull(needed: tuple[bool, ...], g: Any) -> list:  # noqa: ARG001
            upstream = g if type(g) is tuple else (g,)
            if not variables:
                return _gradient_per_input(grad_fn(*upstream), inputs)
            gradients, of_variables = grad_fn(*upstream, variables=variables)
            if len(of_variables) != len(variables):
                raise ValueError(
                    "Must return gradient for each variable from @custom_gradient grad_fn. "
                    f"Received {len(of_variables)} for {len(variables)} variables."
                )
            return _gradient_per_input(gradients, inputs) + _convert_all(of_variables, variables)

        rule: Any = pull
        rule.of = (self._f, args, kwargs, variables)  # for `verify`
        name = getattr(self, "__name__", "custom")
        outputs = record_custom(name, rule, inputs + variables, result)
        return outputs if pack_result is None else pack_result(iter(nest.flatten(outputs)))


def _on_components(grad_fn: Callable, result: Any) -> Callable:
    """Wraps a gradient function of composite tensors as a function of their components."""
    components = list(nest.leaves(result, expand_composites=True))

    @functools.wraps(grad_fn)
    def on_components(*upstream: Any, **kwargs: Any) -> Any:
        # The cotangent of a composite has its partitions or indices, which are integers.
        leaves = [
            g if x._spec.dtype in dtypes.INEXACT else x
            for g, x in zip(upstream, components, strict=True)
        ]
        packed = nest.pack(result, iter(leaves), expand_composites=True)
        returned = grad_fn(*nest.flatten(packed), **kwargs)
        gradients, *of_variables = returned if kwargs else (returned,)
        flat = [
            None if isinstance(g, Tensor) and g._spec.dtype not in dtypes.INEXACT else g
            for g in nest.leaves(gradients, expand_composites=True)
        ]
        return (flat, *of_variables) if kwargs else flat

    return on_components


def captured_variables(variables: dict[int, Any], inputs: list) -> list:
    """Returns the variables that are not among `inputs`."""
    input_ids = {x._id for x in map(tensor_or_variable, inputs) if x is not None}
    return [v for key, v in variables.items() if key not in input_ids]


def _accepts_variables(grad_fn: Callable) -> bool:
    parameters = inspect.signature(grad_fn).parameters.values()
    return any(p.name == "variables" or p.kind is p.VAR_KEYWORD for p in parameters)


def _gradient_per_input(gradients: Any, inputs: list) -> list:
    """Returns the results of a gradient function as a list with one gradient for each input."""
    flat = nest.flatten(gradients)
    if len(flat) != len(inputs):
        raise ValueError(
            f"custom_gradient function expected to return {len(inputs)} gradients, but returned "
            f"{len(flat)} instead."
        )
    return _convert_all(flat, inputs)


def _convert_all(gradients: list, inputs: list) -> list:
    return [_convert(g, x) for g, x in zip(gradients, inputs, strict=True)]


def _convert(g: Any, x: Any) -> Any:
    """Converts a gradient to a tensor. A Python number takes the dtype of the input."""
    if g is None or isinstance(g, IndexedSlices):
        return g
    gradient, source = tensor_or_variable(g), tensor_or_variable(x)
    if gradient is not None:
        return gradient._read()
    return Tensor(as_array(g, hint=None if source is None else source._spec.dtype))


def record_custom(name: str, rule: Callable, inputs: list, result: Any) -> Any:
    """Returns new tensors with the values of `result`, whose gradient is `rule`."""
    leaves, pack = nest.flatten_with_pack(result)
    outputs = [Tensor(as_array(leaf)) for leaf in leaves]
    tracer = thread.recorders.tracer
    inexact = any(y._spec.dtype in dtypes.INEXACT for y in outputs)
    if tracer is not None:
        tensors = [tensor_or_variable(leaf) for leaf in leaves]
        values = [y if x is None else x._read() for x, y in zip(tensors, outputs, strict=True)]
        sources = tuple([_source(x) for x in inputs])
        tracer.record_custom_gradient(CustomCall(name, rule), sources, values, outputs)
    if inexact and len(thread.recorders) > (tracer is not None):
        sources = tuple([_source(x) for x in inputs])
        name = CustomName(name)
        outputs = _notify_custom_call(CustomCall(name, name.observe(rule)), sources, outputs)
    return pack(outputs)


def _notify_custom_call(call: CustomCall, sources: tuple, outputs: list[Tensor]) -> list[Tensor]:
    """Notifies the recorders of `call`. Recorders outside a batch observe it on all examples."""
    level = innermost([x._array for x in (*sources, *outputs)])
    recorders = thread.recorders
    outer = [] if level is None else [r for r in recorders if r in level.outer]
    if level is not None and outer:
        flags = [_is_at(level, x) for x in sources]
        examples = tuple([x._array.value if f else x for x, f in zip(sources, flags, strict=True)])
        values = [examples_of(y, level, required.broadcast_to) for y in outputs]
        with use_recorders(outer):
            new_outputs = [Tensor(getattr(value, "_array", value)) for value in values]
            new_outputs = _notify_custom_call(
                CustomCall(call.name, _batched_rule(call.rule, level, flags)), examples, new_outputs
            )
        outputs = [wrap(Batched(y, level)) for y in new_outputs]
    y = outputs[0] if len(outputs) == 1 else tuple(outputs)
    notify(
        [r for r in recorders if r not in outer and not r.records_functions], call, sources, {}, y
    )
    return outputs


def _is_at(level: Level, x: Tensor) -> bool:
    return type(x._array) is Batched and x._array.level is level


def _batched_rule(rule: Callable, level: Level, flags: list[bool]) -> Callable:
    """Returns a rule for all examples of a batch, from the rule for one example."""

    def batched_rule(needed: tuple[bool, ...], g: Any) -> list:
        with reenter(level):
            several = g if type(g) is tuple else (g,)
            one = tuple([wrap(Batched(part, level)) for part in several])
            gradients = rule(needed, one if type(g) is tuple else one[0])
            return [
                None if x is None else _batched_gradient(x, f)
                for x, f in zip(gradients, flags, strict=True)
            ]

    def _batched_gradient(x: Any, batched: bool) -> Tensor:
        x = indexed_slices.as_dense(x)
        value = tensor_of(examples_of(x, level, required.broadcast_to))
        return value if batched else required.sum_to(value, shape=value._spec.shape[1:])

    return batched_rule


def _source(x: Any) -> Tensor:
    source = tensor_or_variable(x)
    return Tensor(np.False_) if source is None else source._read()


def grad_pass_through(f: Callable) -> Callable:
    """Replaces the gradient of `f` by the identity: the straight-through estimator.

    >>> x = tf.constant(1.7)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = tf.grad_pass_through(tf.round)(x) * 10.0
    >>> y.numpy(), tape.gradient(y, x).numpy()
    (np.float32(20.0), np.float32(10.0))
    """

    @custom_gradient
    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        def grad(*upstream: Any, variables: Any = None) -> Any:
            return upstream if variables is None else (upstream, [None] * len(variables))

        return f(*args, **kwargs), grad

    return wrapper
