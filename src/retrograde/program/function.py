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

_IDLE_RECORDER = Recorder()  # does nothing

_WARNED_COUNTS = {10 << i for i in range(30)}  # numbers of traces at which retracing is reported

_COMPARED_REPLAYS = 3  # A strict function compares this many replays of each trace.

# After this many traces of one signature, its guards are assumed to fail on every call.
_MAX_TRACES_PER_SIGNATURE = 16

_TRACE_LIMIT = 256  # A function keeps this many traces. A small trace takes 6 to 16 kB.

_functions_with_traces: weakref.WeakSet[Function] = weakref.WeakSet()


class Function:
    """A Python function that is traced once for each signature and replayed from then on."""

    _create_dummy_array: Callable = staticmethod(dummy_array)

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
        self._trace_count = 0  # includes dropped traces
        self._parameters = Parameters(python_function)
        self._signatures: dict[Any, SignatureTraces] = {}
        self._bound_functions: dict[int, Function] = {}  # by the ids of objects that are alive
        self._has_created_variables = False
        self._unknown_size_arguments: list[tuple[tuple, dict]] = []  # specs with `None` dimensions
        self._history: list[HistoryEntry] = []
        self._expected_traces: int | None = None
        self._reachable_variables: dict[int, bool] = {}  # whether `python_function` can access them
        self._fast_calls: dict[tuple, Callable] = {}  # by the specs of their arguments
        self._latest_fast_call: Callable = _no_fast_call
        self._lock = fork_safe_lock()
        self._concrete_functions: dict[Any, ConcreteFunction] = {}  # by the keys of their arguments

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
        bound_function = self._bound_functions.get(key)
        if bound_function is None:
            bound_function = self._bound_functions[key] = self._bind_to(instance)
            weakref.finalize(instance, self._bound_functions.pop, key, None)
        return bound_function

    def _bind_to(self, instance: Any) -> Function:
        """Returns a function for the method of `instance`, without keeping the object alive."""
        method: Any = functools.partial(_call_method, weakref.ref(instance), self.python_function)
        bound_method = self.python_function.__get__(instance)
        functools.update_wrapper(method, bound_method)
        method.__signature__ = inspect.signature(bound_method)
        del method.__wrapped__  # It would keep the object alive.
        return Function(method, self._name, *self._options())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recorders = thread.recorders
        needs_slow_path = namespaces.foreign and (
            namespaces.batches_are_allowed() or is_elsewhere()
        )
        if settings["has_fast_calls"] and not (recorders or kwargs or needs_slow_path):
            try:
                outcome = self._latest_fast_call(*args)
                if outcome is not NotImplemented:
                    return outcome
                fast_call = self._fast_calls.get(tuple(map(spec_of_argument, args)))
                if fast_call is not None:
                    self._latest_fast_call = fast_call
                    return fast_call(*args)
            except Exception:
                pass  # The slow path raises a better error.
        return self._call(recorders, args, kwargs)

    def _call(self, recorders: Recorders, args: tuple, kwargs: dict) -> Any:
        if self._jit_compile:
            required_jax()
        if recorders.tracer is not None or settings["run_functions_eagerly"]:
            return self.python_function(*args, **kwargs)
        if namespaces.foreign and namespaces.batches_are_allowed():
            return self.python_function(*args, **kwargs)
        arguments = self._canonicalize(args, kwargs)
        traces = self._signatures.get(arguments.key)
        if traces is None:
            traces = self._signatures.setdefault(arguments.key, SignatureTraces())
        if traces.eager:
            return self.python_function(*arguments.args, **arguments.kwargs)
        log = CallbackLog(self._jit_compile or compiles_all())
        trace = traces.first(arguments.variables)
        while trace is not None:
            if self._strict and trace.replays < _COMPARED_REPLAYS and not recorders:
                outcome = self._replay_and_compare(trace, arguments, log)
            else:
                outcome = self._replay(trace, arguments, log)
            if type(outcome) is not Divergence:
                traces.latest = trace
                self._add_fast_call(trace, arguments)
                return outcome
            trace = traces.other(trace, outcome, arguments.variables)
            log.rewind()
        return self._run_and_trace(traces, arguments, log)

    def _add_fast_call(self, trace: Trace, arguments: Arguments) -> None:
        """Generates a fast call for arguments with these specs, if the trace allows one."""
        if trace.has_fast_call or arguments.kwargs or self._input_signature is not None:
            return
        if not trace.is_settled:
            return
        if any([type(x) not in (Tensor, LazyTensor) for x in arguments.args]):
            return
        if self._strict and trace.replays < _COMPARED_REPLAYS:
            return
        trace.has_fast_call = True
        fast_call = trace.fast_call()
        if fast_call is not None:
            self._fast_calls[tuple(trace.argument_specs())] = fast_call

    def _replay(self, trace: Trace, arguments: Arguments, log: CallbackLog) -> Any:
        if thread.recorders:
            return _call_or_undo(trace, arguments, log)
        try:
            return trace.run(arguments.inputs, arguments.variables, log)
        except UnavailableError:  # Another worker is lost, so the call cannot be repeated.
            raise
        except Exception as error:
            log.rewind()
            # With a recorder, operations run one by one, so the one that failed raises its error.
            with isolate(_IDLE_RECORDER):
                _call_or_undo(trace, arguments, log)
            if is_out_of_memory(error):
                raise exhausted(error, self._name) from None
            raise

    def _replay_and_compare(self, trace: Trace, arguments: Arguments, log: CallbackLog) -> Any:
        """Replays `trace`, and raises an error if the Python function returns other values."""
        if trace.has_side_effects():
            return self._replay(trace, arguments, log)
        variables = trace.variables(arguments.variables)
        old_values, old_state = [v._current() for v in variables], random_state.state()
        outcome = self._replay(trace, arguments, log)
        if type(outcome) is Divergence:
            return outcome
        replayed_values, replayed_state = [v._current() for v in variables], random_state.state()
        commit(variables, old_values)
        random_state.restore(old_state)
        with isolate():
            expected = self.python_function(*arguments.args, **arguments.kwargs)
        try:
            eager_values = [v._current() for v in variables]
            names = [f"variable {v.name!r}" for v in variables]
            check_equal(expected, outcome, eager_values, replayed_values, names, self._name)
        except BaseException:
            commit(variables, old_values)
            random_state.restore(old_state)
            raise
        commit(variables, replayed_values)
        random_state.restore(replayed_state)
        return outcome

    def _canonicalize(self, args: tuple, kwargs: dict) -> Arguments:
        """Orders the arguments, and collects their signature, tensors and variables."""
        if self._input_signature is None:
            args, kwargs = self._parameters.ordered(args, kwargs)
        else:
            args = convert_arguments(args, kwargs, self._input_signature, self._parameters)
            kwargs = {}
        inputs: list[Tensor] = []
        variables: list[Any] = []
        key = tuple([describe(value, inputs, variables) for value in args])
        if kwargs:
            keyword_keys = [
                (name, describe(kwargs[name], inputs, variables)) for name in sorted(kwargs)
            ]
            key = (key, tuple(keyword_keys))
        if variables and any(self._reaches(variable) for variable in variables):
            key = (key, tuple([variable._id for variable in variables]))
        if namespaces.foreign and current_device() is not None:
            key = (key, current_device())
        if scopes.replica is not None:
            key = (key, scopes.replica)
        return Arguments(args, kwargs, key, inputs, variables)

    def _reaches(self, variable: Any) -> bool:
        """Returns whether the function can access `variable` other than by its arguments."""
        if variable._id not in self._reachable_variables:
            self._reachable_variables[variable._id] = reaches(self.python_function, variable)
        return self._reachable_variables[variable._id]

    def _run_and_trace(
        self,
        traces: SignatureTraces,
        arguments: Arguments,
        log: CallbackLog,
        keeps_writes: bool = True,
    ) -> Any:
        """Runs the Python function and traces it.

        Unless it `keeps_writes`, variables get their old values back.
        """
        is_observed = bool(thread.recorders)
        start_time, call_location = time.perf_counter(), caller_location()
        args, kwargs, _, inputs, variables = arguments
        descriptions = describe_arguments(self._parameters.names, args, kwargs)
        handles = list(map(alias, inputs))
        remaining_handles = iter(handles)
        traced_args = tuple([with_inputs(value, remaining_handles) for value in args])
        traced_kwargs = {
            name: with_inputs(kwargs[name], remaining_handles) for name in sorted(kwargs)
        }
        with self._lock:
            tracer = Tracer(handles, log, variables)
            tracer.argument_names = lambda: argument_names(self._parameters.signature, args, kwargs)
            try:
                with isolate(tracer):
                    returned = self.python_function(*traced_args, **traced_kwargs)
                    results = ResultStructure(returned, tracer)
            except BaseException as error:
                tracer.undo()
                error_class = getattr(error, "in_function", None)
                if error_class is not None:
                    raise error_class(str(error)) from error
                raise
            trace: Any = None  # A call that creates variables has no trace.
            if not tracer.created:
                compiled = self._jit_compile or compiles(tracer.steps, tracer.specs)
                if self._is_auto and not compiled:
                    trace = AutoTrace(tracer, results)
                else:
                    trace = Trace(tracer, results, compiled)
                seconds = time.perf_counter() - start_time
                entry = HistoryEntry(trace, call_location, descriptions, seconds)
                self._check_trace_count(entry, tracer)
                if not traces.all:
                    traces.arguments = specs_in((traced_args, traced_kwargs))
            created_variables = tracer.created
            runs_again = is_observed or (
                keeps_writes and self._runs_compiled_after_tracing(tracer, trace)
            )
            if not keeps_writes or (runs_again and created_variables):
                tracer.undo()
            outcome = results.rebuild(list(map(alias, results.tensors)))
            results.free_traced_tensors()
            read_tensors, old_values = tracer.first_tensors(), tracer.before
            tracer.close()
            if not created_variables:
                traces.add(trace)  # Other threads can use the trace from now on.
                _functions_with_traces.add(self)
                self._history.append(entry)
                self._trace_count += 1
                self._drop_least_recently_used(traces)
                self._stop_tracing_if_guards_fail(traces, tracer)
                # A host callback may read any variable among the arguments of a replay.
                traces.eager = traces.eager or tracer.exposes_arguments()
            self._check_created_variables(created_variables)
        if not runs_again:
            if log.is_undecided:  # Other replicas wait for the program of this replica.
                announce(log)
            return outcome
        log.rewind()
        if created_variables:  # The second call creates no variables, so it is traced.
            return self._run_and_trace(traces, arguments, log, keeps_writes)
        if not is_observed:
            restore(old_values)
            return self._replay(trace, arguments, log)
        try:
            return trace.call(inputs, variables, log, read_tensors)
        except BaseException:
            restore(old_values)
            raise

    def _runs_compiled_after_tracing(self, tracer: Tracer, trace: Trace | None) -> bool:
        """Returns whether the traced call runs again, compiled.

        It does if there are several replicas. Training that resumes from a checkpoint traces
        another step than uninterrupted training, and both must compute the same bits.
        """
        if tracer.replica_rounds is None and current_group().size == 1:
            return False
        if trace is None:
            return self._jit_compile or compiles_all()
        # XLA rounds guarded values differently, so the guards of the trace might fail.
        return trace.executable.compiles and not trace.guards

    def _check_created_variables(self, variables: list[weakref.ref]) -> None:
        """Raises an error if a second call creates variables, or if a new variable is deleted."""
        if not variables:
            return
        is_deleted = any(reference() is None for reference in variables)
        if is_deleted or self._has_created_variables:
            raise ValueError(
                "tf.function only supports singleton tf.Variables created on the first call. Make "
                "sure the tf.Variable is only created once or created outside tf.function."
            )
        self._has_created_variables = True

    def _drop_least_recently_used(self, newest: SignatureTraces) -> None:
        """Drops all traces of a signature, repeatedly, until `trace_limit` is satisfied.

        Calls store no times, because that would slow them down. Signatures that were replayed since
        the previous trace count as more recently used than the others.
        """
        # The sort is stable, so signatures with equal keys keep their order.
        signatures = sorted(self._signatures.items(), key=lambda item: item[1].was_used(newest))
        while (
            len(signatures) > 1
            and sum(len(traces.all) for _, traces in signatures) > self._trace_limit
        ):
            _, dropped_traces = signatures.pop(0)
            self._history = [e for e in self._history if e.trace not in dropped_traces.all]
            for trace in dropped_traces.all:
                self._fast_calls.pop(tuple(trace.argument_specs()), None)
        self._signatures = dict(signatures)

    def _drop_traces(self) -> None:
        with self._lock:
            self._signatures, self._history, self._concrete_functions = {}, [], {}
            self._fast_calls, self._latest_fast_call = {}, _no_fast_call

    def _stop_tracing_if_guards_fail(self, traces: SignatureTraces, tracer: Tracer) -> None:
        """Runs a signature eagerly from now on if it has too many traces."""
        if len(traces.all) < _MAX_TRACES_PER_SIGNATURE:
            return
        traces.eager = True
        guard = next(step for step in reversed(tracer.steps) if type(step) is Guard)
        warnings.warn(
            f"{self._name}: {len(traces.all)} traces, because the value converted to Python at "
            f"{guard.where} (by {guard.how}) changes on every call. It will now run eagerly for "
            "this signature. Keep the value a tensor to replay the function.",
            stacklevel=4,
        )

    def _check_trace_count(self, entry: HistoryEntry, tracer: Tracer) -> None:
        """Raises if there are more traces than expected, and warns about frequent retracing."""
        count = self._trace_count + 1
        if self._expected_traces is not None and count > self._expected_traces:
            tracer.undo()
            changes = "; ".join(entry.changed(self._history)) or "the first call created variables"
            raise RuntimeError(
                f"{self._name}: expected at most {self._expected_traces} traces, but the call at "
                f"{entry.where} requires another one. Changed: {changes}."
            )
        replays = sum(earlier.trace.replays for earlier in self._history)
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

        If there is no trace for them yet, the function is traced with zeros. Variables keep their
        values.
        """
        if self._input_signature is None:
            all_args, all_kwargs = self._parameters.ordered(args, kwargs)
        else:
            args = self._parameters.by_position(args, kwargs) or self._input_signature
            all_args, all_kwargs = args, {}
            kwargs = {}
        variables: list[Any] = []
        key = describe(specs_in((all_args, all_kwargs)), [], variables)
        if variables:
            return self._new_concrete_function(args, kwargs, all_args, all_kwargs)
        if key not in self._concrete_functions:
            self._concrete_functions[key] = self._new_concrete_function(
                args, kwargs, all_args, all_kwargs
            )
        return self._concrete_functions[key]

    def _new_concrete_function(
        self, args: tuple, kwargs: dict, all_args: tuple, all_kwargs: dict
    ) -> ConcreteFunction:
        """Traces the function for `args` and `kwargs`. The others have default values as well."""
        count = len(unknown_axes((args, kwargs)))
        if not count:
            return ConcreteFunction(self, all_args, all_kwargs, self._trace_for(args, kwargs))

        def trace_with(sizes: tuple) -> SizedTrace:
            return SizedTrace(sizes, self._trace_for(*with_sizes((args, kwargs), sizes)))

        sizes, trace = self._trace_with_valid_sizes(all_args, all_kwargs, count, trace_with)
        self._unknown_size_arguments.append((all_args, all_kwargs))

        def traces_with_other_sizes() -> list[Trace]:
            # Sizes that are equal in the first trace may have to be equal in every trace.
            equal_sizes = [[j for j in range(count) if sizes[j] == size] for size in sizes]
            sized_traces = [
                varied_in([i], sizes, trace_with, by=sizes[i] + 1)
                or varied_in(equal_sizes[i], sizes, trace_with, by=sizes[i] + 1)
                for i in range(count)
            ]
            return [sized.trace for sized in sized_traces if sized is not None]

        return ConcreteFunction(self, all_args, all_kwargs, trace, traces_with_other_sizes)

    def _trace_with_valid_sizes(
        self,
        args: tuple,  # noqa: ARG002
        kwargs: dict,  # noqa: ARG002
        count: int,
        trace_with: Callable,
    ) -> SizedTrace:
        """Returns the trace that `trace_with` creates for valid sizes of unknown dimensions."""
        return first_trace(self.python_function, count, trace_with)

    def _trace_for(self, args: tuple, kwargs: dict) -> Trace:
        """Returns the first trace for arguments like these. Variables keep their values."""
        arguments = self._canonicalize(
            *with_dummy_tensors((args, kwargs), self._create_dummy_array)
        )
        traces = self._signatures.setdefault(arguments.key, SignatureTraces())
        if not traces.all:
            log, state = CallbackLog(), random_state.state()
            # A call that creates variables adds no trace. The second call does.
            while not traces.all:
                with isolate():
                    self._run_and_trace(traces, arguments, log, keeps_writes=False)
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
        signature, texts = self._parameters.signature, []
        for traces in self._signatures.values():
            if traces.all:
                trace = traces.all[0]
                results = trace.described_results()
                texts.append(repr(FunctionType._of(signature, *traces.arguments, results, trace)))
        return "\n\n".join(texts)

    def recordings(self) -> list[TraceSummary]:
        """Returns a summary of each recording (trace), in order, with the reason for it.

        >>> f = tf.function(lambda x, lr: x * lr)
        >>> for lr in (0.1, 0.05, 0.1):
        ...     _ = f(tf.ones([2]), lr)
        >>> [(r.changed, r.replays) for r in f.recordings()]
        [((), 1), (('lr: Python float 0.1 → 0.05',), 0)]
        """
        return [entry.summary(self._history[:i]) for i, entry in enumerate(self._history)]

    def expect(self, recordings: int) -> Function:
        """Makes later calls fail if they need more traces than this. Returns the function."""
        self._expected_traces = recordings
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
        return self._select_trace(recording).executable.source()

    def program(self, recording: int = -1) -> Program:
        """Returns the steps, specs and constants of a trace. The default is the last trace.

        >>> f = tf.function(lambda x: tf.sin(x) + 1.0)
        >>> _ = f(tf.constant(1.0))
        >>> print(f.program())
        program(%0: float32[]):
            %2 = constant float32[]
            %1: float32[] = sin(%0)
            %3: float32[] = add(%1, %2)
            return %3
        """
        return self._select_trace(recording).executable.program

    def _select_trace(self, recording: int) -> Trace:
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
    for traced_function in list(_functions_with_traces):
        traced_function._drop_traces()


def _no_fast_call(*_: Any) -> Any:
    """Returns `NotImplemented`, as a fast call does for arguments with other specs."""
    return NotImplemented


def _call_or_undo(trace: Trace, arguments: Arguments, log: CallbackLog) -> Any:
    try:
        return trace.call(arguments.inputs, arguments.variables, log)
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
    Later calls replay these operations on their arguments, without the surrounding Python code.
    When Python uses the value of a tensor, as in `if x > 0`, the trace keeps a guard. A call with
    another value then uses another trace.

    With `jit_compile=True` XLA compiles the trace, which requires JAX. With `jit_compile="auto"`
    the trace is replayed while XLA compiles it in the background. Then a few calls of each kind
    are timed, and the faster kind is used from then on. `recordings()` has the times. Arguments are
    checked against `input_signature`, if there is one. With `strict=True` the first replays are
    compared with `func`, and a difference is an error. At most `trace_limit` traces are kept. If
    there are more, the least recently used ones are dropped. The other parameters exist for
    compatibility with TensorFlow and have no effect.

    >>> @tf.function
    ... def f(x):
    ...     return x * x if x > 0.0 else -x
    >>> f(tf.constant(3.0)).numpy(), f(tf.constant(-2.0)).numpy()
    (np.float32(9.0), np.float32(2.0))
    """
    compile_option = jit_compile if experimental_compile is None else experimental_compile
    if not isinstance(trace_limit, int) or trace_limit < 1:
        raise ValueError(f"trace_limit must be a positive integer. Received: {shown(trace_limit)}.")

    def decorate(python_function: Callable) -> Function:
        return Function(python_function, None, input_signature, compile_option, strict, trace_limit)

    return decorate if func is None else decorate(func)
