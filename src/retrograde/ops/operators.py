"""Defines the Python operators of Tensor, Variable and Batched."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from retrograde.core.apply import PRIMITIVES, Primitive, apply
from retrograde.core.batching import Batched
from retrograde.core.tensor import Tensor, wrap
from retrograde.core.variable import Variable
from retrograde.ops import arithmetic as ar
from retrograde.ops.casting import to_dtype
from retrograde.ops.complex_numbers import complex_abs
from retrograde.ops.contraction import matmul
from retrograde.ops.conversion import as_tensor
from retrograde.ops.slicing import get_item, get_item_of_variable
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.composites import CompositeTensor, NotOneTensor
from retrograde.values.errors import InvalidArgumentError
from retrograde.values.holder import Holder
from retrograde.values.shapes import broadcast

_LARGEST = 65504  # of float16: numbers up to this overflow in no dtype


@functools.lru_cache(maxsize=256)
def _constant(value: Any, dtype: np.dtype, as_array: bool) -> Tensor:
    """Returns a number as a cached tensor. Not for zeros: 0.0 and -0.0 have the same cache key.

    NumPy is fastest with two scalars or two arrays.
    """
    scalar = dtype.type(value)
    return wrap(np.asarray(scalar) if as_array else scalar)


def operand(other: Any, like: Tensor) -> Tensor:
    """Converts `other` to a tensor; numbers and arrays take the dtype of `like` if they fit."""
    kind = type(other)
    if kind is float or kind is int:
        spec = like._spec
        dtype = spec.dtype
        fits = dtype in (dtypes.INEXACT if kind is float else dtypes.FLOATING)
        if fits and -_LARGEST <= other <= _LARGEST:
            return _constant(other, dtype, spec.ndim > 0) if other else wrap(dtype.type(other))
    elif isinstance(other, Holder):
        return other._read()
    dtype = like._spec.dtype
    tensor = as_tensor(other, hint=dtype)
    if tensor._spec.dtype.kind == "O" and dtype.kind != "O":
        raise TypeError(f"Cannot convert {shown(other)} to a tensor of dtype {like.dtype.name}.")
    return tensor


def _binary(primitive: Primitive, bool_primitive: Primitive | None = None) -> Any:
    """Creates an operator method, which defers to a composite tensor on its right.

    `bool_primitive` is applied to booleans, if it differs from `primitive`.
    """

    def method(self, other):
        if type(other) is Variable:
            other = other._read()
        elif type(other) is not Tensor:
            try:
                other = operand(other, self)
            except (TypeError, ValueError) as error:
                if type(error) is NotOneTensor or _reflects(other, primitive):
                    return NotImplemented
                raise
        try:
            return apply(primitive, (self, other))
        except InvalidArgumentError:
            return _apply_to_bools(bool_primitive, self, other)

    return method


# The method with which the right operand can implement an operator, by the name of the primitive.
_REFLECTED = {
    "add": "__radd__",
    "subtract": "__rsub__",
    "multiply": "__rmul__",
    "divide": "__rtruediv__",
    "floor_divide": "__rfloordiv__",
    "mod": "__rmod__",
    "power": "__rpow__",
    "matmul": "__rmatmul__",
    "logical_and": "__rand__",
    "logical_or": "__ror__",
    "logical_xor": "__rxor__",
}


def _reflects(other: Any, primitive: Primitive) -> bool:
    """Returns whether the class of `other`, which is not a tensor, implements the operator."""
    name = _REFLECTED.get(primitive.name)
    kind = type(other)
    return name is not None and kind.__module__ != "builtins" and hasattr(kind, name)


def _apply_to_bools(bool_primitive: Primitive | None, x1: Tensor, x2: Tensor) -> Tensor:
    """Applies `bool_primitive` after `primitive` refused booleans; else raises its error again."""
    if bool_primitive is None or not x1._spec.dtype == x2._spec.dtype == bool:
        raise
    return apply(bool_primitive, (x1, x2))


def _reflect(method: Any) -> Any:
    def reflected(self, other):
        return method(operand(other, self), self)

    return reflected


def _reflected_operator(primitive: Primitive, bool_primitive: Primitive | None = None) -> Any:
    def reflected(self, other):
        other = operand(other, self)
        try:
            return apply(primitive, (other, self))
        except InvalidArgumentError:
            return _apply_to_bools(bool_primitive, other, self)

    return reflected


def _with_read(method: Any) -> Any:
    """Creates the method of a Variable that calls the Tensor method on its current value."""

    def on_variable(self, *args):
        return method(self._read(), *args)

    return on_variable


def true_divide(x1: Tensor, x2: Tensor) -> Tensor:
    """Computes `x1 / x2`. Integers of 8 and 16 bits become float32, larger ones float64."""
    dtype = x1._spec.dtype
    if dtype.kind in "iu" and x2._spec.dtype == dtype:
        wide = np.dtype(np.float32 if dtype.itemsize < 4 else np.float64)
        x1, x2 = to_dtype(x1, wide), to_dtype(x2, wide)
    return apply(ar.divide, (x1, x2))


def dtype_mismatch_message(op_name: str, x1: Tensor, x2: Tensor) -> str | None:
    """Returns the message for different dtypes, a `TypeError` in TensorFlow; else `None`."""
    if x1._spec.dtype == x2._spec.dtype:
        return None
    return (
        f"{op_name}: `x` and `y` must have the same dtype. Received: {x1.dtype.name} and "
        f"{x2.dtype.name}. Use tf.cast on one of them."
    )


def _truediv(self, other):
    if type(other) is not Tensor:
        try:
            other = operand(other, self)
        except (TypeError, ValueError) as error:
            if type(error) is NotOneTensor or _reflects(other, ar.divide):
                return NotImplemented
            raise
    try:
        if self._spec.dtype in dtypes.INEXACT:
            return apply(ar.divide, (self, other))
        return true_divide(self, other)
    except InvalidArgumentError as error:
        if error.in_function is not TypeError:
            raise
        message = dtype_mismatch_message("divide", self, other) or error.message
        raise TypeError(message) from None


_power = _binary(ar.power)


def _pow(self, other):
    if (type(other) is int or type(other) is float) and other == 2:
        return apply(ar.square, (self,))
    return _power(self, other)


def _logical_or_bitwise(logical: Primitive, bitwise: Primitive) -> Any:
    logical, bitwise = _binary(logical), _binary(bitwise)

    def method(self, other):
        return (logical if self._spec.dtype == bool else bitwise)(self, other)

    return method


def _invert(self):
    return apply(ar.logical_not if self._spec.dtype == bool else ar.invert, (self,))


def absolute_of(x: Tensor) -> Tensor:
    """Computes `|x|`, which is real also for complex numbers."""
    return apply(complex_abs if x._spec.dtype.kind == "c" else ar.absolute, (x,))


def _equality(primitive: Primitive, if_incomparable: bool) -> Any:
    def method(self, other):
        if other is None:
            return if_incomparable
        try:
            other = operand(other, self)
        except NotOneTensor:
            return NotImplemented
        x1, x2 = self._array, other._array
        if x1.dtype == x2.dtype and broadcast(x1.shape, x2.shape) is None:
            return Tensor(np.bool_(if_incomparable))
        return apply(primitive, (self, other))

    return method


_ARITHMETIC = {
    "add": _binary(ar.add),
    "sub": _binary(ar.subtract),
    "mul": _binary(ar.multiply, bool_primitive=ar.logical_and),
    "truediv": _truediv,
    "floordiv": _binary(ar.floor_divide),
    "mod": _binary(ar.mod),
    "pow": _pow,
    "matmul": _binary(matmul),
    "and": _logical_or_bitwise(ar.logical_and, ar.bitwise_and),
    "or": _logical_or_bitwise(ar.logical_or, ar.bitwise_or),
    "xor": _logical_or_bitwise(ar.logical_xor, ar.bitwise_xor),
}
_METHODS = {
    **{f"__{name}__": method for name, method in _ARITHMETIC.items()},
    **{f"__r{name}__": _reflect(method) for name, method in _ARITHMETIC.items()},
    "__radd__": _reflected_operator(ar.add),
    "__rsub__": _reflected_operator(ar.subtract),
    "__rmul__": _reflected_operator(ar.multiply, bool_primitive=ar.logical_and),
    "__eq__": _equality(ar.equal, False),
    "__ne__": _equality(ar.not_equal, True),
    "__lt__": _binary(ar.less),
    "__le__": _binary(ar.less_equal),
    "__gt__": _binary(ar.greater),
    "__ge__": _binary(ar.greater_equal),
    "__neg__": lambda self: apply(ar.negative, (self,)),
    "__abs__": absolute_of,
    "__invert__": _invert,
    "__getitem__": get_item,
}


def _refuse(sign: str, instead: str) -> Any:
    message = (
        f"`var {sign}= value` with `tf.Variable`s is not supported. Use {instead} to modify the "
        f"variable, or `out = var {sign} value` if you need to get a new output Tensor."
    )

    def method(*_):
        raise RuntimeError(message)

    return method


_IN_PLACE = {
    "__iadd__": _refuse("+", "`var.assign_add(value)`"),
    "__isub__": _refuse("-", "`var.assign_sub(value)`"),
    "__imul__": _refuse("*", "`var.assign(var * value)`"),
    "__itruediv__": _refuse("/", "`var.assign(var / value)`"),
    "__ipow__": _refuse("**", "`var.assign(var ** value)`"),
}


# Rules compute with Batched values as with NumPy arrays. NumPy's ufuncs are named like primitives.

_UFUNCS = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "pow": "power",
    "and": "logical_and",
    "or": "logical_or",
    "xor": "logical_xor",
}
_COMPARISONS = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
_UNARY = {"neg": "negative", "abs": "absolute", "invert": "logical_not"}


def _on_batches(primitive: Primitive, reflected: bool = False) -> Any:
    def method(self, other):
        other = other if hasattr(other, "dtype") else self.dtype.type(other)
        return primitive(other, self) if reflected else primitive(self, other)

    return method


def _unary(self, primitive):
    return primitive(self)


def _array_ufunc(self, ufunc, method, *inputs, **options):
    """Implements `__array_ufunc__`: applies the primitive with the name of the ufunc."""
    primitive = PRIMITIVES.get(ufunc.__name__)
    if primitive is None or method != "__call__" or options:
        self._refuse()
    return primitive(*inputs)


def _bind_batches() -> None:
    for name, primitive in {**_UFUNCS, **_COMPARISONS}.items():
        setattr(Batched, f"__{name}__", _on_batches(PRIMITIVES[primitive]))
    for name, primitive in _UFUNCS.items():
        setattr(Batched, f"__r{name}__", _on_batches(PRIMITIVES[primitive], reflected=True))
    for name, primitive in _UNARY.items():
        setattr(Batched, f"__{name}__", functools.partialmethod(_unary, PRIMITIVES[primitive]))
    Batched.__array_ufunc__ = _array_ufunc


def _bind_operator(name: str, method: Any) -> None:
    setattr(Tensor, name, method)
    setattr(Variable, name, _with_read(method))


_ONE_OPERAND = frozenset({"__neg__", "__abs__", "__invert__", "__getitem__"})


def promote_operands(promote: Any, matrix_product: Any = None) -> None:
    """Makes operators promote their operands with `promote`; `None` turns promotion off.

    `promote(x1, x2)` returns two tensors of one dtype; `matrix_product` implements `@` then. The
    operators are redefined, so promotion costs nothing while it is off.
    """
    for name, method in _METHODS.items():
        if name in _ONE_OPERAND:
            continue
        if promote is not None and "matmul" in name:
            product = matrix_product
            method = product if name == "__matmul__" else _swap_operands(product)
        _bind_operator(name, method if promote is None else _with_promotion(method, promote))


def _swap_operands(method: Any) -> Any:
    return lambda self, other: method(other, self)


def _with_promotion(method: Any, promote: Any) -> Any:
    def promoting(self, other):
        if other is None or isinstance(other, CompositeTensor):
            return method(self, other)
        return method(*promote(self, other))

    return promoting


def _bind() -> None:
    for name, method in _METHODS.items():
        _bind_operator(name, method)
    for name, method in _IN_PLACE.items():
        setattr(Variable, name, method)
    Variable.__getitem__ = get_item_of_variable


_bind()
_bind_batches()
