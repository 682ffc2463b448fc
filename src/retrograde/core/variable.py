"""Variable: a named, mutable holder of one tensor."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from retrograde.core import namespaces, required
from retrograde.core.apply import Primitive, apply
from retrograde.core.hooks import VARIABLE_METHODS, LazyMethod, hook
from retrograde.core.indexed_slices import IndexedSlices, dense
from retrograde.core.lazy import materializer_of
from retrograde.core.recorders import escape, next_id, thread
from retrograde.core.tensor import Reference, Tensor, readable, representation
from retrograde.core.variable_cell import VariableCell
from retrograde.values import dtypes, variable_scopes
from retrograde.values.arguments import as_text, shown
from retrograde.values.conversion import as_array, check_dtype, tensor_or_variable
from retrograde.values.dtypes import DType
from retrograde.values.errors import allocate, invalid
from retrograde.values.shapes import TensorShape

if TYPE_CHECKING:
    from retrograde._api.declarations import VariableMethods as _VariableBase
else:
    _VariableBase = VariableCell


class VariableSynchronization(enum.Enum):
    """When the copies of a variable on several replicas are synchronized."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(enum.Enum):
    """The way to combine the copies of a variable on several replicas."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


class _Creating(type):
    """Passes the creation of a `Variable` to the creators of `tf.variable_creator_scope`."""

    if not TYPE_CHECKING:  # a type checker reads the arguments of `__init__`

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            creators = variable_scopes.scopes.variable_creators
            if cls is not Variable or not creators:
                return super().__call__(*args, **kwargs)
            make: Callable = super().__call__
            for creator in creators:
                make = functools.partial(creator, make)
            return make(**_by_name(args, kwargs))

    @property
    def __signature__(cls: Any) -> Any:
        """The signature of `__init__`, for `help()` and editors."""
        import inspect

        signature = inspect.signature(cls.__init__)
        _, *parameters = signature.parameters.values()
        return signature.replace(parameters=parameters)


def _by_name(args: tuple, kwargs: dict) -> dict:
    """Returns the arguments of `Variable` by name, including defaults."""
    import inspect  # takes longer to import than this module

    bound = inspect.signature(Variable.__init__).bind(None, *args, **kwargs)
    bound.apply_defaults()
    _, *named = bound.arguments.items()
    *named, (_, others) = named
    return dict(named) | others


class Variable(_VariableBase, metaclass=_Creating):
    """A mutable tensor. Tapes watch trainable variables when they are read.

    `initial_value` is anything that converts to a tensor, or a function without arguments that
    returns it. With `trainable=False`, tapes do not watch the variable automatically. `shape` may
    have unknown dimensions, for values of changing shape. Optimizers apply `constraint`.

    A tensor that was read from a variable never changes: an assignment writes into the current
    array only if nothing else holds it. Several threads may read and assign, and each read
    returns a complete value.

    >>> v = tf.Variable([1.0, 2.0])
    >>> before = v.value()
    >>> v.assign_add([10.0, 10.0]).numpy(), before.numpy()
    (array([11., 12.], dtype=float32), array([1., 2.], dtype=float32))
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_aggregation",
        "_constraint",
        "_name",
        "_shape",
        "_synchronization",
        "_trainable",
    )
    __array_priority__ = 100

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        import_scope: Any = None,
        constraint: Callable | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        shape: Any = None,
        **_: Any,
    ) -> None:
        if initial_value is None:
            raise ValueError(
                "The `initial_value` arg to `tf.Variable` must be specified. Pass a value, or a "
                "function without arguments that returns one."
            )
        if callable(initial_value) and tensor_or_variable(initial_value) is None:
            initial_value = initial_value()
        if constraint is not None and not callable(constraint):
            raise ValueError(
                f"Argument `constraint` must be None or a callable. Received: {shown(constraint)}."
            )
        value = _initial_tensor(initial_value, dtype)
        self._shape = None if shape is None else TensorShape(shape)
        if self._shape is not None and not self._shape.is_compatible_with(value._spec.shape):
            raise ValueError(
                f"In this `tf.Variable` creation, the initial value's shape ({value._spec.shape}) "
                "is not compatible with the explicitly supplied `shape` argument "
                f"({as_text(shape)})."
            )
        self._id = next_id()
        on_host = not namespaces.foreign
        self._tensor = Tensor(value._array, self._id) if on_host else hook("place")(value, self._id)
        self._owner = None
        self._name = variable_scopes.variable_name(name)
        if trainable is None:
            trainable = synchronization is not VariableSynchronization.ON_READ
        self._trainable = bool(trainable)
        self._constraint = constraint
        self._synchronization = synchronization
        self._aggregation = aggregation
        for recorder in thread.recorders:
            recorder.create(self)

    @property
    def name(self) -> str:
        """The name, followed by `:0` as in TensorFlow."""
        return f"{self._name}:0"

    @property
    def dtype(self) -> DType:
        """The dtype, which assignments cannot change."""
        return dtypes.of(self._spec.dtype)

    @property
    def shape(self) -> TensorShape:
        """The shape, with the unknown dimensions of the argument `shape`."""
        return TensorShape(self._spec.shape) if self._shape is None else self._shape

    @property
    def ndim(self) -> int:
        """The number of axes of the current value."""
        return self._spec.ndim

    @property
    def trainable(self) -> bool:
        """Whether tapes watch this variable automatically."""
        return self._trainable

    @property
    def constraint(self) -> Callable | None:
        """A function that an optimizer applies to the value after each update."""
        return self._constraint

    @property
    def synchronization(self) -> VariableSynchronization:
        """The value of the constructor's argument."""
        return self._synchronization

    @property
    def aggregation(self) -> VariableAggregation:
        """The value of the constructor's argument."""
        return self._aggregation

    @property
    def device(self) -> str:
        """The name of the device that holds the array."""
        return self._current().device

    # Reading

    @property
    def _array(self) -> Any:
        return self._current()._array

    @property
    def _spec(self) -> Any:
        tensor = self._tensor
        return (self._current() if tensor is None else tensor)._spec

    @property
    def _device(self) -> Any:
        return self._current()._device

    def _checkpoint_array(self) -> np.ndarray:
        """Returns the array that a checkpoint saves."""
        return np.asarray(self._array)

    def _read(self) -> Tensor:
        """Returns the current tensor, for use as an input. It has the id of the variable."""
        for recorder in thread.recorders:
            recorder.read(self)
        tensor = self._tensor
        return self._current() if tensor is None else tensor

    def value(self) -> Tensor:
        """Returns the current value as a new tensor."""
        return apply(required.identity, (self._read(),))

    def read_value(self) -> Tensor:
        """Returns the current value as a new tensor."""
        return self.value()

    def numpy(self) -> Any:
        """Returns a copy of the current value."""
        return self._read().numpy()

    def is_initialized(self) -> Tensor:
        """Returns True: every variable has an initial value."""
        return Tensor(np.True_)

    def get_shape(self) -> TensorShape:
        """Returns the shape."""
        return self.shape

    def ref(self) -> Reference:
        """Returns a hashable reference, equal to other references to the same variable."""
        return Reference(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        tensor = self._read()
        escape(tensor, "__array__")
        return readable(tensor._array, dtype, copy)

    def __bool__(self) -> bool:
        return bool(self._read())

    def __int__(self) -> int:
        return int(self._read())

    def __float__(self) -> float:
        return float(self._read())

    def __complex__(self) -> complex:
        return complex(self._read())

    def __index__(self) -> int:
        return self._read().__index__()

    def __format__(self, spec: str) -> str:
        return format(self._read(), spec) if spec else str(self)

    def __iter__(self) -> Any:
        return iter(self.value())

    def __repr__(self) -> str:
        start = f"<tf.Variable {self.name!r} shape={self.shape} dtype={self.dtype.name}"
        if thread.recorders.tracer is not None:  # the value differs in each call
            return f"{start}>"
        return f"{start}, numpy={representation(self._array)}>"

    def __hash__(self) -> int:
        raise TypeError(
            f"Variable is unhashable. Instead, use variable.ref() as the key. (Variable: {self!r})"
        )

    # Assigning

    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Variable:
        """Assigns `value`, which must have the shape and dtype of the variable.

        Returns the variable, or `None` if `read_value` is false.

        >>> v = tf.Variable([1.0, 2.0])
        >>> v.assign([3.0, 4.0]).numpy()
        array([3., 4.], dtype=float32)
        """
        operand, before = self._operand(value, "assign"), self._current()
        shape, fixed = operand._spec.shape, self._shape
        if (shape != before._spec.shape) if fixed is None else not fixed.is_compatible_with(shape):
            raise ValueError(self._shape_message(shape))
        tracer, tensor = thread.recorders.tracer, before._replaced_by(operand, self._id)
        if tracer is None:
            self._hold(tensor)
        else:
            tracer.assign(self, tensor, operand)
        # Type checkers are told that it is a variable, which chained calls rely on.
        return self if read_value else None  # type: ignore[return-value]

    def assign_add(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Variable:
        """Adds `delta` to the value. Returns the variable.

        >>> tf.Variable([1.0, 2.0]).assign_add([0.5, 0.5]).numpy()
        array([1.5, 2.5], dtype=float32)
        """
        return self._update(np.add, required.add, delta, "assign_add", read_value)

    def assign_sub(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Variable:
        """Subtracts `delta` from the value. Returns the variable."""
        return self._update(np.subtract, required.subtract, delta, "assign_sub", read_value)

    def _operand(self, value: Any, how: str) -> Tensor:
        """Returns the tensor of `value`, which is about to be assigned to this variable."""
        if type(value) is not Tensor and isinstance(value, IndexedSlices):
            value = dense(value)
        tensor, dtype = _tensor_of(value), self._spec.dtype
        if tensor is None:
            return Tensor(as_array(value, dtype))
        for recorder in thread.recorders:
            recorder.store(self, tensor)
        escape(tensor, how)
        if tensor._spec.dtype is not dtype:
            check_dtype(tensor._spec, dtype)
        return tensor

    def _shape_message(self, shape: tuple) -> str:
        return (
            f"Cannot assign value to variable '{self.name}': Shape mismatch. The variable shape "
            f"{self.shape}, and the assigned value shape {as_text(shape)} are incompatible."
        )

    def _update(
        self, ufunc: Any, primitive: Primitive, delta: Any, how: str, read_value: bool
    ) -> Any:
        recorders = thread.recorders
        plain = not recorders and isinstance(delta, Tensor) and type(self._tensor) is Tensor
        if plain and self._update_in_place(ufunc, delta._array, recorders.quietly):
            return self if read_value else None
        now = self._spec
        shape, dtype = now.shape, now.dtype
        del now  # an array that has another holder is not updated in place
        operand = self._operand(delta, how)
        if dtype.kind in "bO":
            raise invalid(f"{how}: dtype {self.dtype.name} is not supported. Expected a number.")
        if operand._spec.shape != shape:
            raise invalid(
                f"{how}: cannot update variable '{self.name}' of shape {shape} with a value of "
                f"shape {operand._spec.shape}. Expected the same shape: there is no broadcasting."
            )
        if recorders.tracer is not None:
            recorders.tracer.update(self, primitive, operand)
        elif not materializer_of(self._current()).update(self, primitive, operand):
            array, quietly = operand._array, recorders.quietly

            def write(old: Any, out: np.ndarray | None) -> Any:
                if out is None:
                    return allocate(how, quietly, primitive, old, array)
                return allocate(how, quietly, ufunc, old, array, out)

            self._write(write)
        return self if read_value else None

    # Copying

    def __copy__(self) -> Variable:
        return self  # as in TensorFlow, where the copy would share the value

    def __deepcopy__(self, memo: dict) -> Variable:
        copied = _restore(np.array(self._array), self._settings())
        memo[id(self)] = copied
        return copied

    def __reduce__(self) -> tuple:
        return _restore, (np.array(self._array), self._settings())

    def _settings(self) -> dict[str, Any]:
        return {
            "trainable": self._trainable,
            "name": self._name,
            "constraint": self._constraint,
            "synchronization": self._synchronization,
            "aggregation": self._aggregation,
            "shape": self._shape,
        }


def _tensor_of(value: Any) -> Tensor | None:
    """Returns the tensor that `value` is or holds, or `None`."""
    if isinstance(value, Tensor):
        return value
    held = tensor_or_variable(value)
    return None if held is None else held._read()


def _restore(array: np.ndarray, settings: dict) -> Variable:
    return Variable(Tensor(array), **settings)


def _initial_tensor(value: Any, dtype: Any) -> Tensor:
    wanted = None if dtype is None else dtypes.as_dtype(dtype).numpy_dtype
    if isinstance(value, IndexedSlices):
        raise ValueError(
            "The initial value of a variable must be a dense tensor. Received: IndexedSlices."
        )
    tensor = _tensor_of(value)
    if tensor is None:
        return Tensor(as_array(value, wanted))
    escape(tensor, "Variable")
    check_dtype(tensor._spec, wanted)
    return tensor


for _name, _module in VARIABLE_METHODS.items():
    setattr(Variable, _name, LazyMethod(Variable, _name, _module))
