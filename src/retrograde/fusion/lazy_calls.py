"""Lazy evaluation: which calls are deferred until a result is read, and how they are fused.

A call on a large array is bound by memory bandwidth. Fused calls run block by block, so that each
finds its inputs in cache. Values that are not read later are never written to memory.
"""

from __future__ import annotations

import functools
import math
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.core.lazy import Materializer
from retrograde.core.program import Call, evaluate, needed
from retrograde.core.recorders import notify, thread
from retrograde.core.rules import Spec
from retrograde.core.tensor import Tensor
from retrograde.fusion.deferred_calls import Deferred, DeferredCalls, is_uniform
from retrograde.fusion.output_arguments import COSTLY, out_argument_of, output_dtype
from retrograde.values.dtypes import SINGLE_AND_DOUBLE
from retrograde.values.source import SourceWriter
from retrograde.values.thresholds import MIN_DEFERRED_SIZE, MIN_DEFERRED_SIZE_IF_CHEAP

enabled = True


class _ThreadState(threading.local):
    """The current group of deferred calls of a thread, weakly referenced by a function.

    The results of a group keep it alive.
    """

    group: Callable[[], DeferredCalls | None] = staticmethod(lambda: None)


_state = _ThreadState()


def allow_lazy(primitive: Primitive) -> None:
    """Allows lazy evaluation of an elementwise primitive."""
    primitive.defer = functools.partial(_defer_elementwise, primitive)


def allow_lazy_reduction(primitive: Primitive) -> None:
    """Allows lazy evaluation of full reductions of deferred values."""
    primitive.defer = functools.partial(_defer_reduction, primitive)


def _defer_elementwise(primitive: Primitive, inputs: tuple, attrs: dict) -> Tensor | None:
    group = _state.group()
    common = _common_spec(inputs, group)
    if common is None or not (_reads_deferred(inputs) or _starts_group(primitive, common)):
        return None
    if not _supports_out(
        primitive, len(inputs), common.dtype, tuple(attrs.items()) if attrs else ()
    ):
        return None
    return _defer(primitive, inputs, attrs, common, common, group)


def _common_spec(inputs: tuple, group: DeferredCalls | None) -> Spec | None:
    """Returns the shape and dtype that all inputs but scalars have; `None` if they differ."""
    shape = dtype = None
    for x in inputs:
        spec = x._spec
        if isinstance(spec, Materializer) and spec.array is not None:
            spec = spec.array
        if dtype is None:
            dtype = spec.dtype
        elif spec.dtype is not dtype:
            return None
        if type(spec) is Deferred:
            if not spec.ndim:
                return None
        elif not isinstance(spec, (np.ndarray, np.generic)):
            return None
        elif not spec.ndim:
            continue
        elif not (spec.flags.c_contiguous or is_uniform(spec)):
            return None
        if shape is None:
            shape = spec.shape
        elif spec.shape is not shape and spec.shape != shape:
            return None
    if shape is None or dtype not in SINGLE_AND_DOUBLE:
        return None
    if group is not None and group.spec == (shape, dtype):
        return group.spec
    return Spec(shape, dtype) if math.prod(shape) >= MIN_DEFERRED_SIZE else None


def _reads_deferred(inputs: tuple) -> bool:
    """Returns whether a call reads a deferred result."""
    return any([type(x._spec) is Deferred for x in inputs])


def _starts_group(primitive: Primitive, spec: Spec) -> bool:
    """Returns whether to start a new group. For smaller or cheaper calls that costs too much."""
    return enabled and (primitive in COSTLY or math.prod(spec.shape) >= MIN_DEFERRED_SIZE_IF_CHEAP)


@functools.lru_cache(maxsize=1024)
def _supports_out(primitive: Primitive, count: int, dtype: np.dtype, attrs: tuple) -> bool:
    """Returns whether the kernel accepts `out` for `count` inputs, and keeps their dtype."""
    specs = (Spec((), dtype),) * count
    if primitive.accepts is not None and dtype not in primitive.accepts:
        return False
    if out_argument_of(primitive, specs, dict(attrs)) is None:
        return False
    return output_dtype(primitive.on_numpy, specs) == dtype


def _defer_reduction(primitive: Primitive, inputs: tuple, attrs: dict) -> Tensor | None:
    spec = inputs[0]._spec
    if type(spec) is not Deferred or not spec.ndim:
        return None
    if "shape" in attrs:
        shape = attrs["shape"]
        if math.prod(shape) != 1:
            return None
    elif len(attrs["axis"]) == spec.ndim:
        shape = (1,) * spec.ndim if attrs["keepdims"] else ()
    else:
        return None
    group = _state.group()
    if group is not spec.group or spec.shape != group.spec.shape:  # it may be a reduction itself
        return None
    return _defer(primitive, inputs, attrs, Spec(shape, spec.dtype), group.spec, group)


def _defer(
    primitive: Primitive,
    inputs: tuple,
    attrs: dict,
    spec: Spec,
    group_spec: Spec,
    group: DeferredCalls | None,
) -> Tensor | None:
    """Adds a call to `group`, or to a new group, and returns its result, of this `spec`."""
    recorders = thread.recorders
    for recorder in recorders:
        if not recorder.defers:
            return None
    y = None
    if group is not None:
        if group.spec is group_spec:
            y = group.add(primitive, inputs, attrs, spec)
        if y is None:
            group.compute()  # a thread has one group at a time
            if spec is not group_spec:
                return None  # a reduction of values that are computed now
    if y is None:
        group = DeferredCalls(group_spec, _run_group)
        _state.group = weakref.ref(group)
        y = group.add(primitive, inputs, attrs, spec)
    notify(recorders, primitive, inputs, attrs, y)
    return y


# Evaluation


class _Pattern:
    """A group of calls that recurs: whether it was seen before, and then its fused program."""

    __slots__ = ("program", "seen")

    def __init__(self) -> None:
        self.seen = False
        self.program: Callable | None = None


@functools.lru_cache(maxsize=256)
def _pattern(_key: tuple) -> _Pattern:
    return _Pattern()


def _run_group(group: DeferredCalls, numbers: tuple[int, ...]) -> Sequence[Any]:
    """Computes the values with these `numbers`; fused, if the same calls were seen before."""
    values = group.values
    calls = needed(group.calls, numbers)
    if len(calls) == 1:
        return list(evaluate(calls, values, numbers).values())
    arrays = {v: values[v] for call in calls for v in call.inputs if v in values and values[v].ndim}
    uniform = {v: bool(x.flat[0] == 1) for v, x in arrays.items() if is_uniform(x)}
    steps = [(c.primitive, c.inputs, c.outputs, repr(c.attrs) if c.attrs else "") for c in calls]
    key = (group.spec, numbers, tuple(arrays), tuple(uniform.items()), tuple(steps))
    pattern = _pattern(key)
    if pattern.program is None:
        if not pattern.seen:
            pattern.seen = True
            return list(evaluate(calls, values, numbers).values())
        pattern.program = _fused_program(group, calls, numbers, uniform)
    return pattern.program(values)


def _fused_program(
    group: DeferredCalls,
    calls: Sequence[Call],
    numbers: tuple[int, ...],
    uniform: Mapping[int, bool],
) -> Callable[[Mapping[int, Any]], tuple]:
    """Returns a function that maps the values of the inputs to the values of `numbers`.

    `uniform` lists the inputs whose elements are all equal, and says whether they are 1.
    """
    from retrograde.fusion.fused_loops import Fused, find_equal_value  # imported on first use

    specs = group.specs | {v: Spec(x.shape, x.dtype) for v, x in group.values.items()}
    repeats: dict[int, int] = {}  # maps a value to the value with the same elements
    steps = []
    for call in calls:
        reads = tuple([repeats.get(v, v) for v in call.inputs])
        other = find_equal_value(call, reads, specs, uniform)
        if other is None or call.outputs[0] in numbers:
            steps.append(call)
        else:
            repeats[call.outputs[0]] = other
    lead = len(group.spec.shape)
    fused = Fused(steps, specs, numbers, lead, repeats, frozenset(uniform), frozenset())
    writer = SourceWriter()
    fused.write(writer, "fused")
    run = writer.define("fused", "fused")
    inputs = fused.inputs
    return lambda values: run(*[values[v] for v in inputs])
