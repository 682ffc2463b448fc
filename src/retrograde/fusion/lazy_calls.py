"""Lazy evaluation: which calls are deferred until a result is read, and how they are fused.

A call on a large array reads and writes all of it, and memory is slower than arithmetic. Fused
calls run block by block and find the results of the call before in the cache. Values that are not
read later are never written to memory.
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
from retrograde.values.thresholds import DEFERRED as LEAST
from retrograde.values.thresholds import DEFERRED_IF_CHEAP as _BEGIN

enabled = True


class _Own(threading.local):
    """The deferred calls of a thread, by a weak reference: their results keep them alive."""

    group: Callable[[], DeferredCalls | None] = staticmethod(lambda: None)


_own = _Own()


def allow_lazy(primitive: Primitive) -> None:
    """Lets calls of an elementwise primitive wait."""
    primitive.defer = functools.partial(_elementwise, primitive)


def allow_lazy_reduction(primitive: Primitive) -> None:
    """Lets a sum or mean of all elements of something that waits wait, too."""
    primitive.defer = functools.partial(_total, primitive)


def _elementwise(primitive: Primitive, inputs: tuple, attrs: dict) -> Tensor | None:
    group = _own.group()
    whole = _whole(inputs, group)
    if whole is None or not (_follows(inputs) or _begins(primitive, whole)):
        return None
    if not _writes(primitive, len(inputs), whole.dtype, tuple(attrs.items()) if attrs else ()):
        return None
    return _put_off(primitive, inputs, attrs, whole, whole, group)


def _whole(inputs: tuple, group: DeferredCalls | None) -> Spec | None:
    """The one shape and dtype of all large arrays, besides which there may be single numbers."""
    shape = dtype = None
    for x in inputs:
        form = x._spec
        if isinstance(form, Materializer) and form.array is not None:
            form = form.array
        if dtype is None:
            dtype = form.dtype
        elif form.dtype is not dtype:
            return None
        if type(form) is Deferred:
            if not form.ndim:
                return None
        elif not isinstance(form, (np.ndarray, np.generic)):
            return None
        elif not form.ndim:
            continue
        elif not (form.flags.c_contiguous or is_uniform(form)):
            return None
        if shape is None:
            shape = form.shape
        elif form.shape is not shape and form.shape != shape:
            return None
    if shape is None or dtype not in SINGLE_AND_DOUBLE:
        return None
    if group is not None and group.spec == (shape, dtype):
        return group.spec
    return Spec(shape, dtype) if math.prod(shape) >= LEAST else None


def _follows(inputs: tuple) -> bool:
    """Whether a call reads the result of another one that waits."""
    return any([type(x._spec) is Deferred for x in inputs])


def _begins(primitive: Primitive, whole: Spec) -> bool:
    """Whether it is worth to wait for what may follow: else a call is done sooner than put off."""
    return enabled and (primitive in COSTLY or math.prod(whole.shape) >= _BEGIN)


@functools.lru_cache(maxsize=1024)
def _writes(primitive: Primitive, count: int, dtype: np.dtype, attrs: tuple) -> bool:
    """Whether the kernel, given `count` arrays, writes its result into one of the same dtype."""
    specs = (Spec((), dtype),) * count
    if primitive.accepts is not None and dtype not in primitive.accepts:
        return False
    if out_argument_of(primitive, specs, dict(attrs)) is None:
        return False
    return output_dtype(primitive.on_numpy, specs) == dtype


def _total(primitive: Primitive, inputs: tuple, attrs: dict) -> Tensor | None:
    form = inputs[0]._spec
    if type(form) is not Deferred or not form.ndim:
        return None
    if "shape" in attrs:
        shape = attrs["shape"]
        if math.prod(shape) != 1:
            return None
    elif len(attrs["axis"]) == form.ndim:
        shape = (1,) * form.ndim if attrs["keepdims"] else ()
    else:
        return None
    group = _own.group()
    if group is not form.group or form.shape != group.spec.shape:  # which may be a total itself
        return None
    return _put_off(primitive, inputs, attrs, Spec(shape, form.dtype), group.spec, group)


def _put_off(
    primitive: Primitive,
    inputs: tuple,
    attrs: dict,
    spec: Spec,
    whole: Spec,
    group: DeferredCalls | None,
) -> Tensor | None:
    """Returns a tensor like `spec` for a call that is added to the calls of `group`."""
    recorders = thread.recorders
    for recorder in recorders:
        if not recorder.defers:
            return None
    y = None
    if group is not None:
        if group.spec is whole:
            y = group.add(primitive, inputs, attrs, spec)
        if y is None:
            group.settle()  # a thread has one group at a time
            if spec is not whole:
                return None  # a total of what is computed by now
    if y is None:
        group = DeferredCalls(whole, _computed)
        _own.group = weakref.ref(group)
        y = group.add(primitive, inputs, attrs, spec)
    notify(recorders, primitive, inputs, attrs, y)
    return y


# How they run


class _Met:
    """Calls that were met together: how often until now, at most once, and then their program."""

    __slots__ = ("once", "program")

    def __init__(self) -> None:
        self.once = False
        self.program: Callable | None = None


@functools.lru_cache(maxsize=256)
def _met(_key: tuple) -> _Met:
    return _Met()


def _computed(group: DeferredCalls, numbers: tuple[int, ...]) -> Sequence[Any]:
    """The values of these `numbers`: at once, if the same calls were met before."""
    values = group.values
    calls = needed(group.calls, numbers)
    if len(calls) == 1:
        return list(evaluate(calls, values, numbers).values())
    arrays = {v: values[v] for call in calls for v in call.inputs if v in values and values[v].ndim}
    uniform = {v: bool(x.flat[0] == 1) for v, x in arrays.items() if is_uniform(x)}
    steps = [(c.primitive, c.inputs, c.outputs, repr(c.attrs) if c.attrs else "") for c in calls]
    key = (group.spec, numbers, tuple(arrays), tuple(uniform.items()), tuple(steps))
    met = _met(key)
    if met.program is None:
        if not met.once:
            met.once = True
            return list(evaluate(calls, values, numbers).values())
        met.program = _program(group, calls, numbers, uniform)
    return met.program(values)


def _program(
    group: DeferredCalls,
    calls: Sequence[Call],
    numbers: tuple[int, ...],
    uniform: Mapping[int, bool],
) -> Callable[[Mapping[int, Any]], tuple]:
    """A function of the values that were given, which computes those of `numbers`.

    `uniform` arrays have one number all over; it tells whether that is 1.
    """
    from retrograde.fusion.fused_loops import Fused, repeated  # not before it is needed

    specs = group.specs | {v: Spec(x.shape, x.dtype) for v, x in group.values.items()}
    same: dict[int, int] = {}  # by value: which other one it repeats
    steps = []
    for call in calls:
        reads = tuple([same.get(v, v) for v in call.inputs])
        other = repeated(call, reads, specs, uniform)
        if other is None or call.outputs[0] in numbers:
            steps.append(call)
        else:
            same[call.outputs[0]] = other
    lead = len(group.spec.shape)
    fused = Fused(steps, specs, numbers, lead, same, frozenset(uniform), frozenset())
    writer = SourceWriter()
    fused.write(writer, "together")
    run = writer.define("together", "together")
    inputs = fused.inputs
    return lambda values: run(*[values[v] for v in inputs])
