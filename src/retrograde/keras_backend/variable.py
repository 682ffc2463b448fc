"""`keras.Variable`, holding one of retrograde's."""

import numpy as np
from keras.src.backend.common import KerasVariable, global_state

from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable as HeldVariable
from retrograde.keras_backend.conversion import cast, convert_to_tensor


class Variable(KerasVariable):
    """A Keras variable whose value lives in a `retrograde.Variable`, which tapes know."""

    __array_priority__ = 100

    def _initialize(self, value):
        if isinstance(value, HeldVariable):
            self._value = value
        else:
            self._value = HeldVariable(
                value, trainable=self._trainable, name=self._name, dtype=self._dtype
            )

    def _convert_to_tensor(self, value, dtype=None):
        return convert_to_tensor(value, dtype)

    def _direct_assign(self, value):
        self._value.assign(value)

    @property
    def value(self):
        """The present value: in a stateless scope its own, cast where layers compute in another."""
        return self._maybe_autocast(self._present())

    def _present(self):
        scope = global_state.get_global_attribute("stateless_scope")
        if scope is not None:
            value = scope.get_current_value(self)
            if value is not None:
                return value
        if self._value is None:  # a shape is being found out, before the variable is made
            return self._initializer(self._shape, dtype=self._dtype)
        return self._value._read()

    def __retrograde_tensor__(self):
        return self.value

    def __retrograde_source__(self):
        scope = global_state.get_global_attribute("stateless_scope")
        value = None if scope is None else scope.get_current_value(self)
        return self._value if value is None else value

    def assign_add(self, value):
        return self._updated(value, HeldVariable.assign_add, super().assign_add)

    def assign_sub(self, value):
        return self._updated(value, HeldVariable.assign_sub, super().assign_sub)

    def _updated(self, value, in_place, in_general):
        """The value after an update, written over the old one where nothing stands against it."""
        held = self._value
        if (
            type(value) is not Tensor
            or global_state.get_global_attribute("stateless_scope") is not None
            or value._array.dtype is not held._array.dtype
            or value._array.shape != self._shape
        ):
            return in_general(value)
        in_place(held, value)
        return held._read()

    @property
    def trainable(self):
        """Whether the variable is trainable; if so, tapes watch it."""
        return self._trainable

    @trainable.setter
    def trainable(self, value):
        self._trainable = bool(value)
        if self._value is not None:
            self._value._trainable = self._trainable

    def numpy(self):
        """A copy of the present value."""
        return np.array(self)

    def __array__(self, dtype=None, copy=None):
        return self.value.__array__(dtype, copy)


__all__ = ["Variable", "cast"]
