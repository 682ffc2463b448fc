"""`keras.Variable` for the retrograde backend."""

import functools

import numpy as np
from keras.src.backend.common import KerasVariable, global_state

from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable as RetrogradeVariable
from retrograde.core.variable import VariableAggregation, VariableSynchronization
from retrograde.keras_backend import distribution_lib
from retrograde.keras_backend.conversion import convert_to_tensor, numpy_dtype
from retrograde.keras_backend.sharded_variable import ShardedVariable
from retrograde.values.shapes import TensorShape

_AGGREGATIONS = {
    None: VariableAggregation.NONE,
    "none": VariableAggregation.NONE,
    "sum": VariableAggregation.SUM,
    "mean": VariableAggregation.MEAN,
    "only_first_replica": VariableAggregation.ONLY_FIRST_REPLICA,
}
_SYNCHRONIZATIONS = {
    None: VariableSynchronization.NONE,
    "auto": VariableSynchronization.AUTO,
    "none": VariableSynchronization.NONE,
    "on_write": VariableSynchronization.ON_WRITE,
    "on_read": VariableSynchronization.ON_READ,
}


class Variable(KerasVariable):
    """A Keras variable that stores its value in a `retrograde.Variable`, which tapes record."""

    __array_priority__ = 100

    def _initialize(self, value):
        if isinstance(value, RetrogradeVariable):
            self._value = value
        else:
            value = convert_to_tensor(value, self._dtype)
            self._shape = self._validate_shape(value.shape)  # layouts depend on it
            layout = distribution_lib.variable_layout(self)
            create = RetrogradeVariable
            if layout is not None:
                create = functools.partial(ShardedVariable, layout=layout)
            self._value = create(
                value,
                trainable=self._trainable,
                name=self._name,
                aggregation=_AGGREGATIONS[self._aggregation],
                synchronization=_SYNCHRONIZATIONS[self._synchronization],
            )

    def _convert_to_tensor(self, value, dtype=None):
        if isinstance(value, RetrogradeVariable) and value._spec.dtype == numpy_dtype(dtype):
            return value  # `_initialize` keeps it
        return convert_to_tensor(value, dtype)

    def _direct_assign(self, value):
        self._value.assign(value)

    # Reading

    @property
    def shape(self):
        """The shape, as a `TensorShape`."""
        return TensorShape(self._shape)

    @property
    def value(self):
        """The current value, from an active stateless scope, and cast by the autocast scope."""
        scope = _scope("autocast_scope")
        current = self._current()
        if scope is None or not self._autocast or scope.dtype == self._dtype:
            return current
        return scope.maybe_cast(current)

    def _current(self):
        scope = _scope("stateless_scope")
        if scope is not None:
            value = scope.get_current_value(self)
            if value is not None:
                return value
        if self._value is None:
            # Shape inference runs before the variable is created: any value is fine.
            return Tensor(np.zeros(self._shape, numpy_dtype(self._dtype)))
        return self._value._read()

    def __retrograde_tensor__(self):
        value, variable = self.value, self._value
        return variable if variable is not None and value is variable._tensor else value

    def __retrograde_source__(self):
        return self._value if _scope("stateless_scope") is None else self._current()

    def numpy(self):
        """Returns a copy of the current value."""
        return np.array(self)

    def __array__(self, dtype=None, copy=None):
        return self.value.__array__(dtype, copy)

    # Writing

    def assign_add(self, value):
        """Adds `value`. Returns the new value."""
        if not self._can_update_in_place(value):
            return super().assign_add(value)
        self._value.assign_add(value)
        return self._value._read()

    def assign_sub(self, value):
        """Subtracts `value`. Returns the new value."""
        if not self._can_update_in_place(value):
            return super().assign_sub(value)
        self._value.assign_sub(value)
        return self._value._read()

    def _can_update_in_place(self, value):
        """Returns whether `value` can be added in place, without conversion."""
        return (
            isinstance(value, Tensor)
            and _scope("stateless_scope") is None
            and value._spec.shape == self._shape
            and value._spec.dtype is self._value._spec.dtype
        )

    @property
    def trainable(self):
        """True if the variable is trainable, so that tapes watch it automatically."""
        return self._trainable

    @trainable.setter
    def trainable(self, value):
        self._trainable = bool(value)
        if self._value is not None:
            self._value._trainable = self._trainable


def _scope(name):
    """Returns the active Keras scope of this name, or `None`."""
    return getattr(global_state.GLOBAL_STATE_TRACKER, name, None)


def is_redirected():
    """Returns whether a Keras scope casts the variables that are read, or collects assignments."""
    return _scope("autocast_scope") is not None or _scope("stateless_scope") is not None
