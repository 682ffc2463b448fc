"""Conversion of Python and NumPy values to arrays, with TensorFlow's dtype rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from retrograde.values import dtypes
from retrograde.values.arguments import brief as _brief
from retrograde.values.composites import CompositeTensor, NotOneTensor
from retrograde.values.dtypes import DType
from retrograde.values.errors import allocate, exhausted
from retrograde.values.holder import Holder
from retrograde.values.shapes import TensorShape

_INT32_MIN, _INT32_MAX = -(2**31), 2**31 - 1
_FLOAT32_MAX = float(np.finfo(np.float32).max)
_PYTHON_NUMBERS = (bool, int, float, complex)
_NESTED = frozenset({list, tuple, range})

MAX_AXES = 64  # NumPy's limit


class ConvertsItself(ValueError):
    """Raised for an object with `__tf_tensor__`, which returns a tensor instead of an array."""


def as_array(value: Any, dtype: np.dtype | None = None, hint: np.dtype | None = None) -> Any:
    """Converts a Python or NumPy value to a new array.

    Without `dtype`, Python numbers become int32, float32, bool or complex128. NumPy values keep
    their dtype, except integers in lists, as in TensorFlow. `hint` is a dtype to use if the value
    fits it.
    """
    if isinstance(value, (np.ndarray, np.generic)):
        return _from_numpy(value, dtype or hint)
    x = tensor_or_variable(value)
    if x is not None:
        return check_dtype(x._read()._array, dtype)
    if CONVERSIONS:
        tensor = convert_by_registered_function(value, dtype, hint)
        if tensor is not None:
            return tensor._array
    if hint is not None and dtype is None:
        try:
            return as_array(value, hint)
        except NotOneTensor:
            raise
        except (TypeError, ValueError):
            return as_array(value)
    if isinstance(value, _PYTHON_NUMBERS):
        return _from_number(value, dtype)
    if isinstance(value, (str, bytes)):
        return _from_leaves(np.array(value, object), value, dtype)
    if isinstance(value, (list, tuple, range)):
        return _from_sequence(value, dtype)
    return _from_object(value, dtype)


def check_dtype(array: Any, dtype: np.dtype | None) -> Any:
    """Returns `array` if it has the requested dtype. Conversion never casts a tensor."""
    if dtype is not None and array.dtype != dtype:
        raise ValueError(
            f"Tensor conversion requested dtype {dtypes.of(dtype).name} for a tensor with dtype "
            f"{dtypes.of(array.dtype).name}. Use tf.cast to change the dtype."
        )
    return array


def _from_numpy(value: Any, dtype: np.dtype | None) -> Any:
    if type(value) is not np.ndarray and isinstance(value, np.ndarray):
        value = np.asarray(value)  # the data of a masked array, a matrix or another subclass
    kind = value.dtype.kind
    if kind in "SU":
        value = np.asarray(value, object)
        return _from_leaves(value, value, dtype)
    if kind == "O" and not value.size:
        return _from_leaves(value, value, dtype)
    if kind == "O":
        return as_array(value.tolist(), dtype)
    if dtype is not None and (dtype.kind == "O" or (kind == "c" and dtype.kind != "c")):
        raise TypeError(f"Cannot convert a {value.dtype} array to dtype {dtypes.of(dtype).name}.")
    target = dtype or _dtype_of(value)
    try:
        with np.errstate(all="ignore"):
            if not value.ndim:
                return np.asarray(value).astype(target)[()]
            return value.astype(target, order="C")
    except MemoryError as error:
        raise exhausted(error, "conversion to a tensor") from None


def _dtype_of(value: Any) -> np.dtype:
    try:
        return dtypes.as_dtype(value.dtype).numpy_dtype
    except TypeError:
        raise ValueError(
            f"Cannot convert a NumPy array of dtype {value.dtype} to a tensor. Use astype with one "
            f"of {', '.join(d.name for d in dtypes.ALL)} first."
        ) from None


def _from_number(value: Any, dtype: np.dtype | None) -> Any:
    python_type = type(value)
    if python_type not in _PYTHON_NUMBERS:
        python_type = next(t for t in _PYTHON_NUMBERS if isinstance(value, t))
    if dtype is None:
        dtype = _default_dtype(python_type, [value])
    elif not _fits(python_type, dtype):
        raise _cannot_convert(value, dtype)
    if dtype.kind in "iu":
        return _integers(int(value), dtype)[()]
    with np.errstate(all="ignore"):
        try:
            return dtype.type(value)
        except OverflowError:
            raise _out_of_range(value, dtype) from None


def _integers(values: Any, dtype: np.dtype) -> np.ndarray:
    """Converts Python integers to `dtype`. Those that fit 64 bits wrap around."""
    try:
        return np.array(values, np.uint64 if dtype == np.uint64 else np.int64).astype(dtype)
    except OverflowError:
        pass
    try:
        return np.array(values, np.int64).astype(dtype)
    except OverflowError:
        raise _out_of_range(values, dtype) from None


def _out_of_range(values: Any, dtype: np.dtype) -> ValueError:
    return ValueError(
        f"A Python integer in {_brief(values)} is out of range for {dtypes.of(dtype).name}."
    )


def _cannot_convert(value: Any, dtype: np.dtype) -> TypeError:
    return TypeError(
        f"Cannot convert {_brief(value)} to a tensor of dtype {dtypes.of(dtype).name}."
    )


def _fits(python_type: type, dtype: np.dtype) -> bool:
    """Returns whether a Python number of this type can be converted to `dtype` implicitly."""
    if python_type is complex:
        return dtype.kind == "c"
    if python_type is float:
        return dtype in dtypes.INEXACT
    if python_type is int:
        return dtype in dtypes.NUMERIC
    return dtype.kind not in "O"


def _default_dtype(python_type: type, values: list) -> np.dtype:
    """Returns TensorFlow's dtype for Python numbers; the widest has `python_type`."""
    if python_type is bool:
        return dtypes.bool_.numpy_dtype
    if python_type is complex:
        return dtypes.complex128.numpy_dtype
    if python_type is float:
        for value in values:
            if _FLOAT32_MAX < abs(value) < float("inf"):
                raise ValueError(
                    f"The Python float {value!r} is out of range for float32. "
                    "Pass dtype=tf.float64 to keep it."
                )
        return dtypes.float32.numpy_dtype
    return _integer_dtype(min(values), max(values))


def _integer_dtype(low: int, high: int) -> np.dtype:
    if low >= _INT32_MIN and high <= _INT32_MAX:
        return dtypes.int32.numpy_dtype
    if low >= -(2**63) and high < 2**63:
        return dtypes.int64.numpy_dtype
    raise ValueError(f"Python integers from {low} to {high} are out of range for int64.")


def _from_sequence(value: Any, dtype: np.dtype | None) -> Any:
    if type(value) is range:
        return _from_range(value, dtype)
    leaves: list[Any] = []
    shape = shape_of_nested(value)
    try:
        rectangular = _collect(value, shape, leaves)
    except MemoryError as error:
        raise exhausted(error, "conversion to a tensor") from None
    types = set(map(type, leaves))
    if rectangular and types <= {bool, int, float, complex}:
        return _from_numbers(leaves, types, shape, value, dtype)
    if rectangular and types <= {str, bytes}:
        return _from_leaves(np.array(leaves, object).reshape(shape), value, dtype)
    return _from_parts(value, dtype)


def _from_range(value: range, dtype: np.dtype | None) -> np.ndarray:
    """Converts a `range` without creating a list, which may be too long."""
    if not value:
        return np.zeros(0, dtype or np.float32)
    if dtype is None:
        dtype = _default_dtype(int, [value[0], value[-1]])
    elif not _fits(int, dtype):
        raise _cannot_convert(value, dtype)
    if max(abs(value.start), abs(value.stop), abs(value.step)) >= 2**63:
        raise _out_of_range(value, dtype)
    ends = value.start, value.stop, value.step
    return allocate("conversion to a tensor", np.arange, *ends, np.int64).astype(dtype)


def _from_parts(value: Any, dtype: np.dtype | None) -> np.ndarray:
    """Converts a sequence that contains NumPy values or objects convertible to arrays."""
    leaves = allocate("conversion to a tensor", list, _leaves(value))
    arrays = [as_array(leaf) for leaf in leaves]
    if not leaves:
        raise ValueError("Can't convert a non-rectangular Python sequence to a tensor.")
    if dtype is None:
        dtype = _common_dtype(leaves, arrays)
    elif dtype.kind in "biu" and any(array.dtype in dtypes.INEXACT for array in arrays):
        raise _cannot_convert(value, dtype)
    parts = [as_array(element, dtype) for element in value]
    if len({part.shape for part in parts}) != 1:
        raise ValueError("Can't convert a non-rectangular Python sequence to a tensor.")
    return np.stack(parts)


def _leaves(value: Any, depth: int = 1) -> Iterator[Any]:
    if depth > MAX_AXES:
        raise nesting_error()
    for element in value:
        if type(element) is range:
            _length(element)
            yield from list(element)  # raises MemoryError right away if it is too long
        elif isinstance(element, (list, tuple)):
            yield from _leaves(element, depth + 1)
        else:
            yield element


def _common_dtype(leaves: list, arrays: list) -> np.dtype:
    """Returns TensorFlow's dtype for a list of NumPy values, which it treats like Python numbers.

    So integers become int32 or int64, and floats float32, unless the first value has a float dtype.
    If the list contains a tensor, its dtype is used.
    """
    for x in map(tensor_or_variable, leaves):
        if x is not None:
            return x._spec.dtype
    array_dtypes = [array.dtype for array in arrays]
    families = {d.kind if d.kind in "Ob" else "number" for d in array_dtypes}
    if len(families) > 1 and ("O" in families or array_dtypes[0].kind == "b"):
        names = ", ".join(sorted({dtypes.of(d).name for d in array_dtypes}))
        raise ValueError(f"Can't convert a Python sequence with mixed types to a tensor: {names}.")
    if any(d.kind == "c" for d in array_dtypes):
        return dtypes.complex128.numpy_dtype
    if any(d in dtypes.FLOATING for d in array_dtypes):
        return array_dtypes[0] if array_dtypes[0] in dtypes.FLOATING else dtypes.float32.numpy_dtype
    if array_dtypes[0].kind not in "iu":
        return array_dtypes[0]
    filled = [array for array in arrays if array.size]
    low = min((int(array.min()) for array in filled), default=0)
    high = max((int(array.max()) for array in filled), default=0)
    return _integer_dtype(low, high)


def shape_of_nested(value: Any) -> tuple[int, ...]:
    """Returns the shape of nested lists and tuples, following their first elements."""
    shape = []
    while isinstance(value, (list, tuple, range)):
        shape.append(_length(value))
        if not value:
            break
        if len(shape) > MAX_AXES:
            raise nesting_error()
        value = value[0]
    return tuple(shape)


def _length(value: Any) -> int:
    try:
        return len(value)
    except OverflowError:  # `len` of a long `range` overflows
        raise ValueError(f"{_brief(value)} has too many elements for a tensor.") from None


def nesting_error() -> ValueError:
    """Returns the error for lists nested deeper than the maximum number of axes."""
    return ValueError(
        f"Cannot convert a Python sequence that is nested more than {MAX_AXES} levels deep, or "
        "that contains itself, to a tensor."
    )


def _collect(value: Any, shape: tuple[int, ...], leaves: list) -> bool:
    """Appends the leaves of nested lists to `leaves`. Returns whether the lists have `shape`."""
    nested = isinstance(value, (list, tuple, range))
    if nested != bool(shape) or (nested and _length(value) != shape[0]):
        return False
    if not nested:
        leaves.append(value)
        return True
    if len(shape) == 1 and (type(value) is range or _NESTED.isdisjoint(map(type, value))):
        leaves.extend(value)
        return True
    return all(_collect(element, shape[1:], leaves) for element in value)


def _from_numbers(leaves: list, types: set, shape: tuple, value: Any, dtype: Any) -> np.ndarray:
    if not leaves:
        return np.zeros(shape, dtype or np.float32)
    numeric = dtype is not None and dtype.kind != "b"
    if type(leaves[0]) is bool and types != {bool} and not numeric:
        raise ValueError(
            "Can't convert a Python sequence with mixed types to a tensor: bool first."
        )
    widest = next(t for t in (complex, float, int, bool) if t in types)
    if dtype is None:
        dtype = _default_dtype(widest, leaves)
    elif not _fits(widest, dtype):
        raise _cannot_convert(value, dtype)
    if dtype.kind in "iu":
        return _integers(leaves, dtype).reshape(shape)
    with np.errstate(all="ignore"):
        try:
            return np.array(leaves, dtype).reshape(shape)
        except OverflowError:
            raise _out_of_range(value, dtype) from None


def _from_leaves(array: np.ndarray, value: Any, dtype: np.dtype | None) -> np.ndarray:
    if dtype is not None and dtype.kind != "O":
        raise _cannot_convert(value, dtype)
    encode = np.frompyfunc(lambda s: s.encode() if isinstance(s, str) else s, 1, 1)
    return np.asarray(encode(array), object)


def _is_sequence(kind: type) -> bool:
    """Returns whether objects of a class have a length and elements, but no keys."""
    names = ("__len__", "__getitem__")
    return all(hasattr(kind, name) for name in names) and not hasattr(kind, "keys")


def _from_object(value: Any, dtype: np.dtype | None) -> Any:
    """Converts an object of another class."""
    if isinstance(value, (DType, np.dtype)):
        raise ValueError(f"Attempt to convert a dtype ({value!r}) to a tensor.")
    if hasattr(value, "__tf_tensor__") and not isinstance(value, type):
        raise ConvertsItself(f"{_brief(value)} has __tf_tensor__. Expected a number or an array.")
    if isinstance(value, CompositeTensor):
        raise NotOneTensor(value)
    if _has_array(value):
        return _from_numpy(np.asarray(value), dtype)
    if isinstance(value, TensorShape):
        value.assert_is_fully_defined()
        sizes: Any = value.as_list()
        if dtype == np.int32 and max(sizes, default=0) >= 2**31:
            raise ValueError(
                f"Cannot convert a TensorShape to dtype int32: a dimension is too large: {value}. "
                "Consider using dtype int64."
            )
        return _from_sequence(sizes, dtype) if sizes else np.array([], dtype or np.int32)
    if isinstance(value, Sequence) or _is_sequence(type(value)):
        return _from_sequence(allocate("conversion to a tensor", list, value), dtype)
    raise ValueError(
        f"Attempt to convert a value ({_brief(value)}) with an unsupported type ({type(value)}) to "
        "a tensor. Expected a number, a string, a nested list of these, or an array."
    )


def _has_array(value: Any) -> bool:
    """Returns whether NumPy can read the elements of an object."""
    names = ("__array__", "__array_interface__")
    return any(hasattr(value, name) for name in names) and not isinstance(value, type)


def tensor_or_variable(value: Any) -> Any:
    """Returns the Tensor or Variable that `value` is or wraps, or `None`.

    Objects of other libraries can define a method `__retrograde_tensor__` that returns the Tensor
    or Variable they wrap.
    """
    if isinstance(value, Holder):
        return value
    method = getattr(type(value), "__retrograde_tensor__", None)
    return None if method is None else tensor_or_variable(method(value))


def source_of(value: Any) -> Any:
    """Returns the Tensor or Variable to differentiate with respect to for `value`, or `None`.

    It is `tensor_or_variable(value)`, unless `value` has a method `__retrograde_source__`, whose
    result is used instead. Objects that convert to a tensor computed from a variable need this.
    """
    if isinstance(value, Holder):
        return value
    method = getattr(type(value), "__retrograde_source__", None)
    return tensor_or_variable(value if method is None else method(value))


# Registered by `register_tensor_conversion_function`: (priority, types, function), in call order.
CONVERSIONS: list[tuple[int, tuple[type, ...], Callable]] = []


def convert_by_registered_function(
    value: Any, dtype: np.dtype | None, hint: np.dtype | None = None
) -> Any:
    """Converts `value` with a registered function; returns `None` if none applies."""
    if hint is not None and dtype is None:
        try:
            return convert_by_registered_function(value, hint)
        except (TypeError, ValueError, RuntimeError):
            return convert_by_registered_function(value, None)
    requested = None if dtype is None else dtypes.of(dtype)
    for _, types, function in CONVERSIONS:
        if isinstance(value, types):
            tensor = function(value, dtype=requested, name=None, as_ref=False)
            if tensor is not NotImplemented:
                return _check_result(tensor, requested, function, value)
    return None


def _check_result(tensor: Any, requested: DType | None, function: Callable, value: Any) -> Any:
    """Checks that a conversion function returned a Tensor of the requested dtype."""
    x = tensor_or_variable(tensor)
    if x is None:
        problem = f"non-Tensor: {tensor}"
    elif requested is not None and x.dtype is not requested:
        problem = f"incompatible dtype: requested = {requested.name}, actual = {x.dtype.name}"
    else:
        return x._read()
    raise RuntimeError(f"Conversion function {function} for type {type(value)} returned {problem}")
