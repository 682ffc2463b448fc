"""Calls every public function and method with invalid arguments.

A trial takes a valid call, from the calls that are compared with TensorFlow or from the signature
of a function, replaces some of its arguments with values from `POOL`, and runs it. It passes if the
call returns, or raises one of the documented exception classes with a message, within `SECONDS` and
`BYTES`, and does not change its arguments or the active recorders.
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import copy
import faulthandler
import functools
import inspect
import io
import itertools
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import retrograde as tf
from campaigns.call_values import OBJECTS, POOL, names
from parity.calls import namespaces
from retrograde.core.recorders import thread

SHORT = 1500  # about 15 seconds

SECONDS = 10
BYTES = 1 << 30  # memory limit of a call

PACKAGE = os.path.dirname(tf.__file__)

DOCUMENTED = (TypeError, ValueError, NotImplementedError, tf.errors.OpError)

# Other classes that TensorFlow documents or Python's protocols require, by prefix of the name.
ALSO: dict[str, tuple[type[Exception], str]] = {
    "tf.gradients": (RuntimeError, "TensorFlow raises it in eager mode"),
    "tf.hessians": (RuntimeError, "TensorFlow raises it in eager mode"),
    "GradientTape.": (RuntimeError, "TensorFlow raises it for a tape in the wrong state"),
    "tf.GradientTape": (RuntimeError, "TensorFlow raises it for a tape in the wrong state"),
    "ForwardAccumulator.": (RuntimeError, "TensorFlow raises it for one in the wrong state"),
    "tf.image.": (AttributeError, "TensorFlow raises it for an invalid image dtype"),
    "tf.make_ndarray": (AttributeError, "TensorFlow's class"),
    "tf.signal.": (IndexError, "TensorFlow raises it for scalars"),
    "tf.saved_model.load": (OSError, "TensorFlow raises it if there is no model"),
    "RaggedTensor.__getitem__": (IndexError, "TensorFlow raises it for a row out of range"),
    "TensorShape.__getitem__": (IndexError, "Python expects it of sequences"),
    "Iterator.__next__": (StopIteration, "the end of an iteration"),
    "NumpyIterator.__next__": (StopIteration, "the end of an iteration"),
    "tf.compat.as_": (LookupError, "TensorFlow raises it for an unknown encoding"),
    "tf.device": (RuntimeError, "TensorFlow raises it for a function in eager mode"),
    "tf.debugging.enable_traceback_filtering": (RuntimeError, "TensorFlow's class"),
    "tf.register_tensor_conversion_function": (RuntimeError, "TensorFlow's class"),
}

# Excluded functions, with the reason.
EXCLUDED = {
    "tf.debugging.nonfinite": "changes the thread",
    "tf.debugging.record_lines": "changes the process",
    "tf.test.main": "ends the process",
    "tf.test.TestCase": "a class of tests, which unittest calls",
    "tf.compat.v1": "TensorFlow 1",
    "tf.keras": "Keras's own functions",
    "tf.initializers": "Keras's own functions",
    "tf.losses": "Keras's own functions",
    "tf.metrics": "Keras's own functions",
    "tf.optimizers": "Keras's own functions",
    "tf.config": "changes the process",
    "tf.distribute": "changes the process",
    "tf.debugging.enable_check_numerics": "changes the process",
    "tf.debugging.set_log_device_placement": "changes the process",
    "tf.experimental.numpy.experimental_enable_numpy_behavior": "changes the process",
    "tf.register_tensor_conversion_function": "changes the process",
    "tf.no_gradient": "changes the process, and the second call raises KeyError, as in TensorFlow",
    "tf.RegisterGradient": "changes the process",
    "tf.summary.experimental.set_step": "changes the process",
    "tf.summary.trace_on": "changes the process",
    "tf.while_loop": "never ends if the condition is always true, in TensorFlow too",
    "tf.profiler": "changes the process",
    "tf.enable_check_numerics": "changes the process",
    "GradientTape.record": "part of the protocol of recorders",
    "GradientTape.read": "part of the protocol of recorders",
    "GradientTape.escape": "part of the protocol of recorders",
    "GradientTape.store": "part of the protocol of recorders",
    "GradientTape.create": "part of the protocol of recorders",
    "ForwardAccumulator.record": "part of the protocol of recorders",
    "ForwardAccumulator.read": "part of the protocol of recorders",
    "ForwardAccumulator.escape": "part of the protocol of recorders",
    "ForwardAccumulator.store": "part of the protocol of recorders",
    "ForwardAccumulator.create": "part of the protocol of recorders",
    "Dataset.reduce": "never ends on an endless dataset, in TensorFlow too",
}


# Classes whose constructors are not public.
NOT_CALLED = {
    "tf.Tensor",
    "tf.experimental.numpy.ndarray",
    "tf.DType",
    "tf.RaggedTensor",
    "tf.data.Dataset",
    "tf.data.Iterator",
    "tf.data.NumpyIterator",
}


class Target(NamedTuple):
    """A function: its name, an expression for it, and an expression that calls it as `f`."""

    name: str
    function: str
    expression: str


class TooLong(BaseException):
    """Raised when a call takes longer than `SECONDS`."""


# Targets


@functools.cache
def targets() -> list[list[Target]]:
    """Returns every public function and method, each with its valid calls."""
    by_name: dict[str, list[Target]] = {}
    for functions in namespaces().values():
        for name, expressions in functions.items():
            if _find(name) is not None:
                by_name[name] = [Target(name, name, e) for e in expressions]
    for name in _public_names():
        by_name.setdefault(name, []).extend(_from_signature(name, name))
    for kind, expression in OBJECTS.items():
        for method in _methods(expression):
            name = f"{kind}.{method}"
            by_name[name] = _from_signature(name, f"({expression}).{method}")
    return [calls for name, calls in sorted(by_name.items()) if calls and not _is_excluded(name)]


def _is_excluded(name: str) -> bool:
    # The attribute `value_type` is a class in `NOT_CALLED`.
    if _find(name) in _excluded_objects() or name.endswith(".value_type"):
        return True
    return any(name == other or name.startswith(other + ".") for other in EXCLUDED)


@functools.cache
def _excluded_objects() -> list[type]:
    return [_find(name) for name in NOT_CALLED]


def _find(name: str) -> Any:
    return functools.reduce(
        lambda parent, part: getattr(parent, part, None), name.split(".")[1:], tf
    )


def _public_names() -> list[str]:
    """Returns the dotted names of all callables in the public namespaces."""
    names: list[str] = []
    pending, seen = [("tf", tf)], {id(tf)}
    while pending:
        prefix, module = pending.pop()
        for name in getattr(module, "__all__", ()):
            value, dotted = getattr(module, name), f"{prefix}.{name}"
            if _is_excluded(dotted):
                continue
            if isinstance(value, types.ModuleType):
                if id(value) not in seen and value.__name__.startswith("retrograde"):
                    seen.add(id(value))
                    pending.append((dotted, value))
            elif callable(value):
                names.append(dotted)
                if isinstance(value, type):
                    names += [f"{dotted}.{n}" for n in _constructors(value)]
    return sorted(names)


def _constructors(kind: type) -> list[str]:
    """Returns the public class methods and static methods of a class."""
    return [
        name
        for name in dir(kind)
        if not name.startswith("_")
        and isinstance(inspect.getattr_static(kind, name), (classmethod, staticmethod))
    ]


_OPERATORS = (
    "__add__",
    "__radd__",
    "__sub__",
    "__mul__",
    "__truediv__",
    "__rtruediv__",
    "__floordiv__",
    "__mod__",
    "__pow__",
    "__rpow__",
    "__matmul__",
    "__rmatmul__",
    "__and__",
    "__or__",
    "__xor__",
    "__invert__",
    "__neg__",
    "__abs__",
    "__eq__",
    "__ne__",
    "__lt__",
    "__ge__",
    "__getitem__",
    "__len__",
    "__bool__",
    "__iter__",
    "__call__",
    "__next__",
    "__array__",
    "__contains__",
    "__setitem__",
    "__copy__",
    "__round__",
    "__divmod__",
    "__index__",
)


def _methods(expression: str) -> list[str]:
    value = _evaluate(expression)
    operators = [name for name in _OPERATORS if callable(getattr(value, name, None))]
    return operators + [
        name
        for name in dir(value)
        if not name.startswith("_") and callable(getattr(value, name, None))
    ]


def _from_signature(name: str, function: str) -> list[Target]:
    """Returns calls with the required arguments, and with one more keyword argument."""
    try:
        value = _evaluate(function)
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return [Target(name, function, f"f({a})") for a in ("", "1", "1, 1")]
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = sum(p.default is p.empty for p in positional)
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        required += 1
    keywords = [
        f"{p.name}=1"
        for p in parameters
        if p.name not in ("name", "wait")  # `wait` waits for another process
        and (p.kind is p.KEYWORD_ONLY or (p in positional[required:] and p.default is not p.empty))
    ]
    minimal = ["1"] * required
    calls = [minimal, *([*minimal, keyword] for keyword in keywords)]
    return [Target(name, function, f"f({', '.join(call)})") for call in calls]


def _evaluate(expression: str) -> Any:
    with warnings.catch_warnings(), _in_folder():
        warnings.simplefilter("ignore")
        return eval(expression, names())


# Mutation


# The arguments of these functions are not replaced: they are not part of the call, or would create
# huge arrays, which take longer than `SECONDS` to copy before the call.
_HELPERS = {"S", "deep", "cyclic", "readonly"}
_HELPERS |= {f"np.{name}" for name in ("zeros", "ones", "full", "arange", "broadcast_to")}


def _arguments(node: ast.AST) -> list[tuple[Any, Any]]:
    """Returns the positions in a call that can be replaced: arguments and their elements."""
    positions: list[tuple[Any, Any]] = []
    if isinstance(node, ast.Call):
        if ast.unparse(node.func) in _HELPERS:
            return []
        positions += [(node.args, i) for i in range(len(node.args))]
        positions += [(keyword, "value") for keyword in node.keywords]
    elif isinstance(node, (ast.List, ast.Tuple)):
        positions += [(node.elts, i) for i in range(len(node.elts))]
    return positions + [
        position for child in ast.iter_child_nodes(node) for position in _arguments(child)
    ]


def _mutate(expression: str, rng: random.Random, count: int) -> str:
    """Returns the expression with `count` of its arguments replaced."""
    tree = ast.parse(expression, mode="eval")
    for _ in range(count):
        positions = _arguments(tree)
        if not positions:
            break
        holder, position = rng.choice(positions)
        value = ast.parse(rng.choice(POOL), mode="eval").body
        if isinstance(holder, list):
            holder[position] = value
        else:
            setattr(holder, position, value)
    return ast.unparse(tree)


# Trials


def trial(seed: int) -> str | None:
    """Runs one invalid call."""
    rng = random.Random(seed)
    target = rng.choice(rng.choice(targets()))
    count = rng.choice((1, 1, 1, 2, 2, 3)) if "f(1" not in target.expression else 4
    expression = _mutate(target.expression, rng, count)
    mode = rng.choice(("", "", "", "", "tape", "function"))
    problem = _problem(target, expression, mode)
    if problem is None:
        return None
    expression, problem = _shrunk(target, expression, mode, problem)
    return f"{problem}\n{_program(target, expression, mode)}"


def _program(target: Target, expression: str, mode: str) -> str:
    lines = [
        "import retrograde as tf",
        "from campaigns.call_values import *",
        f"f = {target.function}",
        {
            "": expression,
            "tape": f"with tf.GradientTape():\n    {expression}",
            "function": f"tf.function(lambda: {expression})()",
        }[mode],
    ]
    return "\n".join(lines)


def _shrunk(target: Target, expression: str, mode: str, problem: str) -> tuple[str, str]:
    """Removes arguments while the call has a problem of the same kind."""
    if "seconds" in problem:
        return expression, problem
    kind = problem.split(":")[0]
    shorter = True
    while shorter:
        shorter = False
        for smaller in _smaller(expression):
            new_problem = _problem(target, smaller, mode)
            if new_problem is not None and new_problem.split(":")[0] == kind:
                expression, problem, shorter = smaller, new_problem, True
                break
    return expression, problem


def _smaller(expression: str) -> Iterator[str]:
    tree = ast.parse(expression, mode="eval")
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for index, node in enumerate(calls):
        for part in ("args", "keywords"):
            for position in range(len(getattr(node, part))):
                smaller = copy.deepcopy(tree)
                node = [n for n in ast.walk(smaller) if isinstance(n, ast.Call)][index]
                del getattr(node, part)[position]
                yield ast.unparse(smaller)


def _problem(target: Target, expression: str, mode: str) -> str | None:
    """Runs a call and describes the problem, if any."""
    env = names()
    with _in_folder(), _quiet():
        try:
            function = eval(target.function, env)
        except Exception as error:
            return f"no such function: {error!r}"
        checked = _Checked(function)
        env["f"] = checked
        code = compile(expression, f"<call {target.function}: {expression[:200]}>", "eval")
        start = time.monotonic()
        error = _catch_exception(lambda: _run(code, env, mode), _is_limited(target))
        seconds = time.monotonic() - start
    return (
        _bad_time(seconds, error)
        or _bad_error(target, error)
        or checked.problem
        or _active_recorders()
    )


def _run(code: Any, env: dict, mode: str) -> None:
    if mode == "tape":
        with tf.GradientTape():
            _use(eval(code, env))
    elif mode == "function":
        tf.function(lambda: _tensors(eval(code, env)))()
    else:
        _use(eval(code, env))


def _tensors(value: Any) -> Any:
    return value if isinstance(value, tf.Tensor) else None


def _use(value: Any) -> None:
    """Materializes a result."""
    if isinstance(value, tf.Tensor):
        value.numpy()
    elif isinstance(value, tf.data.Dataset):
        list(itertools.islice(value, 3))
    elif isinstance(value, (tf.RaggedTensor, tf.SparseTensor)):
        str(value)


class _Checked:
    """Wraps the function under test, and checks that a call that raises changes no argument."""

    def __init__(self, function: Callable) -> None:
        self._function = function
        self.problem: str | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        values = [*args, *kwargs.values()]
        before = [(x, *_contents(x)) for x in values if isinstance(x, (np.ndarray, tf.Variable))]
        try:
            return self._function(*args, **kwargs)
        except Exception:
            for x, *contents in before:
                if [*_contents(x)] != contents:
                    self.problem = f"argument changed: {type(x).__name__}"
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)


def _contents(x: Any) -> tuple:
    array = np.asarray(x) if isinstance(x, np.ndarray) else x.numpy()
    if array.dtype == object:
        return (array.shape, tuple(map(id, array.ravel())))
    return (array.shape, str(array.dtype), array.tobytes())


def _is_limited(target: Target) -> bool:
    """Returns whether memory is limited. XLA's compiler crashes if an allocation fails."""
    return "tf.function(" not in target.function and "jit_compile" not in target.expression


def _catch_exception(run: Callable, limited: bool) -> BaseException | None:
    """Returns the exception of `run`, with a timeout and, if `limited`, a memory limit."""
    previous = signal.signal(signal.SIGALRM, _stop)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if limited:
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + BYTES, hard))
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    # Signals do not interrupt loops in C. Then the process prints a traceback and exits.
    faulthandler.dump_traceback_later(6 * SECONDS, exit=True, file=sys.__stderr__)
    try:
        run()
    except (Exception, TooLong) as error:
        return error
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGALRM, previous)
    return None


def _stop(*_: Any) -> None:
    raise TooLong


def _bad_time(seconds: float, error: BaseException | None) -> str | None:
    if isinstance(error, TooLong) or seconds > SECONDS:
        return f"took {seconds:.1f} seconds: expected at most {SECONDS}\n{_where(error)}"
    return None


def _bad_error(target: Target, error: BaseException | None) -> str | None:
    if error is None or _is_from_user(error):
        return None
    also = tuple(kind for name, (kind, _) in ALSO.items() if target.name.startswith(name))
    if isinstance(error, (*DOCUMENTED, *also)) and not _is_from_numpy_memory(error):
        return None if str(error) else f"{type(error).__name__}: the message is empty"
    return f"{type(error).__name__}: {error}\n{_where(error)}"


def _is_from_numpy_memory(error: BaseException) -> bool:
    """Returns whether NumPy refused an allocation, with an unhelpful `ValueError`."""
    words = ("Maximum allowed", "array is too big")
    return isinstance(error, ValueError) and str(error).startswith(words)


def _frames(error: BaseException | None) -> list[types.TracebackType]:
    frames, traceback = [], getattr(error, "__traceback__", None)
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    return frames


def _is_from_user(error: BaseException) -> bool:
    """Returns whether the arguments raised it: a lambda, or an expression around the call."""
    for frame in reversed(_frames(error)):
        file = frame.tb_frame.f_code.co_filename
        if file.startswith(("<call", "<string>")) or file.endswith("call_values.py"):
            return True
        if file.startswith(PACKAGE):
            return False
    return True


def _where(error: BaseException | None) -> str:
    """Returns the last lines of the package in a traceback."""
    lines = [
        f"    {os.path.relpath(f.tb_frame.f_code.co_filename, PACKAGE)}:{f.tb_lineno}"
        for f in _frames(error)
        if f.tb_frame.f_code.co_filename.startswith(PACKAGE)
    ]
    return "\n".join(lines[-4:])


def _active_recorders() -> str | None:
    recorders = list(thread.recorders)
    if not recorders:
        return None
    del thread.recorders[:]
    return f"recorders are still active: {recorders}"


# Environment


@functools.cache
def _folder() -> str:
    folder = tempfile.mkdtemp(prefix="calls-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@contextlib.contextmanager
def _in_folder() -> Iterator[None]:
    """Changes to a temporary folder, because some functions write files."""
    before = os.getcwd()
    os.makedirs(_folder(), exist_ok=True)
    os.chdir(_folder())
    try:
        yield
    finally:
        os.chdir(before)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppresses warnings and output."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        with contextlib.redirect_stderr(io.StringIO()):
            yield


if __name__ == "__main__":
    print(len(targets()), "functions,", sum(map(len, targets())), "calls")
    sys.exit()
