"""tf.function: traces a Python function once for each signature, and replays the trace."""

from __future__ import annotations

import functools
import inspect
import time
import warnings
import weakref
from collections.abc import Callable
from typing import Any, Literal

from retrograde.core import namespaces
from retrograde.core.lazy import LazyTensor, alias
from retrograde.core.program import Guard, Program
from retrograde.core.recorders import Recorder, Recorders, isolate, thread
from retrograde.core.tensor import Tensor
from retrograde.core.variable_cell import commit
from retrograde.devices.placement import compiles
from retrograde.devices.scopes import compiles_all, current_device, is_elsewhere
from retrograde.ops import random_state
from retrograde.ops.collectives import announce, current_group
from retrograde.program.auto_compilation import AutoTrace
from retrograde.program.concrete_function import (
    ConcreteFunction,
    dummy_array,
    specs_in,
    with_dummy_tensors,
)
from retrograde.program.interpreter import Divergence
from retrograde.program.signature import (
    Arguments,
    Parameters,
    argument_names,
    convert_arguments,
    describe,
    reaches,
    spec_of_argument,
    with_inputs,
)
from retrograde.program.signature_text import FunctionType
from retrograde.program.strict_mode import check_equal
from retrograde.program.trace_history import HistoryEntry, TraceSummary, describe_arguments
from retrograde.program.traces import ResultStructure, SignatureTraces, Trace
from retrograde.program.tracing import CallbackLog, Tracer, restore
from retrograde.program.unknown_sizes import (
    SizedTrace,
    first_trace,
    unknown_axes,
    varied_in,
    with_sizes,
)
from retrograde.values.arguments import shown
from retrograde.values.errors import UnavailableError, exhausted, is_out_of_memory
from retrograde.values.locks import fork_safe_lock
from retrograde.values.optional_jax import required_jax
from retrograde.values.settings import settings
from retrograde.values.source_location import caller_location
from retrograde.values.variable_scopes import scopes

JitCompile = bool | Literal["auto"] | None

_OBSERVER = Recorder()  # does nothing

_WARNED_COUNTS = {10 << i for i in range(30)}  # traces after which retracing is reported

_COMPARED_REPLAYS = 3  # replays of each trace that a strict function compares

_MOST_TRACES_PER_SIGNATURE = (
    16  # traces of one signature, after which guards are assumed to fail always
)

_TRACE_LIMIT = 256  # traces that a function keeps; a small one takes 6 to 16 kB

_traced: weakref.WeakSet[Function] = weakref.WeakSet()  # functions with traces


class Function:
    """A Python function that is traced once for each signature and replayed from then on."""

    _zeros: Callable = staticmethod(dummy_array)  # creates the arrays of dummy tensors

    def __init__(
        self,
        python_function: Callable,
        name: str | None = None,
        input_signature: Any = None,
        jit_compile: JitCompile = None,
        strict: bool = False,
        trace_limit: int = _TRACE_LIMIT,
    ) -> None:
        functools.update_wrapper(self, python_function)
        self.python_function = python_function
        self._name: str = name or str(getattr(python_function, "__name__", "function"))
        self._input_signature = None if input_signature is None else tuple(input_signature)
        self._is_auto = jit_compile == "auto"
        self._jit_compile = bool(jit_compile) and not self._is_auto
        self._strict = strict
        self._trace_limit = trace_limit
        self._trace_count = 0  # including those that were dropped
        self._parameters = Parameters(python_function)
        self._signatures: dict[Any, SignatureTraces] = {}
        self._bound: dict[int, Function] = {}  # by the ids of objects that are alive
        self._made_variables = False
        self._unknown: list[tuple[tuple, dict]] = []  # signatures with unknown dimensions
        self._history: list[HistoryEntry] = []
        self._expected: int | None = None
        self._reached: dict[int, bool] = {}
        self._fast_calls: dict[tuple, Callable] = {}  # by the specs of their arguments
        self._latest: Callable = _no_fast_call
        self._lock = fork_safe_lock()
        self._concrete: dict[Any, ConcreteFunction] = {}  # by the keys of their arguments

    def __reduce__(self) -> tuple:
        """Copies and pickles the function without its traces."""
        return Function, (self.python_function, self._name, *self._options())

    def _options(self) -> tuple:
        jit_compile = "auto" if self._is_auto else self._jit_compile
        return self._input_signature, jit_compile, self._strict, self._trace_limit

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        key = id(instance)
        found = self._bound.get(key)
        if found is None:
            found = self._bound[key] = self._for(instance)
            weakref.finalize(instance, self._bound.pop, key, None)
        return found

    def _for(self, instance: Any) -> Function:
        method: Any = functools.partial(_call_method, weakref.ref(instance), self.python_function)
        bound = self.python_function.__get__(instance)
        functools.update_wrapper(method, bound)
        method.__signature__ = inspect.signature(bound)
        del method.__wrapped__  # would keep the object alive
        return Function(method, self._name, *self._options())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recorders = thread.recorders
        foreign = namespaces.foreign and (namespaces.batches_are_allowed() or is_elsewhere())
        if settings["has_fast_calls"] and not (recorders or kwargs or foreign):
            try:
                outcome = self._latest(*args)
                if outcome is not NotImplemented:
                    return outcome
                fast_call = self._fast_calls.get(tuple(map(spec_of_argument, args)))
                if fast_call is not None:
                    self._latest = fast_call
                    return fast_call(*args)
            except Exception:
                pass  # the slow path raises a better error
        return self._call(recorders, args, kwargs)

    def _call(self, recorders: Recorders, args: tuple, kwargs: dict) -> Any:
        if self._jit_compile:
            required_jax()
        if recorders.tracer is not None or settings["run_functions_eagerly"]:
            return self.python_function(*args, **kwargs)
        if namespaces.foreign and namespaces.batches_are_allowed():
            return self.python_function(*args, **kwargs)
        given = self._canonicalize(args, kwargs)
        traces = self._signatures.get(given.key)
        if traces is None:
            traces = self._signatures.setdefault(given.key, SignatureTraces())
        if traces.eager:
            return self.python_function(*given.args, **given.kwargs)
        log = CallbackLog(self._jit_compile or compiles_all())
        trace = traces.first(given.variables)
        while trace is not None:
            if self._strict and trace.replays < _COMPARED_REPLAYS and not recorders:
                outcome = self._compared(trace, given, log)
            else:
                outcome = self._replay(trace, given, log)
            if type(outcome) is not Divergence:
                traces.latest = trace
                self._add_fast_call(trace, given)
                return outcome
            trace = traces.other(trace, outcome, given.variables)
            log.rewind()
        return self._record(traces, given, log)

    def _add_fast_call(self, trace: Trace, given: Arguments) -> None:
        """Adds a fast call for arguments like these."""
        if trace.has_fast_call or given.kwargs or self._input_signature is not None:
            return
        if not trace.is_settled:
            return
        if any([type(x) not in (Tensor, LazyTensor) for x in given.args]):
            return
        if self._strict and trace.replays < _COMPARED_REPLAYS:
            return
        trace.has_fast_call = True
        fast_call = trace.fast_call()
        if fast_call is not None:
            self._fast_calls[tuple(trace.argument_specs())] = fast_call

    def _replay(self, trace: Trace, given: Arguments, log: CallbackLog) -> Any:
        if thread.recorders:
            return _call_or_undo(trace, given, log)
        try:
            return trace.run(given.inputs, given.variables, log)
        except UnavailableError:  # another worker is lost, so nothing can be computed again
            raise
        except Exception as error:
            log.rewind()
            with isolate(_OBSERVER):  # raises the error of the operation that failed
                _call_or_undo(trace, given, log)
            if is_out_of_memory(error):
                raise exhausted(error, self._name) from None
            raise

    def _compared(self, trace: Trace, given: Arguments, log: CallbackLog) -> Any:
        """Returns the outcome of a replay, which must equal the result of the Python function."""
        if trace.has_effects():
            return self._replay(trace, given, log)
        variables = trace.variables(given.variables)
        before, state = [v._current() for v in variables], random_state.state()
        outcome = self._replay(trace, given, log)
        if type(outcome) is Divergence:
            return outcome
        replayed, drawn = [v._current() for v in variables], random_state.state()
        commit(variables, before)
        random_state.restore(state)
        with isolate():
            expected = self.python_function(*given.args, **given.kwargs)
        try:
            eager = [v._current() for v in variables]
            names = [f"variable {v.name!r}" for v in variables]
            check_equal(expected, outcome, eager, replayed, names, self._name)
        except BaseException:
            commit(variables, before)
            random_state.restore(state)
            raise
        commit(variables, replayed)
        random_state.restore(drawn)
        return outcome

    def _canonicalize(self, args: tuple, kwargs: dict) -> Arguments:
        """Orders the arguments, and finds their signature, tensors and variables."""
        if self._input_signature is None:
            args, kwargs = self._parameters.ordered(args, kwargs)
        else:
            args = convert_arguments(args, kwargs, self._input_signature, self._parameters)
            kwargs = {}
        inputs: list[Tensor] = []
        variables: list[Any] = []
        key = tuple([describe(value, inputs, variables) for value in args])
        if kwargs:
            named = [(name, describe(kwargs[name], inputs, variables)) for name in sorted(kwargs)]
            key = (key, tuple(named))
        if variables and any(self._reaches(variable) for variable in variables):
            key = (key, tuple([variable._id for variable in variables]))
        if namespaces.foreign and current_device() is not None:
            key = (key, current_device())
        if scopes.replica is not None:
            key = (key, scopes.replica)
        return Arguments(args, kwargs, key, inputs, variables)

    def _reaches(self, variable: Any) -> bool:
        """Returns whether the function can access `variable` other than by its arguments."""
        if variable._id not in self._reached:
            self._reached[variable._id] = reaches(self.python_function, variable)
        return self._reached[variable._id]

    def _record(
        self, traces: SignatureTraces, given: Arguments, log: CallbackLog, keep: bool = True
    ) -> Any:
        """Runs the Python function and traces it.

        Without `keep`, variables get back the values that they had before.
        """
        is_observed = bool(thread.recorders)
        begun, where = time.perf_counter(), caller_location()
        args, kwargs, _, inputs, variables = given
        arguments = describe_arguments(self._parameters.names, args, kwargs)
        handles = list(map(alias, inputs))
        rest = iter(handles)
        traced_args = tuple([with_inputs(value, rest) for value in args])
        traced_kwargs = {name: with_inputs(kwargs[name], rest) for name in sorted(kwargs)}
        with self._lock:
            tracer = Tracer(handles, log, variables)
            tracer.argument_names = lambda: argument_names(self._parameters.signature, args, kwargs)
            try:
                with isolate(tracer):
                    returned = self.python_function(*traced_args, **traced_kwargs)
                    results = ResultStructure(returned, tracer)
            except BaseException as error:
                tracer.undo()
                kind = getattr(error, "in_function", None)
                if kind is not None:
                    raise kind(str(error)) from error
                raise
            trace: Any = None  # if the call creates variables
            if not tracer.created:
                compiled = self._jit_compile or compiles(tracer.steps, tracer.specs)
                if self._is_auto and not compiled:
                    trace = AutoTrace(tracer, results)
                else:
                    trace = Trace(tracer, results, compiled)
                entry = HistoryEntry(trace, where, arguments, time.perf_counter() - begun)
                self._check_expected(entry, tracer)
                if not traces.all:
                    traces.arguments = specs_in((traced_args, traced_kwargs))
            created = tracer.created
            runs_again = is_observed or (keep and self._runs_compiled(tracer, trace))
            if not keep or (runs_again and created):
                tracer.undo()
            outcome = results.rebuild(list(map(alias, results.tensors)))
            results.free_traced_tensors()
            read, before = tracer.first_tensors(), tracer.before
            tracer.close()
            if not created:  # other threads find the trace from here on
                traces.add(trace)
                _traced.add(self)
                self._history.append(entry)
                self._trace_count += 1
                self._drop_least_recently_used(traces)
                self._give_up_tracing(traces, tracer)
                # A host callback may read any variable among the arguments of a replay.
                traces.eager = traces.eager or tracer.exposes_arguments()
            self._check_created(created)
        if not runs_again:
            if log.is_undecided:  # other replicas wait for the program of this one
                announce(log)
            return outcome
        log.rewind()
        if created:  # trace once more, without creating variables
            return self._record(traces, given, log, keep)
        if not is_observed:
            restore(before)
            return self._replay(trace, given, log)
        try:
            return trace.call(inputs, variables, log, read)
        except BaseException:
            restore(before)
            raise

    def _runs_compiled(self, tracer: Tracer, trace: Trace | None) -> bool:
        """Returns whether a call is compiled and runs again after tracing.

        With several replicas it does: a run that continues from a checkpoint traces another step
        than an undisturbed run, and both have to get the same bits.
        """
        if tracer.replica_rounds is None and current_group().size == 1:
            return False
        if trace is None:
            return self._jit_compile or compiles_all()
        return trace.executable.compiles and not trace.guards  # XLA rounds guarded values, too

    def _check_created(self, variables: list[weakref.ref]) -> None:
        """Raises an error if a later call creates variables, or if created ones are deleted."""
        if not variables:
            return
        gone = any(reference() is None for reference in variables)
        if gone or self._made_variables:
            raise ValueError(
                "tf.function only supports singleton tf.Variables created on the first call. Make "
                "sure the tf.Variable is only created once or created outside tf.function."
            )
        self._made_variables = True

    def _drop_least_recently_used(self, newest: SignatureTraces) -> None:
        """Drops whole signatures while there are more traces than the limit allows.

        Calls do not keep track of time. Signatures that were replayed since the last trace count
        as more recent than the others.
        """
        # The sort is stable, so equal signatures keep their order.
        kept = sorted(self._signatures.items(), key=lambda item: item[1].was_used(newest))
        while len(kept) > 1 and sum(len(traces.all) for _, traces in kept) > self._trace_limit:
            _, dropped = kept.pop(0)
            self._history = [e for e in self._history if e.trace not in dropped.all]
            for trace in dropped.all:
                self._fast_calls.pop(tuple(trace.argument_specs()), None)
        self._signatures = dict(kept)

    def _drop_traces(self) -> None:
        with self._lock:
            self._signatures, self._history, self._concrete = {}, [], {}
            self._fast_calls, self._latest = {}, _no_fast_call

    def _give_up_tracing(self, traces: SignatureTraces, tracer: Tracer) -> None:
        if len(traces.all) < _MOST_TRACES_PER_SIGNATURE:
            return
        traces.eager = True
        guard = next(e for e in reversed(tracer.steps) if type(e) is Guard)
        warnings.warn(
            f"{self._name}: {len(traces.all)} traces, because the value converted to Python at "
            f"{guard.where} (by {guard.how}) changes on every call. It will now run eagerly for "
            "this signature. Keep the value a tensor to replay the function.",
            stacklevel=4,
        )

    def _check_expected(self, entry: HistoryEntry, tracer: Tracer) -> None:
        """Raises if there are more traces than expected, and warns about frequent retracing."""
        count = self._trace_count + 1
        if self._expected is not None and count > self._expected:
            tracer.undo()
            changes = "; ".join(entry.changed(self._history)) or "the first call created variables"
            raise RuntimeError(
                f"{self._name}: expected at most {self._expected} traces, but the call at "
                f"{entry.where} requires another one. Changed: {changes}."
            )
        replays = sum(e.trace.replays for e in self._history)
        if count in _WARNED_COUNTS and replays < count:
            import logging  # takes longer to import than this module

            logging.getLogger("retrograde").warning(
                "%s was traced %d times and replayed %d times. The last call was retraced because "
                "of: %s. Pass tensors instead of Python numbers, and keep shapes fixed. "
                "recordings() has the details.",
                self._name,
                count,
                replays,
                "; ".join(entry.changed(self._history)),
            )

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """Returns the concrete function for these arguments, which may be `TensorSpec`s.

        If there is no trace for them yet, it is traced with zeros. Variables keep their values.
        """
        if self._input_signature is None:
            full, full_kwargs = self._parameters.ordered(args, kwargs)
        else:
            args = self._parameters.by_position(args, kwargs) or self._input_signature
            full, full_kwargs = args, {}
            kwargs = {}
        variables: list[Any] = []
        key = describe(specs_in((full, full_kwargs)), [], variables)
        if variables:
            return self._new_concrete_function(args, kwargs, full, full_kwargs)
        if key not in self._concrete:
            self._concrete[key] = self._new_concrete_function(args, kwargs, full, full_kwargs)
        return self._concrete[key]

    def _new_concrete_function(
        self, args: tuple, kwargs: dict, full: tuple, full_kwargs: dict
    ) -> ConcreteFunction:
        count = len(unknown_axes((args, kwargs)))
        if not count:
            return ConcreteFunction(self, full, full_kwargs, self._recorded(args, kwargs))

        def record(sizes: tuple) -> SizedTrace:
            return SizedTrace(sizes, self._recorded(*with_sizes((args, kwargs), sizes)))

        sizes, trace = self._any_sizes(full, full_kwargs, count, record)
        self._unknown.append((full, full_kwargs))

        def others() -> list[Trace]:
            groups = [[j for j in range(count) if sizes[j] == size] for size in sizes]
            varied = [
                varied_in([i], sizes, record, by=sizes[i] + 1)
                or varied_in(groups[i], sizes, record, by=sizes[i] + 1)  # they must be equal
                for i in range(count)
            ]
            return [one.trace for one in varied if one is not None]

        return ConcreteFunction(self, full, full_kwargs, trace, others)

    def _any_sizes(self, args: tuple, kwargs: dict, count: int, record: Callable) -> SizedTrace:  # noqa: ARG002
        """Returns the trace that `record` creates for valid sizes of unknown dimensions."""
        return first_trace(self.python_function, count, record)

    def _recorded(self, args: tuple, kwargs: dict) -> Trace:
        """Returns the first trace for arguments like these. Variables keep their values."""
        given = self._canonicalize(*with_dummy_tensors((args, kwargs), self._zeros))
        traces = self._signatures.setdefault(given.key, SignatureTraces())
        if not traces.all:
            log, state = CallbackLog(), random_state.state()
            while not traces.all:  # if the first call creates variables, it is traced again
                with isolate():
                    self._record(traces, given, log, keep=False)
            random_state.restore(state)
        return traces.all[0]

    # Inspection

    @property
    def name(self) -> str:
        """The name of the Python function."""
        return self._name

    @property
    def input_signature(self) -> tuple | None:
        """The specs that the arguments must be compatible with, if there are any."""
        return self._input_signature

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str:  # noqa: ARG002
        """Returns the arguments and results of each signature that was traced, as text.

        >>> f = tf.function(lambda x: x > 0.0)
        >>> _ = f(tf.ones([2]))
        >>> print(f.pretty_printed_concrete_signatures())
        Input Parameters:
          x (POSITIONAL_OR_KEYWORD): TensorSpec(shape=(2,), dtype=tf.float32, name=None)
        Output Type:
          TensorSpec(shape=(2,), dtype=tf.bool, name=None)
        Captures:
          None
        """
        recorded = [traces for traces in self._signatures.values() if traces.all]
        signature = self._parameters.signature
        return "\n\n".join(
            [
                repr(
                    FunctionType._of(
                        signature, *p.arguments, p.all[0].described_results(), p.all[0]
                    )
                )
                for p in recorded
            ]
        )

    def recordings(self) -> list[TraceSummary]:
        """Returns a summary of each recording (trace), in order, with the reason for it.

        >>> f = tf.function(lambda x, lr: x * lr)
        >>> for lr in (0.1, 0.05, 0.1):
        ...     _ = f(tf.ones([2]), lr)
        >>> [(r.changed, r.replays) for r in f.recordings()]
        [((), 1), (('lr: Python float 0.1 → 0.05',), 0)]
        """
        return [e.summary(self._history[:i]) for i, e in enumerate(self._history)]

    def expect(self, recordings: int) -> Function:
        """Raises an error if the function is traced more often than this. Returns the function."""
        self._expected = recordings
        return self

    def source(self, recording: int = -1) -> str:
        """Returns the source of the NumPy replay of a trace. The default is the last trace.

        >>> f = tf.function(lambda x: tf.sin(x) + 1.0)
        >>> _ = f(tf.constant(1.0))
        >>> print(f.source())
        def replay(x0, log):
            a1 = np.sin(x0)
            a3 = np.add(a1, c2)
            return (a3,), ()
        <BLANKLINE>
        """
        return self._traced(recording).executable.source()

    def program(self, recording: int = -1) -> Program:
        """Returns the program of a trace: its steps, specs and constants. The default is the last.

        >>> f = tf.function(lambda x: tf.sin(x) + 1.0)
        >>> _ = f(tf.constant(1.0))
        >>> print(f.program())
        program(%0: float32[]):
            %2 = constant float32[]
            %1: float32[] = sin(%0)
            %3: float32[] = add(%1, %2)
            return %3
        """
        return self._traced(recording).executable.program

    def _traced(self, recording: int) -> Trace:
        if not self._history:
            raise ValueError(f"{self._name} has no traces yet. Call it first.")
        return self._history[recording].trace

    def experimental_get_compiler_ir(self, *args: Any, **kwargs: Any) -> Callable:
        """Returns a function that returns the compiled program for these arguments as text.

        Variables keep their values.
        """
        trace = self.get_concrete_function(*args, **kwargs)._trace
        return lambda stage="hlo", **_: trace.executable.compiled().text(stage)

    def experimental_get_tracing_count(self) -> int:
        """Returns the number of signatures that were traced."""
        return sum(bool(traces.all) for traces in self._signatures.values())

    def __repr__(self) -> str:
        return f"<retrograde.function {self._name}>"


def drop_all_traces() -> None:
    """Drops the traces of all functions, because they depend on the number of workers."""
    for each in list(_traced):
        each._drop_traces()


def _no_fast_call(*_: Any) -> Any:
    return NotImplemented


def _call_or_undo(trace: Trace, given: Arguments, log: CallbackLog) -> Any:
    try:
        return trace.call(given.inputs, given.variables, log)
    except BaseException:
        log.undo()
        raise


def _call_method(instance: weakref.ref, function: Callable, *args: Any, **kwargs: Any) -> Any:
    return function(instance(), *args, **kwargs)


def function(
    func: Callable | None = None,
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: JitCompile = None,
    reduce_retracing: bool = False,
    experimental_implements: Any = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: Any = None,
    experimental_relax_shapes: Any = None,
    experimental_compile: bool | None = None,
    experimental_follow_type_hints: Any = None,
    *,
    strict: bool = False,
    trace_limit: int = _TRACE_LIMIT,
) -> Any:
    """Creates a function that is traced once for each signature and replayed from then on.

    The first call with new shapes, dtypes or Python values runs `func` and traces every operation.
    Later calls replay these operations on their own arguments, without the Python code around them.
    When Python uses the value of a tensor, as in `if x > 0`, the trace keeps a guard: a call with
    another value uses another trace.

    With `jit_compile=True` XLA compiles the trace, which requires JAX. With `jit_compile="auto"`
    the trace is replayed while XLA compiles it in the background, and after a few timed calls of
    each kind, the faster one is kept; `recordings()` has the times. Arguments are checked
    against `input_signature`, if there is one. With `strict=True` the first replays are compared
    with `func` itself, and a difference is an error. At most `trace_limit` traces are
    kept. Beyond that the least recently used ones are dropped. The other parameters exist for
    compatibility with TensorFlow and have no effect.

    >>> @tf.function
    ... def f(x):
    ...     return x * x if x > 0.0 else -x
    >>> f(tf.constant(3.0)).numpy(), f(tf.constant(-2.0)).numpy()
    (np.float32(9.0), np.float32(2.0))
    """
    compiled = jit_compile if experimental_compile is None else experimental_compile
    if not isinstance(trace_limit, int) or trace_limit < 1:
        raise ValueError(f"trace_limit must be a positive integer. Received: {shown(trace_limit)}.")

    def decorate(python_function: Callable) -> Function:
        return Function(python_function, None, input_signature, compiled, strict, trace_limit)

    return decorate if func is None else decorate(func)
