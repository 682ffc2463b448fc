"""Functions that were loaded: they have recordings, and no Python code."""

from __future__ import annotations

import contextlib
import inspect
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from retrograde.core.recorders import isolate
from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable
from retrograde.program.concrete_function import (
    VariableSpec,
    specs_in,
    unallocated,
    with_dummy_tensors,
)
from retrograde.program.function import Function
from retrograde.program.loading import unpacked_trace
from retrograde.program.saving_values import decoded, integer, item, text
from retrograde.program.signature import describe
from retrograde.program.symbolic_sizes import (
    SizedTrace,
    Unlike,
    filled_in,
    made_constant,
    sizes_in,
    unknown_axes,
)
from retrograde.program.traces import SignatureTraces, Trace
from retrograde.program.tracing import CallbackLog
from retrograde.values import dtypes, nest
from retrograde.values.arguments import as_text
from retrograde.values.errors import DataLossError, OpError
from retrograde.values.specs import TensorSpec


def unpacked_function(data: Mapping, variables: list, tensors: Mapping[str, Any]) -> Function:
    """A function that replays what `packed_function` wrote down, and can do nothing else."""
    name = text(data["name"])
    shown: list[str] = []

    def missing(*args: Any, **kwargs: Any) -> Any:
        inputs: list[Tensor] = []
        describe(args, inputs, [])
        received = [TensorSpec.from_tensor(x) for x in inputs]
        expected = "\n  ".join(shown)
        raise ValueError(
            f"Could not find matching concrete function to call loaded from the SavedModel. "
            f"{name} got {received} and {as_text(kwargs)}. Expected one of:\n  {expected}"
        )

    replaced: Any = missing
    replaced.__name__ = name
    replaced.__signature__ = inspect.Signature([_parameter(p) for p in data["parameters"]])
    function = LoadedFunction(replaced, name, decoded(data["input signature"]))
    for opened in data["opened"]:
        pattern = tuple(decoded(opened["args"])), decoded(opened["kwargs"])
        shown.append(f"{pattern[0]} {pattern[1] or ''}".strip())
        form = _Opened(pattern, opened, variables, tensors)
        form.check()
        function.opened.append(form)
    for signature in data["signatures"]:
        args = tuple([decoded(value) for value in signature["args"]])
        kwargs = decoded(signature["kwargs"])
        shown.append(f"{args} {kwargs or ''}".strip())
        given = function._with_dummies(_with_variables((args, kwargs), {}))
        *_, key, _, argument_variables = function._canonicalize(*given)
        traces = function._signatures[key] = SignatureTraces()
        traces.arguments = args, kwargs
        for trace in signature["paths"]:
            traces.add(unpacked_trace(trace, variables, tensors, argument_variables))
    return function


class LoadedFunction(Function):
    """A function without the Python code: it has recordings, and forms to make more of.

    They come from an untrusted file. Loading checks their structure. The first call of each
    checks that every kernel accepts its attributes and gives the shapes that the file states.
    """

    opened: list[_Opened]

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.opened = []
        self._verified: weakref.WeakSet[Trace] = weakref.WeakSet()
        self._filled_in: deque[Any] = deque()  # signatures that were made of forms

    def _with_dummies(self, arguments: Any) -> Any:
        # They are never computed with, and sizes from a damaged file can be huge.
        return with_dummy_tensors(arguments, unallocated)

    def _replay(
        self, trace: Trace, inputs: list[Tensor], variables: list[Any], log: CallbackLog
    ) -> Any:
        if trace not in self._verified:
            with _damage_in(self._name), isolate():
                trace.verify(inputs, variables, log)
            log.rewind()
            self._verified.add(trace)
        return super()._replay(trace, inputs, variables, log)

    def _canonicalize(self, args: tuple, kwargs: dict) -> tuple[tuple, dict, Any, list, list]:
        arranged = super()._canonicalize(args, kwargs)
        args, kwargs, key, _, _ = arranged
        if key not in self._signatures:
            for opened in self.opened:
                with _damage_in(self._name):
                    trace = opened.trace_for(args, kwargs)
                if trace is not None:
                    self._drop_filled_in()
                    traces = SignatureTraces()
                    traces.arguments = (
                        tuple(map(specs_in, args)),
                        {name: specs_in(value) for name, value in kwargs.items()},
                    )
                    traces.add(trace)
                    self._signatures[key] = traces
                    self._filled_in.append(key)
                    break
        return arranged

    def _drop_filled_in(self) -> None:
        """Drops the oldest recording that was made of a form, if there are too many."""
        if len(self._filled_in) >= self._trace_limit:
            dropped = self._signatures.pop(self._filled_in.popleft())
            for trace in dropped.all:
                self._fast_calls.pop(tuple(trace.argument_specs()), None)

    def _any_sizes(self, args: tuple, kwargs: dict, count: int, record: Callable) -> SizedTrace:
        for opened in self.opened:
            if repr(opened.pattern) == repr((args, kwargs)):
                return record(tuple(opened.data["sizes"]))
        return super()._any_sizes(args, kwargs, count, record)


class _Opened(NamedTuple):
    """One form, for arguments that fit a pattern."""

    pattern: tuple[tuple, dict]
    data: Mapping
    variables: list
    tensors: Mapping[str, Any]

    def check(self) -> None:
        """Raises an error if the form is damaged: it must make a recording of its own sizes."""
        sizes = [integer(size) for size in self.data["sizes"]]
        count = len(unknown_axes(self.pattern))
        for places in ([place for place, _ in self.data["fixed"]], *self.data["tied"]):
            for place in places:
                item(range(count), place)
        if len(sizes) != count or self._filled(sizes) is None:
            raise ValueError("a form does not fit its own sizes")

    def trace_for(self, args: tuple, kwargs: dict) -> Trace | None:
        """The recording for the sizes of these arguments, if they fit."""
        sizes = sizes_in(self.pattern, (args, kwargs), self.data)
        return None if sizes is None else self._filled(sizes)

    def _filled(self, sizes: Sequence[int]) -> Trace | None:
        try:
            trace = filled_in(self.data["path"], sizes)
            constants = {
                name: self.tensors[made] if isinstance(made, str) else made_constant(made, sizes)
                for name, made in self.data["constants"].items()
            }
        except Unlike:
            return None
        return unpacked_trace(trace, self.variables, constants, [])


@contextlib.contextmanager
def _damage_in(name: str) -> Iterator[None]:
    """Takes errors that are not about the values of arguments for damage of the file."""
    try:
        yield
    except (OpError, MemoryError):
        raise
    except Exception as error:
        raise DataLossError(
            None,
            None,
            f"The function {name} cannot be called: its saved model is damaged ({error!r}).",
        ) from None


def _parameter(data: list) -> inspect.Parameter:
    name, kind, default = data
    value = inspect.Parameter.empty if default is None else decoded(default[0])
    return inspect.Parameter(name, inspect._ParameterKind[kind], default=value)


def _with_variables(value: Any, made: dict[int, Variable]) -> Any:
    """`value` with variables of zeros in place of their specs."""
    if isinstance(value, VariableSpec):
        if value.place not in made:
            zeros = unallocated(value.shape, dtypes.as_dtype(value.dtype).numpy_dtype)
            made[value.place] = Variable(Tensor(zeros), trainable=value.trainable)
        return made[value.place]
    if nest.is_nested(value):
        return nest.rebuild(value, [_with_variables(v, made) for v in nest.children(value)])
    return value
