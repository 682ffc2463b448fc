"""Tests error messages word for word."""

import numpy as np
import pytest

import retrograde as tf

Invalid = tf.errors.InvalidArgumentError


def ones(*shape):
    return tf.ones(shape)


def variable():
    return tf.Variable([1.0, 2.0], name="w")


NUMBERS = (
    "float16, bfloat16, float32, float64, complex64, complex128, int8, int16, int32, int64, "
    "uint8, uint16, uint32, uint64"
)
INDEX = (
    "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar "
    "tf.int32/tf.int64 tensors are valid indices, got "
)

MESSAGES = [
    # Shapes
    (
        lambda: ones(2, 3) @ ones(2, 3),
        Invalid,
        "matmul: the inner dimensions differ, 3 and 2.\n"
        "  a: shape (2, 3)\n"
        "  b: shape (2, 3)\n"
        "Expected a.shape[-1] == b.shape[-2]. They agree with transpose_b=True.",
    ),
    (
        lambda: tf.matmul(ones(2, 3), ones(2, 4)),
        Invalid,
        "matmul: the inner dimensions differ, 3 and 2.\n"
        "  a: shape (2, 3)\n"
        "  b: shape (2, 4)\n"
        "Expected a.shape[-1] == b.shape[-2]. They agree with transpose_a=True.",
    ),
    (
        lambda: tf.matmul(ones(2, 3), ones(4, 5)),
        Invalid,
        "matmul: the inner dimensions differ, 3 and 4.\n"
        "  a: shape (2, 3)\n"
        "  b: shape (4, 5)\n"
        "Expected a.shape[-1] == b.shape[-2].",
    ),
    (
        lambda: tf.matmul(ones(2, 3), ones(2, 3), transpose_a=True, transpose_b=True),
        Invalid,
        "matmul: the inner dimensions differ, 2 and 3.\n"
        "  a: shape (2, 3), transposed\n"
        "  b: shape (2, 3), transposed\n"
        "Expected a.shape[-2] == b.shape[-1].",
    ),
    (
        lambda: ones(3) @ ones(3, 1),
        Invalid,
        "matmul: In[0] has ndims 1 and In[1] has ndims 2. Expected at least 2 axes each: use "
        "tf.linalg.matvec or tf.tensordot for vectors.",
    ),
    (
        lambda: ones(2, 2, 3) @ ones(3, 3, 2),
        Invalid,
        "matmul: the batch axes of (2, 2, 3) and (3, 3, 2) do not broadcast.",
    ),
    (
        lambda: ones(2, 3) + ones(2, 4),
        Invalid,
        "add: incompatible shapes (2, 3) and (2, 4). Expected shapes that broadcast: aligned at "
        "their last axes, each pair of dimensions is equal or one of them is 1.",
    ),
    (
        lambda: tf.reshape(ones(2, 3), [4]),
        Invalid,
        "reshape: a tensor of shape (2, 3) has 6 values, but the requested shape (4,) has 4. "
        "Expected the same number.",
    ),
    (
        lambda: tf.reshape(ones(2, 3), [-1, 4]),
        Invalid,
        "reshape: a tensor of shape (2, 3) has 6 values, which do not match shape (-1, 4). "
        "Expected a multiple of 4.",
    ),
    (
        lambda: tf.concat([ones(2, 3), ones(2, 4)], 0),
        Invalid,
        "concat: shapes (2, 3), (2, 4) cannot be joined along axis 0. Expected equal dtypes, "
        "and equal shapes except along that axis.",
    ),
    (
        lambda: tf.stack([ones(2), ones(3)]),
        Invalid,
        "stack: shapes (2,), (3,) differ. Expected equal shapes.",
    ),
    (
        lambda: tf.broadcast_to(ones(3), [2, 2]),
        Invalid,
        "broadcast_to: shape (3,) does not broadcast to (2, 2). Expected each dimension, from the "
        "last, to be 1 or equal to the new one.",
    ),
    (
        lambda: tf.reduce_sum(ones(2), axis=1),
        Invalid,
        "reduce_sum: axis 1 is out of range for a tensor of rank 1. Expected -1 <= axis < 1.",
    ),
    (
        lambda: tf.reduce_sum(ones(2), axis=[0, 0]),
        Invalid,
        "reduce_sum: an axis is repeated in [0, 0]. Expected distinct axes.",
    ),
    # Dtypes
    (
        lambda: tf.constant([1.0]) + tf.constant([1]),
        Invalid,
        "cannot compute add as input #1(zero-based) was expected to be a float32 tensor but is a "
        "int32 tensor. Use tf.cast on one of them.",
    ),
    (
        lambda: tf.constant([1]) + 1.5,
        Invalid,
        "cannot compute add as input #1(zero-based) was expected to be a int32 tensor but is a "
        "float32 tensor. Use tf.cast on one of them.",
    ),
    (
        lambda: tf.constant([True]) + tf.constant([True]),
        Invalid,
        f"add: dtype bool is not supported. Expected one of {NUMBERS}.",
    ),
    (
        lambda: tf.exp(tf.constant([1])),
        Invalid,
        "exp: dtype int32 is not supported. Expected one of float16, bfloat16, float32, float64, "
        "complex64, complex128.",
    ),
    (
        lambda: tf.convert_to_tensor(tf.constant(1.0), tf.float64),
        ValueError,
        "Tensor conversion requested dtype float64 for a tensor with dtype float32. Use tf.cast "
        "to change the dtype.",
    ),
    # Values
    (
        lambda: tf.constant([1]) // tf.constant([0]),
        Invalid,
        "Integer division by zero. Expected a divisor without zeros.",
    ),
    (
        lambda: tf.gather(ones(3), [0, 3]),
        Invalid,
        "indices[1] = 3 is not in [0, 3).",
    ),
    (
        lambda: tf.gather(ones(3), [[0], [-1]]),
        Invalid,
        "indices[1, 0] = -1 is not in [0, 3).",
    ),
    (
        lambda: tf.nn.sparse_softmax_cross_entropy_with_logits([3], [[1.0, 2.0]]),
        Invalid,
        "Received a label value of 3 which is outside the valid range of [0, 2): the logits have "
        "2 classes.",
    ),
    # Conversion
    (
        lambda: tf.constant([[1], [2, 3]]),
        ValueError,
        "Can't convert a non-rectangular Python sequence to a tensor.",
    ),
    (
        lambda: tf.constant([1, "a"]),
        ValueError,
        "Can't convert a Python sequence with mixed types to a tensor: int32, string.",
    ),
    (
        lambda: tf.constant(None),
        ValueError,
        "Attempt to convert a value (None) with an unsupported type (<class 'NoneType'>) to a "
        "tensor. Expected a number, a string, a nested list of these, or an array.",
    ),
    (
        lambda: tf.constant(1e40),
        ValueError,
        "The Python float 1e+40 is out of range for float32. Pass dtype=tf.float64 to keep it.",
    ),
    (
        lambda: tf.constant(1.5, tf.int32),
        TypeError,
        "Cannot convert 1.5 to a tensor of dtype int32.",
    ),
    # Indexing
    (
        lambda: ones(2)[2],
        Invalid,
        "slice index 2 of dimension 0 out of bounds: it has size 2.",
    ),
    (
        lambda: ones(2)[0, 0],
        Invalid,
        "Index out of range using input dim 1; input has only 1 dims.",
    ),
    (lambda: ones(2)[1.5], TypeError, f"{INDEX}1.5."),
    # Conversion to Python
    (
        lambda: bool(ones(2)),
        ValueError,
        "The truth value of a tensor of shape (2,) is ambiguous. Expected one element: use "
        "tf.reduce_any or tf.reduce_all first.",
    ),
    (
        lambda: float(ones(1)),
        TypeError,
        "Only scalar tensors can be converted to Python scalars. Received: shape (1,). "
        "Index one element first.",
    ),
    (
        lambda: {ones(1): 0},
        TypeError,
        "Tensor is unhashable. Instead, use tensor.ref() as the key.",
    ),
    (
        lambda: ones(2).T,
        AttributeError,
        "Tensor has no attribute 'T', as in TensorFlow: use tf.transpose(x).",
    ),
    (
        lambda: ones(2).op,
        AttributeError,
        "Tensor.op is undefined when eager execution is enabled.",
    ),
    # Variables
    (
        lambda: tf.Variable(),
        ValueError,
        "The `initial_value` arg to `tf.Variable` must be specified. Pass a value, or a function "
        "without arguments that returns one.",
    ),
    (
        lambda: variable().assign([1.0]),
        ValueError,
        "Cannot assign value to variable 'w:0': Shape mismatch. The variable shape (2,), and the "
        "assigned value shape (1,) are incompatible.",
    ),
    (
        lambda: variable().assign_add(1.0),
        Invalid,
        "assign_add: cannot update variable 'w:0' of shape (2,) with a value of shape (). Expected "
        "the same shape: there is no broadcasting.",
    ),
    (
        lambda: variable()[1:].assign([1.0, 2.0]),
        Invalid,
        "assign: cannot broadcast a value of shape (2,) into a slice of shape (1,) of variable "
        "'w:0'.",
    ),
    (
        lambda: variable().scatter_add(tf.IndexedSlices([1.0], [5])),
        Invalid,
        "indices[0] = 5 is not in [0, 2), the rows of variable 'w:0' of shape (2,).",
    ),
    (
        lambda: variable().__iadd__(1.0),
        RuntimeError,
        "`var += value` with `tf.Variable`s is not supported. Use `var.assign_add(value)` to "
        "modify the variable, or `out = var + value` if you need to get a new output Tensor.",
    ),
    # Tapes
    (
        lambda: tf.GradientTape().watch(3.0),
        ValueError,
        "Passed in object 3.0 of type 'float', not tf.Tensor or tf.Variable. Convert it with "
        "tf.constant first, and use that tensor from then on.",
    ),
    (
        lambda: tf.GradientTape().gradient(ones(1), 3.0),
        TypeError,
        "A source of gradient() must be a tensor or a variable. Received: 3.0 of type 'float'.",
    ),
    (
        lambda: tf.GradientTape().gradient(None, ones(1)),
        TypeError,
        "A target of gradient() must be a tensor or a variable. Received: None of type 'NoneType'.",
    ),
    (
        lambda: tf.GradientTape().gradient([ones(1), ones(1)], [], [ones(1)]),
        ValueError,
        "gradient() received 1 output_gradients for 2 targets. Expected one for each target, or "
        "None for ones.",
    ),
    (
        lambda: tf.GradientTape().gradient(ones(2), [], ones(3)),
        Invalid,
        "gradient: incompatible shapes: an output gradient has shape (3,), but its target has "
        "shape (2,).",
    ),
    (
        lambda: tf.GradientTape().gradient(ones(2), [], tf.constant([1, 2])),
        Invalid,
        "gradient: an output gradient has dtype int32, but its target has dtype float32. Use "
        "tf.cast.",
    ),
    (
        lambda: tf.GradientTape().gradient(ones(2), [], unconnected_gradients="nil"),
        ValueError,
        "Unknown value for unconnected_gradients: 'nil'. Expected 'none' or 'zero'.",
    ),
    (
        lambda: tf.convert_to_tensor(tf.IndexedSlices(ones(1), tf.constant([0]))),
        ValueError,
        "Tensor conversion requested for IndexedSlices without dense_shape: "
        "IndexedSlices(indices=tf.Tensor([0], shape=(1,), dtype=int32), "
        "values=tf.Tensor([1.], shape=(1,), dtype=float32)). Pass dense_shape when you "
        "create them.",
    ),
]


@pytest.mark.parametrize(
    ("call", "error", "message"), MESSAGES, ids=[message[:50] for _, _, message in MESSAGES]
)
def test_message(call, error, message):
    with pytest.raises(Exception) as raised:
        call()

    assert type(raised.value) is error
    assert str(raised.value) == message


def test_message_of_a_used_tape():
    x = tf.Variable(2.0)

    with tf.GradientTape() as tape:
        y = x * x
    tape.gradient(y, x)

    with pytest.raises(RuntimeError) as raised:
        tape.gradient(y, x)

    line = test_message_of_a_used_tape.__code__.co_firstlineno + 5
    assert str(raised.value) == (
        "A non-persistent GradientTape can only be used to compute one set of gradients (or "
        f"jacobians), and this one was used at {__file__}:{line}: tape.gradient(y, x).\n"
        "Compute all gradients in one call, gradient(target, [source_1, source_2, ...]), or create "
        "the tape with tf.GradientTape(persistent=True)."
    )


def test_message_of_a_tape_that_is_entered_twice():
    with tf.GradientTape() as tape, pytest.raises(ValueError) as raised:
        tape.__enter__()

    assert str(raised.value) == (
        "Tape is still recording. This can happen if you try to re-enter an already-active tape."
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda: tf.constant([1.5] * 100_000, tf.int32),
        lambda: tf.constant(np.zeros(100_000, "U1"), tf.int32),
        lambda: tf.constant([[2**63] * 100] * 100),
        lambda: tf.constant("a" * 100_000, tf.float32),
        lambda: tf.constant({i: i for i in range(100_000)}),
        lambda: tf.constant(10**1000, tf.float32),
        lambda: tf.ones(2) + np.zeros(100_000, "U1"),
    ],
)
def test_messages_with_long_values_are_short(call):
    with pytest.raises((TypeError, ValueError, Invalid)) as raised:
        call()

    assert len(str(raised.value)) < 400
