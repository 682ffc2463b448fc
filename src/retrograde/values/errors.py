"""TensorFlow's exception classes. Messages say what was received, expected, and what to do."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from retrograde.values.arguments import brief


class OpError(Exception):
    """Base class of the errors that operations raise.

    The constructor has TensorFlow's signature, for programs that raise these errors themselves.
    `node_def` and `op` belong to graphs and are `None` here. A message alone is accepted, too, as
    for any Python exception: Keras re-creates errors that way.
    """

    error_code: int | None = None
    in_function: type[Exception] | None = None  # raised instead in a `function`

    def __init__(self, node_def=None, op=None, message: str = "", error_code=None) -> None:
        if isinstance(node_def, str) and op is None and not message:
            node_def, message = None, node_def
        super().__init__(message)
        self.node_def = node_def
        self.op = op
        self.message = message
        if error_code is not None:
            self.error_code = error_code

    @property
    def experimental_payloads(self) -> dict[bytes, bytes]:
        """Additional data of an error; always empty."""
        return {}

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple:
        return type(self), (None, None, self.message)


class CancelledError(OpError):
    """An operation was cancelled."""

    error_code = 1


class UnknownError(OpError):
    """An error that fits no other class."""

    error_code = 2


class InvalidArgumentError(OpError):
    """An operation received a value, a shape or a dtype that it cannot work with."""

    error_code = 3


class DeadlineExceededError(OpError):
    """An operation did not finish in time."""

    error_code = 4


class NotFoundError(OpError):
    """A requested entity does not exist."""

    error_code = 5


class AlreadyExistsError(OpError):
    """An entity to be created already exists."""

    error_code = 6


class PermissionDeniedError(OpError):
    """The caller lacks permission."""

    error_code = 7


class ResourceExhaustedError(OpError):
    """Memory or another resource ran out."""

    error_code = 8


class FailedPreconditionError(OpError):
    """The state does not allow the operation."""

    error_code = 9


class AbortedError(OpError):
    """An operation was aborted."""

    error_code = 10


class OutOfRangeError(OpError):
    """An iterator or a reader is at its end."""

    error_code = 11


class UnimplementedError(OpError):
    """The operation is not implemented for these inputs."""

    error_code = 12


class InternalError(OpError):
    """An invariant of the library was broken."""

    error_code = 13


class UnavailableError(OpError):
    """A service is unavailable."""

    error_code = 14


class DataLossError(OpError):
    """Stored data is corrupted."""

    error_code = 15


class UnauthenticatedError(OpError):
    """The caller is not authenticated."""

    error_code = 16


# Error codes, as in the `error_code` of each class.
OK = 0
CANCELLED = CancelledError.error_code
UNKNOWN = UnknownError.error_code
INVALID_ARGUMENT = InvalidArgumentError.error_code
DEADLINE_EXCEEDED = DeadlineExceededError.error_code
NOT_FOUND = NotFoundError.error_code
ALREADY_EXISTS = AlreadyExistsError.error_code
PERMISSION_DENIED = PermissionDeniedError.error_code
RESOURCE_EXHAUSTED = ResourceExhaustedError.error_code
FAILED_PRECONDITION = FailedPreconditionError.error_code
ABORTED = AbortedError.error_code
OUT_OF_RANGE = OutOfRangeError.error_code
UNIMPLEMENTED = UnimplementedError.error_code
INTERNAL = InternalError.error_code
UNAVAILABLE = UnavailableError.error_code
DATA_LOSS = DataLossError.error_code
UNAUTHENTICATED = UnauthenticatedError.error_code


def invalid(message: str, in_function: type[Exception] | None = None) -> InvalidArgumentError:
    """Returns an `InvalidArgumentError` with `message`."""
    error = InvalidArgumentError(None, None, message)
    if in_function is not None:
        error.in_function = in_function
    return error


_TOO_LARGE = (  # prefixes of NumPy's `ValueError` if a size overflows
    "Maximum allowed",
    "array is too big",
    "iterator is too large",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Returns whether `error` is an out-of-memory error of Python, NumPy or XLA."""
    if isinstance(error, ValueError):
        return str(error).startswith(_TOO_LARGE)
    if isinstance(error, OverflowError):  # a list or tuple repeated too often
        return "index-sized" in str(error)
    if isinstance(error, RuntimeError):  # XlaRuntimeError is one
        return str(error).startswith("RESOURCE_EXHAUSTED")
    return isinstance(error, MemoryError)


def exhausted(error: BaseException, name: str = "") -> ResourceExhaustedError:
    """Returns the `ResourceExhaustedError` for an out-of-memory `error` in `name`."""
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    if shape is not None and dtype is not None:
        count = dtype.itemsize
        for length in shape:
            count *= length
        problem = (
            f"cannot allocate {count} bytes for an array of shape {tuple(shape)} and dtype {dtype}"
        )
    else:
        problem = str(error).split("\n", 1)[0].rstrip(".") or "an allocation failed"
    prefix = f"{name}: " if name else ""
    return ResourceExhaustedError(
        None, None, f"{prefix}out of memory: {problem}. Use a smaller batch or a smaller shape."
    )


def allocate(name: str, make: Callable, /, *args: Any, **kwargs: Any) -> Any:
    """Returns `make(*args, **kwargs)`. Raises `ResourceExhaustedError` if memory runs out."""
    try:
        return make(*args, **kwargs)
    except (MemoryError, OverflowError, ValueError) as error:
        if is_out_of_memory(error):
            raise exhausted(error, name) from None
        raise


def to_list(name: str, values: Any) -> list:
    """Returns `list(values)`. Raises an error for a `range` that does not fit in memory."""
    try:
        return allocate(name, list, values)
    except OverflowError:
        raise ValueError(f"{name}: too many elements. Received: {brief(values)}.") from None


def reports_out_of_memory(name: str) -> Callable[[Callable], Callable]:
    """Decorates a function to raise `ResourceExhaustedError` if memory runs out."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            return allocate(name, function, *args, **kwargs)

        return run

    return decorate


class OperatorNotAllowedInGraphError(TypeError):
    """Exists for programs that catch it. Functions can use the values of tensors here."""
