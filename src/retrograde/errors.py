"""tf.errors: what goes wrong, by name."""

from retrograde._api.lazy import speaking
from retrograde.values.errors import (
    AbortedError,
    AlreadyExistsError,
    CancelledError,
    DataLossError,
    DeadlineExceededError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    OutOfRangeError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnauthenticatedError,
    UnavailableError,
    UnimplementedError,
    UnknownError,
)

__all__ = [
    "ABORTED",
    "ALREADY_EXISTS",
    "CANCELLED",
    "DATA_LOSS",
    "DEADLINE_EXCEEDED",
    "FAILED_PRECONDITION",
    "INTERNAL",
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "OK",
    "OUT_OF_RANGE",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "UNAUTHENTICATED",
    "UNAVAILABLE",
    "UNIMPLEMENTED",
    "UNKNOWN",
    "AbortedError",
    "AlreadyExistsError",
    "CancelledError",
    "DataLossError",
    "DeadlineExceededError",
    "FailedPreconditionError",
    "InternalError",
    "InvalidArgumentError",
    "NotFoundError",
    "OpError",
    "OutOfRangeError",
    "PermissionDeniedError",
    "ResourceExhaustedError",
    "UnauthenticatedError",
    "UnavailableError",
    "UnimplementedError",
    "UnknownError",
]

__getattr__ = speaking(__name__)

# The numbers of the errors, which each has as its `error_code`.
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
