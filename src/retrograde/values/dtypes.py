"""TensorFlow's dtypes, thin wrappers of NumPy dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import ml_dtypes
import numpy as np

from retrograde.values.arguments import shown


class DType:
    """A dtype, such as `tf.float32` or `tensor.dtype`.

    It compares equal to itself, to its NumPy dtype, and to its name.

    >>> tf.float32 == np.float32, tf.float32 == "float32", tf.float32.size
    (True, True, 4)
    """

    __slots__ = ("as_datatype_enum", "kind", "name", "numpy_dtype")

    kind: str

    def __init__(self, name: str, numpy_dtype: np.dtype, as_datatype_enum: int) -> None:
        self.name = name
        self.numpy_dtype = numpy_dtype
        self.kind = numpy_dtype.kind
        self.as_datatype_enum = as_datatype_enum

    @property
    def as_numpy_dtype(self) -> type:
        """The NumPy scalar type, such as `numpy.float32`; `object` for strings."""
        return object if self is string else self.numpy_dtype.type

    @property
    def base_dtype(self) -> DType:
        """This dtype; only TensorFlow 1 has reference dtypes."""
        return self

    @property
    def real_dtype(self) -> DType:
        """The dtype of the real part."""
        if not self.is_complex:
            return self
        return float32 if self is complex64 else float64

    @property
    def is_floating(self) -> bool:
        """Returns whether this is a real floating-point dtype, including `bfloat16`."""
        return self.numpy_dtype in FLOATING or self.name.startswith("float8")

    @property
    def is_complex(self) -> bool:
        """Returns whether this is `complex64` or `complex128`."""
        return self.numpy_dtype.kind == "c"

    @property
    def is_integer(self) -> bool:
        """Returns whether this is a signed or unsigned integer dtype."""
        return self.numpy_dtype.kind in "iu"

    @property
    def is_bool(self) -> bool:
        """Returns whether this is `bool`."""
        return self.numpy_dtype.kind == "b"

    @property
    def is_unsigned(self) -> bool:
        """Returns whether this is an unsigned integer dtype."""
        return self.numpy_dtype.kind == "u"

    @property
    def is_numeric(self) -> bool:
        """Returns whether arithmetic is defined: neither `bool` nor `string`."""
        return self.numpy_dtype.kind not in "bO"

    @property
    def is_quantized(self) -> bool:
        """Returns whether this is a quantized dtype, such as `qint8`."""
        return False

    @property
    def is_numpy_compatible(self) -> bool:
        """Returns whether NumPy has arrays of this dtype: all but `resource` and `variant`."""
        return True

    @property
    def size(self) -> int:
        """Bytes in one element; 0 for strings, as in TensorFlow."""
        return 0 if self is string else self.numpy_dtype.itemsize

    @property
    def min(self) -> Any:
        """The smallest value of this dtype."""
        return self._limit("min")

    @property
    def max(self) -> Any:
        """The largest value of this dtype."""
        return self._limit("max")

    @property
    def limits(self) -> tuple[Any, Any]:
        """The range of pixel values of this dtype: (0, 1) for floats, else (0, max)."""
        if not self.is_numeric or self.is_complex:
            raise ValueError(f"{self.name} has no limits. Expected an integer or a float dtype.")
        return (0, 1) if self.is_floating else (0, self.max)

    def _limit(self, end: str) -> Any:
        if self.is_integer:
            return int(getattr(np.iinfo(self.numpy_dtype), end))
        if self.is_floating:
            return self.as_numpy_dtype(getattr(ml_dtypes.finfo(self.numpy_dtype), end))
        raise TypeError(
            f"{self.name} has no {end} value: expected an integer or a real float dtype."
        )

    def is_compatible_with(self, other: Any) -> bool:
        """Returns whether `other` is this dtype, or its name."""
        return as_dtype(other) is self

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if other is None or other is int:  # which has no dtype in TensorFlow
            return False
        try:
            return as_dtype(other) is self
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.numpy_dtype)

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __str__(self) -> str:
        return f"<dtype: {self.name!r}>"

    def __reduce__(self) -> tuple:
        return as_dtype, (self.name,)


class _NameOnly(DType):
    """A dtype that programs can name, print and compare, but that no tensor can have."""

    __slots__ = ("_level",)

    def __init__(self, name: str, as_datatype_enum: int, level: DType | None = None) -> None:
        self.name = name
        self.kind = "-"
        self.as_datatype_enum = as_datatype_enum
        self._level: Any = level  # the integer dtype that stores quantized numbers

    @property
    def numpy_dtype(self) -> np.dtype:  # type: ignore[override]
        """Raises `TypeError`, because there are no arrays of this dtype."""
        instead = "" if self._level is None else f" Use {self._level.name} instead."
        raise TypeError(f"{self.name}: tensors of this dtype are not supported.{instead}")

    @property
    def as_numpy_dtype(self) -> Any:
        """As in TensorFlow, a structured dtype of integers."""
        return self.numpy_dtype if self._level is None else np.dtype([(self.name, self._number)])

    @property
    def _number(self) -> np.dtype:
        return self._level.numpy_dtype

    is_floating = is_complex = is_integer = is_bool = is_unsigned = False

    @property
    def is_quantized(self) -> bool:
        """Returns whether this is a quantized dtype, such as `qint8`."""
        return self._level is not None

    is_numeric = is_numpy_compatible = is_quantized

    @property
    def size(self) -> int:
        """Bytes in one element; 0 for `resource` and `variant`, as in TensorFlow."""
        return 0 if self._level is None else self._number.itemsize

    def __hash__(self) -> int:
        return hash(self.name)


float32 = DType("float32", np.dtype(np.float32), 1)
float64 = double = DType("float64", np.dtype(np.float64), 2)
int32 = DType("int32", np.dtype(np.int32), 3)
uint8 = DType("uint8", np.dtype(np.uint8), 4)
int16 = DType("int16", np.dtype(np.int16), 5)
int8 = DType("int8", np.dtype(np.int8), 6)
string = DType("string", np.dtype(object), 7)
complex64 = DType("complex64", np.dtype(np.complex64), 8)
int64 = DType("int64", np.dtype(np.int64), 9)
bool_ = DType("bool", np.dtype(np.bool_), 10)
bfloat16 = DType("bfloat16", np.dtype(ml_dtypes.bfloat16), 14)
uint16 = DType("uint16", np.dtype(np.uint16), 17)
complex128 = DType("complex128", np.dtype(np.complex128), 18)
float16 = half = DType("float16", np.dtype(np.float16), 19)
uint32 = DType("uint32", np.dtype(np.uint32), 22)
uint64 = DType("uint64", np.dtype(np.uint64), 23)

# Storage dtypes: they can be cast from and to, but no operation computes in them.
float8_e5m2 = DType("float8_e5m2", np.dtype(ml_dtypes.float8_e5m2), 24)
float8_e4m3fn = DType("float8_e4m3fn", np.dtype(ml_dtypes.float8_e4m3fn), 25)

qint8 = _NameOnly("qint8", 11, int8)
quint8 = _NameOnly("quint8", 12, uint8)
qint32 = _NameOnly("qint32", 13, int32)
qint16 = _NameOnly("qint16", 15, int16)
quint16 = _NameOnly("quint16", 16, uint16)
resource = _NameOnly("resource", 20)
variant = _NameOnly("variant", 21)
QUANTIZED_DTYPES = frozenset({qint8, quint8, qint32, qint16, quint16})

ALL = (
    float16, bfloat16, float32, float64, complex64, complex128,
    int8, int16, int32, int64, uint8, uint16, uint32, uint64, bool_, string,
)  # fmt: skip

FLOATING = frozenset(d.numpy_dtype for d in (float16, bfloat16, float32, float64))
SINGLE_AND_DOUBLE = frozenset({float32.numpy_dtype, float64.numpy_dtype})
COMPLEX = frozenset(d.numpy_dtype for d in (complex64, complex128))
INTEGER = frozenset(d.numpy_dtype for d in ALL if d.is_integer)
BOOL = frozenset({np.dtype(np.bool_)})
INEXACT = FLOATING | COMPLEX
SIGNED = INEXACT | frozenset(d for d in INTEGER if d.kind == "i")
REAL = FLOATING | INTEGER
NUMERIC = INEXACT | INTEGER
ANY = NUMERIC | BOOL | {np.dtype(object)}


class _ByNumPyDType(dict):
    def __missing__(self, numpy_dtype: Any) -> NoReturn:
        raise TypeError(f"A tensor cannot have the NumPy dtype {numpy_dtype}.")


_BY_NUMPY = _ByNumPyDType({d.numpy_dtype: d for d in (*ALL, float8_e5m2, float8_e4m3fn)})
_BY_NAME = {d.name: d for d in ALL} | {"double": float64, "half": float16, "float": float32}
_NAMES_ONLY = {d.name: d for d in (*QUANTIZED_DTYPES, resource, variant)}
_BY_ENUM = {d.as_datatype_enum: d for d in (*_BY_NUMPY.values(), *_NAMES_ONLY.values())}
_BY_PYTHON = {float: float32, int: int32, bool: bool_, complex: complex128, str: string}


def as_dtype(type_value: Any) -> DType:
    """Converts a DType, NumPy dtype, Python type or string to a `DType`.

    >>> tf.as_dtype("float32"), tf.as_dtype(np.int64), tf.as_dtype(float)
    (tf.float32, tf.int64, tf.float32)
    """
    if isinstance(type_value, DType):
        return type_value
    if type(type_value) is int and type_value in _BY_ENUM:  # of TensorFlow's protocol buffers
        return _BY_ENUM[type_value]
    try:
        result = _BY_PYTHON.get(type_value) or _BY_NAME.get(type_value)
        result = result or _NAMES_ONLY.get(type_value) or _by_numpy(np.dtype(type_value))
    except (TypeError, ValueError, SyntaxError, RecursionError, MemoryError):
        result = None  # NumPy raises these if the value is not a dtype
    if result is None or type_value is None:
        raise TypeError(
            f"Cannot convert {shown(type_value)} to a dtype. Expected a retrograde dtype, a "
            f"NumPy dtype, a Python number type, or one of {', '.join(sorted(_BY_NAME))}."
        )
    return result


def _by_numpy(dtype: np.dtype) -> DType | None:
    return string if dtype.kind in "SU" else _BY_NUMPY.get(dtype.newbyteorder("="))


def as_numpy(dtype: Any) -> np.dtype:
    """Converts `dtype` to a NumPy dtype. Raises `TypeError` if it is not a dtype."""
    try:
        return np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError, RecursionError):
        raise TypeError(f"Cannot convert {shown(dtype)} to a NumPy dtype.") from None


def is_known(numpy_dtype: np.dtype) -> bool:
    """Returns whether tensors can have this NumPy dtype."""
    return numpy_dtype in _BY_NUMPY


# Returns the `DType` for a NumPy dtype. It runs whenever a program reads `tensor.dtype`, so it is a
# lookup without a Python frame.
of: Callable[[np.dtype], DType] = _BY_NUMPY.__getitem__
