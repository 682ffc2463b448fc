"""Operations that compute in Python or NumPy. In a traced `tf.function` they are host callbacks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograde.core import namespaces
from retrograde.core.recorders import escape, isolate, thread
from retrograde.core.tensor import Tensor
from retrograde.ops.host_callbacks import NUMPY_CALL, CallbackDescription, HostCallback, call_host
from retrograde.shape_inference.inference import on_abstract_arrays
from retrograde.values import dtypes, nest
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import exhausted, is_out_of_memory

# The keys are the values of `CallbackDescription.builder`.
CALLBACK_BUILDERS: dict[str, Callable[[Callable, Any], HostCallback]] = {}
REGISTERED_FUNCTIONS: dict[str, Callable] = {}  # that saved descriptions may name


def register_function(function: Callable) -> Callable:
    """Registers a function of this library, so that saved descriptions can name it."""
    REGISTERED_FUNCTIONS[registered_name(function)] = function
    return function


def registered_name(function: Callable) -> str:
    """Returns the name under which `function` is registered."""
    return f"{function.__module__}.{function.__qualname__}"


class CallbackResult(NamedTuple):
    """The result of Python code: a list whose items are arrays or `None`.

    `structure` is compared between calls: if it changes, the function is retraced. `value` is an
    opaque payload returned alongside the arrays.
    """

    arrays: list
    structure: str = ""
    value: Any = None


def object_array(value: Any) -> np.ndarray:
    """Returns a Python object as a scalar object array."""
    box = np.empty((), object)
    box[()] = value
    return box


def call_on_each_replay(
    name: str, f: Callable, inputs: tuple[Tensor, ...] = ()
) -> tuple[list, Tensor]:
    """Calls `f(*arrays)` now, and again in each replay of the `tf.function` being traced.

    Returns the arrays of its `CallbackResult` as tensors, and a tensor that holds the result
    itself. A replay in which shapes, dtypes or structure differ retraces the function.
    """

    def call(*arrays: Any) -> tuple:
        result = f(*arrays)
        specs = [None if x is None else (x.shape, x.dtype.str) for x in result.arrays]
        return object_array(f"{specs} {result.structure}".encode()), object_array(result)

    description, box = call_host(HostCallback(name, call, pure=False, outputs=True), inputs)
    np.asarray(description)  # the recorder observes this and adds a guard
    arrays = box._array.item().arrays
    parts = iter(
        call_host(HostCallback("unpack_arrays", _unpack_arrays, pure=True, outputs=True), (box,))
    )
    return [None if x is None else next(parts) for x in arrays], box


def _unpack_arrays(box: np.ndarray) -> tuple:
    return tuple([x for x in box.item().arrays if x is not None])


def host_function(function: Callable | None = None, *, dynamic_shapes: bool = False) -> Callable:
    """Decorates a function that computes with the values of tensors, in Python or NumPy.

    In a traced `tf.function` it is one host callback, which each replay calls again. The specs of
    the arguments must determine the specs of the results. If result shapes depend on values, pass
    `dynamic_shapes`: a replay with other shapes retraces the function. Gradients do not flow
    through it.
    """
    if function is None:
        return functools.partial(host_function, dynamic_shapes=dynamic_shapes)
    register_function(function)

    @functools.wraps(function)
    def operation(*args: Any, **kwargs: Any) -> Any:
        try:
            if namespaces.foreign and namespaces.evaluator() is not None and not dynamic_shapes:
                return on_abstract_arrays(function, args, kwargs)
            if thread.recorders.tracer is None:
                return function(*args, **kwargs)
            return _call_recorded(function, (args, kwargs), dynamic_shapes)
        except (MemoryError, ValueError) as error:
            if is_out_of_memory(error):
                raise exhausted(error, function.__name__.strip("_")) from None
            raise

    return operation


def _call_recorded(function: Callable, arguments: tuple[tuple, dict], dynamic_shapes: bool) -> Any:
    holders = [_as_holder(leaf) for leaf in nest.leaves(arguments, expand_composites=True)]
    tensors = tuple([holder._read() for holder in holders if holder is not None])
    for x in tensors:
        escape(x, NUMPY_CALL)
    # Replays pass new tensors, so the traced ones are replaced by `None` in the stored arguments.
    leaves = (None if _as_holder(leaf) is not None else leaf for leaf in nest.leaves(arguments))
    call = _Call(function, nest.pack(arguments, leaves), [holder is not None for holder in holders])
    y = call([x._array for x in tensors])
    host = _make_callback(call, dynamic_shapes)
    outputs = thread.recorders.tracer.record_host(host, tensors, _arrays_in(y, dynamic_shapes))
    if dynamic_shapes:
        shapes, *outputs = outputs
        escape(shapes, "shape")  # adds a guard
    return nest.pack(y, iter(outputs), expand_composites=True)


def _as_holder(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray):
        return Tensor(leaf) if _is_tensor_value(leaf) else None
    return tensor_or_variable(leaf)


def _is_tensor_value(array: np.ndarray) -> bool:
    """Returns whether a tensor can hold this array. Objects must be byte strings."""
    if array.dtype == object:
        return all(type(value) is bytes for value in array.flat)
    return dtypes.is_known(array.dtype)


class _Call:
    """A call to `function` with `arguments`, a pair of args and kwargs.

    `is_tensor` says which leaves of the arguments are tensors.
    """

    def __init__(self, function: Callable, arguments: tuple[tuple, dict], is_tensor: list) -> None:
        self.function = function
        self.arguments = arguments
        self.is_tensor = is_tensor
        self._direct = _direct_arguments(arguments[0], is_tensor)

    def __call__(self, arrays: Sequence[Any]) -> Any:
        """Returns the result for the values in `arrays`."""
        tensors = [Tensor(np.asarray(array)) for array in arrays]
        if not thread.recorders:
            return self._invoke(tensors)
        with isolate():
            return self._invoke(tensors)

    def _invoke(self, tensors: list[Tensor]) -> Any:
        args, kwargs = self.arguments
        if self._direct is not None:
            args = list(args)
            for i, x in zip(self._direct, tensors, strict=True):
                args[i] = x
        else:
            values = iter(tensors)
            pairs = zip(
                nest.leaves(self.arguments, expand_composites=True), self.is_tensor, strict=True
            )
            leaves = [next(values) if tensor else leaf for leaf, tensor in pairs]
            args, kwargs = nest.pack(self.arguments, iter(leaves), expand_composites=True)
        return self.function(*args, **kwargs)


def _direct_arguments(args: tuple, is_tensor: list) -> list[int] | None:
    """Returns the positions of tensors in `args`, or `None` if some are nested or in kwargs."""
    positions, flags = [], iter(is_tensor)
    for i, value in enumerate(args):
        inner = [next(flags) for _ in nest.leaves(value, expand_composites=True)]
        if any(inner) and value is not None:  # direct tensors were replaced by `None`
            return None
        positions += [i] if any(inner) else []
    return None if any(flags) else positions


def _make_callback(call: _Call, dynamic_shapes: bool) -> HostCallback:
    def run(*arrays: Any) -> tuple:
        return _arrays_in(call(arrays), dynamic_shapes)

    name, values = registered_name(call.function), (call.arguments, call.is_tensor, dynamic_shapes)
    description = CallbackDescription("host_function", name, values)
    return HostCallback(
        call.function.__name__.strip("_"), run, pure=True, outputs=True, description=description
    )


def _rebuild_host(function: Callable, values: tuple) -> HostCallback:
    arguments, is_tensor, dynamic_shapes = values
    return _make_callback(_Call(function, arguments, is_tensor), dynamic_shapes)


CALLBACK_BUILDERS["host_function"] = _rebuild_host


def _arrays_in(y: Any, dynamic_shapes: bool) -> tuple:
    """Returns the arrays of all tensors in `y`.

    With `dynamic_shapes`, they follow an integer array that contains, for each of them, its rank
    and its shape.
    """
    plain = (y,) if type(y) is Tensor else y
    if not (isinstance(plain, tuple) and all([type(x) is Tensor for x in plain])):
        plain = nest.leaves(y, expand_composites=True)
    arrays = tuple([x._array for x in plain])
    if not dynamic_shapes:
        return arrays
    shapes = [n for array in arrays for n in (array.ndim, *array.shape)]
    return np.array(shapes, np.int64), *arrays
