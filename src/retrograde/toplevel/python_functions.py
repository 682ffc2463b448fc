"""Python and NumPy functions called as operations."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from retrograde.core.custom_gradient import record_custom
from retrograde.core.indexed_slices import as_dense
from retrograde.core.recorders import thread
from retrograde.core.tape import GradientTape
from retrograde.core.tape_arguments import UnconnectedGradients
from retrograde.core.tensor import Tensor
from retrograde.ops.conversion import as_tensor
from retrograde.ops.host_callbacks import HostCallback, call_host
from retrograde.ops.host_functions import CallbackResult, call_on_each_replay
from retrograde.toplevel.creation import convert_to_tensor
from retrograde.values import dtypes, errors, nest
from retrograde.values.arguments import as_text
from retrograde.values.composites import CompositeTensor
from retrograde.values.dtypes import as_dtype
from retrograde.values.errors import to_list
from retrograde.values.specs import TensorSpec


def py_function(
    func: Callable | None = None, inp: Any = None, Tout: Any = None, name: Any = None
) -> Any:
    """Calls `func` with the tensors of `inp` and returns tensors of the dtypes `Tout`.

    Tapes record the operations in `func`, to any order, including those on variables that are not
    in `inp`. An exception in `func` becomes one of `tf.errors`. Without `func`, this is a
    decorator.

    >>> tf.py_function(lambda x: x * 2.0, [1.0], tf.float32).numpy()
    np.float32(2.0)
    """
    if func is None or inp is None:
        return _decorator(py_function, func, Tout)
    _check(func, Tout)
    arguments = to_list("py_function", inp)
    inputs = [x if isinstance(x, CompositeTensor) else convert_to_tensor(x) for x in arguments]
    if any(isinstance(x, CompositeTensor) for x in inputs):
        func, inputs = _of_components(func, inputs)
    is_sequence = isinstance(Tout, (list, tuple))
    output_dtypes = [_dtype(t) for t in Tout] if is_sequence else [_dtype(Tout)]
    if thread.recorders.tracer is None:
        outputs = _call(func, inputs, output_dtypes)
    else:
        outputs = _call_each_time(func, inputs, output_dtypes)
    return outputs if is_sequence else outputs[0]


def _of_components(func: Callable, inputs: list) -> tuple[Callable, list]:
    """Returns `func` as a function of the components of composite tensors, and the components."""

    def on_components(*tensors: Tensor) -> Any:
        return func(*nest.pack(inputs, iter(tensors), expand_composites=True))

    return on_components, list(nest.leaves(inputs, expand_composites=True))


def _call(func: Callable, inputs: list, output_dtypes: list) -> list:
    with _translated_errors():
        result = func(*inputs)
    results = _as_outputs(result, len(output_dtypes))
    with _translated_errors():
        return [
            convert_to_tensor(y, dtype) for y, dtype in zip(results, output_dtypes, strict=True)
        ]


def _call_each_time(func: Callable, inputs: list, output_dtypes: list) -> list:
    """Calls `func` now and in each later call to the traced function.

    Each call runs under its own tape, from which the gradient is computed in the same call.
    """

    def forward(*arrays: Any) -> CallbackResult:
        tensors = [Tensor(x) for x in arrays]
        with GradientTape(persistent=True) as tape:
            tape.watch([x for x in tensors if x._spec.dtype in dtypes.INEXACT])
            outputs = _call(func, tensors, output_dtypes)
        return CallbackResult([y._array for y in outputs], value=(tape, tensors, outputs))

    def backward(box: Any, *cotangents: Any) -> tuple:
        tape, tensors, outputs = box.item().value
        weights = [Tensor(g) for g in cotangents]
        results = tape.gradient(outputs, tensors, weights, UnconnectedGradients.ZERO)
        return tuple([as_dense(g)._array for g in results])

    def rule(needed: tuple[bool, ...], g: Any) -> list:
        cotangents = g if type(g) is tuple else (g,)
        host = HostCallback("py_function_gradient", backward, pure=False, outputs=True)
        results = list(call_host(host, (box, *cotangents)))
        arguments = [*inputs, *cotangents]
        second_order = _gradient_rule(functools.partial(_gradient, func, output_dtypes), arguments)
        results = record_custom("py_function_gradient", second_order, arguments, results)
        pairs = zip(results, inputs, strict=True)
        return [g if x._spec.dtype in dtypes.INEXACT else None for g, x in pairs]

    outputs, box = call_on_each_replay("py_function", forward, tuple(inputs))
    return record_custom("py_function", rule, inputs, outputs)


def _gradient(func: Callable, output_dtypes: list, *tensors: Tensor) -> list:
    """Computes the gradient of `func` with respect to its arguments; cotangents come last."""
    count = len(output_dtypes)
    arguments, cotangents = list(tensors[:-count]), list(tensors[-count:])
    with GradientTape() as tape:
        tape.watch([x for x in arguments if x._spec.dtype in dtypes.INEXACT])
        outputs = _call(func, arguments, output_dtypes)
    results = tape.gradient(outputs, arguments, cotangents, UnconnectedGradients.ZERO)
    return [as_dense(g) for g in results]


def _gradient_rule(gradient: Callable, arguments: list) -> Callable:
    """Returns the rule of `gradient`; its derivative is a `py_function` as well."""
    argument_dtypes = [x._spec.dtype for x in arguments]

    def rule(needed: tuple[bool, ...], g: Any) -> list:
        cotangents = g if type(g) is tuple else (g,)
        positions = [i for i, x in enumerate(cotangents) if x._spec.dtype in dtypes.INEXACT]
        cotangent_dtypes = [as_dtype(cotangents[i]._spec.dtype) for i in positions]

        def inexact_outputs(*tensors: Tensor) -> list:
            gradients = gradient(*tensors)
            return [gradients[i] for i in positions]

        inputs = [*arguments, *[cotangents[i] for i in positions]]
        output_dtypes = [as_dtype(dtype) for dtype in argument_dtypes]
        results = _call_each_time(
            functools.partial(_gradient, inexact_outputs, cotangent_dtypes), inputs, output_dtypes
        )
        return [
            y if dtype in dtypes.INEXACT else None
            for y, dtype in zip(results, argument_dtypes, strict=True)
        ]

    return rule


def numpy_function(
    func: Callable | None = None,
    inp: Any = None,
    Tout: Any = None,
    stateful: bool = True,
    name: Any = None,
) -> Any:
    """Calls `func` with NumPy arrays and returns its results as tensors.

    No gradient flows. The results keep their own dtypes, regardless of `Tout`, as in TensorFlow's
    eager mode. A single result is returned without a list. Without `func`, this is a decorator.

    >>> tf.numpy_function(np.sort, [[3.0, 1.0]], tf.float32).numpy()
    array([1., 3.], dtype=float32)
    """
    if func is None or inp is None:
        return _decorator(numpy_function, func, Tout)
    _check(func, Tout)
    tensors = tuple([as_tensor(x) for x in to_list("numpy_function", inp)])
    if thread.recorders.tracer is not None:
        return _call_numpy_each_time(func, tensors)
    results = nest.flatten(func(*(np.asarray(x.numpy()) for x in tensors)))
    outputs = [None if y is None else convert_to_tensor(y) for y in results]
    return outputs[0] if len(outputs) == 1 else outputs


def _call_numpy_each_time(func: Callable, tensors: tuple) -> Any:
    """Calls `func` now and in each later call to the traced function."""

    def call(*arrays: Any) -> CallbackResult:
        results = nest.flatten(func(*(np.array(x) for x in arrays)))
        return CallbackResult([None if y is None else convert_to_tensor(y)._array for y in results])

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


def _dtype(output_dtypes: Any) -> Any:
    return output_dtypes.dtype if isinstance(output_dtypes, TensorSpec) else as_dtype(output_dtypes)


def _as_outputs(result: Any, count: int) -> list:
    """Converts the result of a function to a list of `count` values."""
    if isinstance(result, (list, tuple)):
        results = list(result)
    else:
        results = [] if result is None else [result]
    if len(results) != count:
        raise errors.invalid(
            f"py_function: the function returned {len(results)} values, but `Tout` has {count}. To "
            "return one value with several elements, return an array or a tensor."
        )
    return results


_TRANSLATIONS = (
    (StopIteration, errors.OutOfRangeError),
    (NotImplementedError, errors.UnimplementedError),
    (MemoryError, errors.ResourceExhaustedError),
    ((TypeError, ValueError), errors.InvalidArgumentError),
    (Exception, errors.UnknownError),
)


@contextlib.contextmanager
def _translated_errors() -> Iterator[None]:
    """Raises the exception of `tf.errors` for an exception of Python code."""
    try:
        yield
    except Exception as error:
        kind = next(target for source, target in _TRANSLATIONS if isinstance(error, source))
        raise kind(None, None, f"{type(error).__name__}: {error}") from error
