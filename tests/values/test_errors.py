"""TensorFlow's exception classes: error codes, constructor, pickling."""

import pickle

import pytest

import retrograde as tf
from retrograde.values import errors

CODES = {
    "CancelledError": 1,
    "UnknownError": 2,
    "InvalidArgumentError": 3,
    "DeadlineExceededError": 4,
    "NotFoundError": 5,
    "AlreadyExistsError": 6,
    "PermissionDeniedError": 7,
    "ResourceExhaustedError": 8,
    "FailedPreconditionError": 9,
    "AbortedError": 10,
    "OutOfRangeError": 11,
    "UnimplementedError": 12,
    "InternalError": 13,
    "UnavailableError": 14,
    "DataLossError": 15,
    "UnauthenticatedError": 16,
}


@pytest.mark.parametrize("name", CODES)
def test_the_constructor_matches_tensorflow(name):
    error = getattr(errors, name)(None, None, "what happened")

    assert isinstance(error, errors.OpError)
    assert isinstance(error, Exception)
    assert str(error) == error.message == "what happened"
    assert error.args == ("what happened",)
    assert error.error_code == CODES[name]
    assert error.op is error.node_def is None


@pytest.mark.parametrize("name", CODES)
def test_errors_survive_pickling(name):
    error = pickle.loads(pickle.dumps(getattr(errors, name)(None, None, "what happened")))

    assert type(error) is getattr(errors, name)
    assert error.message == "what happened"


def test_the_error_code_can_be_passed():
    assert errors.OpError(None, None, "m", 7).error_code == 7


def test_operations_raise_these_errors():
    with pytest.raises(errors.InvalidArgumentError) as raised:
        tf.constant([1.0]) + tf.constant([1])

    assert raised.value.message == str(raised.value)
    assert tf.errors.InvalidArgumentError is errors.InvalidArgumentError


def test_an_error_does_not_chain_the_error_of_the_kernel():
    with pytest.raises(errors.InvalidArgumentError) as raised:
        tf.constant([1.0, 2.0]) + tf.constant([1.0, 2.0, 3.0])

    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


def test_an_error_can_be_created_from_a_message():
    error = errors.InvalidArgumentError("what happened")

    assert str(error) == error.message == "what happened"
    assert error.node_def is None
