"""TensorProto: tensors as protocol buffers."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from retrograde.ops.conversion import as_tensor
from retrograde.protobuf.messages import Descriptor, Field, Message
from retrograde.tensorflow_files.messages import TensorShapeProto
from retrograde.values import dtypes
from retrograde.values.dtypes import DType

_NAMES = {
    1: "DT_FLOAT",
    2: "DT_DOUBLE",
    3: "DT_INT32",
    4: "DT_UINT8",
    5: "DT_INT16",
    6: "DT_INT8",
    7: "DT_STRING",
    8: "DT_COMPLEX64",
    9: "DT_INT64",
    10: "DT_BOOL",
    14: "DT_BFLOAT16",
    17: "DT_UINT16",
    18: "DT_COMPLEX128",
    19: "DT_HALF",
    22: "DT_UINT32",
    23: "DT_UINT64",
}
_FIELDS = {  # the fields that hold single values
    "float32": "float_val",
    "float64": "double_val",
    "int32": "int_val",
    "uint8": "int_val",
    "int16": "int_val",
    "int8": "int_val",
    "uint16": "int_val",
    "string": "string_val",
    "complex64": "scomplex_val",
    "int64": "int64_val",
    "bool": "bool_val",
    "complex128": "dcomplex_val",
    "float16": "half_val",
    "bfloat16": "half_val",
    "uint32": "uint32_val",
    "uint64": "uint64_val",
}
_MAX_ELEMENTS = 1 << 40


class TensorProto(Message):
    """A tensor as a message, which `tf.make_tensor_proto` returns."""

    __slots__ = ()
    DESCRIPTOR: ClassVar = Descriptor(
        "tensorflow.TensorProto",
        (
            Field(1, "dtype", "enum", enum_names=_NAMES),
            Field(2, "tensor_shape", TensorShapeProto),
            Field(3, "version_number", "int32"),
            Field(4, "tensor_content", "bytes"),
            Field(5, "float_val", "float", repeated=True),
            Field(6, "double_val", "double", repeated=True),
            Field(7, "int_val", "int32", repeated=True),
            Field(8, "string_val", "bytes", repeated=True),
            Field(9, "scomplex_val", "float", repeated=True),
            Field(10, "int64_val", "int64", repeated=True),
            Field(11, "bool_val", "bool", repeated=True),
            Field(12, "dcomplex_val", "double", repeated=True),
            Field(13, "half_val", "int32", repeated=True),
            Field(16, "uint32_val", "uint32", repeated=True),
            Field(17, "uint64_val", "uint64", repeated=True),
        ),
    )


def make_tensor_proto(
    values: Any,
    dtype: Any = None,
    shape: Any = None,
    verify_shape: bool = False,
    allow_broadcast: bool = False,
) -> TensorProto:
    """Converts values to a `TensorProto`, whose bytes TensorFlow can read.

    With a larger `shape`, the last value is repeated. `verify_shape` refuses another shape.

    >>> proto = tf.make_tensor_proto([1.5, 2.5])
    >>> tf.make_ndarray(proto)
    array([1.5, 2.5], dtype=float32)
    """
    if values is None:
        raise ValueError("None values not supported.")
    kind = None if dtype is None else dtypes.as_dtype(dtype).numpy_dtype
    tensor = as_tensor(values, kind)
    array = np.asarray(tensor)
    sizes = list(array.shape) if shape is None else [int(n) for n in shape]
    if verify_shape and sizes != list(array.shape):
        raise TypeError(f"Expected Tensor's shape: {tuple(sizes)}, but got {array.shape}.")
    if array.size > math.prod(sizes) or (array.size < math.prod(sizes) and not array.size):
        raise ValueError(f"{array.size} values do not fit the shape {tuple(sizes)}.")
    proto = TensorProto(dtype=tensor.dtype.as_datatype_enum)
    proto.tensor_shape.SetInParent()
    for size in sizes:
        proto.tensor_shape.dim.add(size=size)
    if array.size > 1 and array.size == math.prod(sizes) and tensor.dtype != dtypes.string:
        proto.tensor_content = array.tobytes()
    else:
        getattr(proto, _FIELDS[tensor.dtype.name]).extend(_to_plain_values(array, tensor.dtype))
    return proto


def _to_plain_values(array: np.ndarray, dtype: DType) -> list:
    flat = array.reshape(-1)
    if dtype.name in ("float16", "bfloat16"):
        return flat.view(np.uint16).tolist()
    if dtype.is_complex:
        return flat.view(flat.real.dtype).tolist()
    return flat.tolist()


def make_ndarray(tensor: Any) -> np.ndarray:
    """Converts a `TensorProto` to an array.

    >>> tf.make_ndarray(tf.make_tensor_proto("a", shape=[2]))
    array([b'a', b'a'], dtype=object)
    """
    if not hasattr(tensor, "tensor_shape"):
        raise AttributeError(  # TensorFlow's class
            f"make_ndarray: expected a TensorProto. Received: {type(tensor).__name__}. Create one "
            "with tf.make_tensor_proto."
        )
    number, shape = tensor.dtype, [dim.size for dim in tensor.tensor_shape.dim]
    if number not in _NAMES:
        raise TypeError(f"Unsupported tensor type: {number}")
    kind = next(d for d in map(dtypes.as_dtype, _FIELDS) if d.as_datatype_enum == number)
    count = math.prod(shape)
    if min([0, *shape]) < 0 or count > _MAX_ELEMENTS:
        raise ValueError(f"No array has the shape {shape}.")
    if tensor.tensor_content:
        if len(tensor.tensor_content) != count * kind.size:
            raise ValueError(f"The size of the content does not match the shape {shape}.")
        return np.frombuffer(tensor.tensor_content, kind.numpy_dtype).copy().reshape(shape)
    values = np.asarray(_decode_values(getattr(tensor, _FIELDS[kind.name]), kind))
    if not len(values):
        return np.zeros(shape, kind.numpy_dtype)
    padding = np.repeat(values[-1:], max(0, count - len(values)))
    return np.concatenate([values, padding]).reshape(shape)


def _decode_values(values: Any, dtype: DType) -> np.ndarray:
    kind = dtype.numpy_dtype
    if dtype == dtypes.string:
        array = np.empty(len(values), object)
        array[:] = list(values)
        return array
    if dtype.name in ("float16", "bfloat16"):
        return np.array(values, np.int32).astype(np.uint16).view(kind)
    if dtype.is_complex:
        return np.array(values, np.zeros(0, kind).real.dtype).view(kind)
    return np.array(values).astype(kind)
