"""Argument values for invalid calls, as Python expressions, and the names they use."""

from __future__ import annotations

from typing import Any

import numpy as np

import retrograde as tf

_KINDS = {
    "sq": lambda x: x + np.diag(np.arange(1.0, x.shape[-1] + 1)),
    "spd": lambda x: x @ x.swapaxes(-1, -2) + np.diag(np.arange(1.0, x.shape[-1] + 1)),
    "tridiag": lambda x: x + np.array([[0.0], [2.0], [0.0]]),
    "tri": lambda x: np.tril(x) + np.eye(x.shape[-1]),
}


def S(*shape: int, lo: float = 0.2, hi: float = 0.8, kind: str = "") -> Any:
    """Returns a tensor of this shape with values between `lo` and `hi`."""
    if kind == "c":
        return tf.complex(S(*shape, lo=lo, hi=hi), S(*shape, lo=lo, hi=hi))
    if kind == "cspd":
        x = S(*shape, kind="spd")
        return tf.complex(x, tf.zeros_like(x))
    x = np.random.default_rng(0).uniform(lo, hi, shape)
    return tf.constant((_KINDS[kind](x) if kind else x).astype(np.float32))


def cyclic() -> list:
    """Returns a list that contains itself."""
    value: list = [1.0]
    value.append(value)
    return value


def deep(levels: int) -> list:
    """Returns a number inside nested lists."""
    value: Any = 1.0
    for _ in range(levels):
        value = [value]
    return value


def readonly() -> np.ndarray:
    """Returns a read-only array."""
    array = np.ones((2, 3), np.float32)
    array.flags.writeable = False
    return array


def same(*args: Any) -> Any:
    """Returns its first argument, or 1."""
    return args[0] if args else 1.0


class Odd:
    """A class without any methods."""


def names() -> dict[str, Any]:
    """Returns the names that the expressions use."""
    return {
        "tf": tf,
        "np": np,
        "S": S,
        "cyclic": cyclic,
        "deep": deep,
        "readonly": readonly,
        "same": same,
        "Odd": Odd,
    }


NUMBERS = (
    "0",
    "1",
    "-1",
    "2",
    "3",
    "-2",
    "7",
    "64",
    "1000",
    "-1000",
    "2**31",
    "-2**31-1",
    "2**63",
    "-2**63-1",
    "2**64",
    "10**30",
    "10**400",
    "0.0",
    "1.5",
    "-0.5",
    "1e300",
    "-1e300",
    "1e-300",
    "True",
    "False",
    "1j",
    "float('nan')",
    "float('inf')",
    "-float('inf')",
)

SCALARS = (
    "np.float32(1.5)",
    "np.float16(2)",
    "np.float64('nan')",
    "np.int8(-1)",
    "np.int64(2)",
    "np.int64(2**62)",
    "np.uint64(2**63)",
    "np.bool_(True)",
    "np.complex64(1j)",
    "np.str_('a')",
    "np.bytes_(b'a')",
    "np.datetime64('2020-01-01')",
    "np.timedelta64(1, 'D')",
    "np.longdouble(1.5)",
)

CLASSES = (
    "np.float32",
    "np.int64",
    "np.generic",
    "np.ndarray",
    "np.str_",
    "int",
    "float",
    "list",
    "dict",
    "object",
    "type",
    "Odd",
    "tf.Variable",  # not tf.Tensor: see NOT_CALLED
    "ValueError",
)

OTHERS = (
    "None",
    "...",
    "NotImplemented",
    "object()",
    "Odd()",
    "np",
    "same",
    "len",
    "lambda: 1.0",
    "lambda x: x",
    "lambda *a: None",
    "slice(None)",
    "slice(1, None, 0)",
    "slice(-5, 5, 2)",
    "range(3)",
    "range(0)",
    "range(10**18)",
    "iter([1, 2])",
    "(i for i in range(3))",
    "{'a': 1.0}",
    "{}",
    "{1: 2, 'a': None}",
    "{1, 2}",
    "frozenset()",
    "bytearray(b'ab')",
    "memoryview(b'abc')",
    "Exception('x')",
    "tf.float32",
    "tf.int32",
    "tf.string",
    "tf.bool",
    "tf.bfloat16",
    "tf.complex64",
    "tf.TensorShape(None)",
    "tf.TensorShape([None, 2])",
    "tf.TensorShape([2, 3])",
    "tf.TensorSpec([None], tf.float32)",
    "np.dtype('float32')",
    "np.dtype('O')",
    "np.dtype([('a', 'i4')])",
)

STRINGS = (
    "''",
    "'a'",
    "'text'",
    "'\\0'",
    "'é'",
    "'\\ud800'",
    "'%s %d {}'",
    "'float32'",
    "'SAME'",
    "'VALID'",
    "'NHWC'",
    "'ij,jk->ik'",
    "'1,2'",
    "'\"'",
    "'['",
    "'[' * 50",
    "'a' * 5000",
    "b''",
    "b'\\xff\\xfe'",
    "b'abcdefgh'",
)

LISTS = (
    "[]",
    "[[]]",
    "[[], []]",
    "()",
    "[0]",
    "[1]",
    "[-1]",
    "[2, 3]",
    "[1, 1, 1, 1]",
    "[-1, -1]",
    "[0, 0]",
    "[1.5]",
    "[2**31, 2**31]",
    "[10**5, 10**5]",
    "[10**6, 10**6, 10**6]",
    "[2**62, 2**62]",
    "[10**9]",
    "[1] * 40",
    "[None]",
    "[None, 1]",
    "[1, 'a']",
    "['a', b'b']",
    "[[1, 2], [3]]",
    "[[1.0], [2.0, 3.0]]",
    "[[[1]], [2]]",
    "[1, [2, 3]]",
    "[np.float32]",
    "[object()]",
    "[float('nan')]",
    "[True, 2]",
    "[1, 2.0, 3j]",
    "cyclic()",
    "[cyclic()]",
    "deep(40)",
    "deep(100)",
    "deep(3000)",
    "[np.zeros(2), np.zeros(3)]",
    "[tf.constant(1.0), tf.constant(1)]",
    "[tf.constant(1.0), None]",
)

ARRAYS = (
    "np.float32(1.0) * np.ones(())",
    "np.zeros((0,), np.float32)",
    "np.zeros((0, 3))",
    "np.zeros((2, 0, 3), np.int32)",
    "np.ones((2, 3), np.float32)",
    "np.ones((3,), np.int32)",
    "np.arange(12).reshape(3, 4)[::-1, ::2]",
    "np.ones((4, 4), np.float32).T[1:]",
    "np.broadcast_to(np.float32(1), (3, 4))",
    "readonly()",
    "np.ones((2, 3), bool)",
    "np.ones((2, 2), complex)",
    "np.array(['a', 'bc'])",
    "np.array([b'a', b'bc'])",
    "np.array([1, 'a', None], object)",
    "np.array([np.zeros(2), np.zeros(3)], object)",
    "np.array(None, object)",
    "np.zeros(3, [('a', 'i4'), ('b', 'f8')])",
    "np.array(['2020-01-01'], 'datetime64[D]')",
    "np.array([1], 'timedelta64[s]')",
    "np.ones(2, '>f4')",
    "np.ones(2, np.longdouble)",
    "np.ones((1,) * 30)",
    "np.ma.masked_array([1.0, 2.0], [True, False])",
    "np.matrix([[1.0, 2.0]])",
    "np.full((2, 2), np.nan)",
    "np.full(3, np.inf, np.float32)",
    "np.array([2**62, -2**62])",
    "np.array([255, 0], np.uint8)",
    "np.ones((2, 4, 4, 3), np.float32)",
)

TENSORS = (
    "tf.constant(1.0)",
    "tf.constant(2)",
    "tf.constant(-1)",
    "tf.constant(10**9)",
    "tf.constant('text')",
    "tf.constant(['a', 'b'])",
    "tf.constant(True)",
    "tf.constant([1, 2])",
    "tf.constant([-1, 5, 10**6])",
    "tf.constant([[1.0, 2.0], [3.0, 4.0]])",
    "tf.constant([1.0, float('nan')])",
    "tf.constant([1j])",
    "tf.constant(1.5, tf.float64)",
    "tf.constant([1.5], tf.bfloat16)",
    "tf.constant([1.5], tf.float16)",
    "tf.constant([3], tf.uint8)",
    "tf.constant([2**62], tf.int64)",
    "tf.zeros([0])",
    "tf.zeros([0], tf.int32)",
    "tf.zeros([3, 0])",
    "tf.zeros([0, 4, 4, 3])",
    "tf.zeros([0], tf.string)",
    "tf.ones([2, 3, 4])",
    "tf.ones([1, 1, 1, 1, 1, 1])",
    "tf.ones([1] * 20)",
    "S(3, 4)",
    "S(4, 4, kind='spd')",
    "S(2, 3, kind='c')",
    "tf.Variable([1.0, 2.0])",
    "tf.Variable(1)",
    "tf.ragged.constant([[1, 2], [3]])",
    "tf.ragged.constant([[1.0], []])",
    "tf.sparse.from_dense([[1.0, 0.0]])",
    "tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0]), tf.constant([3, 2]))",
    "tf.TensorArray(tf.float32, 2)",
    "tf.data.Dataset.range(3)",
    "tf.GradientTape()",
)

POOL = (*NUMBERS, *SCALARS, *CLASSES, *OTHERS, *STRINGS, *LISTS, *ARRAYS, *TENSORS)

# Objects whose methods are called.
OBJECTS = {
    "Tensor": "tf.constant([[1.0, 2.0], [3.0, 4.0]])",
    "integer Tensor": "tf.constant([3, 1, 2])",
    "string Tensor": "tf.constant(['a', 'b'])",
    "scalar Tensor": "tf.constant(1.5)",
    "Variable": "tf.Variable([[1.0, 2.0], [3.0, 4.0]])",
    "RaggedTensor": "tf.ragged.constant([[1.0, 2.0], [3.0]])",
    "SparseTensor": "tf.sparse.from_dense([[1.0, 0.0], [0.0, 2.0]])",
    "IndexedSlices": "tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0]), tf.constant([3, 2]))",
    "GradientTape": "tf.GradientTape(persistent=True)",
    "ForwardAccumulator": "tf.autodiff.ForwardAccumulator(tf.constant(1.0), tf.constant(1.0))",
    "Dataset": "tf.data.Dataset.from_tensor_slices([[1.0, 2.0], [3.0, 4.0]])",
    "range Dataset": "tf.data.Dataset.range(5)",
    "string Dataset": "tf.data.Dataset.from_tensors({'a': 'x', 'b': [1, 2]})",
    "Iterator": "iter(tf.data.Dataset.range(5))",
    "NumpyIterator": "tf.data.Dataset.range(5).as_numpy_iterator()",
    "Options": "tf.data.Options()",
    "Function": "tf.function(lambda x: x * 2.0)",
    "compiled Function": "tf.function(lambda x: x * 2.0, jit_compile=True)",
    "ConcreteFunction": "tf.function(lambda x: x * 2.0).get_concrete_function(tf.TensorSpec([2]))",
    "TensorShape": "tf.TensorShape([2, None])",
    "TensorSpec": "tf.TensorSpec([2, None], tf.float32)",
    "RaggedTensorSpec": "tf.RaggedTensorSpec([2, None], tf.float32)",
    "SparseTensorSpec": "tf.SparseTensorSpec([2, None], tf.float32)",
    "DType": "tf.float32",
    "DeviceSpec": "tf.DeviceSpec(device_type='CPU', device_index=0)",
    "TensorArray": "tf.TensorArray(tf.float32, 3)",
    "Generator": "tf.random.Generator.from_seed(1)",
    "Module": "tf.Module()",
    "Checkpoint": "tf.train.Checkpoint(v=tf.Variable(1.0))",
    "CheckpointManager": "tf.train.CheckpointManager(tf.train.Checkpoint(), 'manager', 2)",
    "ExponentialMovingAverage": "tf.train.ExponentialMovingAverage(0.9)",
    "SummaryWriter": "tf.summary.create_file_writer('logs')",
    "GFile": "tf.io.gfile.GFile('file', 'w')",
    "CriticalSection": "tf.CriticalSection()",
    "zeros_initializer": "tf.zeros_initializer()",
    "random_normal_initializer": "tf.random_normal_initializer()",
    "UnconnectedGradients": "tf.UnconnectedGradients.NONE",
}
