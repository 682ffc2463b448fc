"""Functions of a saved model, which have traces but no Python code."""

from __future__ import annotations

import contextlib
import inspect
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from retrograde.core import namespaces
from retrograde.core.recorders import Recorders, isolate
from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable
from retrograde.program.concrete_function import (
    VariableSpec,
    specs_in,
    unallocated,
    with_dummy_tensors,
)
from retrograde.program.function import Function
from retrograde.program.signature import Arguments, describe
from retrograde.program.traces import SignatureTraces, Trace
from retrograde.program.tracing import CallbackLog
from retrograde.program.unknown_sizes import NoCommonForm, SizedTrace, unknown_axes
from retrograde.saved_functions.encoding import (
    contains_named_tuple,
    decode,
    integer,
    item,
    text,
    with_saved_named_tuples,
)
from retrograde.saved_functions.loading import load_trace
from retrograde.saved_functions.size_formulas import constant_for, evaluate_formulas, sizes_in
from retrograde.shape_inference.inference import on_abstract_arrays
from retrograde.values import dtypes, nest
from retrograde.values.arguments import as_text
from retrograde.values.errors import DataLossError, OpError
from retrograde.values.specs import TensorSpec


def load_function(data: Mapping, variables: list, tensors: Mapping[str, Any]) -> Function:
    """Returns a function that replays the traces in `data`, which `save_function` created.

    It cannot be traced again, because it has no Python code.
    """
    name = text(data["name"])
    signatures: list[str] = []

    def no_matching_trace(*args: Any, **kwargs: Any) -> Any:
        inputs: list[Tensor] = []
        describe(args, inputs, [])
        received = [TensorSpec.from_tensor(x) for x in inputs]
        expected = "\n  ".join(signatures)
        raise ValueError(
            f"Could not find matching concrete function to call loaded from the SavedModel. "
            f"{name} got {received} and {as_text(kwargs)}. Expected one of:\n  {expected}"
        )

    python_function: Any = no_matching_trace
    python_function.__name__ = name
    python_function.__signature__ = inspect.Signature(
        [_load_parameter(p) for p in data["parameters"]]
    )
    function = LoadedFunction(python_function, name, decode(data["input signature"]))
    for form_data in data["common forms"]:
        pattern = tuple(decode(form_data["args"])), decode(form_data["kwargs"])
        function.has_named_tuples |= contains_named_tuple(pattern)
        signatures.append(f"{pattern[0]} {pattern[1] or ''}".strip())
        form = _CommonForm(pattern, form_data, variables, tensors)
        form.check()
        function.common_forms.append(form)
    for signature in data["signatures"]:
        args = tuple([decode(value) for value in signature["args"]])
        kwargs = decode(signature["kwargs"])
        function.has_named_tuples |= contains_named_tuple((args, kwargs))
        signatures.append(f"{args} {kwargs or ''}".strip())
        dummy_arguments = with_dummy_tensors(_with_variables((args, kwargs)), unallocated)
        arguments = function._canonicalize(*dummy_arguments)
        traces = function._signatures[arguments.key] = SignatureTraces()
        traces.arguments = args, kwargs
        for trace in signature["traces"]:
            traces.add(load_trace(trace, variables, tensors, arguments.variables))
    return function


class LoadedFunction(Function):
    """A function without Python code. It has traces, and common forms for unknown sizes.

    Both come from an untrusted file. Loading checks their structure. The first replay of each trace
    checks that every kernel accepts its attributes and returns the shapes in the file.
    """

    common_forms: list[_CommonForm]
    # Sizes from a corrupt file can be huge. No kernel runs on these arrays, so they need no memory.
    _create_dummy_array = staticmethod(unallocated)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.common_forms = []
        self.has_named_tuples = False
        self._verified_traces: weakref.WeakSet[Trace] = weakref.WeakSet()
        self._common_form_keys: deque[Any] = deque()  # signatures of traces from common forms

    def _replay(self, trace: Trace, arguments: Arguments, log: CallbackLog) -> Any:
        if trace not in self._verified_traces:
            with _report_corrupt_data(self._name), isolate():
                trace.verify(arguments.inputs, arguments.variables, log)
            log.rewind()
            self._verified_traces.add(trace)
        return super()._replay(trace, arguments, log)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if namespaces.foreign and namespaces.evaluator() is not None:
            return on_abstract_arrays(self._specs_of_results, args, kwargs)
        return super().__call__(*args, **kwargs)

    def _call(self, recorders: Recorders, args: tuple, kwargs: dict) -> Any:
        if recorders.tracer is None:
            return super()._call(recorders, args, kwargs)
        arguments = self._canonicalize(args, kwargs)
        traces = self._signatures.get(arguments.key)
        if traces is None or not traces.all or traces.all[0].guards:
            return self.python_function(*args, **kwargs)
        return traces.all[0].inline(arguments.inputs, arguments.variables, CallbackLog())

    def _specs_of_results(self, *args: Any, **kwargs: Any) -> Any:
        """Returns dummy tensors with the shapes of the results. Arguments may be abstract."""
        args, kwargs = specs_in((args, kwargs))
        outputs = self.get_concrete_function(*args, **kwargs).structured_outputs
        return with_dummy_tensors(outputs, unallocated)

    def _canonicalize(self, args: tuple, kwargs: dict) -> Arguments:
        if self.has_named_tuples:
            args, kwargs = with_saved_named_tuples((args, kwargs))
        arguments = super()._canonicalize(args, kwargs)
        if arguments.key not in self._signatures:
            for form in self.common_forms:
                with _report_corrupt_data(self._name):
                    trace = form.trace_for(arguments.args, arguments.kwargs)
                if trace is not None:
                    self._drop_oldest_common_form_trace()
                    traces = SignatureTraces()
                    traces.arguments = specs_in((arguments.args, arguments.kwargs))
                    traces.add(trace)
                    self._signatures[arguments.key] = traces
                    self._common_form_keys.append(arguments.key)
                    break
        return arguments

    def _drop_oldest_common_form_trace(self) -> None:
        """Drops the oldest trace that a common form created, if there are too many."""
        if len(self._common_form_keys) >= self._trace_limit:
            dropped_traces = self._signatures.pop(self._common_form_keys.popleft())
            for trace in dropped_traces.all:
                self._fast_calls.pop(tuple(trace.argument_specs()), None)

    def _trace_with_valid_sizes(
        self, args: tuple, kwargs: dict, count: int, trace_with: Callable
    ) -> SizedTrace:
        for form in self.common_forms:
            if repr(form.pattern) == repr((args, kwargs)):
                return trace_with(tuple(form.data["sizes"]))
        return super()._trace_with_valid_sizes(args, kwargs, count, trace_with)


class _CommonForm(NamedTuple):
    """One trace for all sizes of arguments that match a pattern. Its sizes are formulas."""

    pattern: tuple[tuple, dict]
    data: Mapping
    variables: list
    tensors: Mapping[str, Any]

    def check(self) -> None:
        """Raises an error if the form is corrupt. It must create a trace for its saved sizes."""
        sizes = [integer(size) for size in self.data["sizes"]]
        count = len(unknown_axes(self.pattern))
        for indices in ([index for index, _ in self.data["fixed"]], *self.data["tied"]):
            for index in indices:
                item(range(count), index)
        if len(sizes) != count or self._evaluate(sizes) is None:
            raise ValueError("a common form does not match its own sizes")

    def trace_for(self, args: tuple, kwargs: dict) -> Trace | None:
        """Returns the trace for these arguments, or `None` if they do not match the pattern."""
        sizes = sizes_in(self.pattern, (args, kwargs), self.data)
        return None if sizes is None else self._evaluate(sizes)

    def _evaluate(self, sizes: Sequence[int]) -> Trace | None:
        try:
            trace_data = evaluate_formulas(self.data["trace"], sizes)
            constants = {
                name: self.tensors[source]
                if isinstance(source, str)
                else constant_for(source, sizes)
                for name, source in self.data["constants"].items()
            }
        except NoCommonForm:
            return None
        return load_trace(trace_data, self.variables, constants, [])


@contextlib.contextmanager
def _report_corrupt_data(name: str) -> Iterator[None]:
    """Converts exceptions in a `with` block to `DataLossError`, except lack of memory."""
    try:
        yield
    except (OpError, MemoryError):
        raise
    except Exception as error:
        raise DataLossError(
            None,
            None,
            f"The function {name} cannot be called: its saved model is corrupt ({error!r}).",
        ) from None


def _load_parameter(data: list) -> inspect.Parameter:
    name, kind, encoded_default = data
    default = inspect.Parameter.empty if encoded_default is None else decode(encoded_default[0])
    return inspect.Parameter(name, inspect._ParameterKind[kind], default=default)


def _with_variables(arguments: Any) -> Any:
    """Replaces the specs of variables in `arguments` by variables of zeros."""
    variables: dict[int, Variable] = {}

    def replace(value: Any) -> Any:
        if not isinstance(value, VariableSpec):
            return value
        if value.index not in variables:
            zeros = unallocated(value.shape, dtypes.as_dtype(value.dtype).numpy_dtype)
            variables[value.index] = Variable(Tensor(zeros), trainable=value.trainable)
        return variables[value.index]

    return nest.map_leaves(replace, arguments)
