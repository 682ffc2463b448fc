"""Operations that compute in Python or NumPy and are host callbacks in a `function`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograde.core.host_callbacks import NUMPY_CALL, CallbackDescription, HostCallback, call_host
from retrograde.core.recorders import escape, isolate, thread
from retrograde.core.tensor import Tensor
from retrograde.values import dtypes, nest
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import exhausted, is_out_of_memory

HOST_BUILDERS: dict[str, Callable[[Callable, Any], HostCallback]] = {}
REGISTERED_FUNCTIONS: dict[
    str, Callable
] = {}  # functions of this library that a description may name


def register_function(function: Callable) -> Callable:
    """Lets recipes name `function`, which stands in a module of this library."""
    REGISTERED_FUNCTIONS[registered_name(function)] = function
    return function


def registered_name(function: Callable) -> str:
    """The name by which a description knows `function`."""
    return f"{function.__module__}.{function.__qualname__}"


class CallbackResult(NamedTuple):
    """What Python code gave: arrays, or `None`; what they mean; something to be kept with them."""

    arrays: list
    meaning: str = ""
    kept: Any = None


def object_array(value: Any) -> np.ndarray:
    """A Python object as an array without axes."""
    box = np.empty((), object)
    box[()] = value
    return box


def call_on_each_replay(
    name: str, f: Callable, inputs: tuple[Tensor, ...] = ()
) -> tuple[list, Tensor]:
    """What `f(*arrays)`, an `Answer`, holds for this call of a function and each one that follows.

    The arrays come as tensors, with a tensor that holds the answer itself. A call in which they
    have other shapes, dtypes or another meaning is another recording.
    """

    def described(*arrays: Any) -> tuple:
        answer = f(*arrays)
        shapes = [None if x is None else (x.shape, x.dtype.str) for x in answer.arrays]
        return object_array(f"{shapes} {answer.meaning}".encode()), object_array(answer)

    description, box = call_host(HostCallback(name, described, pure=False, outputs=True), inputs)
    np.asarray(description)  # is heard, and so becomes a guard
    arrays = box._array.item().arrays
    parts = iter(call_host(HostCallback("parts", _parts, pure=True, outputs=True), (box,)))
    return [None if x is None else next(parts) for x in arrays], box


def _parts(box: np.ndarray) -> tuple:
    return tuple([x for x in box.item().arrays if x is not None])


def host_function(function: Callable | None = None, *, dynamic_shapes: bool = False) -> Callable:
    """A function that computes with the values of tensors, in Python or by NumPy.

    In a `function` that is recorded it is one call, which replays make again, with values of their
    own. The specs of the arguments determine the specs of the results. Where shapes follow
    from values it has `open_shapes`: a replay in which they are others is another recording. No
    gradient flows.
    """
    if function is None:
        return functools.partial(host_function, dynamic_shapes=dynamic_shapes)
    register_function(function)

    @functools.wraps(function)
    def operation(*args: Any, **kwargs: Any) -> Any:
        try:
            if thread.recorders.tracer is None:
                return function(*args, **kwargs)
            return _recorded(function, (args, kwargs), dynamic_shapes)
        except (MemoryError, ValueError) as error:
            if is_out_of_memory(error):
                raise exhausted(error, function.__name__.strip("_")) from None
            raise

    return operation


def _recorded(function: Callable, given: tuple[tuple, dict], dynamic_shapes: bool) -> Any:
    holders = [_held(leaf) for leaf in nest.leaves(given, expand_composites=True)]
    tensors = tuple([held._read() for held in holders if held is not None])
    for x in tensors:
        escape(x, NUMPY_CALL)
    # Replays bring tensors of their own; these are let go.
    leaves = (None if _held(leaf) is not None else leaf for leaf in nest.leaves(given))
    call = _Call(function, nest.pack(given, leaves), [held is not None for held in holders])
    y = call([x._array for x in tensors])
    host = _host(call, dynamic_shapes)
    outputs = thread.recorders.tracer.record_host(host, tensors, _arrays_in(y, dynamic_shapes))
    if dynamic_shapes:
        shapes, *outputs = outputs
        escape(shapes, "shape")  # and so becomes a guard
    return nest.pack(y, iter(outputs), expand_composites=True)


def _held(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray):
        return Tensor(leaf) if _is_tensors(leaf) else None
    return tensor_or_variable(leaf)


def _is_tensors(array: np.ndarray) -> bool:
    """Whether a tensor may have this array: one of objects must be of strings."""
    if array.dtype == object:
        return all(type(value) is bytes for value in array.flat)
    return dtypes.is_known(array.dtype)


class _Call:
    """A call of `function` with arguments `given`; of their leaves, some stand for tensors."""

    def __init__(self, function: Callable, given: tuple[tuple, dict], is_tensor: list) -> None:
        self.function = function
        self.given = given
        self.is_tensor = is_tensor
        self._direct = _direct_arguments(given[0], is_tensor)

    def __call__(self, arrays: Sequence[Any]) -> Any:
        """What it returns for the values in `arrays`."""
        tensors = [Tensor(np.asarray(array)) for array in arrays]
        if not thread.recorders:
            return self._called(tensors)
        with isolate():
            return self._called(tensors)

    def _called(self, tensors: list[Tensor]) -> Any:
        args, kwargs = self.given
        if self._direct is not None:
            args = list(args)
            for place, x in zip(self._direct, tensors, strict=True):
                args[place] = x
        else:
            values = iter(tensors)
            pairs = zip(
                nest.leaves(self.given, expand_composites=True), self.is_tensor, strict=True
            )
            leaves = [next(values) if tensor else leaf for leaf, tensor in pairs]
            args, kwargs = nest.pack(self.given, iter(leaves), expand_composites=True)
        return self.function(*args, **kwargs)


def _direct_arguments(args: tuple, is_tensor: list) -> list[int] | None:
    """The places of tensors in `args`, if they are nowhere else: then there is a short way."""
    found, flags = [], iter(is_tensor)
    for place, value in enumerate(args):
        inner = [next(flags) for _ in nest.leaves(value, expand_composites=True)]
        if any(inner) and value is not None:
            return None
        found += [place] if any(inner) else []
    return None if any(flags) else found


def _host(call: _Call, dynamic_shapes: bool) -> HostCallback:
    def run(*arrays: Any) -> tuple:
        return _arrays_in(call(arrays), dynamic_shapes)

    name, values = registered_name(call.function), (call.given, call.is_tensor, dynamic_shapes)
    description = CallbackDescription("host_function", name, values)
    return HostCallback(
        call.function.__name__.strip("_"), run, pure=True, outputs=True, description=description
    )


def _made_again(function: Callable, values: tuple) -> HostCallback:
    given, is_tensor, dynamic_shapes = values
    return _host(_Call(function, given, is_tensor), dynamic_shapes)


HOST_BUILDERS["host_function"] = _made_again


def _arrays_in(y: Any, dynamic_shapes: bool) -> tuple:
    """The arrays of all tensors in `y`; before them, where these are open, their shapes.

    Of each it is the number of axes, then their sizes.
    """
    plain = (y,) if type(y) is Tensor else y
    if not (isinstance(plain, tuple) and all([type(x) is Tensor for x in plain])):
        plain = nest.leaves(y, expand_composites=True)
    arrays = tuple([x._array for x in plain])
    if not dynamic_shapes:
        return arrays
    shapes = [n for array in arrays for n in (array.ndim, *array.shape)]
    return np.array(shapes, np.int64), *arrays
