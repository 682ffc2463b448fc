"""Python and NumPy code called like an operation."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from retrograde.core.custom_gradient import record_custom
from retrograde.core.host_callbacks import Host, perform
from retrograde.core.indexed_slices import whole
from retrograde.core.recorders import thread
from retrograde.core.tape import GradientTape
from retrograde.core.tape_arguments import UnconnectedGradients
from retrograde.core.tensor import Tensor
from retrograde.ops.conversion import as_tensor
from retrograde.ops.host_functions import CallbackResult, call_on_each_replay
from retrograde.toplevel.creation import convert_to_tensor
from retrograde.values import dtypes, errors, nest
from retrograde.values.arguments import as_text
from retrograde.values.dtypes import as_dtype
from retrograde.values.errors import to_list
from retrograde.values.specs import TensorSpec


def py_function(
    func: Callable | None = None, inp: Any = None, Tout: Any = None, name: Any = None
) -> Any:
    """Calls `func` with the tensors of `inp`, and returns tensors of the dtypes `Tout`.

    Whatever `func` computes with tensors is followed by tapes, to any order and for variables
    that are not among `inp` as well. An error in it becomes one of `tf.errors`. Without `func`,
    this is a decorator.

    >>> tf.py_function(lambda x: x * 2.0, [1.0], tf.float32).numpy()
    np.float32(2.0)
    """
    if func is None or inp is None:
        return _decorator(py_function, func, Tout)
    _check(func, Tout)
    inputs = [convert_to_tensor(x) for x in to_list("py_function", inp)]
    several = isinstance(Tout, (list, tuple))
    wanted = [_dtype(t) for t in Tout] if several else [_dtype(Tout)]
    if thread.recorders.recording is None:
        outputs = _call(func, inputs, wanted)
    else:
        outputs = _followed_again(func, inputs, wanted)
    return outputs if several else outputs[0]


def _call(func: Callable, inputs: list, wanted: list) -> list:
    with _translated_errors():
        result = func(*inputs)
    found = _outputs(result, len(wanted))
    with _translated_errors():
        return [convert_to_tensor(y, dtype) for y, dtype in zip(found, wanted, strict=True)]


def _followed_again(func: Callable, inputs: list, wanted: list) -> list:
    """What `func` returns, in this call of a function and in each one that follows.

    Each time it runs under a tape of its own, of which the gradient is asked in the same call.
    """

    def forward(*arrays: Any) -> CallbackResult:
        tensors = [Tensor(x) for x in arrays]
        with GradientTape(persistent=True) as tape:
            tape.watch([x for x in tensors if x._spec.dtype in dtypes.INEXACT])
            outputs = _call(func, tensors, wanted)
        return CallbackResult([y._array for y in outputs], kept=(tape, tensors, outputs))

    def backward(box: Any, *cotangents: Any) -> tuple:
        tape, tensors, outputs = box.item().kept
        weights = [Tensor(g) for g in cotangents]
        found = tape.gradient(outputs, tensors, weights, UnconnectedGradients.ZERO)
        return tuple([whole(g)._array for g in found])

    def rule(needed: tuple[bool, ...], g: Any) -> list:
        cotangents = g if type(g) is tuple else (g,)
        host = Host("py_function_gradient", backward, pure=False, outputs=True)
        found = list(perform(host, (box, *cotangents)))
        arguments = [*inputs, *cotangents]
        again = _rule_of_gradient(functools.partial(_gradient, func, wanted), arguments)
        found = record_custom("py_function_gradient", again, arguments, found)
        pairs = zip(found, inputs, strict=True)
        return [g if x._spec.dtype in dtypes.INEXACT else None for g, x in pairs]

    outputs, box = call_on_each_replay("py_function", forward, tuple(inputs))
    return record_custom("py_function", rule, inputs, outputs)


def _gradient(func: Callable, wanted: list, *tensors: Tensor) -> list:
    """The gradient of `func` by its arguments, which come first; cotangents come after them."""
    arguments, cotangents = list(tensors[: -len(wanted)]), list(tensors[-len(wanted) :])
    with GradientTape() as tape:
        tape.watch([x for x in arguments if x._spec.dtype in dtypes.INEXACT])
        outputs = _call(func, arguments, wanted)
    found = tape.gradient(outputs, arguments, cotangents, UnconnectedGradients.ZERO)
    return [whole(g) for g in found]


def _rule_of_gradient(gradient: Callable, arguments: list) -> Callable:
    """The rule of `gradient`, which is called once more: its derivative is a `py_function`, too."""
    kinds = [x._spec.dtype for x in arguments]

    def rule(needed: tuple[bool, ...], g: Any) -> list:
        cotangents = g if type(g) is tuple else (g,)
        places = [i for i, x in enumerate(cotangents) if x._spec.dtype in dtypes.INEXACT]
        results = [as_dtype(cotangents[i]._spec.dtype) for i in places]

        def of_inexact(*tensors: Tensor) -> list:
            found = gradient(*tensors)
            return [found[i] for i in places]

        inputs = [*arguments, *[cotangents[i] for i in places]]
        outputs = [as_dtype(kind) for kind in kinds]
        found = _followed_again(functools.partial(_gradient, of_inexact, results), inputs, outputs)
        return [y if kind in dtypes.INEXACT else None for y, kind in zip(found, kinds, strict=True)]

    return rule


def numpy_function(
    func: Callable | None = None,
    inp: Any = None,
    Tout: Any = None,
    stateful: bool = True,
    name: Any = None,
) -> Any:
    """Calls `func` with NumPy arrays, and returns what it returns as tensors.

    No gradient flows. The results keep their own dtypes, whatever `Tout` says, as in TensorFlow's
    eager mode; a single one comes without a list. Without `func`, this is a decorator.

    >>> tf.numpy_function(np.sort, [[3.0, 1.0]], tf.float32).numpy()
    array([1., 3.], dtype=float32)
    """
    if func is None or inp is None:
        return _decorator(numpy_function, func, Tout)
    _check(func, Tout)
    tensors = tuple([as_tensor(x) for x in to_list("numpy_function", inp)])
    if thread.recorders.recording is not None:
        return _called_again(func, tensors)
    found = nest.flatten(func(*(np.asarray(x.numpy()) for x in tensors)))
    outputs = [None if y is None else convert_to_tensor(y) for y in found]
    return outputs[0] if len(outputs) == 1 else outputs


def _called_again(func: Callable, tensors: tuple) -> Any:
    """What `func` returns, in this call of a function and in each one that follows."""

    def call(*arrays: Any) -> CallbackResult:
        found = nest.flatten(func(*(np.array(x) for x in arrays)))
        return CallbackResult([None if y is None else convert_to_tensor(y)._array for y in found])

    outputs, _ = call_on_each_replay("numpy_function", call, tensors)
    return outputs[0] if len(outputs) == 1 else outputs


def _decorator(operation: Callable, func: Any, Tout: Any) -> Callable:
    op_name = operation.__name__
    if Tout is None:
        raise TypeError(f"{op_name}: `Tout` is missing. Expected the dtype of the result.")
    if func is not None:
        raise TypeError(f"{op_name}: `inp` is missing. Expected the list of arguments for `func`.")

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def call(*args: Any) -> Any:
            return operation(function, args, Tout)

        return call

    return decorate


def _check(func: Any, Tout: Any) -> None:
    if Tout is None:
        raise TypeError("`Tout` is missing. Expected the dtype of the result.")
    if not callable(func):
        raise ValueError(
            f"Expected func to be callable. Received func={as_text(func)} of type {type(func)}."
        )


def _dtype(wanted: Any) -> Any:
    return wanted.dtype if isinstance(wanted, TensorSpec) else as_dtype(wanted)


def _outputs(result: Any, count: int) -> list:
    """What a function returned, as a list of `count` values."""
    if isinstance(result, (list, tuple)):
        found = list(result)
    else:
        found = [] if result is None else [result]
    if len(found) != count:
        raise errors.invalid(
            f"py_function: the function returned {len(found)} values. Expected {count}, as `Tout` "
            "says; return an array or a tensor for one value of several elements."
        )
    return found


_TRANSLATIONS = (
    (StopIteration, errors.OutOfRangeError),
    (NotImplementedError, errors.UnimplementedError),
    (MemoryError, errors.ResourceExhaustedError),
    ((TypeError, ValueError), errors.InvalidArgumentError),
    (Exception, errors.UnknownError),
)


@contextlib.contextmanager
def _translated_errors() -> Iterator[None]:
    """Raises the error of `tf.errors` for one that Python code raised."""
    try:
        yield
    except Exception as error:
        kind = next(to for of, to in _TRANSLATIONS if isinstance(error, of))
        raise kind(None, None, f"{type(error).__name__}: {error}") from error
