"""`keras.Variable`, holding one of retrograde's."""

import numpy as np
from keras.src.backend.common import KerasVariable, global_state

from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable as HeldVariable
from retrograde.keras_backend.conversion import convert_to_tensor, numpy_dtype


class Variable(KerasVariable):
    """A Keras variable whose value lives in a `retrograde.Variable`, which tapes know."""

    __array_priority__ = 100

    def _initialize(self, value):
        if isinstance(value, HeldVariable):
            self._value = value
        else:
            value = convert_to_tensor(value, self._dtype)
            self._value = HeldVariable(value, trainable=self._trainable, name=self._name)

    def _convert_to_tensor(self, value, dtype=None):
        return convert_to_tensor(value, dtype)

    def _direct_assign(self, value):
        self._value.assign(value)

    # Reading

    @property
    def value(self):
        """The present value: in a stateless scope its own, cast where layers compute in another."""
        present = self._present()
        scope = _scope("autocast_scope")
        if scope is None or not self._autocast or scope.dtype == self._dtype:
            return present
        return scope.maybe_cast(present)

    def _present(self):
        scope = _scope("stateless_scope")
        if scope is not None:
            value = scope.get_current_value(self)
            if value is not None:
                return value
        if self._value is None:
            # A shape is being found out before the variable is made: any value will do.
            return Tensor(np.zeros(self._shape, numpy_dtype(self._dtype)))
        return self._value._read()

    def __retrograde_tensor__(self):
        value, held = self.value, self._value
        return held if held is not None and value is held._tensor else value

    def __retrograde_source__(self):
        return self._value if _scope("stateless_scope") is None else self._present()

    def numpy(self):
        """A copy of the present value."""
        return np.array(self)

    def __array__(self, dtype=None, copy=None):
        return self.value.__array__(dtype, copy)

    # Writing

    def assign_add(self, value):
        """Adds `value`. Returns the new value."""
        if not self._is_plain(value):
            return super().assign_add(value)
        self._value.assign_add(value)
        return self._value._read()

    def assign_sub(self, value):
        """Subtracts `value`. Returns the new value."""
        if not self._is_plain(value):
            return super().assign_sub(value)
        self._value.assign_sub(value)
        return self._value._read()

    def _is_plain(self, value):
        """Whether `value` can be added in place, with nothing to convert."""
        return (
            isinstance(value, Tensor)
            and _scope("stateless_scope") is None
            and value._spec.shape == self._shape
            and value._spec.dtype is self._value._spec.dtype
        )

    @property
    def trainable(self):
        """Whether the variable is trainable; if so, tapes watch it."""
        return self._trainable

    @trainable.setter
    def trainable(self, value):
        self._trainable = bool(value)
        if self._value is not None:
            self._value._trainable = self._trainable


def _scope(name):
    """Keras's scope of this kind around us, or `None`."""
    return getattr(global_state.GLOBAL_STATE_TRACKER, name, None)
