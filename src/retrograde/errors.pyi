from retrograde.values.errors import ABORTED as ABORTED
from retrograde.values.errors import ALREADY_EXISTS as ALREADY_EXISTS
from retrograde.values.errors import CANCELLED as CANCELLED
from retrograde.values.errors import DATA_LOSS as DATA_LOSS
from retrograde.values.errors import DEADLINE_EXCEEDED as DEADLINE_EXCEEDED
from retrograde.values.errors import FAILED_PRECONDITION as FAILED_PRECONDITION
from retrograde.values.errors import INTERNAL as INTERNAL
from retrograde.values.errors import INVALID_ARGUMENT as INVALID_ARGUMENT
from retrograde.values.errors import NOT_FOUND as NOT_FOUND
from retrograde.values.errors import OK as OK
from retrograde.values.errors import OUT_OF_RANGE as OUT_OF_RANGE
from retrograde.values.errors import PERMISSION_DENIED as PERMISSION_DENIED
from retrograde.values.errors import RESOURCE_EXHAUSTED as RESOURCE_EXHAUSTED
from retrograde.values.errors import UNAUTHENTICATED as UNAUTHENTICATED
from retrograde.values.errors import UNAVAILABLE as UNAVAILABLE
from retrograde.values.errors import UNIMPLEMENTED as UNIMPLEMENTED
from retrograde.values.errors import UNKNOWN as UNKNOWN
from retrograde.values.errors import AbortedError as AbortedError
from retrograde.values.errors import AlreadyExistsError as AlreadyExistsError
from retrograde.values.errors import CancelledError as CancelledError
from retrograde.values.errors import DataLossError as DataLossError
from retrograde.values.errors import DeadlineExceededError as DeadlineExceededError
from retrograde.values.errors import FailedPreconditionError as FailedPreconditionError
from retrograde.values.errors import InternalError as InternalError
from retrograde.values.errors import InvalidArgumentError as InvalidArgumentError
from retrograde.values.errors import NotFoundError as NotFoundError
from retrograde.values.errors import (
    OperatorNotAllowedInGraphError as OperatorNotAllowedInGraphError,
)
from retrograde.values.errors import OpError as OpError
from retrograde.values.errors import OutOfRangeError as OutOfRangeError
from retrograde.values.errors import PermissionDeniedError as PermissionDeniedError
from retrograde.values.errors import ResourceExhaustedError as ResourceExhaustedError
from retrograde.values.errors import UnauthenticatedError as UnauthenticatedError
from retrograde.values.errors import UnavailableError as UnavailableError
from retrograde.values.errors import UnimplementedError as UnimplementedError
from retrograde.values.errors import UnknownError as UnknownError
